"""Two maps side by side, and the first minus the second."""

import itertools
from functools import partial

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import MOST_SEED, Comparison, Detail
from explorer.app.controls import panel, part, pickers, plain, seen
from explorer.app.maps.looking import cells_of
from explorer.app.sections.what_if.sides import (
    AS_IT_IS,
    CELLS,
    Side,
    against_of,
    comparable,
    first_value,
    notes,
    sides,
    usual_text,
)
from explorer.app.server.view import View
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.maps.heatmap import axis_titles, lowered
from explorer.figures.pages.what_if import ROOM, difference_map, merged_names, scale_end
from explorer.lenses.what_if.two_runs import Difference, difference
from explorer.linked.view.feeds import window_around

SEEING = (
    "The maps show A, B and A − B: purple where A has more weight, amber where B has more. Edit "
    "distance aligns the tokens. Tokens on one side only are hatched and never compared. TV is "
    "the total variation distance of two rows, half the sum of their differences: where both rows "
    "sum to 1, the share of weight that must move to turn one into the other."
)
FORMULA = r"\mathrm{TV}(a, b) = \tfrac12 \sum_j |a_j - b_j| \in [0, 1]"
SIZE, SAME = 330, 0.0005  # px of a map; the smallest difference that is one
WIDER = round(
    (ROOM - labels.ROOM) * 10
)  # px more, as the map of differences holds names from both sides
MODES = {
    "unchanged": "the run without changes",
    "uniform": "uniform attention (a control)",
    "untrained": "an untrained twin (a control)",
    "head": "another head",
    "forced": "an output of your own",
    "sentence": "another sentence",
    "model": "another model",
}


@part()
def show(opened: View) -> None:
    now = session.current()
    kind = opened.source.kind(now.kind)
    controls(opened, now, kind)
    pair = first, second = sides(opened, now, kind)
    for note in notes(opened, now, second.look):
        st.caption(plain(note))
    compared = difference(first.map, second.map)
    names = [
        merged_names(first.map.rows, second.map.rows, compared.rows),
        merged_names(first.map.columns, second.map.columns, compared.columns),
    ]
    row, column = (  # of the cursor among the aligned tokens
        next(i for i, (at, _) in enumerate(pairs) if at is not None and cell < axis[at].stop)
        for pairs, axis, cell in zip(
            (compared.rows, compared.columns), first.look.axes, first.look.cell, strict=True
        )
    )
    st.markdown(f"{summary(compared, names[0], pair)} {of_row(row, compared, names)}")
    texts = [side.look.opened.translation.text for side in pair]
    if len({*texts}) > 1:
        st.markdown(
            "  \n".join(f"{side}: {plain(text)}" for side, text in zip("AB", texts, strict=True))
        )
    with st.container(horizontal=True, gap="small"):
        for number, side in enumerate(pair):
            one_map(number, side, compared, (row, column))
        difference_of(pair, compared, names, (row, column))


def controls(opened: View, now: State, kind: str) -> None:
    mode, value = against = against_of(opened, now)
    head = getattr(now, kind)
    lacking = set[str]()
    if not now.changes:
        lacking.add("unchanged")
    if not opened.source.writes:
        lacking.add("forced")
    lacking.discard(mode)  # what the address says stays in sight
    offered = {key: f"against {name}" for key, name in MODES.items() if key not in lacking}

    def begin(n: str) -> None:
        session.change(against=(n, first_value(opened, kind, head, n)), other=None)

    def take(chosen: object) -> None:
        session.change(against=(mode, chosen))

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, against=None if mode == "head" else against)
        pickers.head_picker(kind, head, opened.source)
        pickers.row_picker(opened, kind, cells_of(opened, now)[kind][0])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.choose("against", "Compare with", offered, mode, begin, texts=True, width=315)
        name = f"against.{mode}"
        if mode in ("forced", "sentence"):
            text = now.values(Comparison).other or usual_text(opened, mode)
            control = session.control(
                name, text, lambda other: session.change(other=other.strip() or None)
            )
            st.text_input(
                "The other text", text, label_visibility="collapsed", width=500, **control
            )
        elif mode == "untrained" and isinstance(value, int):
            control = session.control(name, value, take)
            st.number_input(
                "Seed of the twin",
                1,
                MOST_SEED,
                value,
                width=140,
                label_visibility="collapsed",
                **control,
            )
        elif mode in ("head", "model"):
            choices: dict[Detail, str] = {model: model for model in comparable(kind)}
            if mode == "head":
                n_layers, n_heads = opened.source.sizes[kind]
                heads = itertools.product(range(n_layers), range(n_heads))
                choices = {(i, j): labels.head_phrase(i, j) for i, j in heads}
            chosen = value if value in choices else next(iter(choices))
            pickers.choose(name, f"The other {mode}", choices, chosen, take, texts=True, width=260)
        seen(SEEING, FORMULA)


def short(name: str) -> str:
    return plain(labels.shorten(name, 24))


def summary(both: Difference, rows: list[str], pair: tuple[Side, Side]) -> str:
    cells = int(both.compared.sum())
    apart = both.distances
    if not cells or np.isnan(apart).all():
        return "The two sides have no row and column in common, so nothing can be compared."
    left_out = sum(None in group for group in (*both.rows, *both.columns))
    alone = (
        f" Rows and columns that only one side has are left out: {left_out}." if left_out else ""
    )
    sizes = np.abs(both.values)
    (a, b) = (f"**{plain(side.name)}**" for side in pair)
    if sizes.max() < SAME:
        unreached = pair[1].name == AS_IT_IS and not sizes.any()
        why = " No change reaches the weights of this head." * unreached
        return f"A ({a}) against B ({b}): **no difference** in any of {cells} cells.{why}{alone}"
    most = int(np.nanargmax(apart))
    return (
        f"A ({a}) against B ({b}): mean |difference| **{sizes[both.compared].mean():.2f}** over "
        f"{cells} cells; the rows are **{np.nanmean(apart):.2f}** apart (mean total variation "
        f"distance), most at “{short(rows[most])}” ({apart[most]:.2f}).{alone}"
    )


def of_row(row: int, both: Difference, names: list[list[str]]) -> str:
    """What both sides do in the row of the cursor."""
    name = short(names[0][row])
    if None in both.rows[row]:
        return f"The row of the cursor, “{name}”, is on side A only."
    largest = []
    for side, weights in (("A", both.first[row]), ("B", both.second[row])):
        key = int(weights.argmax())
        largest.append(f"{side} puts most weight on “{short(names[1][key])}” ({weights[key]:.2f})")
    apart = f"A and B are {both.distances[row]:.2f} apart"
    return f"In the row of the cursor, “{name}”, {apart}: {', '.join(largest)}."


def one_map(number: int, side: Side, both: Difference, at: tuple[int, int]) -> None:
    cell = list[int]()
    for pairs, place in zip((both.rows, both.columns), at, strict=True):
        near = [i for i in (pair[number] for pair in pairs[: place + 1]) if i is not None]
        cell.append(near[-1] if near else 0)
    look = side.look
    letter = "AB"[number]
    view = side.view(*cell)
    phrase = labels.head_phrase(*look.head)
    named = "" if side.is_uniform or side.name == phrase else f" · {phrase}"
    origin = "a formula, 1 / visible keys: no model computed this"
    origin = origin if side.is_uniform else str(captions.badge(view.audit, view.derived)["text"])
    start = look.axes[0][cell[0]].start
    panel(
        f"compare.{letter}",
        lambda: lowered(heatmap(view, SIZE), WIDER),
        f"{letter} · {side.name} · {captions.KIND_NAMES[look.kind]}{named} · "
        f"weights{', by words' * look.reading.words}, colour from 0 to 1"
        f"{captions.window_note(view.window, look.lengths)} · {view.model} · {origin}",
        heading=f"**{plain(f'{letter} · {side.name}')}**",
        place=st.container(width=SIZE, gap="xsmall"),
        width="content",
        row=None
        if both.rows[at[0]][number] is None
        else [row.start for row in view.rows].index(start),
    )


def difference_of(
    pair: tuple[Side, Side], both: Difference, names: list[list[str]], at: tuple[int, int]
) -> None:
    rows = slice(*window_around(len(names[0]), at[0], CELLS))
    columns = slice(*window_around(len(names[1]), at[1], CELLS))
    cells = rows, columns
    end = scale_end(float(np.abs(both.values).max(initial=0.0)))
    part_of = f" · rows {rows.start + 1}–{rows.stop}, columns {columns.start + 1}–{columns.stop}"
    window = part_of if max(map(len, names)) > CELLS else ""
    origin = (
        "uniform attention is a formula"
        if pair[1].is_uniform
        else "difference of the two maps above"
    )
    arrays = both.first[cells], both.second[cells], both.compared[cells]
    named = names[0][rows], names[1][columns], both.distances[rows]
    look = pair[0].look
    titles = axis_titles(look.as_recorded())
    panel(
        "compare.difference",
        partial(difference_map, *arrays, *named, end, titles, SIZE),
        f"A − B · {pair[0].name} − {pair[1].name} · {captions.KIND_NAMES[look.kind]} · difference "
        f"of weights, from −{end:.1f} to {end:.1f}{window} · {origin}",
        heading="**A − B**",
        place=st.container(width=SIZE + WIDER + 36, gap="xsmall"),
        width="content",
        row=at[0] - rows.start,
    )
