"""The picture of a beam search's tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import plotly.graph_objects as go
import streamlit as st

from figures.base import labels
from figures.pages.search import KEPT, LOST, STEPS, WON, Beside, Branch, search_tree
from transformer.decode.tree import NodeState, SearchTree, TreeNode
from transformer.runs.translation import Translation
from ui.address import session
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.views.search import told

_LEGEND = {WON: "the best", KEPT: "kept", LOST: "given up"}
_FATES = {
    NodeState.KEPT: KEPT,
    NodeState.FINISHED: KEPT,
    NodeState.CUT: KEPT,
    NodeState.OUTRANKED: LOST,
    NodeState.DISPLACED: LOST,
}


def picture(
    search: Translation,  # the search
    tree: SearchTree,  # its tree
    chosen: int,  # the node with a frame around it
    text: told.Text,  # writes ids as text
    now: State,  # the state, which says where the window of a long tree begins
    explain: Callable[[], None],  # draws the explanation
) -> None:
    """Draws the tree, its caption and its export."""
    steps = max(tree.steps, len(tree.greedy.tokens))
    first = pickers.window(now.first, STEPS, steps, "steps")
    branches = _branches(tree, text, first)
    beside = _greedy(tree)
    caption = (
        f"Beam search, {tree.beam_size} hypotheses, {told.score(tree)}: the best "
        f"{2 * tree.beam_size} continuations of every step · columns are steps · thickness = probability "
        f"of the output so far, relative to the most probable one · {search.model}"
    )

    def draw(ink: str | None = None) -> go.Figure:
        return search_tree(branches, _LEGEND, beside, chosen, first, ink)

    tree_chart("search.tree", draw(pickers.ink()), caption, lambda place: choose(tree, place))
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        explain()
        export.picture("search tree", draw, caption, table=lambda: table(tree))


def tree_chart(
    key: str,  # unique on the page
    figure: go.Figure,  # the tree
    caption: str,  # what the picture shows, for visitors who cannot see it
    take: Callable[[int], object],  # gets the place of the node that was clicked
) -> None:
    """Draws a tree in a frame of its own, in which a long one scrolls."""
    wide = figure.layout.width
    st.html(f"<style>.st-key-search-tree > * {{ min-width: {wide}px; max-width: {wide}px; }}</style>")
    with st.container(key="search-tree"):
        pickers.clickable(figure, key, take, caption)


def choose(tree: SearchTree, place: int) -> None:
    """Takes a node that the visitor clicked, and moves the cursor to its step."""
    if 0 <= place < len(tree.nodes):
        session.change(node=place, step=tree.nodes[place].step, source=None)


def _branches(tree: SearchTree, text: told.Text, first: int) -> list[Branch]:
    """The nodes as they are drawn; only those in the window have a hover text."""
    leaders = list(_leaders(tree))
    return [
        Branch(
            each.token,
            each.step,
            each.parent,
            math.exp(min(0.0, each.total - leaders[each.step])),
            WON if each.won else _FATES[each.state],
            each.ended,
            told.note(tree, i, text) if first <= each.step < first + STEPS else "",
        )
        for i, each in enumerate(tree.nodes)
    ]


def _leaders(tree: SearchTree) -> Iterator[float]:
    """For each step, the largest sum among its continuations and the hypotheses finished before."""
    finished = -math.inf
    for _, group in itertools.groupby(tree.nodes, lambda each: each.step):
        here = list(group)
        yield max(finished, *(each.total for each in here))
        finished = max([finished, *(each.total for each in here if _has_finished(each))])


def _has_finished(each: TreeNode) -> bool:
    return each.state in (NodeState.FINISHED, NodeState.CUT)


def _greedy(tree: SearchTree) -> Beside:
    greedy = tree.greedy
    inside = tree.along(greedy.token_ids)
    notes = [
        f"{labels.piece(token)} · step {labels.count(step)}\ngreedy search, outside the beam\n"
        f"log p {labels.number(log_prob)}"
        for step, (token, log_prob) in enumerate(zip(greedy.tokens, greedy.log_probs, strict=True))
    ]
    outside = slice(len(inside), None)
    return Beside("greedy search", inside, greedy.tokens[outside], notes[outside])


def table(tree: SearchTree) -> Table:
    """Every node as a row of numbers, for CSV; programs count from 0."""
    names = ("node", "step", "token", "token id", "parent", "log p", "sum of log p", "score", "state", "won")
    rows = [
        (
            i,
            each.step,
            each.token,
            each.token_id,
            "" if each.parent is None else each.parent,
            each.log_prob,
            each.total,
            each.score,
            each.state.value,
            each.won,
        )
        for i, each in enumerate(tree.nodes)
    ]
    return [names, *rows]
