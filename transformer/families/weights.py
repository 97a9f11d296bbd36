"""Opens a model of a family: names, shapes, then numbers, which are read a few tensors at a time.

A family says which of its names is which of ours. What its files hold is compared with what the
config asks for before memory is allocated.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from transformer.config import TransformerConfig
from transformer.families.family import Family
from transformer.families.pieces import named_by, proposed, settings_of
from transformer.families.rules import search_rules
from transformer.model import Transformer
from transformer.packed import copied_for_few_rows
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes, empty_model
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.tensors import (
    StoredTensor,
    all_finite,
    check_names,
    check_shape,
    check_types,
    read_tensors,
    stored_tensors,
    weight_files,
)
from transformer.text.tokenizer import Vocabulary
from transformer.text.words import EOS, PAD, UNK

Stored = dict[str, StoredTensor]
OURS = "embedding.weight", "target_embedding.weight", "output.weight"
"""Our tables: of the source, of the target, and of the output."""
BIAS = "final_logits_bias"
SINES = {f"model.{side}.embed_positions.weight": side for side in ("encoder", "decoder")}
"""Tables of sinusoids that a file of Marian's may hold, by their names."""
SINES_DIFFER = 1e-2
"""Largest difference allowed between such a table and the formula: 16-bit rounding."""
UNREAD = re.compile(r"model\.(encoder|decoder)\.(version|embed_positions\.(weights|_float_tensor))")
"""Tensors of old files that no model reads: a version, and sines, which are computed."""
UNSAID = re.compile(
    r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
)
"""A table of positions of cross-attention in T5's old files, which no model reads."""
QUANTISED = "I8", "U8", "int8", "uint8", "F8_E4M3", "F8_E5M2"
"""Types that only quantised weights have."""
PACKED = ".qweight"
"""How names of weights end that hold several numbers in one, as GPTQ and AWQ write them."""
ANY_FAMILY = "PreTrainedTokenizer", "TokenizersBackend", "PythonBackend", "SentencePieceBackend"
"""Classes of tokenizers that say nothing of an order."""
UNUSED_ROWS = 2
"""Rows at the start of a table of learned positions that no token has."""
Layout = tuple[Callable[[tuple[int, ...]], tuple[int, ...]], Callable[[Tensor], Tensor]]
LAYOUTS: dict[str, Layout] = {
    "positions.table": (
        lambda ours: (UNUSED_ROWS + ours[0], *ours[1:]),
        lambda theirs: theirs[UNUSED_ROWS:],
    ),
    "positions.weight": (lambda ours: ours[::-1], Tensor.t),  # buckets by heads
    "output_bias": (lambda ours: (1, *ours), lambda theirs: theirs[0]),
}
"""Weights stored otherwise, by the end of our name: the shape from ours, our tensor from theirs."""
AS_OURS: Layout = (lambda ours: ours, lambda theirs: theirs)
_BARE = re.compile(r"(shared|encoder|decoder)\.")


def open_model(family: Family, directory: Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    The config is checked before memory is allocated; names and shapes of all weights before they
    are read. CheckpointError if a file is missing, damaged, of another model, or needs an
    unsupported feature.
    """
    values = read_json(directory / CONFIG_FILE)
    config = family.config(values, directory / CONFIG_FILE)
    _check_tokenizer(family, directory, values.get("tokenizer_class"))
    stored = stored_tensors(weight_files(directory), all_types=True)
    stored = _with_prefix(family, stored)
    roles = family.tables(config)
    of_tables = {name for role in roles for name in role}
    known = {BIAS, *family.names(config).values(), *of_tables, *SINES}
    check_quantised(directory, values.get("quantization_config"), known, stored)
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    chosen = tables(directory, roles, stored)
    names = family.names(config) | _table_names(chosen)
    if BIAS in stored:
        names["output_bias"] = BIAS
    needed = set(names.values())
    unread = [name for name, tensor in stored.items() if UNREAD.fullmatch(name) or tensor.kind]
    sines = dict[str, StoredTensor]()
    if config.positions == "sinusoidal":
        sines = {name: stored[name] for name in SINES if name in stored}
    ignored = {*of_tables, *unread, *sines, *filter(UNSAID.fullmatch, stored)}
    check_names(directory, needed, set(stored) - (ignored - needed))
    (source, target, output) = chosen
    config = replace(
        config,
        shared_embeddings=target == source,
        tied_embeddings=output == target,
        target_vocab_size=None if target == source else config.target_vocab_size,
        output_bias=BIAS in stored,
    )
    (vocabulary, config) = family.vocabulary(directory, config)
    padding = padding_piece(directory, config, vocabulary)
    check_ids(directory, config, vocabulary, padding)
    rules, notes = search_rules(directory, values, config, vocabulary.target.ids[padding])
    languages = proposed(directory, vocabulary, rules.forced_start)
    config = replace(config, languages=" ".join(languages))
    for name in unread[:1]:
        notes += (f"This model's files hold {name}, which no model reads; it is ignored.",)
    needed_tensors = {name: stored[name] for name in names.values()}
    model = read_weights(directory, config, names, needed_tensors)
    _read_sines(model, sines)
    (heads, damaged) = read_heads(directory, config)
    return Checkpoint(
        config=config,
        model=model,
        tokenizer=vocabulary,
        heads=heads,
        card=read_card(directory),
        rules=rules,
        notes=(*notes, *damaged),
    )


def _with_prefix(family: Family, stored: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Tensors by their usual names; a model saved without its output projection lacks a prefix."""
    if not any(map(_BARE.match, stored)):
        return dict(stored)
    tensors = dict[str, StoredTensor]()
    for name, tensor in stored.items():
        usual = f"{family.prefix}{name}" if _BARE.match(name) else name
        tensors[usual] = replace(tensor, called=name)
    return tensors


def _table_names(chosen: Sequence[str]) -> dict[str, str]:
    """Our names and theirs of the tables of source, target and output that are tables of their
    own."""
    (source, target, output) = chosen
    names = {OURS[0]: source}
    if target != source:
        names[OURS[1]] = target
    if output != target:
        names[OURS[2]] = output
    return names


def _check_tokenizer(family: Family, directory: Path, otherwise: object) -> None:
    """CheckpointError if the files name a tokenizer that orders tokens otherwise than its
    family."""
    named = settings_of(directory).get("tokenizer_class") or otherwise
    if isinstance(named, str) and named.removesuffix("Fast") not in (
        *family.tokenizers,
        *ANY_FAMILY,
    ):
        raise CheckpointError(
            f"{directory} names the tokenizer {named!r:.60}, which orders tokens otherwise than "
            f"{' and '.join(family.tokenizers)}; models of {family.name} with it are not supported."
        )


def tables(
    directory: Path, roles: Sequence[Sequence[str]], stored: Mapping[str, StoredTensor]
) -> list[str]:
    """Stored names of source, target and output table; one equal to an earlier one gets the earlier
    name.

    ``roles`` holds, for each of the three, the names under which its table may be stored, its own
    first: tied tables are stored once, under any of their names, or several times with the same
    numbers. CheckpointError if one is missing.
    """
    chosen: list[str] = []
    for names in roles:
        name = next((name for name in names if name in stored), None)
        if name is None:
            raise CheckpointError(f"The weights in {directory} lack {names[0]}.")
        chosen.append(next((old for old in reversed(chosen) if same(stored, old, name)), name))
    return chosen


def same(stored: Mapping[str, StoredTensor], one: str, other: str) -> bool:
    """True if two stored tensors are the same tensor or hold the same numbers."""
    first = stored[one]
    second = stored[other]
    if one == other or (first.storage is not None and first.storage == second.storage):
        return True
    if first.shape != second.shape:
        return False
    tensors = (tensor for _, tensor in read_tensors({one: first, other: second}))
    table = next(tensors).clone()
    return torch.equal(table, next(tensors).to(table.dtype))


def check_quantised(
    directory: Path,
    method: object,  # what config.json says of how the weights were quantised
    known: Collection[str],  # names of the weights of such a model
    stored: Mapping[str, StoredTensor],
) -> None:
    """CheckpointError if weights are no floating-point numbers; it names how they were
    quantised."""
    no_floats = {name: tensor for name, tensor in stored.items() if tensor.kind}
    weights = {
        name: tensor for name, tensor in no_floats.items() if name in known or name.endswith(PACKED)
    }
    stated = method if isinstance(method, dict) and no_floats else {}
    if not weights and not stated:
        return
    name, tensor = next(iter((weights or no_floats).items()))
    if not stated and tensor.kind not in QUANTISED and not name.endswith(PACKED):
        check_types({name: tensor})
    way = stated.get("quant_method") or ("GPTQ or AWQ" if name.endswith(PACKED) else "bitsandbytes")
    raise CheckpointError(
        f"The weights in {directory} are quantised ({way!s:.40}; {name:.80} is stored as "
        f"{tensor.kind}), and only floating-point weights are supported: open the model that they "
        "were made from."
    )


def padding_piece(directory: Path, config: TransformerConfig, vocabulary: Vocabulary) -> str:
    """The piece that pads: one of a fine-tuner's own, if the settings name it and it has the
    config's id."""
    piece = named_by(settings_of(directory).get("pad_token"))
    sides = (vocabulary.source.ids, vocabulary.target.ids)
    if piece is not None and all(ids.get(piece) == config.pad_id for ids in sides):
        return piece
    return PAD


def check_ids(
    directory: Path, config: TransformerConfig, vocabulary: Vocabulary, padding: str
) -> None:
    """CheckpointError if a config and a vocabulary number the special pieces differently."""
    ids = vocabulary.source.ids
    special = ((EOS, config.eos_id, vocabulary.target.ids), (EOS, config.eos_id, ids))
    for piece, number, table in (
        *special,
        (padding, config.pad_id, ids),
        (UNK, config.unk_id, ids),
    ):
        if table[piece] != number:
            raise CheckpointError(
                f"config.json in {directory} gives {piece} the id {number}, but the vocabulary has "
                f"{table[piece]}; the files belong to different models."
            )


def read_weights(
    directory: Path,
    config: TransformerConfig,
    names: Mapping[str, str],  # our name of every weight → theirs
    stored: Stored,  # the tensors; what is read is removed, which frees one that was held in memory
) -> Transformer:
    """The model, float32; CheckpointError if a shape is another one or a number is NaN or
    infinite."""
    model = empty_model(directory, config)
    assert isinstance(model, Transformer)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    ours_of = {theirs: ours for ours, theirs in names.items()}
    layouts = dict[str, Layout]()
    for name, ours in ours_of.items():
        layouts[name] = next(
            (layout for end, layout in LAYOUTS.items() if ours.endswith(end)), AS_OURS
        )
        check_shape(stored[name].path, name, stored[name].shape, layouts[name][0](expected[ours]))
    state = {ours_of[name]: layouts[name][1](tensor) for name, tensor in copied(stored)}
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False).eval()


def copied(stored: Stored) -> Iterator[tuple[str, Tensor]]:
    """Yields a float32 copy of every tensor, laid out as ``packed.convert`` lays it out.

    Each copied tensor is removed from ``stored``, which frees a tensor that was held in memory.
    CheckpointError if a number is NaN or infinite.
    """
    for name, tensor in read_tensors(stored):
        copy = copied_for_few_rows(tensor)
        if not all_finite(copy):
            raise CheckpointError(f"{stored[name].path} contains NaN or infinite values.")
        del stored[name], tensor
        yield name, copy


def _read_sines(model: Transformer, stored: Stored) -> None:
    """Copies stored sinusoids; CheckpointError if a table does not match the formula up to
    rounding."""
    wanted = (model.config.max_positions, model.config.d_model)
    paths = dict[str, Path]()
    for name, sines in stored.items():
        check_shape(sines.path, name, sines.shape, wanted)
        paths[name] = sines.path
    for name, tensor in copied(stored):
        table = getattr(model, SINES[name]).positions.added(len(tensor))
        if float((tensor - table).abs().max()) > SINES_DIFFER:
            raise CheckpointError(f"{paths[name]}: {name} does not hold Marian's sinusoids.")
        table.copy_(tensor)
