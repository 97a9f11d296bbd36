"""Effects by runs of another kind: an intervention whose run is verified, or an output made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from lenses.again.cells import compared, equal
from lenses.measures.effect import Way
from lenses.measures.maps import LEAST, ON_ALL
from lenses.measures.stream import recorded
from transformer.interventions import head_output, set_row
from transformer.model.network import EncoderDecoder
from transformer.model.sites import AttentionKind, PlacedHead
from transformer.runs.batched import Passes, RowChanges, Swap
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, HeadMap

LIMIT = 1e-2
"""Share of the largest effect, or of 0.1 nats, by which one may miss."""
Cell = tuple[int, int]


def audit_effect_map(
    translator: Translator, run: Translation, view: HeadMap, count: int | None = 1
) -> AuditReport:
    """Whether a map of effects (``effect_map``) has them at their cells, by running for some cells again."""
    effects, which = np.asarray(view.measured), (view.kind, view.layer, view.head)
    known = np.abs(np.where(np.isfinite(effects), effects, 0.0))
    share = known / max(float(known.max(initial=0.0)), LEAST)
    colours = equal("shares of the largest effect", view.weights, share, 1e-5)
    start = view.window.query_start, view.window.key_start
    runs = int(view.mask.sum())
    found = audit_effects(translator, run, which, effects, start=start, count=count, runs=runs)
    assert (view.measure == ON_ALL) == (view.kind is AttentionKind.ENCODER)
    return colours.joined(found)


def audit_effects(
    translator: Translator,
    run: Translation,
    which: PlacedHead,
    drawn: Array,  # (queries, keys) effects in nats as a figure receives them
    way: Way = "hidden",
    step: int | None = None,  # as in ``effect``; None in the encoder: Σ |Δ| over all tokens
    start: Cell = (0, 0),  # the query and key of the first cell, from 0
    count: int | None = 1,  # runs to make again, those of the largest effects first; None for all
    runs: int | None = None,  # runs that the numbers come from; None for as many as there are numbers
) -> AuditReport:
    """Whether effects are those of their cells.

    A hidden key is a row whose weight there is 0: an intervention, whose run is recorded and audited. For a
    value that is zeroed or a mean, the head's output is computed by hand and put in.
    """
    cells = [(int(row), int(key)) for row, key in np.argwhere(np.isfinite(drawn))]

    def again(places: list[Cell]) -> list[float]:
        moved = [(row + start[0], key + start[1]) for row, key in places]
        rerun = _verified if way == "hidden" else _by_hand
        changes = rerun(translator, run, which, moved, way)
        return [_about(change, which[0], cell[0], step) for change, cell in zip(changes, moved, strict=True)]

    values = [float(drawn[cell]) for cell in cells]
    found = compared(f"effects, {way}", cells, values, again, recorded(run).hash, LIMIT, count, floor=LEAST)
    total, made = runs or len(cells), len(cells) if count is None else min(count, len(cells))
    verified = " and verified" if way == "hidden" else ""
    each = "each verified" if made == total and verified else f"{made:,} made again{verified}"
    return replace(found, claim=f"from {total:,} run{'s' * (total != 1)}, {each}")


def _about(change: Array, kind: AttentionKind, query: int, step: int | None) -> float:
    if step is None and kind is AttentionKind.ENCODER:
        return float(np.abs(change).sum())
    return float(change[query if step is None else step])


def _verified(
    translator: Translator, run: Translation, which: PlacedHead, cells: list[Cell], _way: Way
) -> list[Array]:
    """(target,) Δ log p without each cell; not a number if the audit of the run fails."""
    kind, layer, head = which
    found = []
    for query, key in cells:
        change = set_row(kind, layer, head, query, {key: 0.0})
        made = translator.force(run.source_text, run.target_ids, interventions=[change])
        passed = 1.0 if made.audit((kind, layer)).passed else np.nan
        found.append(passed * np.subtract(made.log_probs, run.log_probs).astype(np.float32))
    return found


def _by_hand(
    translator: Translator, run: Translation, which: PlacedHead, cells: list[Cell], way: Way
) -> list[Array]:
    kind, layer, head = which
    record, model = recorded(run).layer(kind, layer), translator.model
    assert isinstance(model, EncoderDecoder)
    weights, mask, swaps = record.weights(head), record.mask(), []
    for query, key in cells:
        value, part = record.value[head], weights[query, key]
        instead = value[mask[query]].mean(0) if way == "mean" else torch.zeros_like(value[0])
        vector = record.output[head, query] + part * (instead - value[key])
        swaps.append([Swap(head_output(kind, layer, head), vector, query)])
    source = [*translator.ids(run.source_text), translator.config.eos_id]
    made = Passes(model, source, run.target_ids, RowChanges).log_probs(swaps)
    return [*(made.numpy() - np.asarray(run.log_probs))]
