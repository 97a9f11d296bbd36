"""Measures of a visitor's sentence: what weights carried and did, and why a token was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from explorer.app.server.opened import Opened, per_run
from explorer.app.server.per_run import retraced
from explorer.figures.base.labels import number
from explorer.lenses.measures.alti import Shares, alti
from explorer.lenses.measures.attribution import Attribution, attribution, by_source
from explorer.lenses.measures.carried import Carried, carried
from explorer.lenses.measures.effect import WAYS, Cut, Effects, Way, effect, on_difference
from explorer.lenses.measures.maps import carried_map, effect_in, effect_map, from_runs, shares
from explorer.lenses.measures.rewired import permuted, rewired, uniform
from explorer.lenses.measures.stream import Tell, UnmeasuredError, silent
from explorer.lenses.measures.words import source_words, word_effect
from transformer import Translation
from transformer.config import AttentionKind, Head
from transformer.translator import Translator
from transformer.view import Array, AuditReport, HeadMap, Window

PERMUTED = 20
"""Orders of a row's weights that are tried."""
MOST_CELLS = 160
"""Cells whose effect is measured at once, each by a pass of its own: about two seconds at most."""


class Pair(NamedTuple):
    """Two keys hidden together."""

    keys: tuple[int, int]  # from 0
    together: float  # Δ log p, in nats
    apart: float  # the sum of Δ log p of each alone


@dataclass(frozen=True, eq=False)
class OtherWeights:
    """Δ log p of a token, in nats, with other weights in the place of a row's own."""

    uniform: float
    permuted: Array  # (draws,) the row's own weights in another order
    heads: Array  # (heads,) the weights of each head of the layer; 0 for the head itself
    maps: Array  # (heads, queries, keys) their weights


@dataclass(frozen=True, eq=False)
class Explained:
    """Measures of the cells of one head; not a number in rows that were not measured."""

    weights: Array  # (queries, keys)
    carried: Carried
    effects: dict[Way, Array]  # (queries, keys) Δ log p, by the way of taking the key away; all for some rows
    rows: tuple[int, ...]  # the rows for which the effect of a hidden key was measured
    pair: Pair | None  # the two keys of largest effect, together; None if the row sees fewer than three
    others: OtherWeights


@dataclass(frozen=True, eq=False)
class WholeWords:
    """Δ log p of a token without each source word; each array (words,), in nats."""

    words: tuple[str, ...]
    everywhere: dict[Way, Array]  # in every layer and head, by the way of taking the word away
    left_out: Array  # not in the text; not a number for `</s>`, or if no word would be left
    layers: Array  # (layers, words) in all heads of one layer, by one way


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
def explained(opened: Opened, kind: str, chosen: Head, row: int, step: int, *, tell: Tell) -> Explained:
    """Measures of a head around a row; the encoder's are about the token of a step.

    Raises:
        UnmeasuredError: The measures are not defined for the model or the run, or the run is too long.
    """
    longest = max(len(opened.translation.source_tokens), len(opened.translation.target_tokens))
    if longest > MOST_TOKENS:
        raise UnmeasuredError(
            f"The model runs again without each token, for at most {MOST_TOKENS} tokens a side; here are "
            f"{longest:,}. Choose a shorter text."
        )
    model, run = _traced(opened)
    weights = run.weights(kind, *chosen)
    which = step if kind == AttentionKind.ENCODER else None
    rows = _around(row, *weights.shape)
    found: dict[Way, Array] = {"hidden": effect(model, run, kind, *chosen, "hidden", which, rows, tell)}
    found |= {way: effect(model, run, kind, *chosen, way, which, [row]) for way in WAYS[1:]}
    made, at = Effects(model, run), step if which is not None else row
    hidden = found["hidden"][row]
    return Explained(
        weights,
        carried(model.model, run, kind, *chosen),
        found,
        rows,
        _pair(made, AttentionKind(kind), chosen, row, hidden, at),
        _others(model, run, kind, chosen, row, at),
    )


@per_run(16)
def whole_words(opened: Opened, kind: str, step: int, way: Way, *, tell: Tell) -> WholeWords:
    """Whole source words taken away; ``way`` is that of the layers; raises as ``explained``."""
    model, run = _traced(opened)
    words, made = source_words(run), Effects(model, run)
    out = np.full(len(words), np.nan, dtype=np.float32)
    for at, word in enumerate(words[:-1] if len(words) > 2 else ()):
        out[at] = float(made.left_out(word.indices)[step])
    layers = range(run.config.sites[AttentionKind(kind)].n_layers)
    found = []
    for layer in layers:
        found.append(word_effect(model, run, kind, way, layer)[step])
        tell((layer + 1) / len(layers))
    everywhere = {each: word_effect(model, run, kind, each)[step] for each in WAYS}
    return WholeWords(tuple(word.text for word in words), everywhere, out, np.stack(found))


def _pair(
    made: Effects, kind: AttentionKind, chosen: Head, row: int, hidden: Array, step: int
) -> Pair | None:
    """The two keys whose effects alone are largest, hidden together."""
    seen = np.flatnonzero(np.isfinite(hidden))
    if len(seen) < 3:
        return None
    first, second = (int(seen[at]) for at in np.argsort(-np.abs(hidden[seen]), kind="stable")[:2])
    together = made.of([(Cut(kind, (first, second), "hidden", *chosen, row),)])[0, step]
    return Pair((first, second), float(together), float(hidden[first] + hidden[second]))


def _others(
    model: Translator, run: Translation, kind: str, chosen: Head, row: int, step: int
) -> OtherWeights:
    """The control: whether it must be these weights."""
    weights, mask, random = (
        run.weights(kind, *chosen),
        run.mask(kind, *chosen),
        np.random.default_rng(1),
    )
    heads = np.stack([run.weights(kind, chosen[0], head) for head in range(run.config.n_heads)])
    drawn = [permuted(weights, mask, random) for _ in range(PERMUTED)]
    maps = np.stack([uniform(mask), *drawn, *heads])
    found = rewired(model, run, kind, *chosen, maps, row)[:, step]
    return OtherWeights(float(found[0]), found[1 : PERMUTED + 1], found[PERMUTED + 1 :], heads)


def _around(row: int, queries: int, keys: int) -> tuple[int, ...]:
    """As many rows around one as ``MOST_CELLS`` allows."""
    count = min(queries, max(1, MOST_CELLS // keys))
    start = min(max(0, row - count // 2), queries - count)
    return tuple(range(start, start + count))


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
