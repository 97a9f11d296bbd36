"""The page of comparisons: two maps, and the first minus the second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import MOST_SEED, Against
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.maps.looking import cells_of
from explorer.app.server import catalogue
from explorer.app.server.opened import Opened
from explorer.app.views.compare import sides
from explorer.app.views.compare.sides import Compared
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.grid import lowered
from explorer.figures.base.quantity import QUANTITIES
from explorer.figures.maps.difference import ROOM, difference_map, merged_names, scale_end
from explorer.figures.maps.heatmap import axis_titles
from explorer.lenses.what_if.difference import Difference, Pair, difference
from explorer.linked.view import window_around
from transformer import Window
from transformer.config import Head

_SIZE = 330
_MORE = round((ROOM - labels.ROOM) * 10)
"""Extra width in px of the map of differences, because it holds names from both sides."""
_MEASURES = {name: QUANTITIES[name].name for name in ("weight", "carried")}
_MOST = {"weight": "puts most weight on", "carried": "carries most from"}
_SAID = {"weight": "weights", "carried": "shares of what keys carried"}
_NOTHING = 0.0005
_CELLS = 40
"""The largest number of rows and columns of a map here."""
_MODES = {
    "unchanged": "the run without changes",
    "uniform": "uniform attention (a control)",
    "untrained": "an untrained twin (a control)",
    "head": "another head",
    "decode": "another way of decoding",
    "forced": "a translation of your own",
    "sentence": "another sentence",
    "model": "another model",
}
_DECODINGS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling, seed 1"}
_SEEING = (
    "The maps show A, B and A − B: purple where A has more weight, amber where B has more. Edit distance "
    "aligns the tokens. Tokens on one side only are hatched and never compared. TV is the total variation "
    "distance of two rows: the share of weight that must move to turn one row into the other."
)
_FORMULA = r"\mathrm{TV}(a, b) = \tfrac12 \sum_j |a_j - b_j| \in [0, 1]"
_DETAILED = {"untrained": 140, "head": 220, "decode": 220, "forced": 500, "sentence": 500, "model": 315}
"""The ways of comparing that have a second control, and the width of that control in px."""


@part
def show(opened: Opened) -> None:
    now = session.current()
    kind = opened.source.kind(now.kind)
    cell = cells_of(opened, now)[kind]
    _controls(opened, now, kind, cell[0])
    first, second = sides.sides(opened, now, kind)
    cell = first.place(cell)
    if why := sides.unmeasured((first, second), now.measure):
        st.caption(plain(why))
    for note in sides.notes(opened, now, second):
        st.caption(plain(note))
    found = difference(first.map(), second.map())
    names = [
        merged_names(getattr(first, axis), getattr(second, axis), getattr(found, axis))
        for axis in ("rows", "columns")
    ]
    st.markdown(
        f"{_sentence(found, names[0], (first, second))} {_row(cell[0], found, names, _MOST[first.measure])}"
    )
    if first.translation.text != second.translation.text:
        st.markdown(f"A: {plain(first.translation.text)}  \nB: {plain(second.translation.text)}")
    _pictures(cell, (first, second), found, names)


def _controls(opened: Opened, now: State, kind: str, row: int) -> None:
    against, head = now.against or sides.usual(opened), getattr(now, kind)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, against=None if against[0] == "head" else against)
        with st.container(width=220):
            pickers.head_picker(kind, head, opened.source)
        with st.container(width=230):
            pickers.row_picker(opened, kind, row)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=315):
            _mode(opened, kind, head, against, _offered(now, against))
        shown = now.measure if now.measure in _MEASURES else "weight"
        pickers.switch("measure", "Cells say", _MEASURES, shown, width="content")
        if against[0] in _DETAILED:
            with st.container(width=_DETAILED[against[0]]):
                _detail(opened, kind, against, now.other)
        seen(_SEEING, _FORMULA)


def _offered(now: State, against: Against) -> list[str]:
    """The ways of comparing; the run without changes only if something is changed, or if it is chosen."""
    return [name for name in _MODES if name != "unchanged" or now.changes or against[0] == name]


def _mode(opened: Opened, kind: str, head: Head, against: Against, offered: list[str]) -> None:
    pickers.choose(
        "against",
        "Compare with",
        {name: f"against {_MODES[name]}" for name in offered},
        against[0],
        lambda name: _take(_first(opened, kind, head, name), other=None),
        texts=True,
    )


def _take(against: Against, **more: None) -> None:
    session.change(against=against, **more)


def _first(opened: Opened, kind: str, own: Head, mode: str) -> Against:
    """The comparison that opens first for a way of comparing."""
    layer, head = own
    heads = opened.translation.config.sizes[kind][1]
    others = [name for name in catalogue.available() if name != opened.asked.model]
    firsts: dict[str, Callable[[], object]] = {
        "head": lambda: (layer, (head + 1) % heads),
        "decode": lambda: sides.other_decoding(opened),
        "untrained": lambda: 1,
        "model": lambda: others[0] if others else opened.asked.model,
    }
    return mode, firsts[mode]() if mode in firsts else None


def _detail(opened: Opened, kind: str, against: Against, other: str | None) -> None:
    """Draws the second control, which chooses a head, a model, a way of decoding, a text or a seed."""
    mode, value = against
    if mode == "head":
        layers, heads = opened.translation.config.sizes[kind]
        places = {(i, j): labels.head_phrase(i, j) for i in range(layers) for j in range(heads)}
        _choose("The other head", places, value, mode)
    elif mode == "decode":
        ways = options.decodings(str(value), _DECODINGS)
        _choose("The other way of decoding", ways, value, mode)
    elif mode == "model":
        _choose("The other model", {name: name for name in catalogue.available()}, value, mode)
    elif mode == "untrained":
        st.number_input(
            "Seed of the twin",
            1,
            MOST_SEED,
            value,
            label_visibility="collapsed",
            **pickers.control("against.seed", value, lambda seed: _take((mode, int(seed)))),
        )
    elif mode in {"forced", "sentence"}:
        usual = sides.other_text(opened) if mode == "forced" else sides.other_sentence(opened)
        text = other or usual
        st.text_input(
            "The other text",
            text,
            label_visibility="collapsed",
            **pickers.control(
                f"against.{mode}", text, lambda other: session.change(other=other.strip() or None)
            ),
        )


def _choose(label: str, offered: dict[Any, str], value: object, mode: str) -> None:
    shown = value if value in offered else next(iter(offered))
    pickers.choose(f"against.{mode}", label, offered, shown, lambda chosen: _take((mode, chosen)), texts=True)


def _sentence(found: Difference, rows: list[str], pair: tuple[Compared, Compared]) -> str:
    cells = int(found.compared.sum())
    if not cells or found.farthest is None:
        return "The two sides have no row and column in common, so nothing can be compared."
    left_out = sum(None in each for each in (*found.rows, *found.columns))
    alone = f" Rows and columns that only one side has are left out: {left_out}." if left_out else ""
    names = " against ".join(
        f"{side} (**{plain(each.name)}**)" for side, each in zip("AB", pair, strict=True)
    )
    if found.most < _NOTHING:
        same = pair[1].name == sides.AS_IT_IS and not found.most
        unreached = " No change reaches the weights of this head." * same
        return f"{names}: **no difference** in any of {cells} cells.{unreached}{alone}"
    where = plain(labels.shorten(rows[found.farthest], 24))
    return (
        f"{names}: mean |difference| **{found.mean:.2f}** over {cells} cells; the rows are "
        f"**{found.distance:.2f}** apart (mean total variation distance), most at “{where}” "
        f"({found.distances[found.farthest]:.2f}).{alone}"
    )


def _row(cursor: int, found: Difference, names: list[list[str]], most: str) -> str:
    """Describes the row of the cursor."""
    row = _merged(found.rows, cursor)
    name = plain(labels.shorten(names[0][row], 24))
    if None in found.rows[row]:
        return f"The row of the cursor, “{name}”, is on side A only."
    told = []
    for side, weights in (("A", found.first[row]), ("B", found.second[row])):
        key = int(weights.argmax())
        on = plain(labels.shorten(names[1][key], 24))
        told.append(f"{side} {most} “{on}” ({weights[key]:.2f})")
    apart = f"A and B are {found.distances[row]:.2f} apart"
    return f"In the row of the cursor, “{name}”, {apart}: {', '.join(told)}."


def _pictures(
    at: tuple[int, int], pair: tuple[Compared, Compared], found: Difference, names: list[list[str]]
) -> None:
    merged = _merged(found.rows, at[0]), _merged(found.columns, at[1])
    with st.container(horizontal=True, gap="small"):
        for number, side in enumerate(pair):
            row = found.rows[merged[0]][number]
            _side("AB"[number], side, _window(side, found, merged, number), row)
        _difference(pair, found, names, merged)


def _merged(pairs: tuple[Pair, ...], position: int) -> int:
    """The index of a token of side A among the aligned tokens."""
    return next(index for index, (i, _) in enumerate(pairs) if i == position)


def _window(side: Compared, found: Difference, merged: tuple[int, int], number: int) -> Window:
    """The part of a side that is drawn: a window around the counterpart of the cursor's cell."""
    spans: list[int] = []
    axes = (found.rows, found.columns), merged, (side.rows, side.columns)
    for pairs, at, tokens in zip(*axes, strict=True):
        near = [i for i in (each[number] for each in pairs[: at + 1]) if i is not None]
        spans += window_around(len(tokens), near[-1] if near else 0, _CELLS)
    return Window(*spans)


def _side(letter: str, side: Compared, window: Window, row: int | None) -> None:
    view = side.view(window)
    phrase = labels.head_phrase(*side.head)
    named = "" if side.uniform or side.name == phrase else f" · {phrase}"
    caption = (
        f"{letter} · {side.name} · {captions.KIND_NAMES[side.kind]}{named} · "
        f"{_SAID[side.measure]}{', by words' * side.words}, colour from 0 to 1"
        f"{captions.window_note(window, (len(side.rows), len(side.columns)))} · {side.translation.model} · "
        f"{side.origin()}"
    )

    def draw() -> go.Figure:
        return lowered(heatmap(view, _SIZE), _MORE)

    at = None if row is None else row - window.query_start
    _chart(f"compare.{letter}", f"{letter} · {side.name}", draw, caption, _SIZE, at)


def _difference(
    pair: tuple[Compared, Compared], found: Difference, names: list[list[str]], merged: tuple[int, int]
) -> None:
    rows, columns = (
        slice(*window_around(len(axis), at, _CELLS)) for axis, at in zip(names, merged, strict=True)
    )
    end = scale_end(found.most)
    titles = axis_titles(pair[0].view(Window(0, 1, 0, 1)))

    def draw() -> go.Figure:
        part = rows, columns
        return difference_map(
            found.first[part],
            found.second[part],
            found.compared[part],
            names[0][rows],
            names[1][columns],
            found.distances[rows],
            end,
            titles,
            _SIZE,
        )

    what = "uniform attention is a formula" if pair[1].uniform else "difference of the two maps above"
    shown = f" · rows {labels.count(rows.start)}–{rows.stop}, "
    shown += f"columns {labels.count(columns.start)}–{columns.stop}"
    part = shown if max(len(axis) for axis in names) > _CELLS else ""
    caption = (
        f"A − B · {pair[0].name} − {pair[1].name} · {captions.KIND_NAMES[pair[0].kind]} · difference of "
        f"{_SAID[pair[0].measure]}, from −{end:.1f} to {end:.1f}{part} · {what}"
    )
    _chart("compare.difference", "A − B", draw, caption, _SIZE + _MORE + 36, merged[0] - rows.start)


def _chart(
    key: str, title: str, draw: Callable[[], go.Figure], caption: str, width: int, row: int | None
) -> None:
    with st.container(width=width, gap="xsmall"):
        st.markdown(f"**{plain(title)}**")
        panel(key, draw, caption, width="content", row=row)
