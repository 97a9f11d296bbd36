"""The outputs that a beam search finished, ranked with normalisation and without."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from figures.base import labels
from transformer.decode.tree import SearchTree
from ui.address import session
from ui.views.search import told
from ui.views.search.tree import choose


def ranking(tree: SearchTree, text: told.Text) -> None:
    """Lists the outputs that ended in the beam, with and without normalisation, and the greedy one."""
    ended = tree.hypotheses
    rows = [
        (
            text(tree.token_ids(i)),
            tree.nodes[i].step + 1,
            tree.nodes[i].total,
            tree.nodes[i].score,
            _fate(tree, i),
        )
        for i in ended
    ]
    greedy = tree.greedy
    if all(tree.token_ids(i) != greedy.token_ids for i in ended):
        rows.append((text(greedy.token_ids), len(greedy.tokens), greedy.total, greedy.score, "greedy search"))
    st.markdown("##### The ranking, with normalisation and without")
    st.dataframe(
        {
            "rank by score": _ranks([row[3] for row in rows]),
            "rank by Σ log p": _ranks([row[2] for row in rows]),
            "output": [row[0] for row in rows],
            "tokens": [row[1] for row in rows],
            "Σ log p": [row[2] for row in rows],
            told.score(tree): [row[3] for row in rows],
            "what became of it": [row[4] for row in rows],
        },
        hide_index=True,
        key="search.ranking",
        on_select=lambda: session.on_pick("search.ranking", lambda row: _choose_row(tree, int(row))),
        selection_mode="single-row",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f") for name in ("Σ log p", told.score(tree))
        },
        alt="The outputs that ended, ranked by score and by the sum of log-probabilities",
    )


def _fate(tree: SearchTree, i: int) -> str:
    same = " · greedy search writes it, too" * (tree.token_ids(i) == tree.greedy.token_ids)
    return ("the best" if tree.nodes[i].won else told.FATES[tree.nodes[i].state]) + same


def _ranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values, reverse=True)
    return [labels.count(ordered.index(value)) for value in values]


def _choose_row(tree: SearchTree, row: int) -> None:
    if row < len(tree.hypotheses):
        choose(tree, tree.hypotheses[row])
