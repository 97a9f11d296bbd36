"""Why this score: q·k of one cell, split over what wrote the stream of the query and that of the key."""

from __future__ import annotations

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.labels import number
from figures.maps.measures import Row, measures_map, part_bars
from transformer.lenses.measures.score_parts import ScoreParts
from ui.address import session
from ui.address.state import State
from ui.controls import options, pickers
from ui.controls.export import Table
from ui.controls.panel import panel
from ui.controls.part import part
from ui.controls.text import plain
from ui.linked_view import Head
from ui.maps import measures
from ui.maps.looking import cells_of
from ui.server.opened import Opened

_SHOWN, _WRITERS = 14, 16
_SEEING = (
    "Query and key are linear in the streams that they read, once the σ of every LayerNorm is held fixed; so "
    "the score splits exactly over pairs: what wrote the query's stream, and what wrote the key's. Writers "
    "are the token, its position, every earlier head, every earlier feed-forward network, and biases with "
    "every LayerNorm's β. A rotation turns each part before the product; a bias of positions is a part of "
    "its own. The weight also depends on all other scores of the row."
)
_FORMULA = (
    r"\frac{q_i \cdot k_j}{\sqrt{d_k}} = "
    r"\sum_{a, b} \frac{(W_Q\, x_i^{(a)}) \cdot (W_K\, x_j^{(b)})}{\sqrt{d_k}}"
)


@part
def show(opened: Opened, now: State) -> None:
    """Draws the section."""
    now = session.current()
    usual = "cross" if "cross" in opened.kinds else opened.kinds[0]
    kind = now.kind if now.kind in opened.kinds else usual
    head: Head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    tokens = opened.translation.labels(kind).keys
    largest = int(np.argmax(opened.translation.weights(kind, *head)[row]))
    chosen = now.key if kind != "cross" else now.source
    key = largest if chosen is None else min(chosen, len(tokens) - 1)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds)
        with st.container(width=220):
            pickers.head_picker(kind, head, opened.asked.model)
        with st.container(width=205):
            pickers.row_picker(opened, kind, row)
        with st.container(width=205):
            named = options.rows("key", tokens)
            field = "source" if kind == "cross" else "key"
            pickers.choose("explanation.key", "Key", named, key, field, texts=True)
    found = measures.scored(opened.asked, opened.translation, kind, head, (row, key))
    names = labels.names(opened.translation.labels(kind).queries)
    where = f"{plain(names[row])} → {plain(labels.names(tokens)[key])}"
    st.markdown(told(found, where))
    shown, values = _pairs(found)
    panel(
        "score parts",
        lambda: part_bars(shown, values, "score"),
        f"{captions.KIND_NAMES[kind]} · {labels.head_phrase(*head)} · the largest parts of the score of "
        f"{where}, σ of every LayerNorm fixed · {opened.asked.model}",
        lambda: _table(found),
        seeing=_SEEING,
        formula=_FORMULA,
        audit=found.audit,
        proof="The parts sum to the score that the model computed.",
    )
    st.markdown("#### What wrote the query, by what wrote the key")
    rows, columns = _strongest(found)
    panel(
        "score pairs",
        lambda ink: measures_map(rows, columns, ink),
        "Rows: writers of the query's stream; columns: of the key's; those with the largest parts",
        inked=True,
        scrolls=180 + 56 * len(columns),
    )


def told(found: ScoreParts, where: str) -> str:
    """The largest pair of writers, in words."""
    at = np.unravel_index(int(np.argmax(np.abs(found.values))), found.values.shape)
    value = number(float(found.values[at]), "+.2f")
    bias = f" Positions add {number(found.bias, '+.2f')}." if found.bias else ""
    return (
        f"The score of **{where}** is {number(found.score, '.2f')}. Its largest part is {value}: "
        f"**{found.queries[at[0]]}** of the query with **{found.keys[at[1]]}** of the key.{bias}"
    )


def _pairs(found: ScoreParts) -> tuple[list[str], np.ndarray]:
    """The largest pairs in their order, the others as one, and the bias of positions."""
    flat = found.values.ravel()
    order = np.argsort(-np.abs(flat), kind="stable")
    shown = sorted(order[:_SHOWN], key=lambda at: -flat[at])
    places = [divmod(int(at), found.values.shape[1]) for at in shown]
    names = [f"{found.queries[i]} · {found.keys[j]}" for i, j in places]
    values = [float(flat[at]) for at in shown]
    if len(order) > _SHOWN:
        names.append(f"{len(order) - _SHOWN} others")
        values.append(float(flat[order[_SHOWN:]].sum()))
    if found.bias:
        names.append("bias of positions")
        values.append(found.bias)
    return names, np.array(values)


def _strongest(found: ScoreParts) -> tuple[list[Row], list[str]]:
    """The writers of both streams with the largest parts, in the order of writing."""
    sides = []
    for axis in (1, 0):
        order = np.argsort(-np.abs(found.values).sum(axis), kind="stable")[:_WRITERS]
        sides.append(sorted(int(at) for at in order))
    rows = [Row(str(found.queries[i]), found.values[i, sides[1]], True) for i in sides[0]]
    return rows, [str(found.keys[j]) for j in sides[1]]


def _table(found: ScoreParts) -> Table:
    rows = [
        (str(found.queries[i]), str(found.keys[j]), float(value))
        for (i, j), value in np.ndenumerate(found.values)
    ]
    return [("query", "key", "part of the score"), *rows]
