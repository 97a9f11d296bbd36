"""Traces that somebody changed: what the audit must find."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from transformer.layers import shift
from transformer.trace import LAYER_PARTS, AttentionTrace, EmbeddingTrace, ResidualTrace

_LAYER = {part: field for field, part in LAYER_PARTS.items()}
_RESIDUAL = {"read": "read", "output": "output", "stream": "stream"}
_RESIDUAL |= {"output.own": "own_output", "stream.own": "own_stream"}
_EMBEDDING = {
    "tokens": "tokens",
    "positions": "positions",
    "input": "input",
    "input.own": "own_input",
}


def forged(
    trace: AttentionTrace,
    layers: Mapping[Any, Any] | None = None,
    embeddings: Mapping[Any, EmbeddingTrace] | None = None,
    residuals: Mapping[Any, ResidualTrace] | None = None,
    **named: Any,  # tensors by name, with __ in the place of dots; None leaves one out
) -> AttentionTrace:
    """The trace with other records, written into its tensors under their names."""
    tensors: dict[str, Any] = dict(trace.tensors)
    for kind, records in (layers or {}).items():
        for number, record in enumerate(records):
            path = trace.config.sites[kind].sublayer(number).path
            _write(tensors, path, record, _LAYER)
            tensors[f"{path}.bias"] = None if record.bias is None else record.bias.table
            tensors[f"{path}.vector"] = record.score.vector
            tensors[f"{path}.centres"] = None if record.focus is None else record.focus.centres
    for side, embedding in (embeddings or {}).items():
        _write(tensors, side, embedding, _EMBEDDING)
        norm = embedding.norm
        parts = (
            {"gain": None, "shift": None}
            if norm is None
            else {"gain": norm.weight, "shift": shift(norm)}
        )
        tensors |= {f"{side}.input.{part}": each for part, each in parts.items()}
    if residuals is not None:
        gone = {sublayer.path for sublayer in trace.residuals} - {
            sublayer.path for sublayer in residuals
        }
        tensors = {
            name: each for name, each in tensors.items() if name.rpartition(".")[0] not in gone
        }
        for sublayer, record in residuals.items():
            _write(tensors, sublayer.path, record, _RESIDUAL)
    tensors |= {name.replace("__", "."): each for name, each in named.items()}
    changed = replace(
        trace, tensors={name: each for name, each in tensors.items() if each is not None}
    )
    if layers is not None:  # rules are no tensors
        vars(changed)["layers"] = {
            kind: tuple(
                replace(
                    now, causal=given.causal, score=given.score, focus=given.focus, bias=given.bias
                )
                for now, given in zip(records, layers.get(kind, records), strict=False)
            )
            for kind, records in changed.layers.items()
        }
    return changed


def _write(tensors: dict[str, Any], path: str, record: object, names: Mapping[str, str]) -> None:
    for name, attribute in names.items():
        tensors[f"{path}.{name}"] = getattr(record, attribute)
