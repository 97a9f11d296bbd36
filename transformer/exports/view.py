"""A visitor's view as one JSON file: the run, the selection, and the matrix on the screen.

``assets/trace.schema.json`` is the schema, version 2. Positions, layers and heads count from 0. A matrix
whose scores are no scaled dot product names its rule, and one of local attention has its centres.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from transformer.exports.record import (
    LONGEST_NAME,
    MOST_JSON,
    TraceFileError,
    in_one_sentence,
    named,
    number,
    read_json,
    run_from_dict,
    run_to_dict,
    text,
    whole,
    write_json,
)
from transformer.interventions import Intervention
from transformer.interventions.heads import InHeads
from transformer.interventions.masks import Masking
from transformer.model.sites import AttentionKind, Head, Site
from transformer.runs.translation import Translation
from transformer.trace.equations import focused_textbook, masked_textbook, weighed_textbook
from transformer.trace.report import (
    AS_RECORDED,
    LABELS_UNMADE,
    PLACES_UNMADE,
    ROW_SUM_LIMIT,
    WEIGHT_LIMIT,
    AuditReport,
    Check,
)
from transformer.trace.view import Array, BoolArray, HeadMap, Window

FORMAT = "attention-explorer/view"
VERSION = 2
READABLE = (1, 2)
"""Version 1 is the same without interventions."""
LARGEST = 64
"""Most rows and columns of the matrix."""
NOTE = "Imported file: tokens, steps and one matrix are shown as recorded."
MEASURES = ("carried", "effect", "effect_on_all")
"""Names of measures in a file: ‖α x W_V W_O‖, Δ log p of the row's token, Σ |Δ log p| of all tokens."""
Source = Path | str | IO[bytes]


@dataclass(frozen=True)
class Selection:
    """The visitor's selection, counted from 0."""

    step: int = 0  # the decode step
    source: int | None = None  # the source token that was clicked; None follows the step
    heads: Mapping[str, Head] = field(default_factory=dict)  # layer and head by kind


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure beside the weights of the matrix (docs/measures.md)."""

    name: str  # one of ``MEASURES``
    # (queries, keys) float32, a length for `carried`, otherwise nats; not a number where nothing was measured
    values: Array


@dataclass(frozen=True, eq=False)
class SavedView:
    """The content of a JSON file."""

    translation: Translation  # the run, without attention
    selection: Selection  # the visitor's selection
    head: HeadMap  # the matrix on the screen
    measured: Measured | None = None  # what its keys carried or did, if the maps showed that


def save_view(
    translation: Translation,
    view: HeadMap,
    target: Path | str | IO[bytes],
    selection: Selection,
    measured: Measured | None = None,
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


def _measure_to_dict(measured: Measured | None) -> dict[str, Any]:
    if measured is None:
        return {}
    known = np.isfinite(measured.values)
    rows = [
        [value if there else None for value, there in zip(row, seen, strict=True)]
        for row, seen in zip(measured.values.tolist(), known.tolist(), strict=True)
    ]
    return {"measure": {"name": measured.name, "values": rows}}


def load_view(source: Source) -> SavedView:
    """Opens a file that ``save_view`` wrote.

    If the view has whole rows, the weights are recomputed from the scores; all else is as recorded.

    Raises:
        TraceFileError: The file is damaged, foreign, too large, or its parts contradict each other.
    """
    with in_one_sentence(), opened(source) as file:
        values = read_json(file.read(MOST_JSON + 1))
        if values["format"] != FORMAT or values["version"] not in READABLE:
            known = " or ".join(map(str, READABLE))
            raise TraceFileError(f"The file is not a view of version {known}, which this package reads.")
        run = run_from_dict(values["run"])
        run = replace(run, notes=tuple(dict.fromkeys((*run.notes, NOTE))))
        head = _head(values["view"], run)
        measured = _measured(values["view"].get("measure"), head)
        return SavedView(run, _selection(values["selection"], run), head, measured)


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Opens the file at a path; passes an open file through."""
    if isinstance(source, Path | str):
        with Path(source).open("rb") as file:
            yield file
    else:
        yield source


def starts_as_json(file: IO[bytes]) -> bool:
    """True if the file starts with a JSON object; rewinds the file afterwards."""
    start = file.read(16)
    file.seek(0)
    return start.lstrip()[:1] == b"{"


def _selection(values: Any, run: Translation) -> Selection:
    step, source = whole(values["step"]), values["source"]
    if step >= len(run.target_tokens) or (source is not None and whole(source) >= len(run.source_tokens)):
        raise TraceFileError("The file's selection lies outside its sentence.")
    heads = {}
    for kind, (layer, head) in values["heads"].items():
        site = run.config.sites[AttentionKind(kind)]
        heads[str(site.kind)] = _checked_head(site, layer, head, run)
    return Selection(step, source, heads)


def _checked_head(site: Site, layer: Any, head: Any, run: Translation) -> Head:
    if whole(layer) >= site.n_layers or whole(head) >= run.config.n_heads:
        raise TraceFileError("The file names a head that its model does not have.")
    return layer, head


def _head(values: Any, run: Translation) -> HeadMap:
    site = run.config.sites[AttentionKind(values["kind"])]
    layer, head = _checked_head(site, values["layer"], values["head"], run)
    labels = run.labels(site.kind)
    window = _window(values["window"], len(labels.queries), len(labels.keys))
    shape = (window.query_stop - window.query_start, window.key_stop - window.key_start)
    view = HeadMap(
        **named(run, site.kind, layer, head, window),
        scores=_matrix(values["scores"], shape),
        mask=_matrix(values["mask"], shape, bool),
        weights=_matrix(values["weights"], shape),
        audit=AuditReport(()),
        **_rule(values, site, shape[0]),
    )
    if not np.isfinite(view.scores).all() or view.weights.min() < 0 or view.weights.max() > 1 + ROW_SUM_LIMIT:
        raise TraceFileError("The file holds weights or scores that no softmax has.")
    checks = [*_checks(view, site, len(labels.keys), run.interventions), *_recorded(values["checks"])]
    changes = tuple(map(str, run.interventions))
    return replace(view, audit=AuditReport(tuple(checks), changes, unmade=(LABELS_UNMADE, PLACES_UNMADE)))


def _measured(values: Any, head: HeadMap) -> Measured | None:
    if values is None:
        return None
    if values["name"] not in MEASURES:
        raise TraceFileError(f"The file's measure is none of {', '.join(MEASURES)}.")
    if not isinstance(rows := values["values"], list):
        raise TraceFileError("The file's measure is not a matrix.")
    known = [[each is not None for each in row] if isinstance(row, list) else row for row in rows]
    seen = _matrix(known, head.weights.shape, bool)
    filled = [[0.0 if each is None else each for each in row] for row in rows]
    found = np.where(seen, _matrix(filled, head.weights.shape), np.float32(np.nan))
    return Measured(values["name"], found.astype(np.float32))


def _rule(values: Any, site: Site, queries: int) -> dict[str, Any]:
    """The fields of a map that say how its scores and its weights were made."""
    if values.get("score", "scaled_dot") != site.score:
        raise TraceFileError("The file's rule for scores contradicts its config.")
    if "centres" not in values:
        return {"score": site.score}
    centres = _matrix([values["centres"]], (1, queries))[0]
    reach = whole(values["reach"])
    if reach < 1:
        raise TraceFileError("The file's local attention reaches no key.")
    return {"score": site.score, "centres": centres, "reach": reach}


def _window(values: Any, queries: int, keys: int) -> Window:
    window = Window(*map(whole, values))
    sides = (window.query_start, window.query_stop, queries), (window.key_start, window.key_stop, keys)
    if not all(start < stop <= length and stop - start <= LARGEST for start, stop, length in sides):
        raise TraceFileError("The file's window lies outside its sentence, or is too large.")
    return window


def _matrix(values: Any, shape: tuple[int, int], cell: type = float) -> np.ndarray:
    if not isinstance(values, list) or len(values) != shape[0]:
        raise TraceFileError(f"The file's matrix does not have the {shape[0]} rows that its window has.")
    if any(not isinstance(row, list) or len(row) != shape[1] for row in values):
        raise TraceFileError(f"The file's matrix does not have the {shape[1]} columns that its window has.")
    if cell is bool:
        if any(not isinstance(value, bool) for row in values for value in row):
            raise TraceFileError("The file's mask holds values other than true and false.")
        return np.array(values)
    with np.errstate(over="ignore"):
        return np.array([[number(value) for value in row] for row in values]).astype(np.float32)


def _checks(view: HeadMap, site: Site, keys: int, changes: Sequence[Intervention]) -> list[Check]:
    """The checks that need no model: exact zeros, and whole rows against a softmax of their scores.

    In a changed run, masks and weights are those that its changes make of the model's.
    """
    weights, mask = view.weights.astype(np.float64), view.mask
    checks = [Check("masked weights", float(np.abs(weights[~mask]).max(initial=0.0)), 0.0)]
    if changes or view.centres is not None:
        checks.append(Check("masks", float((mask != _mask(view, site, keys, changes)).any()), 0.0))
    if view.window.key_start or view.window.key_stop < keys:
        return checks
    powers = np.exp(
        view.scores - view.scores.max(1, keepdims=True, initial=-np.inf, where=mask),
        where=mask,
        out=np.zeros_like(weights),
    )
    softmax = powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)
    if view.centres is not None:
        softmax = softmax * focused_textbook(view.centres, view.reach, keys)[1]
    within = [
        (each, None)
        for each in changes
        if isinstance(each, InHeads) and each.in_head(view.kind, view.layer, view.head)
    ]
    softmax = weighed_textbook(softmax.astype(np.float32), mask, view.window.query_start, within)
    sums = mask.any(1) if view.centres is None else softmax.sum(1)
    return [
        Check("row sums", float(np.abs(weights.sum(1) - sums).max()), ROW_SUM_LIMIT),
        *checks,
        Check("weights", float(np.abs(weights - softmax).max()), WEIGHT_LIMIT),
    ]


def _mask(view: HeadMap, site: Site, keys: int, changes: Sequence[Intervention]) -> BoolArray:
    """(queries, keys) of the window: the model's own mask after the changes."""
    window = view.window
    rows = np.arange(window.query_start, window.query_stop)[:, None]
    own: BoolArray = np.arange(keys) <= rows if site.causal else np.ones((len(rows), keys), bool)
    if view.centres is not None:
        own = own & focused_textbook(view.centres, view.reach, keys)[0]
    masks = [each for each in changes if isinstance(each, Masking) and each.changes(view.kind, view.layer)]
    return masked_textbook(own, masks, window.query_start)[:, window.keys]


def _recorded(values: Any) -> list[Check]:
    if not isinstance(values, list) or len(values) > 100:
        raise TraceFileError("The file's checks are not a list.")
    return [
        Check(
            text(each["name"], LONGEST_NAME).removesuffix(AS_RECORDED) + AS_RECORDED,
            number(each["value"]),
            number(each["limit"]),
        )
        for each in values
    ]
