"""Opens a decoder of a family: names and shapes first, then numbers, a few tensors at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from transformer.config import LanguageModelConfig
from transformer.families.decoder import OUTPUT, DecoderFamily, Source
from transformer.families.rules import search_rules
from transformer.families.weights import check_quantised, copied
from transformer.families.written import chat_template, read_vocabulary
from transformer.model import LanguageModel
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes, empty_model
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.memory import check_memory
from transformer.storage.tensors import (
    check_names,
    check_shape,
    stored_tensors,
    weight_files,
)

HEAD = f"{OUTPUT}.weight"
"""Our name of the output projection that is no table of embeddings."""


def open_decoder(family: DecoderFamily, directory: Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    CheckpointError if a file is missing, damaged, of another model, needs an unsupported feature,
    or does not fit into memory.
    """
    values = read_json(directory / CONFIG_FILE)
    config = family.config(values, directory / CONFIG_FILE)
    check_memory(directory, config)
    tensors = stored_tensors(weight_files(directory), all_types=True)
    stored = {name.removeprefix(family.prefix): tensor for name, tensor in tensors.items()}
    stored = {
        name: replace(tensor, called=full)
        for (name, tensor), full in zip(stored.items(), tensors, strict=True)
    }
    sources = family.sources(config)
    head = sources[HEAD].name
    if config.tied_embeddings:
        del sources[HEAD]
        stored.pop(head, None)  # the same numbers once more, which no model reads
    names = {source.name for source in sources.values()}
    check_quantised(directory, values.get("quantization_config"), names, stored)
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    ignored = {name for name, tensor in stored.items() if tensor.kind}
    ignored |= set(filter(family.unread.fullmatch, stored))
    check_names(directory, names, set(stored) - (ignored - names))
    vocabulary, config = read_vocabulary(family, directory, config)
    rules, notes = search_rules(directory, values, config, config.eos_id)
    heads, damaged = read_heads(directory, config)
    needed = {name: stored[name] for name in names}
    shapes = {name: tensor.shape for name, tensor in needed.items()}
    model = read_state(directory, config, sources, shapes, copied(needed))
    return Checkpoint(
        config=config,
        model=model,
        tokenizer=vocabulary,
        heads=heads,
        card=read_card(directory),
        rules=rules,
        notes=(*notes, *damaged),
        chat_template=chat_template(directory),
    )


def read_state(
    path: Path,  # the directory or the file, for messages
    config: LanguageModelConfig,
    sources: Mapping[str, Source],  # our name of every weight → where a file holds it
    shapes: Mapping[str, tuple[int, ...]],  # of the file's tensors, by the names of the sources
    tensors: Iterable[tuple[str, Tensor]],  # these, float32, each once
) -> LanguageModel:
    """The model, float32; CheckpointError if a shape is another one."""
    model = empty_model(path, config)
    assert isinstance(model, LanguageModel)
    _check_shapes(path, model, sources, shapes)
    ours_of = dict[str, list[str]]()
    for ours, source in sources.items():
        ours_of.setdefault(source.name, []).append(ours)
    state = dict[str, Tensor]()
    for name, tensor in tensors:
        for ours in ours_of[name]:
            state[ours] = sources[ours].layout.taken(tensor)
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False).eval()


def _check_shapes(
    path: Path,
    model: LanguageModel,
    sources: Mapping[str, Source],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """CheckpointError if our model has a weight that no source gives, or a stored shape is another
    one."""
    ours = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if missing := sorted(ours.keys() - sources.keys()):
        raise CheckpointError(f"The files of this family have no weight for {missing[0]}.")
    for name, source in sources.items():
        wanted = tuple(source.layout.shape(ours[name]))
        check_shape(path, source.name, shapes[source.name], wanted)
