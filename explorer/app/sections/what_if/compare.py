"""Two maps side by side, and the first minus the second: the visitor's selection (A), and another (B)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import MOST_SEED, Against
from explorer.app.controls import panel, part, pickers, plain, seen
from explorer.app.maps.looking import cells_of
from explorer.app.sections.what_if.sides import (
    AS_IT_IS,
    MODES,
    Side,
    against_of,
    notes,
    sides,
    unmeasured,
    usual_text,
)
from explorer.app.server.opened import Opened
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.grid import lowered
from explorer.figures.base.quantity import QUANTITIES
from explorer.figures.maps.difference import ROOM, difference_map, merged_names, scale_end
from explorer.figures.maps.heatmap import axis_titles
from explorer.lenses.what_if.difference import Difference, Pair, difference
from explorer.linked.view import window_around
from transformer import Window

SEEING = (
    "The maps show A, B and A − B: purple where A has more weight, amber where B has more. Edit distance "
    "aligns the tokens. Tokens on one side only are hatched and never compared. TV is the total variation "
    "distance of two rows: the share of weight that must move to turn one row into the other."
)
FORMULA = r"\mathrm{TV}(a, b) = \tfrac12 \sum_j |a_j - b_j| \in [0, 1]"
MEASURES = {name: QUANTITIES[name].name for name in ("weight", "carried")}
MOST = {"weight": "puts most weight on", "carried": "carries most from"}
CELLS_SAY = {"weight": "weights", "carried": "shares of what keys carried"}
SIZE, CELLS = 330, 40
"""Px of a map, and its most rows and columns."""
WIDER = round((ROOM - labels.ROOM) * 10)
"""Extra width in px of the map of differences, because it holds names from both sides."""
SAME = 0.0005


@part
def show(opened: Opened) -> None:
    """Both maps, their difference, and what there is to notice."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    cell = cells_of(opened, now)[kind]
    controls(opened, now, kind, cell[0])
    pair = first, second = sides(opened, now, kind)
    for note in filter(None, (unmeasured(pair, now.measure), *notes(opened, now, second))):
        st.caption(plain(note))
    both = difference(first.map(), second.map())
    names = [
        merged_names(one, other, pairs)
        for one, other, pairs in zip(first.tokens, second.tokens, (both.rows, both.columns), strict=True)
    ]
    row, column = first.place(cell)
    at = merged(both.rows, row), merged(both.columns, column)
    st.markdown(f"{summary(both, names[0], pair)} {of_row(at[0], both, names, MOST[first.measure])}")
    if first.run.text != second.run.text:
        st.markdown(f"A: {plain(first.run.text)}  \nB: {plain(second.run.text)}")
    with st.container(horizontal=True, gap="small"):
        for number, side in enumerate(pair):
            one_map(number, side, both, at)
        difference_of(pair, both, names, at)


def controls(opened: Opened, now: State, kind: str, row: int) -> None:
    """What is compared with what, and what the cells say."""
    mode, _ = against = against_of(opened, now)
    own = Side("", opened.translation, kind, getattr(now, kind), opened)

    def take(against: Against, **more: Any) -> None:
        session.change(against=against, **more)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, against=None if mode == "head" else against)
        with st.container(width=220):
            pickers.head_picker(kind, own.head, opened.source)
        with st.container(width=230):
            pickers.row_picker(opened, kind, row)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=315):
            # without changes, a run is compared with itself only if the address says so
            offered = (name for name in MODES if name != "unchanged" or now.changes or mode == name)
            pickers.choose(
                "against",
                "Compare with",
                {name: f"against {MODES[name].label}" for name in offered},
                mode,
                lambda name: take((name, MODES[name].first(opened, own)), other=None),
                texts=True,
            )
        shown = now.measure if now.measure in MEASURES else "weight"
        pickers.switch("measure", "Cells say", MEASURES, shown, width="content")
        if MODES[mode].width:
            with st.container(width=MODES[mode].width):
                detail(opened, own, against, now.other, take)
        seen(SEEING, FORMULA)


def detail(opened: Opened, own: Side, against: Against, other: str | None, take: Callable[..., None]) -> None:
    """The second control: a head, a model, a way of decoding, a text or a seed."""
    mode, value = against
    if (choices := MODES[mode].choices) is not None:
        label, offered = choices(opened, own, value)
        shown = value if value in offered else next(iter(offered))
        pickers.choose(
            f"against.{mode}", label, offered, shown, lambda chosen: take((mode, chosen)), texts=True
        )
    elif mode == "untrained":
        control = pickers.control("against.seed", value, lambda seed: take((mode, int(seed))))
        st.number_input("Seed of the twin", 1, MOST_SEED, value, label_visibility="collapsed", **control)
    else:
        text = other or usual_text(opened, mode)
        control = pickers.control(
            f"against.{mode}", text, lambda other: session.change(other=other.strip() or None)
        )
        st.text_input("The other text", text, label_visibility="collapsed", **control)


def summary(both: Difference, rows: list[str], pair: tuple[Side, Side]) -> str:
    """How far the two maps are apart."""
    cells = int(both.compared.sum())
    if not cells or both.farthest is None:
        return "The two sides have no row and column in common, so nothing can be compared."
    left_out = sum(None in each for each in (*both.rows, *both.columns))
    alone = f" Rows and columns that only one side has are left out: {left_out}." if left_out else ""
    names = " against ".join(
        f"{side} (**{plain(each.name)}**)" for side, each in zip("AB", pair, strict=True)
    )
    if both.most < SAME:
        same = pair[1].name == AS_IT_IS and not both.most
        unreached = " No change reaches the weights of this head." * same
        return f"{names}: **no difference** in any of {cells} cells.{unreached}{alone}"
    where = plain(labels.shorten(rows[both.farthest], 24))
    return (
        f"{names}: mean |difference| **{both.mean:.2f}** over {cells} cells; the rows are "
        f"**{both.distance:.2f}** apart (mean total variation distance), most at “{where}” "
        f"({both.distances[both.farthest]:.2f}).{alone}"
    )


def of_row(row: int, both: Difference, names: list[list[str]], most: str) -> str:
    """What both sides do in the row of the cursor."""
    name = plain(labels.shorten(names[0][row], 24))
    if None in both.rows[row]:
        return f"The row of the cursor, “{name}”, is on side A only."
    largest = []
    for side, weights in (("A", both.first[row]), ("B", both.second[row])):
        key = int(weights.argmax())
        largest.append(f"{side} {most} “{plain(labels.shorten(names[1][key], 24))}” ({weights[key]:.2f})")
    apart = f"A and B are {both.distances[row]:.2f} apart"
    return f"In the row of the cursor, “{name}”, {apart}: {', '.join(largest)}."


def merged(pairs: tuple[Pair, ...], position: int) -> int:
    """The index of a token of side A among the aligned tokens."""
    return next(index for index, (i, _) in enumerate(pairs) if i == position)


def one_map(number: int, side: Side, both: Difference, at: tuple[int, int]) -> None:
    """A side, in a window around the counterpart of the cursor's cell."""
    spans: list[int] = []
    for pairs, place, tokens in zip((both.rows, both.columns), at, side.tokens, strict=True):
        near = [i for i in (each[number] for each in pairs[: place + 1]) if i is not None]
        spans += window_around(len(tokens), near[-1] if near else 0, CELLS)
    window, letter, row = Window(*spans), "AB"[number], both.rows[at[0]][number]
    view, phrase = side.view(window), labels.head_phrase(*side.head)
    named = "" if side.is_uniform or side.name == phrase else f" · {phrase}"
    lengths = len(side.tokens[0]), len(side.tokens[1])
    panel(
        f"compare.{letter}",
        lambda: lowered(heatmap(view, SIZE), WIDER),
        f"{letter} · {side.name} · {captions.KIND_NAMES[side.kind]}{named} · "
        f"{CELLS_SAY[side.measure]}{', by words' * side.words}, colour from 0 to 1"
        f"{captions.window_note(window, lengths)} · {side.run.model} · {side.origin()}",
        heading=f"**{plain(f'{letter} · {side.name}')}**",
        place=st.container(width=SIZE, gap="xsmall"),
        width="content",
        row=None if row is None else row - window.query_start,
    )


def difference_of(
    pair: tuple[Side, Side], both: Difference, names: list[list[str]], at: tuple[int, int]
) -> None:
    """A − B, around the cursor's cell."""
    rows, columns = (
        slice(*window_around(len(axis), place, CELLS)) for axis, place in zip(names, at, strict=True)
    )
    end, cells = scale_end(both.most), (rows, columns)
    shown = f" · rows {labels.count(rows.start)}–{rows.stop}, "
    shown += f"columns {labels.count(columns.start)}–{columns.stop}"
    window = shown if max(map(len, names)) > CELLS else ""
    origin = "uniform attention is a formula" if pair[1].is_uniform else "difference of the two maps above"
    panel(
        "compare.difference",
        partial(
            difference_map,
            both.first[cells],
            both.second[cells],
            both.compared[cells],
            names[0][rows],
            names[1][columns],
            both.distances[rows],
            end,
            axis_titles(pair[0].view(Window(0, 1, 0, 1))),
            SIZE,
        ),
        f"A − B · {pair[0].name} − {pair[1].name} · {captions.KIND_NAMES[pair[0].kind]} · difference of "
        f"{CELLS_SAY[pair[0].measure]}, from −{end:.1f} to {end:.1f}{window} · {origin}",
        heading="**A − B**",
        place=st.container(width=SIZE + WIDER + 36, gap="xsmall"),
        width="content",
        row=at[0] - rows.start,
    )
