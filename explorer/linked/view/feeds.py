"""Makes the feeds of the linked view: maps, lines, lists, tiles, bars."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from explorer.figures import heatmap_spec, pooled_spec, to_json
from explorer.figures.base import captions, labels, style
from explorer.figures.base.bars import SHOWN, candidates
from explorer.figures.base.captions import cell_names, quantity
from explorer.figures.maps.heatmap import LARGEST, LATER, MASKED, levels, row_tokens
from explorer.figures.maps.lines import WeightLine, looks
from explorer.figures.maps.overview import pooled_note
from explorer.lenses.words.reading import ReadView
from explorer.linked.view.strips import Feed, direction
from transformer.config import AttentionKind, Head
from transformer.interventions import Ablate
from transformer.run import DecodeStep, Translation
from transformer.text.words import Group

Draw = Literal["strips", "map", "lines", "strongest", "tiles", "whole", "bars", "race"]
"""Ways of drawing a feed; the scripts have one class for each."""
AXES = {"encoder": ("source", "source"), "decoder": ("step", "step"), "cross": ("step", "source")}
ABOUT = {
    "encoder": "once, before step 1; row of “{source}”",
    "decoder": "reads “{reads}”, predicts “{predicts}”",
    "cross": "predicts “{predicts}”, reads “{reads}”",
}
SHORT_NAMES = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross"}


def head_feed(
    draw: Draw,
    trace: str,
    view: ReadView,
    scale: str | None = "linear",
    whole: tuple[int, int] | None = None,
    role: str = "",
) -> Feed:
    """Feed of every way of drawing a head: its axes and all its texts; `whole`: queries and keys in
    all."""
    kind = str(view.kind)
    rows, columns = AXES[kind]
    return {
        "draw": draw,
        "trace": trace,
        "kind": kind,
        "hue": kind,
        "rows": rows,
        "columns": columns,
        "spans": {  # the tokens that each row or column stands for: first, and one past the last
            name: [(group.start, group.stop) for group in groups]
            for name, groups in (("rows", view.rows), ("columns", view.columns))
        },
        "names": dict(zip(("rows", "columns"), cell_names(view), strict=True)),
        "title": f"{SHORT_NAMES[kind]} {labels.head_name(view.layer, view.head)}",
        "about": ABOUT[kind],
        "caption": captions.caption(view, scale, whole),
        "badge": captions.badge(view.audit, view.derived),
        "sentences": [captions.sentence(view, row, role) for row in range(len(view.query_tokens))],
        "absent": "The token at this position is hidden, so its row is not drawn.",
        "notes": captions.notes(view),
        "alt": captions.summary(view),
        "legend": scale and {"title": quantity(view).share, "marks": style.marks(kind, scale)},
        "quantity": quantity(view).share,
        "limit": quantity(view).limit,
    }


def switched_off(feed: Feed, view: ReadView, role: str = "") -> Feed:
    """The feed of a head whose output is 0 in this run: it is drawn hatched, and its sentence says
    so."""
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
    sums: bool = False,
    role: str = "",
    most: int = LARGEST,
) -> Feed:
    """One attention map with all texts about it; further arguments as in `head_feed`."""
    figure = heatmap_spec(view, largest, scale, sums, most)
    names = figure["layout"].pop("meta")
    return {
        **head_feed("map", trace, view, scale, whole, role),
        "figure": to_json(figure),
        "hover": {side: list(map(labels.escape, each)) for side, each in names.items()}
        | {"masked": MASKED, "later": LATER if view.kind == "decoder" else MASKED},
        "head": (view.layer, view.head),
        "acts": [],
        "fade": view.kind != "encoder",
        "largest": largest,
        "choice": None,
    }


def choice(
    kind: str,
    head: tuple[int, int],
    size: tuple[int, int],
    first: tuple[int, int],
    roles: Sequence[Sequence[str]] = (),
) -> Feed:
    """A choice of heads over a map."""
    opens = "This head" if head == first else labels.head_phrase(*first).capitalize()
    return {
        "name": captions.KIND_NAMES[kind] if kind == "cross" else SHORT_NAMES[kind],
        "label": f"Head of {captions.KIND_NAMES[kind].lower()}",
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
    whole: tuple[int, int] | None = None,
) -> Feed:
    """One head or several of one kind as lines; all texts are about the first head."""
    first = views[0]
    feed = head_feed("lines", trace, first, None, whole)
    heads = [
        {"name": labels.head_name(view.layer, view.head), "color": color, "dash": _DASHES[dash]}
        for view, (color, dash) in zip(views, looks(views), strict=False)
    ]
    others = (
        "" if len(views) == 1 else f" with {', '.join(str(head['name']) for head in heads[1:])}"
    )
    return {
        **feed,
        "title": feed["title"] + others,
        "caption": f"{feed['caption']} · {chosen}, thickness = {feed['quantity']}",
        "alt": f"As lines: {' '.join(map(captions.summary, views))}",
        "labels": tick_names(first),
        "values": style.packed(first.weights),
        "links": [
            (link.query, link.key, round(link.weight, 4), i)
            for i, found in enumerate(links)
            for link in found
        ],
        "heads": heads,
        "fade": first.kind != "encoder",
        "largest": largest,
    }


_DASHES = {"solid": "", "dash": "9 5", "dot": "3 4", "dashdot": "10 4 2 4"}


def strongest_feed(
    trace: str, view: ReadView, scale: str = "linear", whole: tuple[int, int] | None = None
) -> Feed:
    """The keys of a query and the queries of a key as lists, and the keys as shaded text."""
    return {
        **head_feed("strongest", trace, view, scale, whole),
        "listed": SHOWN,
        "labels": tick_names(view),
        "values": style.packed(view.weights),
        "shades": style.packed(levels(view.weights, view.mask, scale)),
        "direction": direction(view.key_tokens),
    }


def colour_note(scale: str) -> str:
    """Scale of the colours, as a text for a caption."""
    return f"colour from 0 to 1, {style.SCALE_NAMES[scale]}"


def tick_names(view: ReadView) -> dict[str, list[str]]:
    """Short names of rows and columns."""
    return {"rows": labels.names(row_tokens(view)), "columns": labels.names(view.key_tokens)}


def whole_feed(
    trace: str,
    kind: str,
    arrays: tuple[np.ndarray, np.ndarray],
    axes: tuple[Sequence[Group], Sequence[Group]],
    scale: str = "linear",
) -> Feed:
    """The whole matrix of a head, pooled; the view marks on it the part that is drawn in full."""
    weights, mask = arrays
    rows, columns = AXES[kind]
    return {
        "draw": "whole",
        "trace": trace,
        "kind": kind,
        "hue": kind,
        "rows": rows,
        "columns": columns,
        "spans": {
            name: [(group.start, group.stop) for group in groups]
            for name, groups in zip(("rows", "columns"), axes, strict=True)
        },
        "figure": to_json(pooled_spec(weights, mask, kind, 330, scale)),
        "title": "The whole matrix",
        "about": "the frame marks the part drawn in full; to move the frame, click or move the cursor",
        "caption": f"{pooled_note(weights)} · {weights.shape[0]} queries, {weights.shape[1]} keys · "
        f"{colour_note(scale)}",
        "alt": f"{captions.KIND_NAMES[kind]}, the whole matrix: {weights.shape[0]} queries by "
        f"{weights.shape[1]} keys, {pooled_note(weights)}. A click moves the part that is drawn in "
        "full.",
        "largest": 330,
    }


def bars_feed(
    trace: str,
    figure: dict[str, Any],
    follows: str,
    title: str,
    about: str,
    caption: str,
    alts: Sequence[str],
    height: int | None = None,
    places: Sequence[Group] | None = None,
) -> Feed:
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
        "spans": None if places is None else [(group.start, group.stop) for group in places],
    }


def race_feed(
    trace: str,
    steps: Sequence[DecodeStep],
    caption: str,
    offered: tuple[Sequence[Sequence[int | None]], list[list[int]]] | None,
) -> Feed:
    """The candidates of each step, whose bars run when the cursor moves."""
    rows = [candidates(step) for step in steps]
    (ids, tried) = offered or ((), [])
    logs = np.full((len(rows), max(map(len, rows), default=0)), np.nan, np.float32)
    for log, row in zip(logs, rows, strict=True):
        log[: len(row)] = [each.log_prob for each in row]
    return {
        "draw": "race",
        "trace": trace,
        "follows": "step",
        "title": "Next token",
        "about": "after reading “{reads}”",
        "caption": caption,
        "alt": f"Candidates for the next token, best first{'; click one to continue with it' * bool(ids)}.",
        "names": [[labels.piece(each.token) for each in row] for row in rows],
        "shares": [[each.chance for each in row] for row in rows],
        "logs": style.packed(logs),
        "chosen": [next((i for i, each in enumerate(row) if each.chosen), -1) for row in rows],
        "ids": ids,
        "tried": tried,
    }


def overview_feed(
    trace: str,
    figure: dict[str, Any],
    kind: str,
    size: tuple[int, int],
    head: Head,
    caption: str,
    legend: dict[str, Any] | None = None,
) -> Feed:
    """The grid of all heads of a kind, with tiles that can be clicked."""
    title = f"All heads, {size[0]} layer{'s' * (size[0] != 1)} of {size[1]}"
    return {
        "draw": "tiles",
        "trace": trace,
        "figure": to_json(figure),
        "picks": kind,
        "hue": kind,
        "title": title,
        "about": "",
        "caption": caption,
        "alt": f"{captions.KIND_NAMES[kind]}. {title}, as tiles; {labels.head_phrase(*head)} is chosen. "
        "Click a tile to open its head, or choose one above.",
        "height": figure["layout"]["height"],
        "legend": legend,
    }


def window_around(length: int, position: int, size: int = LARGEST) -> tuple[int, int]:
    """Start and stop of the part of an axis to draw: all of it, or a window that moves by half its
    size."""
    if length <= size:
        return 0, length
    half = size // 2
    start = min(max(position // half * half - half // 2, 0), length - size)
    return start, start + size
