"""What both trees share: the picture, its numbers, a click, and the run of a chosen token."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import Maps
from explorer.app.controls import Table, panel, seen
from explorer.app.maps import display
from explorer.app.maps.explorer import Scene, explorer, offered
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.pages.search import Beside, Branch, search_tree
from explorer.linked.view.feeds import race_feed
from explorer.linked.view.home import HOME
from transformer.beam import TokenTree, TreeNode
from transformer.run import Translation

LAYOUT = replace(HOME, view="search")
Take = Callable[[int], object]
SEEING = (
    "The attention of the chosen output, as far as it had come: one pass over its tokens, which "
    "the audit compares with the search. A click on another candidate for the next token "
    "continues the search with it."
)


@dataclass(frozen=True)
class Branched(View):
    """The run of a token of a tree, which no request can ask for."""

    place: str = ""  # what tells it from other runs of the same sentence

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.run_key.key}\0{self.place}".encode()).hexdigest()[:12]

    def traced(self) -> View:
        return self


def choose(nodes: Sequence[TreeNode], place: int) -> None:
    """Takes a token of a tree, and moves the cursor to its step."""
    if 0 <= place < len(nodes):
        session.change(node=place, step=nodes[place].step, source=None)


def first_step(opened: View, now: State) -> int:
    """The first step that is drawn, if the tree is long enough: the first after a prompt."""
    first = now.values(Maps).first
    return opened.n_given if first is None else first


def picture(
    name: str,  # as in `panel`
    branches: Sequence[Branch],  # the tree, in the order of its nodes
    names: Mapping[str, str],  # as in `search_tree`
    tree: TokenTree,
    greedy: tuple[
        Sequence[int], Sequence[str], Sequence[float]
    ],  # ids, pieces and log-probabilities
    lost: str,  # what is said of a token of greedy search that the tree lacks
    chosen: int | None,  # the token with a ring around it
    first: int,  # the first step drawn
    run: Translation,  # a run of the sentence
    caption: str,
    more: Mapping[str, Sequence[object]],  # further columns of the CSV, by their names
    **words: Any,  # explanation and formula, as in `panel`
) -> None:
    """Draws a tree with the greedy path beside it.

    A lesson whose question is open shows its start only.
    """
    inside = tree.along(greedy[0])
    notes = [
        (
            f"{labels.piece(token)} · step {labels.count(step)}\n{lost}\nlog p "
            f"{labels.number(log_prob)}"
        )
        for step, (token, log_prob) in enumerate(zip(*greedy[1:], strict=True))
    ]
    beside = Beside("greedy search", list(inside), greedy[1][len(inside) :], notes[len(inside) :])
    if session.visit().silent is not None:
        beside = Beside("greedy search", [])
        chosen = None
        first = 0
    start = run.decoder_input_tokens[0]
    take = partial(choose, tree.nodes)
    title = f"{caption} · {run.model}"

    def draw(ink: str) -> go.Figure:
        return search_tree(
            branches, names, beside=beside, chosen=chosen, first=first, start=start, ink=ink
        )

    panel(
        name, draw, title, lambda: table(tree, more), take=take, scrolls=True, inked=True, **words
    )


def table(tree: TokenTree, more: Mapping[str, Sequence[object]]) -> Table:
    """Every node as a row of numbers, for CSV; programs count from 0."""
    rows = (
        (i, n.step, n.token, n.token_id, "" if n.parent is None else n.parent, n.log_prob, n.total)
        for i, n in enumerate(tree.nodes)
    )
    names = ("node", "step", "token", "token id", "parent", "log p", "sum of log p", *more)
    return [
        names,
        *((*row, *last) for row, last in zip(rows, zip(*more.values(), strict=True), strict=True)),
    ]


def outputs(
    key: str, columns: Mapping[str, Sequence[object]], take: Callable[[int], object], alt: str
) -> None:
    """Draws a table of outputs; a click on a row gives its number to `take`."""
    sums = (name for name in columns if name.startswith(("Σ", "score")))
    st.dataframe(
        dict(columns),
        hide_index=True,
        key=key,
        on_select=lambda: session.on_pick(key, lambda row: take(int(row))),
        selection_mode="single-row",
        column_config={name: st.column_config.NumberColumn(format="%.3f") for name in sums},
        alt=alt,
    )


def view(opened: View, beside: Callable[[State, Looks], None] | None = None) -> None:
    """Draws the linked view of a run.

    Its output may be shorter than the one that the cursor was set in.
    """
    run = opened.translation
    last = len(opened.translation.target_tokens) - 1
    if (session.current().step or 0) > last:
        session.resolve(step=last)

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            display.popover(opened.kinds, now)
            display.tables(lambda: [looks[kind].read() for kind in opened.kinds])
            seen(SEEING)
            run_export(scene)

    following = race_feed(
        opened.key, run.steps, "click a token to continue with it", offered(opened)
    )
    scene = Scene(
        LAYOUT, opened, opened.kinds, lambda now, looks: {"next": following}, below, beside=beside
    )
    explorer(scene)
