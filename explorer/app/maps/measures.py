"""Measures of a visitor's sentence: what weights carried and did, and why a token was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from explorer.app.server.opened import Opened, per_run
from explorer.app.server.per_run import retraced
from explorer.figures.base.labels import number
from explorer.lenses.measures.attribution import Attribution, Shares, alti, attribution, by_source
from explorer.lenses.measures.carried import Carried, carried, carried_map, shares
from explorer.lenses.measures.effect import (
    WAYS,
    Cut,
    Effects,
    effect,
    effect_in,
    effect_map,
    from_runs,
    on_difference,
    source_words,
    word_effect,
)
from explorer.lenses.measures.stream import Tell, UnmeasuredError, silent
from transformer import Translation
from transformer.config import AttentionKind, Head
from transformer.translator import Translator
from transformer.view import Array, AuditReport, HeadMap, Window


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why one token and not another."""

    attribution: Attribution
    source: Array  # (source,) what is read through each source token, in nats
    effects: Array | None  # (source,) change of the difference without each; None for a long run


MOST_CELLS_OF_MAP = 400
"""Cells of a map whose effect is measured at most: some seconds, with a bar."""
MOST_TOKENS = 128
"""Longest side of a run that is explained by taking each token away: two minutes with `en-pt`."""


def in_place(opened: Opened, view: HeadMap, measure: str) -> HeadMap:
    """A map with a measure for its weights; the map itself if it has too many cells for it."""
    return IN_PLACE[measure](opened, view)


def _carried_in_place(opened: Opened, view: HeadMap) -> HeadMap:
    return carried_map(view, _carried(opened, str(view.kind), (view.layer, view.head)))


def _effects_in_place(opened: Opened, view: HeadMap) -> HeadMap:
    kind, chosen = str(view.kind), (view.layer, view.head)
    runs = count(opened.translation, kind, chosen, view.window)
    if runs > MOST_CELLS_OF_MAP:
        return view
    found = effect_map(view, effects_of(opened, kind, chosen, view.window))
    return replace(found, report=replace(view.audit, claim=from_runs(runs)))


IN_PLACE: dict[str, Callable[[Opened, HeadMap], HeadMap]] = {
    "carried": _carried_in_place,
    "effect": _effects_in_place,
}
"""What the switch of the maps offers beside weights, and the map of it."""


@per_run(64)
def audited(opened: Opened, runs: int = 0) -> AuditReport:
    """The audit of the run behind numbers that are drawn; says from how many further runs effects are."""
    return replace(retraced(opened).audit(), claim=from_runs(runs) if runs else "")


def _traced(opened: Opened) -> tuple[Translator, Translation]:
    """The model, and the run with its residual stream."""
    return opened.source.translator(), retraced(opened)


def whole_carried(opened: Opened, kind: str, chosen: Head) -> Array:
    """(queries, keys) what each key of a head carried, as shares of each row's sum."""
    return shares(_carried(opened, str(kind), chosen).norms)


@per_run(256)
def _carried(opened: Opened, kind: str, chosen: Head) -> Carried:
    model, run = _traced(opened)
    return carried(model.model, run, kind, *chosen)


def effects_of(opened: Opened, kind: str, chosen: Head, window: Window, tell: Tell = silent) -> Array:
    """(queries, keys) of a window of a head: effect of each cell, in nats; measured once and then kept."""
    return _effects(opened, str(kind), chosen, window, tell=tell)


@per_run(256)
def _effects(opened: Opened, kind: str, chosen: Head, window: Window, *, tell: Tell) -> Array:
    return effect_in(*_traced(opened), kind, *chosen, window, tell=tell)


def count(run: Translation, kind: str, chosen: Head, window: Window) -> int:
    """Visible cells of a head in a window."""
    return int(run.mask(kind, *chosen)[window.queries, window.keys].sum())


def of_cell(
    opened: Opened, kind: str, chosen: Head, place: tuple[int, int], step: int
) -> list[tuple[str, str, str]]:
    """Every measure of one cell, about the token of a step: name, number, unit."""
    (row, key), run = place, retraced(opened)
    head, own = run.head(kind, *chosen), _carried(opened, str(kind), chosen)
    if not head.mask[row, key]:
        return [("weight", "0", "masked: the query may not see the key")]
    told = [
        ("score q·k", number(float(head.scores[row, key]), ".3f"), "÷ √d_k"),
        ("weight", f"{head.weights[row, key]:.3f}", "share of the row"),
        ("length of its value, ‖x W_V W_O‖", f"{own.values[key]:.3f}", "length"),
        ("carried, ‖α x W_V W_O‖", f"{own.norms[row, key]:.3f}", "length"),
        ("‖b_V W_O‖, which every query gets", f"{own.bias:.3f}", "length"),
        ("share carried", f"{shares(own.norms)[row, key]:.3f}", "share of the row"),
    ]
    made = Effects(opened.source.translator(), run)
    ways = {"hidden": "Δ log p, key hidden", "zeroed": "Δ log p, value zeroed", "mean": "Δ log p, mean value"}
    cuts = [Cut(AttentionKind(kind), (key,), way, *chosen, row) for way in WAYS]
    found = made.of([(cut,) for cut in cuts])[:, step].tolist()
    said = [number(each, "+.3f") if each == each else "no other key" for each in found]
    return told + [(ways[way], each, "nats") for way, each in zip(WAYS, said, strict=True)]


@per_run(16)
def explained(
    opened: Opened, kind: str, chosen: Head, row: int, step: int, *, tell: Tell
) -> tuple[Array, Carried, Array]:
    """Of one query of a head: (keys,) weights, what the head carried, and (keys,) effects in nats.

    The encoder's effects are about the token of a step, others about the one that the query predicts.

    Raises:
        UnmeasuredError: The measures are not defined for the model or the run, or the run is too long.
    """
    _check_length(opened)
    model, run = _traced(opened)
    which = step if kind == AttentionKind.ENCODER else None
    effects = effect(model, run, kind, *chosen, "hidden", which, [row], tell)[row]
    return run.weights(kind, *chosen)[row], carried(model.model, run, kind, *chosen), effects


@per_run(16)
def source_effects(opened: Opened, step: int, *, tell: Tell) -> tuple[tuple[str, ...], Array]:
    """The source words, and (words,) Δ log p of a step's token without each; raises as ``explained``."""
    _check_length(opened)
    model, run = _traced(opened)
    words = tuple(word.text for word in source_words(run))
    return words, word_effect(model, run, "cross", "hidden", None, tell)[step]


def _check_length(opened: Opened) -> None:
    longest = max(len(opened.translation.source_tokens), len(opened.translation.target_tokens))
    if longest > MOST_TOKENS:
        raise UnmeasuredError(
            f"The model runs again without each token, for at most {MOST_TOKENS} tokens a side; here are "
            f"{longest:,}. Choose a shorter text."
        )


@per_run(32)
def reasons(opened: Opened, step: int, against: int, *, tell: Tell) -> Reasons:
    """Why the token of a step, and not another; raises as ``explained``, but for the length."""
    model, run = _traced(opened)
    pair = run.steps[step].token_id, against
    short = len(run.source_tokens) <= MOST_TOKENS
    return Reasons(
        attribution(model.model, run, step, *pair),
        by_source(model.model, run, step, *pair),
        on_difference(model, run, step, against, tell) if short else None,
    )


@per_run(32)
def sources(opened: Opened) -> Shares:
    """Shares of source and prefix in every step; raises as ``explained``."""
    model, run = _traced(opened)
    return alti(model.model, run)
