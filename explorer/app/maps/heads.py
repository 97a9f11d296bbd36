"""The heads of one kind of attention: all of them as tiles, one of them large, and the cursor's
row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import Maps
from explorer.app.address.state import ORDERS
from explorer.app.controls import Picture, formula, pickers, say, seen
from explorer.app.maps import display, wall
from explorer.app.maps.explorer import Scene, explorer, strips_only
from explorer.app.maps.looking import HeadSelection, Looks, audited, badge_of_all
from explorer.app.maps.run_export import caption_of, run_export
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.figures import lines, overview_spec, row_bars_spec, strongest
from explorer.figures.base import captions, labels, style
from explorer.figures.base.captions import quantity
from explorer.figures.base.labels import percent
from explorer.figures.maps.lines import links
from explorer.figures.maps.overview import Measure
from explorer.lenses.heads.roles import STATISTICS
from explorer.lenses.words.reading import ReadView
from explorer.linked.view.feeds import (
    AXES,
    about_row,
    bars_feed,
    colour_note,
    fades,
    is_off,
    lines_feed,
    overview_feed,
    strongest_feed,
    switched_off,
    whole_feed,
)
from explorer.linked.view.home import WALL, Layout
from explorer.linked.view.wire import BarsFeed, Feed, Legend, TilesFeed
from transformer.config import AttentionKind, Head

SAMPLE = "aer"  # the one statistic that this sentence alone cannot give; it comes from `heads.json`
_LABELS = {statistic.name: statistic.label for statistic in STATISTICS} | {
    SAMPLE: "alignment error"
}
_FALLING = {statistic.name for statistic in STATISTICS if statistic.falling} | {SAMPLE}
_SHARES = {statistic.name for statistic in STATISTICS if statistic.unit == "share"} - {
    "entropy"
} | {SAMPLE}
_LOCAL = (
    " Local attention multiplies these weights by a Gaussian around a predicted centre, so a row "
    "sums to less than 1, and keys outside its window are hatched."
)


@dataclass(frozen=True)
class KindPage:
    """What tells the pages of the three kinds apart."""

    kind: str  # encoder, decoder or cross
    note: str  # the text under the picture that says what to notice
    seeing: str  # the explanation, at most 60 words


def show(page: KindPage, opened: View, fade: bool = True) -> None:
    """Draws the linked view of a kind of attention, with its controls and explanation."""
    kind = page.kind
    config = opened.translation.config

    def layout(now: State, looks: Looks) -> Layout:
        focus = focus_of(looks[kind], now)
        plots: tuple[str, ...] = (all_heads(looks[kind]), focus, "row")
        if looks[kind].is_windowed:
            plots += ("whole",)
        return replace(strips_only("", kind), view=kind, plots=plots, focus=focus)

    def below(now: State, looks: Looks) -> None:
        look = looks[kind]
        site = config.sites[AttentionKind(kind)]
        with st.container(horizontal=True):
            display.tables(lambda: [look.read()])
            display.cell(look)
            explanation = f"{page.seeing} {formula.explained(kind, config.positions, site.score)}"
            if look.read().reach:
                explanation += _LOCAL
            seen(explanation, formula.attention(kind, config.positions, site.causal, site.score))
            run_export(scene, lambda now, looks: printed(looks[kind], now))
        say(page.note)

    scene = Scene(
        layout=layout,
        opened=opened,
        kinds=(kind,),
        extra=lambda now, looks: feeds(looks[kind], now, fade),
        below=below,
        fade=fade,
        largest=520,
        above=lambda now, looks: choose(looks[kind], now),
    )
    explorer(scene)


def all_heads(look: HeadSelection) -> str:
    """The name of the picture of all heads: one of all, or a wall if they are many."""
    if wall.is_large(look):
        return WALL
    return "overview"


def focus_of(look: HeadSelection, now: State) -> str:
    """The name of the picture of the head, as the visitor wants it drawn."""
    return look.kind if now.show == "matrix" else now.show


def choose(look: HeadSelection, now: State, tiles: bool = True) -> None:
    """Draws the controls over the picture: which head, how it is drawn, and how the tiles beside it
    are."""
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.head_picker(look.kind, look.head, look.opened.source)
        pickers.switch("show", "Draw as", display.SHOWS, now.show)
        display.measure(look.opened, now)
        more = None
        if tiles and not wall.is_large(look):
            more = partial(tile_pickers, look, now)
        display.popover((look.kind,), now, more)
    if tiles and wall.is_large(look):
        wall.controls(look, now)
    if now.show == "lines":
        display.lines(look, now)


def feeds(look: HeadSelection, now: State, fade: bool) -> dict[str, Feed]:
    """The feeds of everything but the map: all heads, the cursor's row, lines, lists, the whole
    matrix."""
    drawn: dict[str, Feed] = {"row": row_feed(look)}
    if wall.is_large(look):
        drawn |= wall.feeds(look, now)
    else:
        drawn["overview"] = tiles_feed(look, now)
    drawn |= drawn_otherwise(look, now, fade)
    if look.is_windowed:
        drawn["whole"] = whole_feed(look.opened.key, look.kind, look.whole(), look.axes, now.scale)
    return drawn


def row_feed(look: HeadSelection) -> BarsFeed:
    """The cursor's row of the head, as bars."""
    kind = look.kind
    key = look.opened.key
    view = look.read()
    row = bars_feed(
        key,
        row_bars_spec(view),
        follows=AXES[kind][0],
        title="The row of the cursor",
        about="",
        caption=f"{quantity(view).share} of one row, from 0 to 1",
        alts=captions.row_summaries(view),
        height=230,
        places=view.rows,
    )
    row["hue"] = kind
    row["joins"] = True
    return row


def drawn_otherwise(look: HeadSelection, now: State, fade: bool) -> dict[str, Feed]:
    """The feed that draws the head in another way than as a map, if the visitor wants one."""
    kind = look.kind
    key = look.opened.key
    view = look.read()
    drawn = dict[str, Feed]()
    run = look.opened.translation
    off = is_off(run, kind, look.head)
    if now.show == "lines":
        views = _with_others(look, now, view)
        rule = display.link_rule(now.links)
        drawn_links = [links(head, rule.mass, rule.least) for head in views]
        feed = lines_feed(key, views, drawn_links, rule.name, whole=look.lengths)
        feed["fade"] = fade and fades(run, kind)
        feed["about"] = about_row(run, kind)
        if off:
            feed = switched_off(feed, view)
        drawn["lines"] = feed
    if now.show == "strongest":
        lists = strongest_feed(key, view, now.scale, look.lengths)
        lists["about"] = about_row(run, kind)
        if off:
            lists = switched_off(lists, view)
        drawn["strongest"] = lists
    return drawn


def _with_others(look: HeadSelection, now: State, view: ReadView) -> list[ReadView]:
    """The head, and the others whose lines are drawn together with its own."""
    layers, heads = look.opened.translation.config.sizes[look.kind]
    known = [head for head in now.values(Maps).more or () if head[0] < layers and head[1] < heads]
    return [view, *(look.read(head) for head in known if head != look.head)]


def printed(look: HeadSelection, now: State) -> dict[str, Picture]:
    """Lines, lists and walls as Plotly figures for export.

    On the page, the linked view draws them itself.
    """
    if wall.is_large(look):
        return _all_on_paper(look, now) | _otherwise_on_paper(look, now)
    return _otherwise_on_paper(look, now)


def _all_on_paper(look: HeadSelection, now: State) -> dict[str, Picture]:
    """All heads of a wall as one picture, by layer: on the page they scroll."""
    layers, heads = look.opened.translation.config.sizes[look.kind]

    def draw() -> go.Figure:
        tiles = look.tiles(wall.SMALL_TILE)
        width = max(560, wall.PRINTED_TILE * heads)
        return style.figure(overview_spec(tiles, look.kind, selected=look.head, width=width))

    site = look.opened.translation.config.sites[AttentionKind(look.kind)]
    name = captions.kind_name(look.kind, site.title)
    title = f"{name} · all heads, {layers} layers of {heads}"
    caption = f"{title} · {colour_note(now.scale)} · {look.opened.translation.model}"
    audit = audited(look.opened, look.kind)
    return {"all heads": Picture(draw, caption, audit, derived=True)}


def _otherwise_on_paper(look: HeadSelection, now: State) -> dict[str, Picture]:
    """The head as lines or as a list, if it is drawn so."""
    view = look.read()
    caption = caption_of(view, look, None)
    audit = view.audit
    if now.show == "lines":
        views = _with_others(look, now, view)
        heads = ", ".join(labels.head_name(view.layer, view.head) for view in views)
        rule = display.link_rule(now.links)
        title = f"{caption} · {heads} · {rule.name}, thickness = {quantity(view).share}"
        draw = partial(lines, views, rule.mass, rule.least)
        return {"lines": Picture(draw, title, audit, view.derived)}
    row = look.cell[0]
    at = next((i for i, group in enumerate(view.rows) if group.start <= row < group.stop), None)
    if now.show != "strongest" or at is None:
        return {}
    title = (
        f"{caption} · the strongest keys, "
        f"{labels.row_names(view.query_tokens, view.predicted_tokens)[at]}"
    )
    return {"strongest keys": Picture(lambda: strongest(view, at), title, audit, view.derived)}


def values(opened: View, kind: str, statistic: str | None) -> list[list[float]] | None:
    """A statistic of every head, by layer and head; None if there is none, or it is not known."""
    if statistic is None:
        return None
    if statistic == SAMPLE:
        grid = opened.source.heads.get("heads", {}).get(kind) or []
    else:
        grid = per_run.statistics(opened, kind)
    numbers = [[float(head.get(statistic, math.nan)) for head in layer] for layer in grid]
    if all(math.isnan(value) for layer in numbers for value in layer):
        return None
    return numbers


def order(opened: View, kind: str, statistic: str | None) -> list[list[int]] | None:
    """The heads of each layer by a statistic, the salient ones first; None if it is not known."""
    numbers = values(opened, kind, statistic)
    if numbers is None:
        return None
    sign = 1 if statistic in _FALLING else -1
    return [
        sorted(range(len(row)), key=lambda i: (row[i] != row[i], sign * row[i])) for row in numbers
    ]


def tiles_feed(look: HeadSelection, now: State) -> TilesFeed:
    opened = look.opened
    kind = look.kind
    tiles = look.tiles()
    layers = len(tiles)
    heads = len(tiles[0])
    tile = tiles[0][0]
    ordered = order(opened, kind, now.order)
    numbers = values(opened, kind, now.color)
    coloured = None if numbers is None else Measure.of(numbers)
    roles = pickers.roles_of(opened.source, kind)
    notes = {(i, j): note(look, now, (i, j), roles) for i in range(layers) for j in range(heads)}
    measured = {"weight": "", "carried": " (shares carried)"}.get(look.measure, " (weights)")
    parts = [f"each tile is a head: queries down, keys across, {colour_note(now.scale)}{measured}"]
    if tile.rows * tile.columns > 1:
        parts.append(f"each cell is the maximum over {tile.rows}×{tile.columns} cells")
    if ordered:
        parts.append(f"ordered in each layer by {statistic_name(now.order)}")
    legend: Legend | None = None
    if coloured is not None:
        legend = {"title": _LABELS[now.color or ""], "marks": coloured.legend}
        parts.append(f"strip under a tile: {statistic_name(now.color)}")
    parts.append("click a tile to open it")
    figure = overview_spec(
        tiles, kind, selected=look.head, notes=notes, order=ordered, measure=coloured
    )
    return overview_feed(
        opened.key,
        figure,
        kind=kind,
        size=(layers, heads),
        head=look.head,
        caption=" · ".join(parts),
        badge=badge_of_all(opened, kind),
        legend=legend,
    )


def statistic_name(statistic: str | None) -> str:
    """The label of a statistic, and the texts over which it was measured."""
    over = "the sentence pairs of heads.json" if statistic == SAMPLE else "this sentence"
    return f"{_LABELS[statistic or '']} (over {over})"


def note(look: HeadSelection, now: State, head: Head, roles: Sequence[Sequence[str]] = ()) -> str:
    """The hover text of a head: role, alignment error, chosen statistics, and its largest mass."""
    layer, number = head
    here = per_run.statistics(look.opened, look.kind)[layer][number]
    masses = [name for name in ORDERS if name.endswith("_mass") and name in here]
    masses.sort(key=lambda mass: -here[mass])
    lines = []
    if roles and roles[layer][number]:
        lines.append(f"role: {roles[layer][number]}")
    for statistic in dict.fromkeys(filter(None, (SAMPLE, now.order, now.color, *masses[:1]))):
        grid = values(look.opened, look.kind, statistic)
        if grid is not None and (value := grid[layer][number]) == value:
            written = percent(value) if statistic in _SHARES else f"{value:.2f}"
            lines.append(f"{_LABELS[statistic]} {written}")
    return "\n".join(lines)


def tile_pickers(look: HeadSelection, now: State) -> None:
    """Draws two controls, for the statistic that orders the tiles and the statistic that colours
    them."""
    known = {
        name: _LABELS[name] for name in ORDERS if values(look.opened, look.kind, name) is not None
    }
    for field, what, usual in (("order", "order", "number"), ("color", "colour", "weights only")):
        chosen = getattr(now, field)
        if chosen not in known:
            chosen = ""
        names = {name: f"{what}: {label}" for name, label in {"": usual, **known}.items()}
        label = f"{what.capitalize()} of the heads"
        pickers.choose(field, label, names, chosen, partial(take_statistic, field), texts=True)


def take_statistic(field: str, statistic: str) -> None:
    """Takes a statistic, or none, to order or to colour the tiles."""
    session.change(**{field: statistic or None})
