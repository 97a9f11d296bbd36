"""Makes the feeds of the linked view: maps, lines, lists, tiles, bars."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from explorer.figures import heatmap_spec, pooled_spec, to_json
from explorer.figures.base import captions, labels, style
from explorer.figures.base.bars import SHOWN, Candidate, candidates
from explorer.figures.base.captions import Badge, cell_names, quantity
from explorer.figures.maps.heatmap import LARGEST, LATER, MASKED, levels, row_tokens
from explorer.figures.maps.lines import WeightLine, looks
from explorer.figures.maps.overview import Tile, pooled_note
from explorer.lenses.heads.walls import HeadGroup
from explorer.lenses.words.reading import ReadView
from explorer.linked.view.strips import direction
from explorer.linked.view.wire import (
    BarsFeed,
    Choice,
    HeadFeed,
    Legend,
    LineHead,
    LinesFeed,
    MapFeed,
    Names,
    RaceFeed,
    RankingFeed,
    Span,
    StrongestFeed,
    TilesFeed,
    WallFeed,
    WholeFeed,
)
from transformer.config import AttentionKind, Head
from transformer.interventions import Ablate
from transformer.run import DecodeStep, Translation
from transformer.text.words import Group

OneHead = TypeVar("OneHead", MapFeed, LinesFeed, StrongestFeed)
"""A way of drawing one head."""
AXES = {"encoder": ("source", "source"), "decoder": ("step", "step"), "cross": ("step", "source")}
"""The tokens along the rows and the columns of a kind."""
ROWS = {"source": "row of “{source}”", "step": "row of “{reads}”"}
PREDICTING = {
    "decoder": "reads “{reads}”, predicts “{predicts}”",
    "cross": "predicts “{predicts}”, reads “{reads}”",
}
SHORT_NAMES = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross"}


def about_row(run: Translation, kind: str) -> str:
    """What a picture of a kind says of the cursor's row, with names of tokens to fill in."""
    rows, _ = AXES[kind]
    if not run.steps:
        return ROWS[rows]
    if rows == "source":
        return f"once, before step 1; {ROWS[rows]}"
    return PREDICTING[kind]


def fades(run: Translation, kind: str) -> bool:
    """Whether the rows after the cursor are still to come, as those of later steps are."""
    rows, _ = AXES[kind]
    return rows == "step" and bool(run.steps)


def badge_of(view: ReadView) -> Badge:
    """The badge of a map; that it is being checked, where its proof is still to be made."""
    if view.awaits_proof:
        return captions.CHECKING
    return captions.badge(view.audit, view.derived)


def head_feed(
    trace: str,
    view: ReadView,
    scale: str | None = "linear",
    whole: tuple[int, int] | None = None,
    role: str = "",
) -> HeadFeed:
    """What every way of drawing a head has; `whole`: how many queries and keys there are in all."""
    kind = str(view.kind)
    rows, columns = AXES[kind]
    row_names, column_names = cell_names(view)
    legend: Legend | None = None
    if scale:
        legend = {"title": quantity(view).share, "marks": style.marks(kind, scale)}
    return {
        "trace": trace,
        "kind": kind,
        "hue": kind,
        "rows": rows,
        "columns": columns,
        "spans": {"rows": spans(view.rows), "columns": spans(view.columns)},
        "names": {"rows": row_names, "columns": column_names},
        "title": f"{view.title or SHORT_NAMES[kind]} {labels.head_name(view.layer, view.head)}",
        "about": ROWS[rows],
        "caption": captions.caption(view, scale, whole),
        "badge": badge_of(view),
        "sentences": captions.sentences(view, role),
        "absent": "The token at this position is hidden, so its row is not drawn.",
        "notes": captions.notes(view),
        "alt": captions.summary(view),
        "legend": legend,
        "quantity": quantity(view).share,
        "limit": quantity(view).limit,
        "scale": scale or "linear",
    }


def spans(groups: Sequence[Group]) -> list[Span]:
    """The tokens of each group: the first, and one past the last."""
    return [(group.start, group.stop) for group in groups]


def switched_off(feed: OneHead, view: ReadView, role: str = "") -> OneHead:
    """The feed of a head whose output is 0 in this run: drawn hatched, and its sentence says so."""
    return {**feed, "off": True, "sentences": captions.sentences_off(view, role), "notes": {}}


def is_off(run: Translation, kind: str, head: Head) -> bool:
    """Whether a head's output is replaced by zeros in all rows of a run."""
    layer, at = head
    return any(
        isinstance(intervention, Ablate)
        and (intervention.by, intervention.rows) == ("zero", None)
        and intervention.layer == layer
        and at in intervention.heads_of(AttentionKind(kind), layer, at + 1)
        for intervention in run.interventions
    )


def map_feed(
    trace: str,
    view: ReadView,
    largest: int = 360,
    scale: str = "linear",
    whole: tuple[int, int] | None = None,
    *,
    sums: bool = False,
    role: str = "",
    most: int = LARGEST,
) -> MapFeed:
    """One attention map with all texts about it; further arguments as in `head_feed`."""
    figure = heatmap_spec(view, largest, scale, sums, most)
    names = figure["layout"].pop("meta")
    return {
        "draw": "map",
        **head_feed(trace, view, scale, whole, role),
        "figure": to_json(figure),
        "hover": {
            "rows": [*map(labels.escape, names["rows"])],
            "columns": [*map(labels.escape, names["columns"])],
            "masked": MASKED,
            "later": LATER if view.kind == "decoder" else MASKED,
        },
        "head": (view.layer, view.head),
        "acts": [],
        "fade": view.kind != "encoder",
        "largest": largest,
        "choice": None,
    }


def choice(
    kind: str,
    head: Head,
    size: Head,
    first: Head,
    roles: Sequence[Sequence[str]] = (),
    *,
    title: str = "",
) -> Choice:
    """A choice of heads over a map; `title` as in `captions.kind_name`."""
    opens = "This head" if head == first else labels.head_phrase(*first).capitalize()
    name = captions.kind_name(kind, title)
    short = title or SHORT_NAMES[kind]
    return {
        "name": name if kind == "cross" else short,
        "label": f"Head of {name.lower()}",
        "size": size,
        "head": head,
        "roles": roles,
        "first": f"{opens} is this model's default.",
    }


def lines_feed(
    trace: str,
    views: Sequence[ReadView],
    links: Sequence[Sequence[WeightLine]],
    chosen: str,
    largest: int = 440,
    *,
    whole: tuple[int, int] | None = None,
) -> LinesFeed:
    """One head or several of one kind as lines; all texts are about the first head."""
    first = views[0]
    head = head_feed(trace, first, None, whole)
    heads: list[LineHead] = [
        {"name": labels.head_name(view.layer, view.head), "color": color, "dash": _DASHES[dash]}
        for view, (color, dash) in zip(views, looks(views), strict=False)
    ]
    names = ", ".join(line["name"] for line in heads[1:])
    title = f"{head['title']} with {names}" if names else head["title"]
    return {
        "draw": "lines",
        **head,
        "title": title,
        "caption": f"{head['caption']} · {chosen}, thickness = {head['quantity']}",
        "alt": f"As lines: {' '.join(map(captions.summary, views))}",
        "labels": tick_names(first),
        "values": style.packed(first.weights),
        "links": [
            (link.query, link.key, round(link.weight, 4), number)
            for number, lines in enumerate(links)
            for link in lines
        ],
        "heads": heads,
        "fade": first.kind != "encoder",
        "largest": largest,
    }


_DASHES = {"solid": "", "dash": "9 5", "dot": "3 4", "dashdot": "10 4 2 4"}


def strongest_feed(
    trace: str, view: ReadView, scale: str = "linear", whole: tuple[int, int] | None = None
) -> StrongestFeed:
    """The keys of a query and the queries of a key as lists, and the keys as shaded text."""
    return {
        "draw": "strongest",
        **head_feed(trace, view, scale, whole),
        "listed": SHOWN,
        "labels": tick_names(view),
        "values": style.packed(view.weights),
        "shades": style.packed(levels(view.weights, view.mask, scale)),
        "direction": direction(view.key_tokens),
    }


def colour_note(scale: str) -> str:
    """Scale of the colours, as a text for a caption."""
    return f"colour from 0 to 1, {style.SCALE_NAMES[scale]}"


def tick_names(view: ReadView) -> Names:
    """Short names of rows and columns."""
    return {"rows": labels.names(row_tokens(view)), "columns": labels.names(view.key_tokens)}


def whole_feed(
    trace: str,
    kind: str,
    arrays: tuple[np.ndarray, np.ndarray],
    axes: tuple[Sequence[Group], Sequence[Group]],
    scale: str = "linear",
) -> WholeFeed:
    """The whole matrix of a head, pooled; the view marks on it the part that is drawn in full."""
    weights, mask = arrays
    rows, columns = AXES[kind]
    queries, keys = axes
    n_rows, n_columns = weights.shape
    note = pooled_note(weights)
    return {
        "draw": "whole",
        "trace": trace,
        "kind": kind,
        "hue": kind,
        "rows": rows,
        "columns": columns,
        "spans": {"rows": spans(queries), "columns": spans(keys)},
        "figure": to_json(pooled_spec(weights, mask, kind, 330, scale)),
        "title": "The whole matrix",
        "about": (
            "the frame marks the part drawn in full; to move the frame, click or move the cursor"
        ),
        "caption": f"{note} · {n_rows} queries, {n_columns} keys · {colour_note(scale)}",
        "alt": (
            f"{captions.KIND_NAMES[kind]}, the whole matrix: {n_rows} queries by {n_columns} keys, "
            f"{note}. A click moves the part that is drawn in full."
        ),
        "largest": 330,
    }


def bars_feed(
    trace: str,
    figure: dict[str, Any],
    follows: str,
    *,
    title: str,
    about: str,
    caption: str,
    alts: Sequence[str],
    height: int | None = None,
    places: Sequence[Group] | None = None,
) -> BarsFeed:
    """Bars whose frames follow the step or the source token."""
    return {
        "draw": "bars",
        "trace": trace,
        "figure": to_json(figure),
        "follows": follows,
        "title": title,
        "about": about,
        "caption": caption,
        "alt": f"{title}, as bars: {caption}.",
        "alts": alts,
        "height": height,
        "largest": 360,
        "spans": None if places is None else spans(places),
    }


BEFORE = {"step": "after reading “{reads}”", "source": "in the place of “{source}”"}
"""What candidates follow, by the axis of the cursor."""


def race_feed(
    trace: str,
    steps: Sequence[DecodeStep | None],
    caption: str,
    offered: tuple[Sequence[Sequence[int | None]], list[list[int]]] | None,
    *,
    follows: str = "step",
    title: str = "Next token",
    puts: str = "continue with it",
) -> RaceFeed:
    """The candidates of each position, whose bars run when the cursor moves.

    `follows`: what the positions are, `step` or `source`; `puts`: what a click on a candidate does.
    """
    rows = [[] if step is None else candidates(step) for step in steps]
    ids, tried = offered or ((), [])
    logs = np.full((len(rows), max(map(len, rows), default=0)), np.nan, np.float32)
    for log, row in zip(logs, rows, strict=True):
        log[: len(row)] = [candidate.log_prob for candidate in row]
    clicks = f"; click one to {puts}" if ids else ""
    return {
        "draw": "race",
        "trace": trace,
        "follows": follows,
        "puts": puts,
        "title": title,
        "about": BEFORE[follows],
        "caption": caption,
        "alt": f"Candidates for the {title.lower()}, best first{clicks}.",
        "names": [[labels.piece(candidate.token) for candidate in row] for row in rows],
        "shares": [[candidate.chance for candidate in row] for row in rows],
        "logs": style.packed(logs),
        "chosen": [_chosen(row) for row in rows],
        "ids": ids,
        "tried": tried,
    }


def _chosen(row: Sequence[Candidate]) -> int:
    """The place of the chosen candidate; −1 if it is not shown."""
    return next((place for place, candidate in enumerate(row) if candidate.chosen), -1)


def overview_feed(
    trace: str,
    figure: dict[str, Any],
    kind: str,
    size: Head,
    head: Head,
    *,
    caption: str,
    badge: Badge,
    legend: Legend | None = None,
) -> TilesFeed:
    """The grid of all heads of a kind, with tiles that can be clicked."""
    n_layers, n_heads = size
    title = f"All heads, {labels.counted(n_layers, 'layer')} of {n_heads}"
    return {
        "draw": "tiles",
        "trace": trace,
        "figure": to_json(figure),
        "picks": kind,
        "hue": kind,
        "title": title,
        "about": "",
        "caption": caption,
        "badge": badge,
        "alt": (
            f"{captions.KIND_NAMES[kind]}. {title}, as tiles; {labels.head_phrase(*head)} is "
            "chosen. Click a tile to open its head, or choose one above."
        ),
        "height": figure["layout"]["height"],
        "legend": legend,
    }


def wall_feed(
    trace: str, kind: str, tiles: Sequence[Sequence[Tile]], *, caption: str, badge: Badge
) -> WallFeed:
    """The pictures of all heads of a kind, one byte a cell."""
    size = len(tiles), len(tiles[0])
    title = f"All {size[0] * size[1]} heads, {labels.counted(size[0], 'layer')} of {size[1]}"
    cells = np.stack([np.stack([tile.values for tile in row]) for row in tiles])
    return {
        "draw": "wall",
        "trace": trace,
        "picks": kind,
        "hue": kind,
        "size": size,
        "cells": style.packed(cells),
        "title": title,
        "about": "",
        "caption": caption,
        "badge": badge,
        "alt": f"{captions.KIND_NAMES[kind]}. {title}, as tiles. Click a tile to open its head.",
    }


def ranking_feed(
    trace: str,
    groups: Sequence[HeadGroup],
    head: Head,
    *,
    numbers: Sequence[Sequence[str]],
    notes: Sequence[Sequence[str]],
    order: str,
    aligned: bool,
) -> RankingFeed:
    """How the heads of a wall stand, with a text under each and one at the pointer."""
    return {
        "draw": "ranking",
        "trace": trace,
        "head": head,
        "aligned": aligned,
        "groups": [{"name": group.name, "heads": list(group.heads)} for group in groups],
        "numbers": [list(row) for row in numbers],
        "notes": [list(row) for row in notes],
        "order": order,
    }


def window_around(length: int, position: int, size: int = LARGEST) -> tuple[int, int]:
    """Start and stop of what is drawn of an axis: all, or a window that moves by half its size."""
    if length <= size:
        return 0, length
    half = size // 2
    start = min(max(position // half * half - half // 2, 0), length - size)
    return start, start + size
