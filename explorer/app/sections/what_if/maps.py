"""How the attention of every head changes: all heads as tiles, one head as a map, and changes by a click."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import chart, export, panel, pickers, plain
from explorer.app.sections.what_if.forms import fields
from explorer.app.server.opened import Opened
from explorer.app.shell import changed
from explorer.figures.base import labels, style
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.maps.difference import difference_map, scale_end
from explorer.figures.pages.heads import Cell, head_grid
from explorer.figures.pages.what_if import clickable
from explorer.lenses.what_if.two_runs import Both, RunDifference
from transformer import interventions as do
from transformer.config import Head

_WIDE = 340
_CELLS = 40


def draw(opened: Opened, found: RunDifference) -> None:
    """Draws the largest difference of every head, and the map of differences of one."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    st.markdown("##### How the attention of every head changes")
    pickers.kind_picker(kind, opened.kinds)
    head = getattr(now, kind)
    tiles, large = st.columns([1, 1], gap="large")
    with tiles:
        _grid(found, now, kind)
    with large:
        common = found.common(kind)
        if common.rows and common.columns:
            _map(_Shared(found, kind, head, common.rows[:_CELLS], common.columns[:_CELLS]))
        else:
            st.caption("The two runs share no row of this kind.")


def _grid(found: RunDifference, now: State, kind: str) -> None:
    head: Head = getattr(now, kind)
    most = found.largest(kind)
    cells = [[_tile(float(value), i, j) for j, value in enumerate(row)] for i, row in enumerate(most)]
    panel(
        "what-if.heads",
        partial(head_grid, cells, kind, head),
        f"{KIND_NAMES[kind]}: the largest change of a weight in each head, over the rows that "
        "both runs share · choose a head to see its map",
        key=f"what-if.heads.{kind}",
        take=lambda chosen: session.change(**{kind: tuple(chosen)}),
        inked=True,
    )
    change = do.ablate(kind, *head)
    off = change in now.changes
    st.button(
        f"Switch {labels.head_phrase(*head)} {'on again' if off else 'off'}",
        icon=":material/power_settings_new:",
        on_click=changed.remove if off else changed.add,
        args=(change,),
        key="what-if.switch",
    )


def _tile(value: float, layer: int, head: int) -> Cell:
    name = labels.head_phrase(layer, head)
    told = labels.telling(value)
    note = f"{name}: a weight changes by up to {told}"
    return Cell(0.0 if value < labels.ROUNDING else value, told, "", note)


@dataclass(frozen=True)
class _Shared:
    """What one head's maps have in common."""

    found: RunDifference  # the runs that are compared
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    rows: tuple[Both, ...]  # positions of queries, as it is and changed
    columns: tuple[Both, ...]  # positions of keys, as it is and changed

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, columns) weights as it is, and changed."""
        base, new = (
            run.weights(self.kind, *self.head)[
                np.ix_([pair[at] for pair in self.rows], [pair[at] for pair in self.columns])
            ]
            for at, run in enumerate((self.found.base, self.found.changed))
        )
        return base, new

    @cached_property
    def names(self) -> tuple[list[str], list[str]]:
        """Names of the rows and columns."""
        names = fields.names(self.found.base, self.kind)
        return [names[0][pair[0]] for pair in self.rows], [names[1][pair[0]] for pair in self.columns]

    @property
    def end(self) -> float:
        """The end of the colour scale."""
        return scale_end(float(np.abs(self.weights[1] - self.weights[0]).max()))

    @property
    def caption(self) -> str:
        """What the map shows."""
        return (
            f"changed (A) − as it is (B) · {KIND_NAMES[self.kind]}, {labels.head_phrase(*self.head)} · "
            f"weights, from −{self.end:.1f} to {self.end:.1f} · {self.found.base.model}"
        )

    def picture(self) -> go.Figure:
        """The map of differences."""
        base, new = self.weights
        compared, distances = np.ones_like(base, dtype=bool), np.abs(new - base).sum(1) / 2
        titles = "queries", "keys"
        return difference_map(new, base, compared, *self.names, distances, self.end, titles, _WIDE)

    def clickable(self, chosen: Both | None) -> go.Figure:
        """The same; a click on a cell gives its place in the changed run."""
        places = [[(row[1], column[1]) for column in self.columns] for row in self.rows]
        side = 0.95 * style.pitch(max(len(self.rows), len(self.columns)), _WIDE)
        return clickable(self.picture(), places, chosen, side)

    def table(self) -> export.Table:
        """The cells as numbers."""
        cells = [
            (row, column, float(before), float(after), float(after - before))
            for row, *pair in zip(self.names[0], *self.weights, strict=True)
            for column, before, after in zip(self.names[1], *pair, strict=True)
        ]
        return [("query", "key", "weight as it is", "weight changed", "difference"), *cells]

    def index(self, cell: Both | None) -> Both | None:
        """Row and column of the map that show a cell of the changed run; None if there is no such cell."""
        rows, columns = ([pair[1] for pair in axis] for axis in (self.rows, self.columns))
        if cell is None or cell[0] not in rows or cell[1] not in columns:
            return None
        return rows.index(cell[0]), columns.index(cell[1])

    def said(self, at: Both) -> str:
        """What a cell holds, as it is and changed."""
        before, after = (float(each[at]) for each in self.weights)
        names = f"Row “{self.names[0][at[0]]}”, key “{self.names[1][at[1]]}”"
        return plain(f"{names}: {before:.2f} as it is, {after:.2f} changed")


def _map(shared: _Shared) -> None:
    chosen, key = fields.cell(shared.kind), f"what-if.map.{shared.kind}"
    figure = shared.clickable(chosen)
    chart(key, figure, shared.caption, partial(_take, shared.kind), "content")
    st.caption(plain(shared.caption))
    _offer(shared, chosen)
    export.picture("what-if.map", shared.picture, shared.caption, table=shared.table)


def _take(kind: str, cell: tuple[int, int]) -> None:
    """Moves the cursor to a cell."""
    row, column = map(int, cell)
    moved = {"source": row} if kind == "encoder" else {"step": row}
    session.change(**moved, **({"source": column} if kind == "cross" else {"key": column}))


def _offer(shared: _Shared, chosen: Both | None) -> None:
    """What can be done with the chosen cell."""
    at, (kind, head) = shared.index(chosen), (shared.kind, shared.head)
    if chosen is None or at is None:
        st.caption("Click a cell to move its row's weight there, or to hide it.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="what-if-cell"):
        if not shared.found.changed.mask(kind, *head)[chosen]:
            st.caption(f"{shared.said(at)}; the mask hides this cell.", width="content")
            return
        st.caption(f"{shared.said(at)}.", width="content")
        _do(
            "Move this row's weight here",
            do.set_row(kind, *head, chosen[0], {chosen[1]: 1.0}),
            "what-if.move",
        )
        _do("Hide this cell", do.mask(kind, forbid=[chosen], layer=head[0]), "what-if.mask")


def _do(label: str, change: do.Intervention, key: str) -> None:
    """A button that adds a change."""
    st.button(label, on_click=changed.add, args=(change,), help=changed.said(change), key=key)
