"""One head: its weights, what they carried, and what happens without each key."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, panel, part, pickers, plain, say
from explorer.app.maps import measures
from explorer.app.maps.looking import cells_of
from explorer.app.maps.measures import Explained, Pair
from explorer.app.server.opened import Opened
from explorer.app.shell import waiting
from explorer.app.views.explanation import words
from explorer.figures.base import captions, labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.labels import number
from explorer.figures.maps.measures import MeasureRow, effect_dots, measures_map, part_bars
from explorer.lenses.measures.agreement import Agreement, agreement
from explorer.lenses.measures.effect import Way
from explorer.lenses.measures.rewired import uniform
from transformer.config import Head

_WAYS: dict[Way, str] = {
    "hidden": "Δ log p, hidden",
    "zeroed": "Δ log p, value zeroed",
    "mean": "Δ log p, mean value",
}
_SEEING = (
    "**Weight**: the share of the key's value in the head's sum. **Carried**: the length of what the "
    "key added, weight × ‖x W_V W_O‖; a large weight on a small value carries little. **Δ log p** is "
    "measured by running the model again without the key, for this head and this query alone: *hidden* "
    "puts its score to −∞, and the other keys share its weight; *value zeroed* keeps the weight and "
    "adds nothing; *mean value* adds what the visible keys hold on average. Below zero: the token "
    "became less probable, so the key had helped. Effects of several keys do not add up, and other heads may "
    "do the same work. **b_V**, the bias of the values, enters through every key, and weights sum to 1: "
    "every query gets the whole of it, whatever it looks at; so it has a column of its own."
)
_FORMULA = (
    r"\lVert \alpha_{ij}\, x_j W_V W_O \rVert, \qquad "
    r"\Delta \log p = \log p(y_t \mid \text{without } j) - \log p(y_t)"
)
_OTHERS = (
    "The head's values stay, and this query mixes them by other weights: *uniform*, the same on every key "
    "that it sees; *permuted*, its own in another order; those of the other heads of the layer. After Jain "
    "& Wallace (2019) and Wiegreffe & Pinter (2019). If the token stays as probable, it did not need these "
    "weights: other heads, the residual and the feed-forward networks are still there."
)
_NEEDLESS = "**No other weights change it**: this token does not rest on where this row looks."
_LITERATURE = (
    "**What was found elsewhere.** Jain & Wallace (2019), on recurrent classifiers with one attention: "
    "weights correlate weakly with gradients, and other weights often give the same prediction. Wiegreffe "
    "& Pinter (2019): such other weights are found per example, and a model that is trained to use them "
    "does worse, so the question depends on what an explanation is for. Moradi et al. (2019), on recurrent "
    "translation: with other weights in their place, 68 % of the function words stay as they were, but "
    "only 21 % of the content words. Kobayashi et al. (2020), on Transformers: large weights often lie on "
    "small values. Ferrando & Costa-jussà (2021), on Transformers that translate: weights align words "
    "badly, but say largely which tokens a prediction used."
)


@part
def show(opened: Opened, now: State) -> None:
    now = session.current()
    usual = "cross" if "cross" in opened.kinds else opened.kinds[0]
    kind = now.kind if now.kind in opened.kinds else usual
    head: Head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    step = now.step or 0
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heads"):
        pickers.kind_picker(kind, opened.kinds)
        with st.container(width=220):
            pickers.head_picker(kind, head, opened.source)
        with st.container(width=205):
            pickers.row_picker(opened, kind, row)
    with waiting.progress("Running the model again without each key") as tell:
        found = measures.explained(opened, kind, head, row, step, tell=tell)
    columns = labels.names(opened.translation.labels(kind).keys)
    about = row if kind != "encoder" else step
    token = captions.quote(opened.translation.target_tokens[about])
    say(told(found, row, columns, token))
    rows, shown = _rows(found, row), [*columns, _BIAS]
    where = f"{captions.KIND_NAMES[kind]} · {labels.head_phrase(*head)} · {_query(opened, kind, row)}"
    panel(
        "measures",
        lambda ink: measures_map(rows, shown, ink),
        f"{where} · Δ log p of “{token}” in nats, each by running again · "
        f"weight, value and carried have scales of their own · {opened.asked.model}",
        lambda: _table(rows, shown),
        seeing=_SEEING,
        formula=_FORMULA,
        audit=measures.audited(opened, sum(map(len, found.effects))),
        derived=True,
        inked=True,
        scrolls=_LEAST + 40 * len(columns) if len(columns) > _NARROW else False,
    )
    if found.pair is not None and max(abs(found.pair.together), abs(found.pair.apart)) >= 2 * _EQUAL:
        say(_added(found.pair, columns))
    _other_weights(found, kind, head, row, where, token, opened)
    words.show(opened, now, kind, about)
    _together(found, kind, head, opened, columns)
    st.markdown(_LITERATURE)


_NARROW, _LEAST = 8, 160
_BIAS = "b_V (always)"
_EQUAL = 0.01
"""Nats within which two effects add up."""
_SINK, _SHORT = 0.3, 0.5
"""A sink has at least this weight on a value shorter than this share of the head's median."""
_MOST, _LITTLE, _NOTHING = 0.5, 0.05, 0.005
"""A share of the weight that is most of it, and effects in nats that are little and none."""


def _query(opened: Opened, kind: str, row: int) -> str:
    found = opened.translation.labels(kind)
    verb, tokens = ("of", found.queries) if found.predicted is None else ("that predicts", found.predicted)
    return f"row {labels.count(row)}, {verb} “{captions.quote(tokens[row])}”"


def _rows(found: Explained, row: int) -> list[MeasureRow]:
    own = found.carried
    return [
        MeasureRow("weight", _and(found.weights[row])),
        MeasureRow("length of value", _and(own.values, own.bias)),
        MeasureRow("carried", _and(own.norms[row], own.bias)),
        *(MeasureRow(_WAYS[way], _and(found.effects[way][row]), True) for way in _WAYS),
    ]


def _and(values: np.ndarray, bias: float = np.nan) -> np.ndarray:
    """The numbers of the keys, and that of b_V."""
    return np.append(values, np.float32(bias))


def told(found: Explained, row: int, columns: list[str], token: str) -> str:
    """Where weight, what was carried, and effect are largest."""

    def largest(values: np.ndarray) -> int:
        return int(np.nanargmax(np.where(np.isfinite(values), values, -np.inf)))

    weights, norms, effects = found.weights[row], found.carried.norms[row], found.effects["hidden"][row]
    if not np.isfinite(effects).any():
        return "This query sees one key only, so nothing can be taken away from it."
    first, most, needed = largest(weights), largest(norms), largest(-effects)
    keys, written = [f"**{plain(each)}**" for each in columns], f"“{plain(token)}”"
    also = "also carried most" if most == first else f"carried less than {keys[most]}"
    values = found.carried.values
    if weights[first] >= _SINK and values[first] < _SHORT * np.median(values):
        also += f" (a sink: its value is {values[first]:.2f} long, the median {np.median(values):.2f})"
    share, without = percent(float(weights[first])), number(float(effects[first]), "+.3f")
    says = f"Its largest weight, {share}, lies on {keys[first]}, which {also}."
    if weights[first] >= _MOST and abs(effects[first]) < _LITTLE:
        says = (
            f"{share} of its weight lies on {keys[first]}, yet {written} hardly needs it: without it, log p "
            f"changes by {without} nats. It {also}."
        )
        if effects[needed] > -_LITTLE:
            return says
    if effects[needed] > -_NOTHING:
        return f"{says} Without any single key, {written} stays as probable as it was."
    effect = number(float(effects[needed]), "+.2f")
    return f"{says} {written} loses most without {keys[needed]}: {effect} nats."


def _added(pair: Pair, columns: list[str]) -> str:
    """Whether two effects add up."""
    first, second = (plain(columns[key]) for key in pair.keys)
    together, apart = (number(each, "+.2f") for each in (pair.together, pair.apart))
    same = abs(pair.together - pair.apart) < _EQUAL
    says = "Effects need not add up, though these two do." if same else "Effects do not add up."
    return (
        f"**{says}** Without **{first}** and **{second}** together, Δ log p is {together} "
        f"nats; each alone gives {apart} in sum."
    )


def _other_weights(
    found: Explained, kind: str, head: Head, row: int, where: str, token: str, opened: Opened
) -> None:
    """The control: the same values, mixed by other weights."""
    others, own = found.others, head[1]
    names = ["uniform", f"permuted, mean of {len(others.permuted)}", "permuted, worst"]
    values = [others.uniform, float(others.permuted.mean()), float(others.permuted.min())]
    for at, value in enumerate(others.heads.tolist()):
        if at != own:
            names.append(f"those of head {labels.count(at)}")
            values.append(value)
    st.markdown("#### The same values, mixed by other weights")
    said = ", ".join(
        f"{name} {number(value, '+.2f')}" for name, value in zip(names, values[:3], strict=False)
    )
    say(
        f"Δ log p of “{plain(token)}” with other weights in this row: {said}. "
        + (_NEEDLESS if max(map(abs, values)) < _EQUAL else "")
    )
    panel(
        "other weights",
        lambda: part_bars(names, np.array(values)),
        f"{where} · Δ log p of “{token}” in nats with other weights for this query, each by running again · "
        f"{opened.asked.model}",
        lambda: [["weights", "Δ log p"], *zip(names, values, strict=True)],
        seeing=_OTHERS,
    )


def _table(rows: list[MeasureRow], columns: list[str]) -> Table:
    return [["measure", *columns], *([row.name, *map(float, row.values)] for row in rows)]


def _together(found: Explained, kind: str, head: Head, opened: Opened, columns: list[str]) -> None:
    """All measured cells of the head: weight against effect, with ranks and chance."""
    rows, shown = list(found.rows), (found.weights, found.carried.norms, found.effects["hidden"])
    effects, weights = found.effects["hidden"][rows], found.weights[rows]
    seen = np.isfinite(effects)
    places = [(rows[i], j) for i, j in np.argwhere(seen)]
    names = labels.names(opened.translation.labels(kind).queries)
    notes = [f"{names[i]} → {columns[j]}: weight {found.weights[i, j]:.2f}" for i, j in places]
    of_weight = agreement(weights[seen], -effects[seen])
    of_carried = agreement(found.carried.norms[rows][seen], -effects[seen])
    of_even = agreement(uniform(seen)[seen], -effects[seen])
    of_heads = [
        agreement(each[rows][seen], -effects[seen], draws=0).value
        for at, each in enumerate(found.others.maps)
        if at != head[1]
    ]
    st.markdown("#### Weight against effect, over the cells of this head")
    say(
        f"Rank correlation of the weight with the loss of log p: {_said(of_weight)}; of what was carried: "
        f"{_said(of_carried)}; of uniform weights: {_said(of_even)}{_range(of_heads)}."
    )
    part_of = f"rows {rows[0] + 1} to {rows[-1] + 1}" if len(rows) < len(found.weights) else "all rows"
    panel(
        "dots",
        lambda: effect_dots(weights[seen], effects[seen], notes, style.HUES[kind]),
        f"{captions.KIND_NAMES[kind]} · {labels.head_phrase(*head)} · {len(places)} cells of {part_of}, one "
        f"forced pass each · {opened.asked.model}",
        lambda: [
            ["query", "key", "weight", "carried", "effect"],
            *([i + 1, j + 1, *(float(each[i, j]) for each in shown)] for i, j in places),
        ],
    )


def _range(values: list[float]) -> str:
    known = [value for value in values if value == value]
    if not known:
        return ""
    low, high = (number(end, "+.2f") for end in (min(known), max(known)))
    return f"; of the weights of the layer's other heads: {low} to {high}"


def _said(found: Agreement) -> str:
    if found.value != found.value:
        return "too few different numbers"
    value, low, high = (number(each, "+.2f") for each in (found.value, found.low, found.high))
    return f"**{value}** (with permuted cells {low} to {high})"
