"""All heads of one kind of attention in a page: their feeds, and their cells."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from explorer.figures import Tile, overview_spec, to_json
from explorer.figures.base import captions, labels
from explorer.figures.maps.heatmap import LARGEST as WINDOW
from explorer.figures.maps.overview import LARGEST_TILE
from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.linked.living import packed
from explorer.linked.living.known import Known, measured
from explorer.linked.view.feeds import colour_note
from explorer.linked.view.home import LARGEST, head_map
from explorer.linked.view.strips import followed
from explorer.linked.view.wire import MapFeed
from transformer.config import AttentionKind, Head
from transformer.run import Translation

Entry = TypeVar("Entry")
SCORED, FINE, WHOLE, MOST = 32, 128, 256, 1024
"""Most tokens a side of a run whose page holds scores before the mask, which take more room than
all else; weights with three decimals, and not in the steps of the colours; every head whole, and
not most as pooled tiles; and of any page. A map scrolls if it must."""


class AttentionMaps:
    """All heads of one kind of attention: what their feeds share, and what each has alone."""

    def __init__(
        self,
        run: Translation,
        kind: str,
        known: Known,
        chosen: Sequence[Head],
        longest: int,
        measures: Sequence[str],
    ) -> None:
        self._run = run
        self._kind = AttentionKind(kind)
        self._longest = longest
        self._roles = known.roles.get(kind, ())
        site = run.config.sites[self._kind]
        self._title = site.title
        self._lengths = (len(run.tokens(site.query_side)), len(run.tokens(site.key_side)))
        self._size = run.config.sizes[kind]
        self._default = known.opens.get(kind, (self._size[0] - 1, 0))
        self.whole = self._heads()
        if longest > WHOLE:
            self.whole = sorted({*chosen} or {self._default})
        self.opens = self._default if self._default in self.whole else chosen[0]
        views = {head: read_view(run.map(kind, *head), Reading()) for head in self.whole}
        weights = np.array([view.weights for view in views.values()])
        mask = np.array([view.mask for view in views.values()])
        raw = not packed.are_shares(weights)
        fine = longest <= FINE
        self.has_scores = all(view.scores is not None for view in views.values())
        scores = self._scores([*views.values()])
        self._scored = scores is not None
        views = {head: self._drawn(view) for head, view in views.items()}
        if raw:
            self.arrays = packed.raw_cells(weights, mask)
        else:
            self.arrays = [*packed.cells(weights, mask)][: 1 + fine]
        self.arrays += scores or ()
        self.audit = run.audit(*((self._kind, layer) for layer in range(self._size[0])))
        for view in views.values():  # every head that is drawn, with its labels
            self.audit = self.audit.joined(replace(view.audit, remarks=()))
        feeds = {head: self._feed(view) for head, view in views.items()}
        shared = feeds[self.whole[0]]
        alone = {head: _unlike(feed, shared) for head, feed in feeds.items()}
        self.values: dict[str, Any] = {
            "size": self._size,
            "shape": self._lengths,
            "scored": self._scored,
            "fine": fine and not raw,
            "raw": raw,
            "shared": shared,
            "own": self._grid(alone),
        }
        self._add_tiles(views)
        self._add_measures(known, measures, chosen, shared)
        if self._kind is AttentionKind.CROSS:
            follow = dict(zip(self.whole, map(followed, weights), strict=True))
            self.values["follow"] = self._grid(follow)

    def _heads(self) -> list[Head]:
        """All heads, by layer."""
        layers, heads = self._size
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def _grid(self, by_head: Mapping[Head, Entry]) -> list[list[Entry | None]]:
        """By layer and head, what is known of each; None for the others."""
        layers, heads = self._size
        return [[by_head.get((layer, head)) for head in range(heads)] for layer in range(layers)]

    def _scores(self, views: Sequence[ReadView]) -> list[packed.Bytes] | None:
        """The scores before the mask; None in a long run, or if not all are known."""
        scores = [view.scores for view in views if view.scores is not None]
        if max(self._lengths) > SCORED or len(scores) < len(views):
            return None
        arrays = packed.scores(np.array(scores))
        return None if arrays is None else [*arrays]

    def _drawn(self, view: ReadView) -> ReadView:
        """What a page draws of a head: no scores, if it holds none."""
        if self._scored or view.scores is None:
            return view
        return replace(view, scores=None)

    def _map(self, view: ReadView) -> MapFeed:
        """The feed of a map, as large as its labels need."""
        view = self._drawn(view)
        largest = LARGEST * max(1, math.ceil(max(self._lengths) / WINDOW))
        run = self._run
        return head_map(
            run.model,
            run,
            view,
            self._lengths,
            self._default,
            roles=self._roles,
            largest=largest,
            most=MOST,
        )

    def _feed(self, view: ReadView) -> dict[str, Any]:
        """The feed of a head without its cells, which the page holds packed."""
        feed = self._map(view)
        figure = json.loads(feed["figure"])
        cells = figure["data"][0]
        cells |= {"z": None, "customdata": None}
        if self._longest > FINE and packed.are_shares(view.weights):
            cells["hovertemplate"] = cells["hovertemplate"].replace(":.3f", ":.2f")
        page_feed: dict[str, Any] = {
            "off": False,
            **feed,
            "acts": ["save"],
            "figure": to_json(figure),
        }
        if self._longest > WHOLE:
            page_feed["choice"] = {**page_feed["choice"], "only": self.whole}
        return page_feed

    def _add_tiles(self, views: Mapping[Head, ReadView]) -> None:
        """All heads as tiles; of a long run, also their cells."""
        heads = self._heads()
        maps = (  # one at a time: a long run is large
            views.get(head) or self._run.map(self._kind, *head) for head in heads
        )
        tiles = [Tile.of(view.weights, view.mask) for view in maps]
        if self._longest > WHOLE:
            self.arrays = [np.array([tile.values for tile in tiles]), *self.arrays]
            self.values |= {"whole": self.whole, "tile": tiles[0].values.shape}
        n_heads = self._size[1]
        lines = [tiles[first : first + n_heads] for first in range(0, len(tiles), n_heads)]
        self.values["tiles"] = self._tiles(lines)

    def _add_measures(
        self,
        known: Known,
        measures: Sequence[str],
        chosen: Sequence[Head],
        shared: Mapping[str, object],
    ) -> None:
        """Measures beside the weight: what keys carried of all heads, their effects of some."""
        for name in measures:
            assert known.measure is not None
            heads = self._heads()
            if name != "carried":
                heads = [*dict.fromkeys([*chosen, self.opens])]
            maps = {head: self._run.map(self._kind, *head) for head in heads}
            measure = partial(known.measure, self._run, name)
            values, arrays = measured(maps, measure, self._map, shared)
            self.values.setdefault("measures", {})[name] = values
            self.arrays += arrays

    def _tiles(self, tiles: Sequence[Sequence[Tile]]) -> dict[str, object]:
        """The grid of all heads; the browser pools its cells from those of the maps it holds."""
        kind = str(self._kind)
        notes = {
            (layer, head): role
            for layer, line in enumerate(self._roles)
            for head, role in enumerate(line)
            if role
        }
        figure = overview_spec(tiles, kind, self.opens, notes)
        figure["data"][0]["z"] = None
        n_layers, n_heads = self._size
        opens = "click a tile to open it"
        if "whole" in self.values:
            names = ", ".join(labels.head_name(*head) for head in self.whole)
            opens = f"whole in this file: {names}; of the others it holds the tiles"
        name = captions.kind_name(kind, self._title)
        return {
            "title": f"{name}: {labels.counted(n_layers, 'layer')} of {n_heads} heads",
            "hue": kind,
            "figure": to_json(figure),
            "most": LARGEST_TILE,
            "alt": f"Tiles of {n_layers * n_heads} heads; each can be chosen above its map",
            "shows": f"each tile is a head: queries down, keys across, {colour_note('linear')}",
            "pooled": _pooled(tiles[0][0]),
            "badge": captions.badge(self.audit, derived=True),
            "opens": opens,
        }


def _unlike(feed: Mapping[str, object], shared: Mapping[str, object]) -> dict[str, object]:
    """What a feed says otherwise than the one that all share."""
    return {name: value for name, value in feed.items() if value != shared[name]}


def _pooled(tile: Tile) -> str:
    """How many cells of a map are one of a tile, if it is more than one."""
    if tile.rows * tile.columns == 1:
        return ""
    return f"each cell is the maximum over {tile.rows}×{tile.columns} cells"
