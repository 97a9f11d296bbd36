"""Changes of a run as arrays of a file: values before and after, and values put in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from transformer.exports.record import TraceFileError
from transformer.interventions import Ablate, HeadOutput, Intervention, NoPositions, Patch
from transformer.interventions.acting import Change
from transformer.model.encodings.table import ENCODINGS
from transformer.model.sites import Side, Sublayer
from transformer.run import Translation
from transformer.trace.records import AttentionTrace, EmbeddingTrace, MemoryTrace, ResidualTrace

Arrays = dict[str, NDArray[Any]]
Read = Callable[[str, tuple[int, ...]], Tensor]
"""(name of an array, its shape) → the array."""
STREAM = ("stream", "read", "update", "output")
BEFORE = ("own_update", "own_output")


def change_arrays(trace: AttentionTrace) -> Arrays:
    """The arrays that a changed run needs besides those of every run."""
    arrays = {f"change.{i}": each.material for i, each in enumerate(trace.changes)}
    arrays |= {f"embeddings.{side}.own_input": each.own_input for side, each in trace.embeddings.items()}
    for kind, layer in trace.places:
        arrays[f"{kind}.{layer}.own_output"] = trace.layer(kind, layer).own_output
    if any(value.needs_stream for value in trace.interventions):
        for sublayer, residual in trace.residuals.items():
            arrays |= {f"{_name(sublayer)}.{name}": getattr(residual, name) for name in (*STREAM, *BEFORE)}
        if trace.memory is not None:
            arrays |= {"memory.used": trace.memory.used, "memory.own": trace.memory.own}
    return {name: each.float().numpy() for name, each in arrays.items() if each is not None}


def read_changes(run: Translation, arrays: Mapping[str, Any], read: Read) -> tuple[Change, ...]:
    """A run's changes with what they put in; TraceFileError if that is missing or has a wrong shape."""
    found = list[Change]()
    for i, value in enumerate(run.interventions):
        shape = _shape(value, run, arrays.get(f"change.{i}"))
        found.append(Change(value, None if shape is None else read(f"change.{i}", shape)))
    named = {f"change.{i}" for i, each in enumerate(found) if each.material is not None}
    stream = any(value.needs_stream for value in run.interventions)
    for name in arrays:
        part = name.partition(".")[0]
        if (part == "change" and name not in named) or (part in ("stream", "memory") and not stream):
            raise TraceFileError(f"The file holds an array {name[:60]} of a change that it does not name.")
    return tuple(found)


def _shape(value: Intervention, run: Translation, held: Any) -> tuple[int, ...] | None:
    """The shape of what a change puts in; None if it needs nothing."""
    config = run.config
    if isinstance(value, Ablate) and value.by == "mean":
        return len(value.heads(config.n_heads)), config.d_head
    if not isinstance(value, Patch):
        return None
    width = config.d_head if isinstance(value.place, HeadOutput) else config.d_model
    length = 0 if held is None else len(held)
    return (length if value.positions is None else len(value.positions)), width


def read_residuals(
    run: Translation, arrays: Mapping[str, Any], read: Read
) -> tuple[dict[Sublayer, ResidualTrace], MemoryTrace | None]:
    """The residual stream and the encoder's output, if a change of the run needs them."""
    if not any(value.needs_stream for value in run.interventions):
        return {}, None
    residuals = {
        sublayer: _residual(sublayer, (len(run.tokens(side)), run.config.d_model), arrays, read)
        for side, stack in run.config.stacks.items()
        for sublayer in stack.passed()
    }
    shape = len(run.source_tokens), run.config.d_model
    own = read("memory.own", shape) if "memory.own" in arrays else None
    return residuals, MemoryTrace(read("memory.used", shape), own)


def _residual(
    sublayer: Sublayer, shape: tuple[int, int], arrays: Mapping[str, Any], read: Read
) -> ResidualTrace:
    name = _name(sublayer)
    before = {part: read(f"{name}.{part}", shape) for part in BEFORE if f"{name}.{part}" in arrays}
    return ResidualTrace(*(read(f"{name}.{part}", shape) for part in STREAM), **before)


def check_positions(run: Translation, embeddings: Mapping[Side, EmbeddingTrace], biased: set[Side]) -> None:
    """Raises TraceFileError if positions lack that no change leaves out, or are present although one does.

    ``biased`` are the sides whose self-attention has a bias.
    """
    bare = {value.side for value in run.interventions if isinstance(value, NoPositions)}
    acts = ENCODINGS[run.config.positions].acts
    for side, embedding in embeddings.items():
        expected = side not in bare
        added = expected and acts == "embeddings"
        if added != (embedding.positions is not None):
            raise TraceFileError(f"The file's positions of the {side} contradict its config and its changes.")
        if (expected and acts == "scores") != (side in biased):
            raise TraceFileError(f"The file's bias in the {side} contradicts its config and its changes.")


def _name(sublayer: Sublayer) -> str:
    return f"stream.{sublayer.side}.{sublayer.layer}.{sublayer.name}"
