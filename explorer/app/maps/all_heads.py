"""All heads of a kind at once, as tiles; the visitor chooses their order and their colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

from explorer.app.address import State, session
from explorer.app.address.state import ORDERS
from explorer.app.controls import options
from explorer.app.controls.pickers import choose
from explorer.app.maps.looking import HeadSelection, audited
from explorer.app.server import measured, per_run
from explorer.app.server.opened import Opened
from explorer.figures import overview_spec
from explorer.figures.base import captions
from explorer.figures.base.bars import percent
from explorer.figures.maps.overview import Measure
from explorer.lenses.heads.measures import STATISTICS
from explorer.linked import view as linked_view
from explorer.linked.view import TilesFeed
from transformer.config import Head

_LABELS = {statistic.name: statistic.label for statistic in STATISTICS} | {"aer": "alignment error"}
_FALLING = {statistic.name for statistic in STATISTICS if statistic.falling} | {"aer"}
_SHARES = {statistic.name for statistic in STATISTICS if statistic.unit == "share"} | {"aer"}
_SAMPLE = "aer"
"""The one statistic that this sentence alone cannot give; it comes from `heads.json`."""


def values(opened: Opened, kind: str, statistic: str) -> list[list[float]] | None:
    """A statistic of every head, by layer and head; None if it is not known."""
    if statistic == _SAMPLE:
        grid = opened.source.heads.get("heads", {}).get(kind) or []
    else:
        grid = per_run.statistics(opened, kind)
    found = [[float(head.get(statistic, math.nan)) for head in layer] for layer in grid]
    known = any(value == value for layer in found for value in layer)
    return found if known else None


def order(opened: Opened, kind: str, statistic: str | None) -> list[list[int]] | None:
    """The heads of each layer, ordered by a statistic; None if the statistic is not known.

    The heads that stand out come first: errors, entropies and distances rise, other statistics fall.
    """
    found = None if statistic is None else values(opened, kind, statistic)
    if found is None:
        return None
    sign = 1 if statistic in _FALLING else -1
    return [
        sorted(range(len(layer)), key=lambda i: (layer[i] != layer[i], sign * layer[i])) for layer in found
    ]


def measure(opened: Opened, kind: str, statistic: str | None) -> Measure | None:
    """The statistic that colours the tiles; None if it is not known."""
    found = None if statistic is None else values(opened, kind, statistic)
    if found is None:
        return None
    return Measure(found, [["" if value != value else f"{value:.2f}" for value in layer] for layer in found])


def feed(look: HeadSelection, now: State) -> TilesFeed:
    """The feed of the tiled map."""
    opened, kind, tiles = look.opened, look.kind, look.tiles()
    layers, heads = len(tiles), len(tiles[0])
    ordered, coloured = order(opened, kind, now.order), measure(opened, kind, now.color)
    roles = measured.roles(opened.source).get(kind, [])
    notes = {(i, j): note(look, now, (i, j), roles) for i in range(layers) for j in range(heads)}
    figure = overview_spec(tiles, kind, look.head, notes, ordered, coloured)
    tile = tiles[0][0]
    said = {"weight": "", "carried": " (shares carried)"}.get(look.measure, " (weights)")
    parts = [f"each tile is a head: queries down, keys across, {linked_view.colour_note(now.scale)}{said}"]
    if tile.pooled:
        parts.append(f"each cell is the maximum over {tile.rows}×{tile.columns} cells")
    if ordered is not None:
        parts.append(f"ordered in each layer by {name(now.order)}")
    if coloured is not None:
        parts.append(f"strip under a tile: {name(now.color)}")
    proof = captions.badge(audited(opened, kind), derived=True)
    parts += [str(proof["text"]), "click a tile to open it"]
    legend = None if coloured is None else {"title": _LABELS[now.color or ""], "marks": coloured.legend()}
    return linked_view.overview_feed(
        opened.trace,
        figure,
        kind,
        (layers, heads),
        look.head,
        " · ".join(parts),
        legend,
    )


def name(statistic: str | None) -> str:
    """The label of a statistic, and the texts over which it was measured."""
    over = "the sentence pairs of heads.json" if statistic == _SAMPLE else "this sentence"
    return f"{_LABELS[statistic or '']} (over {over})"


def note(look: HeadSelection, now: State, chosen: Head, roles: Sequence[Sequence[str]] = ()) -> str:
    """The hover text of a head: role, alignment error, the chosen statistics, and its largest mass."""
    opened, kind, (layer, head) = look.opened, look.kind, chosen
    told = [each for each in (_SAMPLE, now.order, now.color) if each is not None]
    found = per_run.statistics(opened, kind)[layer][head]
    masses = [each for each in ORDERS if each.endswith("_mass") and each in found]
    told += sorted(masses, key=lambda each: -found[each])[:1]
    lines = [f"role: {roles[layer][head]}"] if roles and roles[layer][head] else []
    for statistic in dict.fromkeys(told):
        grid = values(opened, kind, statistic)
        if grid is not None and grid[layer][head] == grid[layer][head]:
            lines.append(f"{_LABELS[statistic]} {_written(statistic, grid[layer][head])}")
    return "\n".join(lines)


def _written(statistic: str, value: float) -> str:
    return percent(value) if statistic in _SHARES and statistic != "entropy" else f"{value:.2f}"


def pickers(look: HeadSelection, now: State) -> None:
    """Draws two controls, for the statistic that orders the tiles and the statistic that colours them."""
    known = [each for each in ORDERS if values(look.opened, look.kind, each) is not None]
    _picker("order", now.order, "order", "number", known)
    _picker("color", now.color, "colour", "weights only", known)


def _picker(field: str, asked: str | None, what: str, usual: str, known: list[str]) -> None:
    now = asked if asked in known else ""
    offered = options.statistics(what, usual, {each: _LABELS[each] for each in known})
    choose(
        field,
        f"{what.capitalize()} of the heads",
        offered,
        now,
        lambda each: session.change(**{field: each or None}),
        texts=True,
    )
