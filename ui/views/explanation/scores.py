"""Why this score: q·k of one cell, split over what wrote the stream of the query and that of the key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.labels import number
from figures.maps.measures import Row, measures_map, part_bars
from lenses.again.written import audit_score
from lenses.measures.score_parts import ScoreParts
from lenses.measures.stream import Writer
from transformer import AttentionKind, Translation, Translator
from transformer.model.sites import Head
from transformer.trace.report import AuditReport
from ui.address import State, session
from ui.controls import Table, options, panel, part, pickers, plain
from ui.maps import measures
from ui.maps.looking import cells_of
from ui.server.opened import Opened

_SHOWN, _WRITERS = 12, 16
_SEEING = (
    "Query and key are linear in the streams that they read, once the σ of every norm is held fixed; so "
    "the score is a sum over pairs: what wrote the query's stream, and what wrote the key's. Writers "
    "are the token, its position, every earlier head, every earlier feed-forward network, and biases with "
    "every norm's β, where there are any. A rotation turns each part before the product; a bias of "
    "positions is a part of its own. The weight also depends on all other scores of the row."
)
_FORMULA = (
    r"\frac{q_i \cdot k_j}{\sqrt{d_k}} = "
    r"\sum_{a, b} \frac{(W_Q\, x_i^{(a)}) \cdot (W_K\, x_j^{(b)})}{\sqrt{d_k}}"
)
_UNDIVIDED = r"q_i \cdot k_j = \sum_{a, b} (W_Q\, x_i^{(a)}) \cdot (W_K\, x_j^{(b)})"


@part
def show(opened: Opened, now: State) -> None:
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
    which = AttentionKind(kind), *head
    site = opened.translation.config.sites[which[0]]

    def proof(model: Translator, run: Translation) -> AuditReport:
        own = audit_score(model.model, run, which, (row, key), found)
        return replace(found.audit, claim="").joined(own)

    drawn = (found.values, np.array([found.bias, found.score]))
    audit = measures.checked(opened.asked, opened.translation, ("score", *which, row, key), drawn, proof)
    named_by = opened.translation.labels(kind)
    names = labels.names(named_by.predicted or () if kind == "cross" else named_by.queries)
    where = f"{plain(names[row])} → {plain(labels.names(tokens)[key])}"
    st.markdown(told(found, where))
    head_name = f"{captions.KIND_NAMES[kind]} · {labels.head_phrase(*head)} · score of {where}"
    for column, axis, side in zip(st.columns(2, gap="large"), (1, 0), ("query", "key"), strict=True):
        shown, values = _summed(found, axis)
        with column:
            panel(
                f"score by {side}",
                lambda shown=shown, values=values: part_bars(shown, values, "score"),
                f"{head_name}, by what wrote the {side}'s stream; σ of every norm fixed · "
                f"{opened.asked.model}",
                lambda: _table(found),
                seeing=_SEEING,
                formula=_FORMULA if site.score == "scaled_dot" else _UNDIVIDED,
                audit=audit,
            )
    st.markdown("#### What wrote the query, by what wrote the key")
    rows, columns = _strongest(found)
    panel(
        "score pairs",
        lambda ink: measures_map(rows, columns, ink),
        "Rows: writers of the query's stream; columns: of the key's; those with the largest parts",
        audit=audit,
        inked=True,
        scrolls=180 + 56 * len(columns),
    )


def told(found: ScoreParts, where: str) -> str:
    """The largest pair of writers, in words."""
    at = np.unravel_index(int(np.argmax(np.abs(found.values))), found.values.shape)
    value = number(float(found.values[at]), "+.2f")
    sign = (
        "below zero, so it lowers the score" if found.values[at] < 0 else "above zero, so it raises the score"
    )
    bias = f" Positions add {number(found.bias, '+.2f')}." if found.bias else ""
    return (
        f"The score of **{where}** is {number(found.score, '.2f')}. Its largest part is {value} ({sign}): "
        f"**{found.queries[at[0]]}** of the query with **{found.keys[at[1]]}** of the key.{bias}"
    )


def _summed(found: ScoreParts, axis: int) -> tuple[list[str], np.ndarray]:
    """The score by the writers of one stream: the largest, the others as one, the bias of positions."""
    writers, parts = (found.queries, found.keys)[1 - axis], found.values.sum(axis)
    order = np.argsort(-np.abs(parts), kind="stable")
    shown = sorted(order[:_SHOWN], key=lambda at: -parts[at])
    names, values = [_short(writers[at]) for at in shown], [float(parts[at]) for at in shown]
    if len(order) > _SHOWN:
        names.append(f"{len(order) - _SHOWN} others")
        values.append(float(parts[order[_SHOWN:]].sum()))
    if found.bias:
        names.append("bias of positions")
        values.append(found.bias)
    return names, np.array(values)


def _short(writer: Writer) -> str:
    """The name of a writer in a few letters."""
    name = str(writer)
    for long, short in (("self-attention", "self"), ("cross-attention", "cross"), ("feed-forward", "ff")):
        name = name.replace(long, short)
    return name


def _strongest(found: ScoreParts) -> tuple[list[Row], list[str]]:
    """The writers of both streams with the largest parts, in the order of writing."""
    sides = []
    for axis in (1, 0):
        order = np.argsort(-np.abs(found.values).sum(axis), kind="stable")[:_WRITERS]
        sides.append(sorted(int(at) for at in order))
    rows = [Row(_short(found.queries[i]), found.values[i, sides[1]], True) for i in sides[0]]
    return rows, [_short(found.keys[j]) for j in sides[1]]


def _table(found: ScoreParts) -> Table:
    rows = [
        (str(found.queries[i]), str(found.keys[j]), float(value))
        for (i, j), value in np.ndenumerate(found.values)
    ]
    return [("query", "key", "part of the score"), *rows]
