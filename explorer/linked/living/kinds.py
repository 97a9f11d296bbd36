"""All heads of one kind of attention in a page: what their feeds share, what each has alone, their
cells."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

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
from transformer.config import AttentionKind, Head
from transformer.run import Translation

SCORED, FINE, WHOLE, MOST = 32, 128, 256, 1024
"""Most tokens a side of a run whose page holds scores before the mask, which take more room than
all else; weights with three decimals, and not in the steps of the colours; every head whole, and
not most as pooled tiles; and of any page. A map scrolls if it must."""


class AttentionMaps:
    """All heads of one kind of attention: what their feeds share, what each has alone, their
    cells."""

    def __init__(
        self,
        run: Translation,
        kind: str,
        known: Known,
        chosen: Sequence[Head],
        longest: int,
        measures: Sequence[str],
    ) -> None:
        layers, heads = run.config.sizes[kind]
        site = run.config.sites[AttentionKind(kind)]
        lengths = len(run.tokens(site.query_side)), len(run.tokens(site.key_side))
        first = known.opens.get(kind, (layers - 1, 0))
        every = [(layer, head) for layer in range(layers) for head in range(heads)]
        self.whole = sorted({*chosen} or {first}) if longest > WHOLE else every
        self.opens = first if first in self.whole else chosen[0]
        views = {at: read_view(run.map(kind, *at), Reading()) for at in self.whole}
        self.audit = run.audit(*((AttentionKind(kind), layer) for layer in range(layers)))
        weights = np.array([each.weights for each in views.values()])
        scored = None
        if max(lengths) <= SCORED and all(each.scores is not None for each in views.values()):
            scored = packed.scores(np.array([each.scores for each in views.values()]))
        if scored is None:
            views = {at: replace(each, scores=None) for at, each in views.items()}
        levels, beside = packed.cells(weights, np.array([each.mask for each in views.values()]))
        self.arrays = [levels, *([beside] if longest <= FINE else ()), *(scored or ())]
        roles = known.roles.get(kind, ())

        def map_of(view: ReadView) -> Mapping[str, Any]:
            view = view if scored or view.scores is None else replace(view, scores=None)
            largest = LARGEST * max(1, math.ceil(max(lengths) / WINDOW))
            return head_map(
                run.model, run, view, lengths, first, roles=roles, largest=largest, most=MOST
            )

        def feed(at: Head) -> dict[str, Any]:
            found = map_of(views[at])
            figure = json.loads(found["figure"])
            figure["data"][0] |= {"z": None, "customdata": None}
            if longest > FINE:
                figure["data"][0]["hovertemplate"] = figure["data"][0]["hovertemplate"].replace(
                    ":.3f", ":.2f"
                )
            told: dict[str, Any] = {
                "off": False,
                **found,
                "acts": ["save"],
                "figure": to_json(figure),
            }
            if longest > WHOLE:
                told["choice"] = {**told["choice"], "only": self.whole}
            return told

        shared = feed(self.whole[0])
        own = {
            at: {name: each for name, each in feed(at).items() if each != shared[name]}
            for at in self.whole
        }
        for view in views.values():  # every head that is drawn, with its labels
            self.audit = self.audit.joined(view.audit)
        self.values: dict[str, Any] = {
            "size": (layers, heads),
            "shape": lengths,
            "scored": scored is not None,
            "fine": longest <= FINE,
            "shared": shared,
            "own": [[own.get((layer, head)) for head in range(heads)] for layer in range(layers)],
        }
        read = (
            views.get(at) or run.map(kind, *at) for at in every
        )  # one at a time: a long run is large
        tiles = [Tile.of(each.weights, each.mask) for each in read]
        if longest > WHOLE:
            self.arrays = [np.array([tile.values for tile in tiles]), *self.arrays]
            self.values |= {"whole": self.whole, "tile": tiles[0].values.shape}
        lines = [tiles[layer * heads : (layer + 1) * heads] for layer in range(layers)]
        self.values["tiles"] = self._tiles(run, kind, lines, roles)
        for name in measures:
            assert known.measure is not None
            wanted = every if name == "carried" else [*dict.fromkeys([*chosen, self.opens])]
            maps = {at: run.map(kind, *at) for at in wanted}
            made, more = measured(maps, partial(known.measure, run, name), map_of, shared)
            self.values.setdefault("measures", {})[name] = made
            self.arrays += more
        if kind == "cross":
            follow = dict(zip(self.whole, map(followed, weights), strict=True))
            self.values["follow"] = [
                [follow.get((layer, head)) for head in range(heads)] for layer in range(layers)
            ]

    def _tiles(
        self,
        run: Translation,
        kind: str,
        tiles: Sequence[Sequence[Tile]],
        roles: Sequence[Sequence[str]],
    ) -> dict[str, Any]:
        """The grid of all heads, whose cells the browser pools from those of the maps if these are
        whole."""
        notes = {
            (layer, head): role
            for layer, line in enumerate(roles)
            for head, role in enumerate(line)
            if role
        }
        figure = overview_spec(tiles, kind, self.opens, notes)
        figure["data"][0]["z"] = None
        first = tiles[0][0]
        badge = captions.badge(self.audit, derived=True)
        pooled = f"each cell is the maximum over {first.rows}×{first.columns} cells · "
        pooled *= first.rows * first.columns > 1
        layers = len(tiles)
        heads = len(tiles[0])
        opens = "click a tile to open it"
        if "whole" in self.values:
            named = ", ".join(labels.head_name(*each) for each in self.whole)
            opens = f"whole in this file: {named}; of the others it holds the tiles"
        return {
            "title": f"{captions.KIND_NAMES[kind]}: {layers} layer{'s' * (layers != 1)} of {heads} heads",
            "hue": kind,
            "figure": to_json(figure),
            "most": LARGEST_TILE,
            "alt": f"Tiles of {layers * heads} heads; each can be chosen above its map",
            "caption": f"each tile is a head: queries down, keys across, {colour_note('linear')} · {pooled}"
            f"{badge['text']} · {opens}",
        }
