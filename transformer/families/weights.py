"""Weights of a published model, read under the names that its library gave them.

A family says which of its names is which of ours. Here the names, the shapes and then the numbers are
compared with what the config asks for, and the numbers are read a few tensors at a time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage.directory import empty_model
from transformer.storage.files import CheckpointError
from transformer.storage.tensors import StoredTensor, read_tensors

Stored = dict[str, StoredTensor]
OURS = "embedding.weight", "target_embedding.weight", "output.weight"
"""Our tables: of the source, of the target, and of the output."""


def tables(directory: Path, roles: Sequence[Sequence[str]], stored: Mapping[str, StoredTensor]) -> list[str]:
    """Stored names of source, target and output table; one equal to an earlier one gets the earlier name.

    ``roles`` holds, for each of the three, the names under which its table may be stored, its own first:
    tied tables are stored once, under any of their names, or several times with the same numbers.
    CheckpointError if one is missing.
    """
    chosen: list[str] = []
    for names in roles:
        name = next((name for name in names if name in stored), None)
        if name is None:
            raise CheckpointError(f"The weights in {directory} lack {names[0]}.")
        chosen.append(next((old for old in reversed(chosen) if same(stored, old, name)), name))
    return chosen


def table_names(chosen: Sequence[str]) -> dict[str, str]:
    """Our names of the tables that a model has for itself, mapped to theirs, of ``tables``."""
    source, target, output = chosen
    own = True, target != source, output != target
    return {ours: name for ours, name, needed in zip(OURS, chosen, own, strict=True) if needed}


def same(stored: Mapping[str, StoredTensor], one: str, other: str) -> bool:
    """True if two stored tensors are the same tensor or hold the same numbers."""
    first, second = stored[one], stored[other]
    if one == other or (first.storage is not None and first.storage == second.storage):
        return True
    if first.shape != second.shape:
        return False
    kept: Tensor | None = None
    for _, tensor in read_tensors({one: first, other: second}):
        if kept is None:
            kept = tensor.clone()
        else:
            return torch.equal(kept, tensor.to(kept.dtype))
    return False


def check_names(
    directory: Path, names: Mapping[str, str], explained: Collection[str], stored: Mapping[str, StoredTensor]
) -> None:
    """CheckpointError if a weight is missing, or there is one that no model of this config has."""
    missing = sorted(set(names.values()) - set(stored))
    if missing:
        raise CheckpointError(
            f"The weights in {directory} lack {len(missing)} that config.json asks for; "
            f"the first is {missing[0]}."
        )
    extra = sorted(set(stored) - {*names.values(), *explained})
    if extra:
        raise CheckpointError(
            f"The weights in {directory} include {len(extra)} that config.json does not describe, "
            f"such as {extra[0]!r:.80}."
        )


def read_weights(
    directory: Path,
    config: TransformerConfig,
    names: Mapping[str, str],  # our name of every weight → theirs
    stored: Stored,  # the tensors; what is read is removed, which frees one that was held in memory
    shapes: Mapping[str, tuple[int, ...]] | None = None,  # shapes by their name, where they are not ours
    turned: Collection[str] = (),  # their names of matrices that are stored transposed
    skipped: Mapping[str, int] | None = None,  # by their name, rows at the start that no model reads
) -> Transformer:
    """The model, float32; CheckpointError if a shape is another one or a number is NaN or infinite."""
    model = empty_model(directory, config)
    assert isinstance(model, Transformer)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    asked = {theirs: expected[ours] for ours, theirs in names.items()}
    asked |= {name: asked[name][::-1] for name in turned} | dict(shapes or {})
    for name, shape in asked.items():
        if stored[name].shape != shape:
            raise CheckpointError(
                f"{stored[name].path}: the weight {name} has the shape {stored[name].shape!s:.80}, but "
                f"config.json asks for {shape}; the files belong to different models."
            )
    ours, first = {theirs: name for name, theirs in names.items()}, skipped or {}
    read = {name: stored.pop(name) for name in ours}
    state = {
        ours[name]: (tensor.t() if name in turned else tensor)[first.get(name, 0) :].reshape(
            expected[ours[name]]
        )
        for name, tensor in copied(read)
    }
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False).eval()


def copied(stored: Stored) -> Iterator[tuple[str, Tensor]]:
    """Yields a float32 copy of every tensor, laid out as ``model.input_major`` does.

    Each copied tensor is removed from ``stored``, which frees a tensor that was held in memory.
    CheckpointError if a number is NaN or infinite.
    """
    for name, tensor in read_tensors(stored):
        copy = torch.empty(tensor.t().shape, dtype=torch.float32).copy_(tensor.t())
        low, high = torch.aminmax(copy)
        if not math.isfinite(low.item() + high.item()):
            raise CheckpointError(f"{stored[name].path} contains NaN or infinite values.")
        del stored[name], tensor
        yield name, copy.t()
