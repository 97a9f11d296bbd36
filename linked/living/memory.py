"""The memory of a decoder's recurrent unit in a page: one map a layer, where self-attention would stand.

It is no attention: the map says how much of each token is in the state after each token
(`lenses.inside.unit_memory`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from figures import Tile, heatmap_spec, overview_spec, to_json
from figures.base import captions, labels
from figures.base.bars import percent
from figures.maps.overview import LARGEST_TILE
from linked.living import packed
from linked.view import colour_note
from linked.view.feeds import choice, weight_legend
from linked.view.home import LARGEST
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport
from transformer.trace.view import Window

_TITLES = "state after reading", "what each token put in"
_LIMIT = "It is memory, not attention: no query chooses, and what was forgotten cannot come back."
_SHARE = "weight in the state"


@dataclass(frozen=True, eq=False)
class Memory:
    """What is left of each token in the states of a decoder's units."""

    shares: np.ndarray  # (layers, rows, tokens) from 0 to 1, as the mean over dimensions; 0 for later tokens
    audits: tuple[AuditReport, ...]  # of every layer


def memory_of(model: Any, run: Translation) -> Memory | None:
    """The memory of a run of a translator, from a second pass; None if its decoder has no recurrent unit."""
    if getattr(run.config, "decoder_unit", None) != "ssru":
        return None
    from lenses.again.memory import audit_memory  # PyTorch is there, as the model is
    from lenses.inside.unit_memory import unit_memory
    from transformer.runs.retrace import retrace

    again, shares, audits = retrace(model, run), [], []
    for layer in range(run.config.stacks["decoder"].n_layers):
        found = unit_memory(model.model, again, layer)
        whole = Window(0, len(found.tokens), 0, len(found.tokens))
        own = audit_memory(model.model, again, layer, None, found.share, whole)
        audits.append(again.audit().joined(found.audit).joined(own))
        shares.append(found.share)
    return Memory(np.stack(shares), tuple(audits))


class MemoryKind:
    """The memory in the form of a kind of attention whose layers have one head."""

    def __init__(self, run: Translation, memory: Memory, fine: bool, most: int) -> None:
        self.run, self.shares, self.most = run, memory.shares, most
        layers, length, _ = memory.shares.shape
        self.opens = (layers - 1, 0)
        self.seen = np.tri(length, dtype=bool)
        self.tokens = run.decoder_input_tokens
        mask = np.broadcast_to(self.seen, memory.shares.shape)
        levels, beside = packed.cells(memory.shares, mask)
        self.arrays = [levels, *([beside] if fine else ())]
        feeds = [self._feed(layer, audit) for layer, audit in enumerate(memory.audits)]
        shared = feeds[0]
        self.audit = memory.audits[0]
        for each in memory.audits[1:]:
            self.audit = self.audit.joined(each)
        self.values: dict[str, Any] = {
            "size": (layers, 1),
            "shape": (length, length),
            "scored": False,
            "fine": fine,
            "shared": shared,
            "own": [
                [{name: value for name, value in each.items() if value != shared[name]}] for each in feeds
            ],
            "tiles": self._tiles(),
        }

    def _feed(self, layer: int, audit: AuditReport) -> dict[str, Any]:
        names = labels.names(self.tokens)
        where, spans = f"layer {labels.count(layer)}", [(i, i + 1) for i in range(len(names))]
        picked = choice("decoder", (layer, 0), (len(self.shares), 1), self.opens)
        layers = [f"layer {labels.count(each)}" for each in range(len(self.shares))]
        return {
            "draw": "map",
            "trace": self.run.model,
            "kind": "decoder",
            "hue": "decoder",
            "rows": "step",
            "columns": "step",
            "spans": {"rows": spans, "columns": spans},
            "names": {"rows": [f"after {name}" for name in names], "columns": names},
            "title": f"Memory, {where}",
            "about": "after “{reads}”",
            "caption": f"Memory of the recurrent unit · {where}{{step}} · weight of each token in the state, "
            f"mean over dimensions, colour from 0 to 1 · {self.run.model}",
            "badge": captions.badge(audit, derived=True),
            "sentences": [self._sentence(layer, row) for row in range(len(names))],
            "absent": "",
            "notes": {},
            "alt": f"Memory of the recurrent unit, {where}: {len(names)} states by {len(names)} tokens",
            "legend": weight_legend("decoder", "linear", _SHARE),
            "quantity": _SHARE,
            "limit": _LIMIT,
            "figure": self._figure(layer),
            "hover": {
                "rows": [labels.escape(f"after {name}") for name in names],
                "columns": [labels.escape(name) for name in names],
                "masked": " (not read yet)",
                "later": " (not read yet)",
            },
            "head": (layer, 0),
            "acts": ["png", "svg"],
            "fade": True,
            "largest": LARGEST,
            "off": False,
            "choice": {
                **picked,
                "name": "Memory",
                "label": "Layer of the unit",
                "names": layers,
                "first": "",
            },
        }

    def _sentence(self, layer: int, row: int) -> list[str]:
        share = self.shares[layer, row]
        best = int(np.argmax(share))
        read, largest = (captions.quote(self.tokens[i]) for i in (row, best))
        state = f", the largest weight in the state of layer {labels.count(layer)} is that of "
        return ["After reading ", read, state, largest, f": {percent(float(share[best]))}."]

    def _figure(self, layer: int) -> str:
        view: Any = SimpleNamespace(
            kind=AttentionKind.DECODER,
            layer=layer,
            head=0,
            query_tokens=self.tokens,
            predicted_tokens=None,
            key_tokens=self.tokens,
            mask=self.seen,
            weights=self.shares[layer],
            scores=None,
        )
        figure = heatmap_spec(view, LARGEST, most=self.most)
        figure["layout"].pop("meta")
        figure = json.loads(to_json(figure))
        hover = f"%{{text}}<br>{_SHARE} %{{customdata[0]:.3f}}<extra></extra>"
        figure["data"][0] |= {"z": None, "customdata": None, "hovertemplate": hover}
        titles = figure["layout"]["annotations"]
        for annotation, text in zip(titles, reversed(_TITLES), strict=False):
            annotation["text"] = text
        return to_json(figure)

    def _tiles(self) -> dict[str, Any]:
        tiles = [[Tile.of(share, self.seen)] for share in self.shares]
        figure = overview_spec(tiles, "decoder", self.opens, {})
        figure["data"][0]["z"] = None
        figure["layout"]["xaxis"]["ticktext"] = [""]
        layers, badge = len(tiles), captions.badge(self.audit, derived=True)
        return {
            "title": f"Memory of the recurrent unit: {layers} layer{'s' * (layers != 1)}",
            "hue": "decoder",
            "figure": to_json(figure),
            "most": LARGEST_TILE,
            "alt": f"Tiles of {layers} layers; each can be chosen above its map",
            "caption": f"each tile is a layer: states down, tokens across, {colour_note('linear')} · "
            f"{badge['text']} · click a tile to open it",
        }
