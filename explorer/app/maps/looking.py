"""The visitor's look at a sentence: a head of each kind, its reading, its window, and the cursor.

A page derives these values from the state once, at the top of a run, and hands them down.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from explorer.app.address import State
from explorer.app.address.state import cursor_of
from explorer.app.server import runs
from explorer.app.server.source import NEEDS_MODEL
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.figures import Tile
from explorer.figures.base import captions
from explorer.figures.base.captions import QUANTITIES, Badge
from explorer.figures.maps.overview import LARGEST_TILE
from explorer.lenses.words.reading import (
    Reading,
    ReadView,
    drawn_groups,
    read_map,
    read_view,
    reading_window,
)
from explorer.lenses.words.together import rows_of
from explorer.linked.view.events import Cursor
from explorer.linked.view.feeds import window_around
from transformer.config import AttentionKind, Head, Side
from transformer.run import Translation
from transformer.text.words import Group
from transformer.view import AuditReport, HeadMap, HeadView, Window

SELF_ATTENTION = {"encoder", "decoder"}
"""Kinds of attention that Transformers have, and recurrent networks lack."""


@dataclass(frozen=True)
class HeadSelection:
    """The visitor's look at one kind of attention of a sentence."""

    opened: View  # the opened sentence
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    reading: (
        Reading  # whether words are merged, which tokens are hidden, and which token names a row
    )
    most: int  # how many rows, and how many columns, a map shows at most
    scale: str  # how weights become colours
    cursor: Cursor  # the step and the source token that the visitor chose
    measure: str  # what the cells say, one of `MEASURES`
    cell: tuple[
        int, int
    ]  # a row and column (from 0) of the whole map; every window must contain this cell

    @property
    def lengths(self) -> tuple[int, int]:
        """Rows and columns of the whole map, in tokens."""
        return runs.lengths(self.opened.translation, self.kind)

    @property
    def tokens(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pieces that name rows and columns.

        Rows and columns are merged and hidden by these pieces.
        """
        run = self.opened.translation
        site = run.config.sites[AttentionKind(self.kind)]
        rows = run.tokens(site.query_side)
        columns = run.tokens(site.key_side)
        named = self.reading.rows or ("read" if site.own_keys else "predicted")
        return (
            run.target_tokens if site.query_side == "decoder" and named == "predicted" else rows,
            columns,
        )

    @property
    def axes(self) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        rows, columns = self.tokens
        return drawn_groups(rows, self.reading), drawn_groups(columns, self.reading)

    @property
    def window(self) -> Window:
        rows, columns = self.tokens
        return Window(
            *reading_window(rows, self.reading, self.cell[0], self.most),
            *reading_window(columns, self.reading, self.cell[1], self.most),
        )

    @property
    def is_windowed(self) -> bool:
        return any(len(groups) > self.most for groups in self.axes)

    def read(
        self,
        head: Head | None = None,  # layer and head, from 0; None for the chosen head
    ) -> ReadView:
        """A head as the visitor reads it, in the window."""
        head = head or self.head
        view = self.opened.translation.map(self.kind, *head, window=self.window)
        if self.measure != "weight":
            from explorer.app.maps import measures  # PyTorch comes with it

            view = measures.IN_PLACE[self.measure](self.opened, view)
        awaits = not self.opened.translation.is_audited
        return replace(read_view(view, self.reading), awaits_proof=awaits)

    def rows_together(self, view: ReadView) -> tuple[int, ...]:
        """The rows of a view that the visitor looks at as one; none, or two and more."""
        return rows_of(view.rows, self.cursor.chosen.of_rows(self.kind))

    def as_recorded(self) -> HeadMap:
        """The head as the model has it, in a window of at most 64 x 64 around the cell."""
        rows, columns = self.lengths
        window = Window(*window_around(rows, self.cell[0]), *window_around(columns, self.cell[1]))
        return self.opened.translation.map(self.kind, *self.head, window=window)

    def whole(self, head: Head | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Weights and mask (rows, columns) of a whole head, as the visitor reads it.

        `head` as in `read`.
        """
        chosen = self.kind, *(head or self.head)
        run = self.opened.translation
        weights = run.weights(*chosen)
        mask = run.mask(*chosen)
        if self.measure == "carried":
            from explorer import lenses
            from explorer.app.maps import measures
            from explorer.lenses.measures.stream import shares

            carried = measures.of_run(self.opened, lenses.carried, *chosen)
            weights = shares(carried.norms)  # of each row's sum
        axes = self.axes
        if weights.shape == (len(axes[0]), len(axes[1])):  # every piece stands for itself
            return weights, mask
        weights, mask, _ = read_map(weights, mask, *axes)
        return weights, mask

    def tiles(self, side: int = LARGEST_TILE) -> list[list[Tile]]:
        """All heads of the kind, as the visitor reads them, pooled for one tiled map.

        `side`: the most rows, and columns, of a tile.
        """
        way = (self.reading, self.scale, self.measure)
        return _tiles(self.opened, self.kind, way, side, look=self)


@remembered(64)
def _tiles(
    opened: View, kind: str, way: tuple[Reading, str, str], side: int, *, look: HeadSelection
) -> list[list[Tile]]:
    _, scale, _ = way
    layers, heads = opened.translation.config.sizes[kind]
    return [
        [Tile.at_most(side, *look.whole((layer, head)), scale) for head in range(heads)]
        for layer in range(layers)
    ]


def badge_of_all(opened: View, kind: str) -> Badge:
    """The badge of all heads of a kind; that they are being checked, before it is known."""
    if not opened.translation.is_audited:
        return captions.CHECKING
    return captions.badge(audited(opened, kind), derived=True)


@remembered(64)
def audited(opened: View, kind: str) -> AuditReport:
    """The audit of every layer of a kind."""
    layers = range(opened.translation.config.sizes[kind][0])
    return opened.translation.audit(*((AttentionKind(kind), layer) for layer in layers))


def near(
    run: Translation,
    kind: str,  # encoder, decoder or cross
    head: Head,  # layer and head, from 0
    cell: tuple[int, int] = (0, 0),  # the row and column (from 0) that the window must contain
    most: int = 64,  # most rows, and columns, of the window
) -> HeadView:
    """One head of a run, in a window if it is long."""
    spans = (
        window_around(n, at, most) for n, at in zip(runs.lengths(run, kind), cell, strict=True)
    )
    return run.head(kind, *head, window=Window(*itertools.chain(*spans)))


Looks = Mapping[str, HeadSelection]
"""The visitor's look at each kind of attention that the model has."""


def looks_of(opened: View, state: State) -> dict[str, HeadSelection]:
    """The visitor's look at each kind of attention of the run.

    The state must name a head of each.
    """
    measure = "weight" if lacking(opened, state.measure) else state.measure
    words = state.words and bool(QUANTITIES[measure].words)  # some measures are not of words
    hidden: tuple[bool, bool] = "special" in state.hide, "punctuation" in state.hide
    return {
        kind: HeadSelection(
            opened=opened,
            kind=kind,
            head=getattr(state, kind),
            reading=Reading(words, *hidden, None if kind == "encoder" else state.rows),
            most=state.window,
            scale=state.scale,
            cursor=cursor_of(state),
            measure=measure,
            cell=cell,
        )
        for kind, cell in cells_of(opened, state).items()
    }


_PREDICTS_NOTHING = {
    False: "An effect changes how probable a token is, and this run predicts none.",
    True: "An effect changes how probable a token is, and no word is masked here: mask one.",
}
"""Why there are no effects, by whether the model predicts masked words."""


def lacking(opened: View, measure: str) -> str | None:
    """Why the maps of a sentence cannot show a measure, in one sentence; None if they can."""
    if measure == "weight":
        return None
    if not opened.source.has_model:
        return NEEDS_MODEL
    if measure != "carried" and not opened.translation.predictions:
        return _PREDICTS_NOTHING[opened.source.fills]
    if SELF_ATTENTION.isdisjoint(opened.kinds):
        return "What keys carried and did is measured in Transformers; the maps show weights."
    if opened.run_key.changes:
        return (
            "What keys carried and did is measured in a run without changes; the maps show weights."
        )
    return None


def cursor_at(opened: View, state: State) -> dict[Side, int]:
    """The position (from 0) of the cursor in each stack of the model.

    A source token that was not chosen follows cross-attention.
    """
    step = state.step or 0
    source = state.source or 0
    if state.source is None and "cross" in opened.kinds:
        assert state.cross is not None
        source = runs.followed(opened.translation, state.cross)[step]
    places: dict[Side, int] = {"encoder": source, "decoder": step}
    return {side: places[side] for side in opened.translation.config.stacks}


def cells_of(opened: View, state: State) -> dict[str, tuple[int, int]]:
    """The row and column (from 0) of the cursor, by kind."""
    at = cursor_at(opened, state)
    sites = opened.translation.config.sites
    return {str(kind): (at[site.query_side], at[site.key_side]) for kind, site in sites.items()}
