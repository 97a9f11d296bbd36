"""Measures of a visitor's sentence: what weights carried and did, and why a token was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from explorer import lenses
from explorer.app.server.opened import Opened, per_run
from explorer.app.server.per_run import retraced
from explorer.figures.base.labels import number
from explorer.lenses.measures.carried import carried_map, shares
from explorer.lenses.measures.effect import WAYS, effect_in, effect_map, from_runs
from explorer.lenses.measures.stream import Tell, UnmeasuredError, silent
from transformer import Translation
from transformer.config import AttentionKind, Head
from transformer.translator import Translator
from transformer.view import Array, AuditReport, HeadMap, Window

MOST_CELLS_OF_MAP = 400
"""Cells of a map whose effect is measured at most: some seconds, with a bar."""
MOST_TOKENS = 128
"""Longest side of a run that is explained by taking each token away: two minutes with `en-pt`."""


@per_run(64)
def audited(opened: Opened, runs: int = 0) -> AuditReport:
    """The audit of the run behind numbers that are drawn; says from how many further runs effects are."""
    return replace(retraced(opened).audit(), claim=from_runs(runs) if runs else "")


def _traced(opened: Opened) -> tuple[Translator, Translation]:
    """The model, and the run with its residual stream."""
    return opened.source.translator(), retraced(opened)


def whole_carried(opened: Opened, kind: str, chosen: Head) -> Array:
    """(queries, keys) what each key of a head carried, as shares of each row's sum."""
    return shares(_carried(opened, kind, chosen).norms)


@per_run(256)
def _carried(opened: Opened, kind: str, chosen: Head) -> lenses.Carried:
    model, run = _traced(opened)
    return lenses.carried(model.model, run, kind, *chosen)


@per_run(256)
def effects_of(opened: Opened, kind: str, chosen: Head, window: Window, *, tell: Tell) -> Array:
    """(queries, keys) of a window of a head: effect of each cell, in nats; measured once and then kept."""
    return effect_in(*_traced(opened), kind, *chosen, window, tell)


def in_place(opened: Opened, view: HeadMap, measure: str) -> HeadMap:
    """A map with a measure for its weights; the map itself if it has too many cells for it."""
    return IN_PLACE[measure](opened, view)


def _effects_in_place(opened: Opened, view: HeadMap) -> HeadMap:
    if view.mask.sum() > MOST_CELLS_OF_MAP:
        return view
    return effect_map(view, effects_of(opened, view.kind, (view.layer, view.head), view.window, tell=silent))


IN_PLACE: dict[str, Callable[[Opened, HeadMap], HeadMap]] = {
    "carried": lambda opened, view: carried_map(view, _carried(opened, view.kind, (view.layer, view.head))),
    "effect": _effects_in_place,
}
"""What the switch of the maps offers beside weights, and the map of it."""


def count(run: Translation, kind: str, chosen: Head, window: Window) -> int:
    """Visible cells of a head in a window."""
    return int(run.mask(kind, *chosen)[window.queries, window.keys].sum())


def of_cell(
    opened: Opened, kind: str, chosen: Head, place: tuple[int, int], step: int
) -> list[tuple[str, str, str]]:
    """Every measure of one cell, about the token of a step: name, number, unit."""
    (row, key), (model, run) = place, _traced(opened)
    head, own = run.head(kind, *chosen), _carried(opened, kind, chosen)
    if not head.mask[row, key]:
        return [("weight", "0", "masked: the query may not see the key")]
    names = {"hidden": "key hidden", "zeroed": "value zeroed", "mean": "mean value"}
    cuts = [(lenses.Cut(AttentionKind(kind), (key,), way, *chosen, row),) for way in WAYS]
    found = lenses.Effects(model, run).of(cuts)[:, step].tolist()
    return [
        ("score q·k", number(float(head.scores[row, key]), ".3f"), "÷ √d_k"),
        ("weight", f"{head.weights[row, key]:.3f}", "share of the row"),
        ("length of its value, ‖x W_V W_O‖", f"{own.values[key]:.3f}", "length"),
        ("carried, ‖α x W_V W_O‖", f"{own.norms[row, key]:.3f}", "length"),
        ("‖b_V W_O‖, which every query gets", f"{own.bias:.3f}", "length"),
        ("share carried", f"{shares(own.norms)[row, key]:.3f}", "share of the row"),
        *(
            (f"Δ log p, {names[way]}", number(each, "+.3f") if each == each else "no other key", "nats")
            for way, each in zip(WAYS, found, strict=True)
        ),
    ]


@per_run(16)
def explained(
    opened: Opened, kind: str, chosen: Head, row: int, step: int, *, tell: Tell
) -> tuple[Array, lenses.Carried, Array]:
    """Of one query of a head: (keys,) weights, what the head carried, and (keys,) effects in nats.

    The encoder's effects are about the token of a step, others about the one that the query predicts.
    UnmeasuredError if the measures are not defined for the model or the run, or the run is too long.
    """
    model, run = _short(opened)
    which = step if kind == AttentionKind.ENCODER else None
    effects = lenses.effect(model, run, kind, *chosen, "hidden", which, [row], tell)[row]
    return run.weights(kind, *chosen)[row], lenses.carried(model.model, run, kind, *chosen), effects


@per_run(16)
def source_effects(opened: Opened, step: int, *, tell: Tell) -> tuple[tuple[str, ...], Array]:
    """The source words, and (words,) Δ log p of a step's token without each; raises as ``explained``."""
    model, run = _short(opened)
    words = tuple(word.text for word in lenses.source_words(run))
    return words, lenses.word_effect(model, run, "cross", "hidden", None, tell)[step]


def _short(opened: Opened) -> tuple[Translator, Translation]:
    run = opened.translation
    longest = max(len(run.source_tokens), len(run.target_tokens))
    if longest > MOST_TOKENS:
        raise UnmeasuredError(
            f"The model runs again without each token, for at most {MOST_TOKENS} tokens a side; here are "
            f"{longest:,}. Choose a shorter text."
        )
    return _traced(opened)


@per_run(32)
def reasons(
    opened: Opened, step: int, against: int, *, tell: Tell
) -> tuple[lenses.Attribution, Array, Array | None]:
    """Why the token of a step, and not another: what wrote the difference of logits; and by source token:

    (source,) what is read through each, and the change of the difference without each; None for a long run.
    """
    model, run = _traced(opened)
    pair, short = (run.steps[step].token_id, against), len(run.source_tokens) <= MOST_TOKENS
    return (
        lenses.attribution(model.model, run, step, *pair),
        lenses.by_source(model.model, run, step, *pair),
        lenses.on_difference(model, run, step, against, tell) if short else None,
    )


@per_run(32)
def sources(opened: Opened) -> lenses.Shares:
    """Shares of source and prefix in every step; raises as ``explained``."""
    model, run = _traced(opened)
    return lenses.alti(model.model, run)
