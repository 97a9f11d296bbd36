"""What opening a decoder and an encoder alone share: names and shapes first, then numbers, a few
tensors at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from transformer.config import EncoderConfig, LanguageModelConfig
from transformer.families.alone import Config, Source, StackFamily
from transformer.families.family import Json
from transformer.families.weights import check_quantised, copied
from transformer.model import Network
from transformer.storage.description import CONFIG_FILE
from transformer.storage.directory import check_sizes, empty_model
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.memory import check_memory
from transformer.storage.tensors import (
    StoredTensor,
    check_names,
    check_shape,
    stored_tensors,
    weight_files,
)


def described(family: StackFamily[Config], directory: Path) -> tuple[Json, Config]:
    """The entries of a directory's config.json, and our config of them; CheckpointError if the
    model does not fit into memory."""
    path = directory / CONFIG_FILE
    values = read_json(path)
    config = family.config(values, path)
    check_memory(directory, config)
    return values, config


def without_prefix(prefix: str, directory: Path) -> dict[str, StoredTensor]:
    """The tensors of a directory's files, by their names without a prefix."""
    tensors = stored_tensors(weight_files(directory), all_types=True)
    return {
        name.removeprefix(prefix): replace(tensor, called=name) for name, tensor in tensors.items()
    }


def check_stored(
    directory: Path,
    values: Json,  # of its config.json
    config: LanguageModelConfig | EncoderConfig,
    names: Collection[str],  # of the tensors that the model needs
    stored: Mapping[str, StoredTensor],
    unread: Collection[str],  # names of tensors that no model reads
) -> None:
    """CheckpointError if weights are quantised, too few for the config, missing, or too many."""
    check_quantised(directory, values.get("quantization_config"), names, stored)
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    ignored = {name for name, tensor in stored.items() if tensor.kind} | set(unread)
    check_names(directory, set(names), set(stored) - (ignored - set(names)))


def names_of(sources: Mapping[str, Source]) -> set[str]:
    """What the files call the tensors of some sources."""
    return {source.name for source in sources.values()}


def read_model(
    directory: Path,
    config: LanguageModelConfig | EncoderConfig,
    sources: Mapping[str, Source],
    stored: Mapping[str, StoredTensor],
) -> Network:
    """The model of files, float32; CheckpointError if a shape is another one, or a number is NaN
    or infinite."""
    needed = {name: stored[name] for name in names_of(sources)}
    shapes = {name: tensor.shape for name, tensor in needed.items()}
    return read_state(directory, config, sources, shapes, copied(needed))


def read_state(
    path: Path,  # the directory or the file, for messages
    config: LanguageModelConfig | EncoderConfig,
    sources: Mapping[str, Source],  # our name of every weight → where a file holds it
    shapes: Mapping[str, tuple[int, ...]],  # of the file's tensors, by the names of the sources
    tensors: Iterable[tuple[str, Tensor]],  # these, float32, each once
) -> Network:
    """The model, float32; CheckpointError if a shape is another one."""
    model = empty_model(path, config)
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
    model: Network,
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
