"""Decoders in GGUF files: what an architecture of llama.cpp is called, and its vocabulary. No
PyTorch at import.

Names of values and tensors are those of the format's description in the project ggml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transformer.config import LanguageModelConfig
from transformer.families import gpt2, llama
from transformer.families.alone import AS_OURS, EMBEDDING, Layout, Source, both, of_layers
from transformer.families.decoder import FINAL_NORM, OUTPUT, halves
from transformer.families.family import Json
from transformer.families.whole import PRE_TOKENIZERS, PreTokenizer, Whole
from transformer.families.written import TypedPieces, TypedSentencePieces, with_ids
from transformer.storage.files import CheckpointError
from transformer.storage.gguf import GgufFile, Scalar, Value
from transformer.storage.memory import check_memory
from transformer.text.tokenizer import Pieces, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from transformer.storage.directory import Checkpoint

SCALED = "rope_freqs.weight"
"""What divides the angle of each pair of dimensions, in files of Llama 3."""
LLAMA3: tuple[Json, ...] = tuple(
    {
        "rotary_scaling": "llama3",
        "rotary_factor": factor,
        "rotary_low": 1.0,
        "rotary_high": 4.0,
        "rotary_trained_length": 8192,
    }
    for factor in (8.0, 32.0)
)
"""How Llama 3.1 and 3.2 scale their angles; a file has only the outcome."""
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
"""Kinds of pieces, as sentencepiece numbers them."""


@dataclass(frozen=True)
class Architecture:
    """What opening a file asks of its architecture."""

    values: Callable[[GgufFile, str], Json]  # entries as a config.json has them
    config: Callable[[Json, Path], LanguageModelConfig]
    sources: Callable[[LanguageModelConfig], dict[str, Source]]


def open_gguf(path: Path) -> Checkpoint:
    """Opens a GGUF file; CheckpointError if it is damaged, of an unknown architecture, needs an
    unsupported feature, or does not fit into memory."""
    from transformer.decoding import SearchRules
    from transformer.families.decoders import HEAD
    from transformer.families.opening import read_state
    from transformer.storage.directory import Checkpoint

    file = GgufFile(path)
    architecture, config = _described(file)
    check_memory(path, config)
    sources = architecture.sources(config)
    if config.tied_embeddings:
        del sources[HEAD]
    pieces = vocabulary(file, config)
    config = with_ids(config, pieces, _start(file, config))
    names = {source.name for source in sources.values()}
    if missing := sorted(names - file.tensors.keys()):
        raise CheckpointError(f"{path} lacks the weight {missing[0]}.")
    if extra := sorted(file.tensors.keys() - names - {SCALED, "output.weight"}):
        raise CheckpointError(
            f"{path} holds {extra[0]!r:.80}, which no model of its architecture has."
        )
    shapes = {name: file.tensors[name].shape for name in names}
    model = read_state(path, config, sources, shapes, _read(file, names))
    rules = SearchRules(end_id=config.eos_id, other_ends=_other_ends(file, config))
    template = file.values.get("tokenizer.chat_template")
    notes: tuple[str, ...] = ()
    if file.quantised:
        notes = (f"The weights of this model are multiplied out from {file.quantised}.",)
    return Checkpoint(
        config=config,
        model=model,
        tokenizer=Vocabulary(pieces, pieces),
        heads=None,
        card="",
        rules=rules,
        notes=notes,
        chat_template=template if isinstance(template, str) else "",
    )


def config_of(path: Path) -> LanguageModelConfig:
    """The config of a file, read without its weights; CheckpointError as ``open_gguf``."""
    return _described(GgufFile(path))[1]


def architecture_of(path: Path) -> str:
    """What a file calls its architecture, such as "llama"; CheckpointError as ``open_gguf``."""
    return str(GgufFile(path).values.get("general.architecture"))


def _described(file: GgufFile) -> tuple[Architecture, LanguageModelConfig]:
    name = file.values.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise CheckpointError(
            f"{file.path} has the architecture {name!r:.40}; supported are {known}."
        )
    architecture = ARCHITECTURES[name]
    values = architecture.values(file, name) | _ids(file)
    config = architecture.config(values, file.path)
    return architecture, _scaled(file, config)


def _ids(file: GgufFile) -> Json:
    """The ids of special tokens, as a config.json has them."""
    names = {"bos": "bos_token_id", "eos": "eos_token_id", "padding": "pad_token_id"}
    return {
        theirs: file.values.get(f"tokenizer.ggml.{ours}_token_id") for ours, theirs in names.items()
    }


def _value(file: GgufFile, name: str, default: Scalar | None = None) -> Scalar | None:
    """A value; a list of equal values, one for each layer, is that value."""
    value = file.values.get(name)
    if value is None:
        return default
    if not isinstance(value, list):
        return value
    by_layer = [entry for entry in value if not isinstance(entry, list)]
    if len({*by_layer}) != 1 or len(by_layer) < len(value):
        raise CheckpointError(
            f"{file.path} says {name} differs between its layers, which is not supported."
        )
    return by_layer[0]


def _llama_values(file: GgufFile, name: str) -> Json:
    """The values of Llama and its relatives as their config.json has them."""
    heads = _value(file, f"{name}.attention.head_count")
    tokens = file.values.get("tokenizer.ggml.tokens")
    if f"{name}.expert_count" in file.values:
        raise CheckpointError(f"{file.path} is a mixture of experts, which is not supported.")
    scaling = _value(file, f"{name}.rope.scaling.type", "none")
    theta = _value(file, f"{name}.rope.freq_base", 10_000.0)
    rotary: Json = {"rope_type": "default", "rope_theta": theta}
    if scaling not in ("none", ""):
        factor = _value(file, f"{name}.rope.scaling.factor", 1.0)
        rotary |= {"rope_type": scaling, "factor": factor}
    return {
        "model_type": name,
        "vocab_size": len(tokens) if isinstance(tokens, list) else None,
        "hidden_size": _value(file, f"{name}.embedding_length"),
        "intermediate_size": _value(file, f"{name}.feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": _value(file, f"{name}.attention.head_count_kv", heads),
        "head_dim": _value(file, f"{name}.attention.key_length"),
        "num_hidden_layers": _value(file, f"{name}.block_count"),
        "rms_norm_eps": _value(file, f"{name}.attention.layer_norm_rms_epsilon", 1e-6),
        "max_position_embeddings": _value(file, f"{name}.context_length"),
        "sliding_window": _value(file, f"{name}.attention.sliding_window"),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "rope_parameters": rotary,
    }


def _gpt2_values(file: GgufFile, name: str) -> Json:
    """The values of GPT-2 as its config.json has them."""
    tokens = file.values.get("tokenizer.ggml.tokens")
    return {
        "vocab_size": len(tokens) if isinstance(tokens, list) else None,
        "n_embd": _value(file, f"{name}.embedding_length"),
        "n_inner": _value(file, f"{name}.feed_forward_length"),
        "n_head": _value(file, f"{name}.attention.head_count"),
        "n_layer": _value(file, f"{name}.block_count"),
        "n_positions": _value(file, f"{name}.context_length"),
        "layer_norm_epsilon": _value(file, f"{name}.attention.layer_norm_epsilon", 1e-5),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }


_LLAMA_PARTS = {
    "self_attention.out_proj": "attn_output",
    "self_attention_residual.norm": "attn_norm",
    "feed_forward.gate": "ffn_gate",
    "feed_forward.inner": "ffn_up",
    "feed_forward.outer": "ffn_down",
    "feed_forward_residual.norm": "ffn_norm",
}


def _llama_sources(turned: bool) -> Callable[[LanguageModelConfig], dict[str, Source]]:
    """Where a file holds each weight; ``turned``: halves of a head are rotated together."""

    def sources(config: LanguageModelConfig) -> dict[str, Source]:
        layout = halves(config.d_head) if turned else AS_OURS
        biased = config.attention_biases is True
        names = {
            f"{EMBEDDING}.weight": Source("token_embd.weight"),
            f"{OUTPUT}.weight": Source("output.weight"),
            f"{FINAL_NORM}.weight": Source("output_norm.weight"),
        }
        for ours, theirs in of_layers(config, "blk.{}"):
            attention = f"{ours}.self_attention"
            names |= both(f"{attention}.q_proj", f"{theirs}.attn_q", biased, layout)
            names |= both(f"{attention}.k_proj", f"{theirs}.attn_k", biased, layout)
            names |= both(f"{attention}.v_proj", f"{theirs}.attn_v", biased)
            if config.head_norm:
                names |= both(f"{attention}.q_norm", f"{theirs}.attn_q_norm", False, layout)
                names |= both(f"{attention}.k_norm", f"{theirs}.attn_k_norm", False, layout)
            for our, their in _LLAMA_PARTS.items():
                names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=False)
        return names

    return sources


_GPT2_PARTS = {
    "self_attention.out_proj": "attn_output",
    "self_attention_residual.norm": "attn_norm",
    "feed_forward.inner": "ffn_up",
    "feed_forward.outer": "ffn_down",
    "feed_forward_residual.norm": "ffn_norm",
}


def _gpt2_sources(config: LanguageModelConfig) -> dict[str, Source]:
    """Where a file holds each weight."""
    names = {
        f"{EMBEDDING}.weight": Source("token_embd.weight"),
        "decoder.positions.table": Source("position_embd.weight"),
        f"{OUTPUT}.weight": Source("output.weight"),
        **both(FINAL_NORM, "output_norm", biases=True),
    }
    for ours, theirs in of_layers(config, "blk.{}"):
        for place, product in enumerate(("q_proj", "k_proj", "v_proj")):
            path = f"{ours}.self_attention.{product}"
            names |= both(path, f"{theirs}.attn_qkv", True, _third(place))
        for our, their in _GPT2_PARTS.items():
            names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=True)
    return names


def _third(number: int) -> Layout:
    """Queries, keys or values of one product: (3 × out, in)."""
    return Layout(
        lambda ours: (3 * ours[0], *ours[1:]), lambda theirs: theirs.chunk(3, dim=0)[number]
    )


ARCHITECTURES = {
    # llama.cpp stores the rows of Llama's queries and keys as neighbours already
    "llama": Architecture(_llama_values, llama.config, _llama_sources(turned=False)),
    "qwen2": Architecture(_llama_values, llama.config, _llama_sources(turned=True)),
    "qwen3": Architecture(_llama_values, llama.config, _llama_sources(turned=True)),
    "gpt2": Architecture(_gpt2_values, gpt2.config, _gpt2_sources),
}


def _scaled(file: GgufFile, config: LanguageModelConfig) -> LanguageModelConfig:
    """The config with the scaling whose outcome a file of Llama 3 holds; CheckpointError if it is
    another one."""
    if SCALED not in file.tensors:
        return config
    from transformer.encodings import rotary_frequencies

    divisors = file.read(SCALED).astype(np.float64)
    width = config.rotary_width or config.d_head
    plain = rotary_frequencies(config.rotary, width).numpy()
    for fields in LLAMA3:
        scaled = replace(config, **fields)
        expected = plain / rotary_frequencies(scaled.rotary, width).numpy()
        if divisors.shape == expected.shape and np.allclose(divisors, expected, rtol=1e-4):
            return scaled
    raise CheckpointError(
        f"{file.path} scales its rotary positions otherwise than Llama 3.1 and 3.2, which is not "
        "supported."
    )


def _read(file: GgufFile, names: set[str]) -> Iterator[tuple[str, Tensor]]:
    """Every weight, multiplied out, as it lies in a model; CheckpointError if a number is NaN or
    infinite.

    Large ones first: what multiplying takes besides is free again before the others are there.
    """
    import torch

    from transformer.packed import copied_for_few_rows
    from transformer.storage.tensors import all_finite

    for name in sorted(names, key=lambda name: -file.tensors[name].nbytes):
        numbers = torch.from_numpy(file.read(name))
        if not all_finite(numbers):
            raise CheckpointError(f"{file.path} contains NaN or infinite values.")
        yield name, copied_for_few_rows(numbers)


# --- vocabularies --------------------------------------------------------------------------------


def vocabulary(file: GgufFile, config: LanguageModelConfig) -> Pieces:
    """The pieces of a file; CheckpointError if it has none, or of a kind that is not known."""
    model = file.values.get("tokenizer.ggml.model")
    tokens = _texts(file, "tokens")
    kinds = [kind for kind in _list(file, "token_type") if isinstance(kind, int)]
    if len(kinds) != len(tokens):
        raise CheckpointError(f"{file.path} does not say of what kind each piece is.")
    if model == "gpt2":
        return TypedPieces(_byte_level(file, tokens, kinds), config.vocab_size)
    if model == "llama":
        return TypedSentencePieces(_sentencepiece(file, tokens, kinds), file.path, len(tokens))
    raise CheckpointError(
        f"{file.path} has a vocabulary of the kind {model!r:.40}; gpt2 and llama are supported."
    )


def _texts(file: GgufFile, name: str) -> list[str]:
    texts = [text for text in _list(file, name) if isinstance(text, str)]
    if not texts:
        raise CheckpointError(f"{file.path} has no {name} of a vocabulary.")
    return texts


def _list(file: GgufFile, name: str) -> list[Value]:
    """A list of a file's vocabulary; empty if there is none."""
    values = file.values.get(f"tokenizer.ggml.{name}")
    return values if isinstance(values, list) else []


def _pre_tokenizer(file: GgufFile) -> PreTokenizer:
    name = file.values.get("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in PRE_TOKENIZERS:
        raise CheckpointError(
            f"{file.path} splits texts by the rule {name!r:.40}, which is not known; known are "
            f"{', '.join(PRE_TOKENIZERS)}."
        )
    return PRE_TOKENIZERS[name]


def _byte_level(file: GgufFile, tokens: list[str], kinds: list[int]) -> Whole:
    """Byte-level pieces and merges, as a tokenizer of the library."""
    merges = [merge.partition(" ") for merge in _texts(file, "merges")]
    return Whole.of_merges(
        file.path,
        tokens,
        [(first, second) for first, _, second in merges],
        _pre_tokenizer(file),
        special=[token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL],
        added=[token for token, kind in zip(tokens, kinds, strict=True) if kind == USER],
    )


def _sentencepiece(file: GgufFile, tokens: list[str], kinds: list[int]) -> bytes:
    """A sentencepiece model of pieces and their scores, merged as byte-pair encoding.

    Fields are numbered as in sentencepiece_model.proto.
    """
    scores = [score for score in _list(file, "scores") if isinstance(score, float)]
    if len(scores) != len(tokens):
        raise CheckpointError(f"{file.path} has no scores of its pieces.")
    content = bytearray()
    for token, score, kind in zip(tokens, scores, kinds, strict=True):
        piece = _field(1, token.encode()) + _float(2, score) + _whole(3, kind)
        content += _field(1, piece)
    unknown = kinds.index(UNKNOWN) if UNKNOWN in kinds else 0
    prefixed = file.values.get("tokenizer.ggml.add_space_prefix", True) is not False
    trainer = _whole(3, 2) + _whole(35, int(BYTE in kinds)) + _whole(40, unknown)
    normalizer = _field(1, b"identity") + _whole(3, int(prefixed)) + _whole(4, 0) + _whole(5, 1)
    return bytes(content + _field(2, trainer) + _field(3, normalizer))


def _varint(number: int) -> bytes:
    """A whole number from 0 on, seven bits a byte."""
    content = bytearray()
    while number >= 0x80:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


def _whole(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _float(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + np.float32(number).tobytes()


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _start(file: GgufFile, config: LanguageModelConfig) -> int | None:
    """The id with which every text begins; None if it begins with none."""
    stated = file.values.get("tokenizer.ggml.add_bos_token")
    if not isinstance(stated, bool):
        of_pieces = file.values.get("tokenizer.ggml.model") == "llama"
        stated = of_pieces or _pre_tokenizer(file).begins
    return config.bos_id if stated else None


def _other_ends(file: GgufFile, config: LanguageModelConfig) -> tuple[int, ...]:
    """The id that ends a turn of a chat, if it is another one."""
    ends = file.values.get("tokenizer.ggml.eot_token_id")
    known = isinstance(ends, int) and 0 <= ends < config.vocab_size and ends != config.eos_id
    return (ends,) if known and isinstance(ends, int) else ()
