"""How the visitor reads heads: in pieces or words, with what hidden, in which window."""

from __future__ import annotations

import numpy as np

from figures import Tile
from transformer import Translation, Window
from transformer.lenses.reading import Axis, Reading, ReadView, read_axis, read_map, read_view, reading_window
from ui.address import session
from ui.linked_view import Head
from ui.server import catalogue, runs
from ui.server.runs import Request


def current(kind: str) -> Reading:
    """The reading that the state asks for."""
    now = session.current()
    named = None if kind == "encoder" or now.rows not in {"read", "predicted"} else now.rows
    return Reading(now.words, "special" in now.hide, "punctuation" in now.hide, named)  # type: ignore[arg-type]


def tokens(translation: Translation, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pieces by which rows and columns of a kind are named, merged and hidden."""
    source, reads = translation.source_tokens, translation.decoder_input_tokens
    if kind == "encoder":
        return source, source
    usual = "predicted" if kind == "cross" else "read"
    named = current(kind).rows or usual
    return translation.target_tokens if named == "predicted" else reads, source if kind == "cross" else reads


def axes(translation: Translation, kind: str) -> tuple[Axis, Axis]:
    """Rows and columns of the whole map of a kind."""
    rows, columns = tokens(translation, kind)
    return read_axis(rows, current(kind)), read_axis(columns, current(kind))


def window(translation: Translation, kind: str, at: tuple[int, int]) -> Window:
    """The part of a map that is drawn around a cell (row and column, from 0)."""
    size = session.current().window
    rows, columns = tokens(translation, kind)
    return Window(
        *reading_window(rows, current(kind), at[0], size),
        *reading_window(columns, current(kind), at[1], size),
    )


def is_windowed(translation: Translation, kind: str) -> bool:
    """Whether a map is drawn in part."""
    size = session.current().window
    return any(len(axis.visible) > size for axis in axes(translation, kind))


def view(translation: Translation, kind: str, chosen: Head, at: tuple[int, int]) -> ReadView:
    """One head as it is read, in the window around a cell."""
    part = window(translation, kind, at)
    return read_view(translation.head(kind, *chosen, window=part), current(kind))


def whole(translation: Translation, kind: str, chosen: Head) -> tuple[np.ndarray, np.ndarray]:
    """Weights and mask (rows, columns) of a whole head as it is read."""
    weights, mask, _ = read_map(*runs.whole(translation, kind, chosen), *axes(translation, kind))
    return weights, mask


def tiles(asked: Request, translation: Translation, kind: str) -> list[list[Tile]]:
    """All heads of a kind as they are read, pooled for one tiled map."""
    layers, heads = catalogue.sizes(asked.model)[kind]
    scale = session.current().scale

    def make() -> list[list[Tile]]:
        return [
            [Tile.of(*whole(translation, kind, (layer, head)), scale) for head in range(heads)]
            for layer in range(layers)
        ]

    return runs.overview(asked, translation, (kind, current(kind), scale), make)
