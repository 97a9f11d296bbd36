"""What every head attends to otherwise: all heads as tiles, one head as a map, and changes by a click."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import labels, style
from figures.base.captions import KIND_NAMES
from figures.maps.difference import difference_map, scale_end
from figures.pages.heads import Cell, head_grid
from figures.pages.what_if import clickable
from transformer import interventions as do
from transformer.translate.translation import Translation
from transformer.what_if.two_runs import Both, RunDifference
from ui.address import session
from ui.address.parameters import State
from ui.controls import export, pickers
from ui.controls.text import plain
from ui.linked_view import Head
from ui.shell import changed
from ui.views.what_if.sorts import fields

_WIDE = 340
_CELLS = 40
Cells = tuple[tuple[Both, ...], tuple[Both, ...]]
"""The rows and columns of a map: positions as it is, and changed."""


def draw(found: RunDifference, run: Translation) -> None:
    """Draws the largest difference of every head, and the map of differences of one.

    Args:
        found: the runs that are compared.
        run: the changed run that the model decoded, which the cursor belongs to.
    """
    now = session.current()
    kind = now.kind or "cross"
    st.markdown("##### What every head attends to otherwise")
    pickers.kind_picker(kind, lambda name: session.change(kind=name))
    head = getattr(now, kind)
    tiles, large = st.columns([1, 1], gap="large")
    with tiles:
        _grid(found, kind, head)
        _switch(now, kind, head)
    with large:
        common = found.common(kind)
        cells = common.rows[:_CELLS], common.columns[:_CELLS]
        if all(cells):
            _map(found, kind, head, cells, _cell(now, kind))
            _offer(found, (kind, head), cells, _cell(now, kind))
        else:
            st.caption("The two runs share no row of this kind.")


# --- all heads ----------------------------------------------------------------------------------------------


def _grid(found: RunDifference, kind: str, head: Head) -> None:
    most = found.largest(kind)
    cells = [[_tile(float(value), i, j) for j, value in enumerate(row)] for i, row in enumerate(most)]
    caption = (
        f"{KIND_NAMES[kind]}: the largest change of a weight in each head, over the rows that "
        "both runs share · choose a head to see its map"
    )

    def picture(color: str | None = None) -> go.Figure:
        return head_grid(cells, kind, head, color)

    key = f"what-if.heads.{kind}"
    st.plotly_chart(
        picture(pickers.ink()),
        key=key,
        config={"displayModeBar": False},
        on_select=lambda: session.on_pick(key, lambda chosen: session.change(**{kind: tuple(chosen)})),
        selection_mode="points",
        alt=caption,
    )
    st.caption(plain(caption))
    export.picture("what-if.heads", picture, caption)


def _tile(value: float, layer: int, head: int) -> Cell:
    name = labels.head_phrase(layer, head)
    return Cell(value, f"{value:.2f}", "", f"{name}: a weight changes by up to {value:.3f}")


def _switch(now: State, kind: str, head: Head) -> None:
    """Switches the chosen head off with one click, and on again."""
    change = do.ablate(kind, *head)
    off = change in now.changes
    st.button(
        f"switch {labels.head_phrase(*head)} {'on again' if off else 'off'}",
        icon=":material/power_settings_new:",
        on_click=changed.remove if off else changed.add,
        args=(change,),
        key="what-if.switch",
    )


# --- one head -----------------------------------------------------------------------------------------------


def _cell(now: State, kind: str) -> tuple[int, int] | None:
    """The cell at the cursor, from 0; None before the visitor has chosen one."""
    row = now.source if kind == "encoder" else now.step
    column = now.source if kind == "cross" else now.key
    return None if row is None or column is None else (row, column)


def _take(kind: str, cell: tuple[int, int]) -> None:
    """Moves the cursor to a cell."""
    row, column = map(int, cell)
    moved = {"source": row} if kind == "encoder" else {"step": row}
    session.change(**moved, **({"source": column} if kind == "cross" else {"key": column}))


def _map(found: RunDifference, kind: str, head: Head, cells: Cells, chosen: tuple[int, int] | None) -> None:
    rows, columns = cells
    base, new = (
        run.weights(kind, *head)[np.ix_([pair[at] for pair in rows], [pair[at] for pair in columns])]
        for at, run in enumerate((found.base, found.changed))
    )
    names = fields.names(found.base, kind)
    shown = [names[0][pair[0]] for pair in rows], [names[1][pair[0]] for pair in columns]
    end = scale_end(float(np.abs(new - base).max()))
    caption = (
        f"changed (A) − as it is (B) · {KIND_NAMES[kind]}, {labels.head_phrase(*head)} · weights, "
        f"from −{end:.1f} to {end:.1f} · {found.base.model}"
    )

    def picture() -> go.Figure:
        compared, distances = np.ones_like(base, dtype=bool), np.abs(new - base).sum(1) / 2
        return difference_map(new, base, compared, *shown, distances, end, ("queries", "keys"), _WIDE)

    def table() -> export.Table:
        return [
            ("query", "key", "weight as it is", "weight changed", "difference"),
            *(
                (row, column, float(base[i, j]), float(new[i, j]), float(new[i, j] - base[i, j]))
                for i, row in enumerate(shown[0])
                for j, column in enumerate(shown[1])
            ),
        ]

    places = [[(row[1], column[1]) for column in columns] for row in rows]
    key = f"what-if.map.{kind}"
    st.plotly_chart(
        clickable(picture(), places, chosen, 0.95 * style.pitch(max(base.shape), _WIDE)),
        width="content",
        key=key,
        config={"displayModeBar": False},
        on_select=lambda: session.on_pick(key, lambda cell: _take(kind, cell)),
        selection_mode="points",
        alt=caption,
    )
    st.caption(plain(caption))
    export.picture("what-if.map", picture, caption, table=table)


def _offer(
    found: RunDifference, place: tuple[str, Head], cells: Cells, chosen: tuple[int, int] | None
) -> None:
    """What can be done with the chosen cell."""
    rows, columns = ({pair[1]: pair[0] for pair in axis} for axis in cells)
    if chosen is None or chosen[0] not in rows or chosen[1] not in columns:
        st.caption("Click a cell to move its row's weight there, or to hide it.")
        return
    (kind, head), said = place, _said(found, place, (rows[chosen[0]], columns[chosen[1]]), chosen)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="what-if-cell"):
        if not found.changed.mask(kind, *head)[chosen]:
            st.caption(f"{said}; the mask hides this cell.", width="content")
            return
        st.caption(f"{said}.", width="content")
        st.button(
            "move this row's weight here",
            on_click=changed.add,
            args=(do.set_row(kind, *head, chosen[0], {chosen[1]: 1.0}),),
            help="All of this row's weight goes to this key; the other keys get none.",
            key="what-if.move",
        )
        st.button(
            "hide this cell",
            on_click=changed.add,
            args=(do.mask(kind, forbid=[chosen], layer=head[0]),),
            help="A mask holds in every head of the layer.",
            key="what-if.mask",
        )


def _said(found: RunDifference, place: tuple[str, Head], before: Both, after: Both) -> str:
    """What a cell holds, as it is and changed."""
    kind, head = place
    row, column = (names[at] for names, at in zip(fields.names(found.base, kind), before, strict=True))
    weights = [run.weights(kind, *head) for run in (found.base, found.changed)]
    numbers = f"{weights[0][before]:.2f} as it is, {weights[1][after]:.2f} changed"
    return plain(f"Row “{row}”, key “{column}”: {numbers}")
