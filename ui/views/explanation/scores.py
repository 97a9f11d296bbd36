"""Why a head reads there: q·k of one cell, split over what wrote the stream of the query and of the key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.bars import percent
from figures.base.labels import number
from figures.maps.measures import MeasureRow, measures_map, part_bars
from lenses.again.written import audit_score
from lenses.measures.score_parts import ScoreParts
from lenses.measures.stream import Writer
from transformer import AttentionKind, Translation, Translator
from transformer.model.sites import Head
from transformer.trace.report import AuditReport
from ui.address import session
from ui.address.parameters import link
from ui.controls import Table, panel, plain
from ui.maps import measures
from ui.server.opened import Opened
from ui.shell.models.needs import PAGES

_SHOWN, _WRITERS = 12, 16
_SEEING = (
    "Query and key are linear in the streams that they read, once the σ of every norm is held fixed; so "
    "the score is a sum over pairs: what wrote the query's stream, and what wrote the key's. Writers "
    "are the token, its position, every earlier head, every earlier feed-forward network, and biases with "
    "every norm's β, where there are any. A rotation turns each part before the product; a bias of "
    "positions is a part of its own. The weight also depends on all other scores of the row: a part that is "
    "the same for every key, such as one of biases alone, changes no weight."
)
_FORMULA = (
    r"\frac{q_i \cdot k_j}{\sqrt{d_k}} = "
    r"\sum_{a, b} \frac{(W_Q\, x_i^{(a)}) \cdot (W_K\, x_j^{(b)})}{\sqrt{d_k}}"
)
_UNDIVIDED = r"q_i \cdot k_j = \sum_{a, b} (W_Q\, x_i^{(a)}) \cdot (W_K\, x_j^{(b)})"


def show(opened: Opened, kind: str, head: Head, row: int, key: int) -> None:
    """Draws one cell of one head: its weight, and its score as a sum."""
    run, which = opened.translation, (AttentionKind(kind), *head)
    found = measures.scored(opened, kind, head, (row, key))
    site = run.config.sites[which[0]]

    def proof(model: Translator, again: Translation) -> AuditReport:
        own = audit_score(model.model, again, which, (row, key), found)
        return replace(found.audit, claim="").joined(own)

    drawn = (found.values, np.array([found.bias, found.score]))
    audit = measures.checked(opened, ("score", *which, row, key), drawn, proof)
    named = run.labels(kind)
    names = labels.names(named.predicted or () if kind == "cross" else named.queries)
    where = f"{plain(names[row])} → {plain(labels.names(named.keys)[key])}"
    weight = percent(float(run.weights(kind, *head)[row, key]))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(told(found, where, weight), width="stretch")
        st.page_link(
            PAGES[which[0]],
            label="Its map",
            icon=":material/grid_on:",
            query_params=link(session.current(), view=None, **{kind: head}),
            width="content",
        )
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
    rows, columns = _strongest(found)
    panel(
        "score pairs",
        lambda ink: measures_map(rows, columns, ink),
        f"{head_name}. Rows: writers of the query's stream; columns: of the key's; those with the largest "
        "parts",
        audit=audit,
        inked=True,
        scrolls=180 + 56 * len(columns),
    )


def told(found: ScoreParts, where: str, weight: str) -> str:
    """The largest writer of each stream, in words."""
    sums = []
    for writers, axis in ((found.queries, 1), (found.keys, 0)):
        parts = found.values.sum(axis)
        at = int(np.argmax(np.abs(parts)))
        sums.append(f"**{writers[at]}** ({number(float(parts[at]), '+.2f')})")
    bias = f" Positions add {number(found.bias, '+.2f')}." if found.bias else ""
    return (
        f"The score of **{where}** is {number(found.score, '.2f')}, its weight {weight}. Of what wrote the "
        f"query's stream, {sums[0]} has the largest part of it; of what wrote the key's, {sums[1]}.{bias}"
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


def _strongest(found: ScoreParts) -> tuple[list[MeasureRow], list[str]]:
    """The writers of both streams with the largest parts, in the order of writing."""
    sides = []
    for axis in (1, 0):
        order = np.argsort(-np.abs(found.values).sum(axis), kind="stable")[:_WRITERS]
        sides.append(sorted(int(at) for at in order))
    rows = [MeasureRow(_short(found.queries[i]), found.values[i, sides[1]], True) for i in sides[0]]
    return rows, [_short(found.keys[j]) for j in sides[1]]


def _table(found: ScoreParts) -> Table:
    rows = [
        (str(found.queries[i]), str(found.keys[j]), float(value))
        for (i, j), value in np.ndenumerate(found.values)
    ]
    return [("query", "key", "part of the score"), *rows]
