"""A visitor's view as one JSON file: the run, the selection, and the matrix on the screen.

``assets/trace.schema.json`` is the schema, version 2. Positions, layers and heads count from 0. A matrix
whose scores are no scaled dot product names its rule, and one of local attention has its centres. Such a file
is for other programs: a run opens again from NPZ (``transformer.exports.npz``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from transformer.exports.record import TraceFileError, run_to_dict, write_json
from transformer.model.sites import Head
from transformer.runs.translation import Translation
from transformer.trace.report import AS_RECORDED
from transformer.trace.view import Array, HeadMap

FORMAT = "attention-explorer/view"
VERSION = 2
LARGEST = 64
"""Most rows and columns of the matrix."""


@dataclass(frozen=True)
class Selection:
    """The visitor's selection, counted from 0."""

    step: int = 0  # the decode step
    source: int | None = None  # the source token that was clicked; None follows the step
    heads: Mapping[str, Head] = field(default_factory=dict)  # layer and head by kind


@dataclass(frozen=True, eq=False)
class MatrixMeasure:
    """A measure beside the weights of the matrix (docs/measures.md)."""

    # "carried" (‖α x W_V W_O‖), "effect" (Δ log p of the row's token) or "effect_on_all" (Σ |Δ log p|)
    name: str
    # (queries, keys) float32, a length for `carried`, otherwise nats; not a number where nothing was measured
    values: Array


def save_view(
    translation: Translation,
    view: HeadMap,
    target: Path | str | IO[bytes],
    selection: Selection,
    measured: MatrixMeasure | None = None,
) -> None:
    """Writes a run with one head of it.

    Args:
        translation: The run.
        view: One of its heads, or a window of it, at most 64 × 64 cells.
        target: A path, or an open binary file.
        selection: The visitor's selection.
        measured: A measure of the same cells.

    Raises:
        TraceFileError: The window is too large, or the run holds numbers that are not finite.
    """
    if max(view.weights.shape) > LARGEST:
        raise TraceFileError(
            f"A JSON file holds at most {LARGEST} × {LARGEST} cells; save a window or a whole trace."
        )
    content = write_json(
        {
            "format": FORMAT,
            "version": VERSION,
            "run": run_to_dict(translation),
            "selection": {
                "step": selection.step,
                "source": selection.source,
                "heads": {kind: list(head) for kind, head in selection.heads.items()},
            },
            "view": _view_to_dict(view) | _measure_to_dict(measured),
        }
    )
    if isinstance(target, Path | str):
        Path(target).write_bytes(content)
    else:
        target.write(content)


def _view_to_dict(view: HeadMap) -> dict[str, Any]:
    window = view.window
    rule: dict[str, Any] = {} if view.score == "scaled_dot" else {"score": view.score}
    if view.centres is not None:
        rule |= {"centres": view.centres.tolist(), "reach": view.reach}
    return rule | {
        "kind": str(view.kind),
        "layer": view.layer,
        "head": view.head,
        "window": [window.query_start, window.query_stop, window.key_start, window.key_stop],
        "scores": view.scores.tolist(),
        "mask": view.mask.tolist(),
        "weights": view.weights.tolist(),
        "checks": [
            asdict(check) | {"name": check.name.removesuffix(AS_RECORDED)} for check in view.audit.checks
        ],
    }


def _measure_to_dict(measured: MatrixMeasure | None) -> dict[str, Any]:
    if measured is None:
        return {}
    known = np.isfinite(measured.values)
    rows = [
        [value if there else None for value, there in zip(row, seen, strict=True)]
        for row, seen in zip(measured.values.tolist(), known.tolist(), strict=True)
    ]
    return {"measure": {"name": measured.name, "values": rows}}
