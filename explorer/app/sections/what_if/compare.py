"""Two maps side by side, and the first minus the second."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.maps.looking import cells_of
from explorer.app.sections.what_if.sides import (
    AS_IT_IS,
    MOST_SEED,
    Side,
    against_of,
    first_value,
    notes,
    sides,
    unmeasured,
    usual_text,
)
from explorer.app.server import catalogue
from explorer.app.server.view import View
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.quantity import QUANTITIES
from explorer.figures.maps.heatmap import axis_titles, lowered
from explorer.figures.pages.what_if import ROOM, difference_map, merged_names, scale_end
from explorer.lenses.what_if.two_runs import Difference, Pair, difference
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
DECODINGS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling, seed 1"}
MODES = {
    "unchanged": ("the run without changes", 0),
    "uniform": ("uniform attention (a control)", 0),
    "untrained": ("an untrained twin (a control)", 140),
    "head": ("another head", 220),
    "decode": ("another way of decoding", 220),
    "forced": ("a translation of your own", 500),
    "sentence": ("another sentence", 500),
    "model": ("another model", 315),
}
"""Ways of comparing: the label, and the px of a second control; 0 if there is none."""


@part
def show(opened: View) -> None:
    """Both maps, their difference, and what there is to notice."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    cell = cells_of(opened, now)[kind]
    controls(opened, now, kind, cell[0])
    pair = first, second = sides(opened, now, kind)
    for note in filter(None, (unmeasured(pair, now.measure), *notes(opened, now, second))):
        st.caption(plain(note))
    both = difference(first.map, second.map)
    names = [
        merged_names(first.map.rows, second.map.rows, both.rows),
        merged_names(first.map.columns, second.map.columns, both.columns),
    ]
    row, column = map(merged, (both.rows, both.columns), first.place(cell))
    st.markdown(f"{summary(both, names[0], pair)} {of_row(row, both, names, MOST[first.measure])}")
    if first.run.text != second.run.text:
        st.markdown(f"A: {plain(first.run.text)}  \nB: {plain(second.run.text)}")
    with st.container(horizontal=True, gap="small"):
        for number, side in enumerate(pair):
            one_map(number, side, both, (row, column))
        difference_of(pair, both, names, (row, column))


def controls(opened: View, now: State, kind: str, row: int) -> None:
    """What is compared with what, and what the cells say."""
    mode, value = against = against_of(opened, now)
    head = getattr(now, kind)

    def take(name: str, chosen: Any, **more: Any) -> None:
        session.change(against=(name, chosen), **more)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, against=None if mode == "head" else against)
        with st.container(width=220):
            pickers.head_picker(kind, head, opened.source)
        with st.container(width=230):
            pickers.row_picker(opened, kind, row)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=315):
            # without changes, a run is compared with itself only if the address says so
            offered = [name for name in MODES if name != "unchanged" or now.changes or mode == name]
            pickers.choose(
                "against",
                "Compare with",
                {name: f"against {MODES[name][0]}" for name in offered},
                mode,
                lambda name: take(name, first_value(opened, kind, head, name), other=None),
                texts=True,
            )
        shown = now.measure if now.measure in MEASURES else "weight"
        pickers.switch("measure", "Cells say", MEASURES, shown, width="content")
        if MODES[mode][1]:
            with st.container(width=MODES[mode][1]):
                detail(opened, kind, now, mode, value)
        seen(SEEING, FORMULA)


def detail(opened: View, kind: str, now: State, mode: str, value: Any) -> None:
    """The second control: a head, a model, a way of decoding, a text or a seed."""
    name = f"against.{mode}"
    if mode in ("forced", "sentence"):
        text = now.other or usual_text(opened, mode)
        control = pickers.control(name, text, lambda other: session.change(other=other.strip() or None))
        st.text_input("The other text", text, label_visibility="collapsed", **control)
        return
    if mode == "untrained":
        control = pickers.control(name, value, lambda seed: session.change(against=(mode, int(seed))))
        st.number_input("Seed of the twin", 1, MOST_SEED, value, label_visibility="collapsed", **control)
        return
    layers, heads = opened.source.sizes[kind]
    offers: dict[str, dict[Any, str]] = {
        "head": {(i, j): labels.head_phrase(i, j) for i in range(layers) for j in range(heads)},
        "decode": options.decodings(str(value), DECODINGS),
        "model": {each: each for each in catalogue.available()},
    }
    label = {"decode": "way of decoding"}.get(mode, mode)
    shown = value if value in offers[mode] else next(iter(offers[mode]))
    take = lambda chosen: session.change(against=(mode, chosen))  # noqa: E731
    pickers.choose(name, f"The other {label}", offers[mode], shown, take, texts=True)


def short(name: str) -> str:
    """A token in a sentence of the page."""
    return plain(labels.shorten(name, 24))


def summary(both: Difference, rows: list[str], pair: tuple[Side, Side]) -> str:
    """How far the two maps are apart."""
    cells, apart = int(both.compared.sum()), both.distances
    if not cells or np.isnan(apart).all():
        return "The two sides have no row and column in common, so nothing can be compared."
    left_out = sum(None in each for each in (*both.rows, *both.columns))
    alone = f" Rows and columns that only one side has are left out: {left_out}." if left_out else ""
    sizes, (a, b) = np.abs(both.values), (f"**{plain(each.name)}**" for each in pair)
    if sizes.max() < SAME:
        unreached = pair[1].name == AS_IT_IS and not sizes.any()
        why = " No change reaches the weights of this head." * unreached
        return f"A ({a}) against B ({b}): **no difference** in any of {cells} cells.{why}{alone}"
    most = int(np.nanargmax(apart))
    return (
        f"A ({a}) against B ({b}): mean |difference| **{sizes[both.compared].mean():.2f}** over {cells} "
        f"cells; the rows are **{np.nanmean(apart):.2f}** apart (mean total variation distance), most at "
        f"“{short(rows[most])}” ({apart[most]:.2f}).{alone}"
    )


def of_row(row: int, both: Difference, names: list[list[str]], most: str) -> str:
    """What both sides do in the row of the cursor."""
    name = short(names[0][row])
    if None in both.rows[row]:
        return f"The row of the cursor, “{name}”, is on side A only."
    largest = []
    for side, weights in (("A", both.first[row]), ("B", both.second[row])):
        key = int(weights.argmax())
        largest.append(f"{side} {most} “{short(names[1][key])}” ({weights[key]:.2f})")
    apart = f"A and B are {both.distances[row]:.2f} apart"
    return f"In the row of the cursor, “{name}”, {apart}: {', '.join(largest)}."


def merged(pairs: tuple[Pair, ...], position: int) -> int:
    """The index of a token of side A among the aligned tokens."""
    return next(index for index, (i, _) in enumerate(pairs) if i == position)


def one_map(number: int, side: Side, both: Difference, at: tuple[int, int]) -> None:
    """A side, in a window around the counterpart of the cursor's cell."""
    lengths = len(side.map.rows), len(side.map.columns)
    spans: list[int] = []
    for pairs, place, length in zip((both.rows, both.columns), at, lengths, strict=True):
        near = [i for i in (each[number] for each in pairs[: place + 1]) if i is not None]
        spans += window_around(length, near[-1] if near else 0, CELLS)
    window, letter, row = Window(*spans), "AB"[number], both.rows[at[0]][number]
    view, phrase = side.view(window), labels.head_phrase(*side.head)
    named = "" if side.is_uniform or side.name == phrase else f" · {phrase}"
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
    cells = rows, columns = (
        slice(*window_around(len(names[0]), at[0], CELLS)),
        slice(*window_around(len(names[1]), at[1], CELLS)),
    )
    end = scale_end(float(np.abs(both.values).max(initial=0.0)))
    part_of = f" · rows {rows.start + 1}–{rows.stop}, columns {columns.start + 1}–{columns.stop}"
    window = part_of if max(map(len, names)) > CELLS else ""
    origin = "uniform attention is a formula" if pair[1].is_uniform else "difference of the two maps above"
    arrays = both.first[cells], both.second[cells], both.compared[cells]
    named = names[0][rows], names[1][columns], both.distances[rows]
    titles = axis_titles(pair[0].view(Window(0, 1, 0, 1)))
    panel(
        "compare.difference",
        partial(difference_map, *arrays, *named, end, titles, SIZE),
        f"A − B · {pair[0].name} − {pair[1].name} · {captions.KIND_NAMES[pair[0].kind]} · difference of "
        f"{CELLS_SAY[pair[0].measure]}, from −{end:.1f} to {end:.1f}{window} · {origin}",
        heading="**A − B**",
        place=st.container(width=SIZE + WIDER + 36, gap="xsmall"),
        width="content",
        row=at[0] - rows.start,
    )
