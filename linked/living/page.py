"""A run as one HTML file: the linked view with all heads, without server, network or model."""

from __future__ import annotations

import base64
import datetime
import hashlib
import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import transformer
from figures import Tile, overview_spec, to_json
from figures.base import captions
from figures.maps.heatmap import LARGEST as WINDOW
from figures.maps.overview import LARGEST_TILE
from lenses.heads.roles import surveyed
from lenses.words.alignment import Aligner
from lenses.words.read_audit import read_checked
from lenses.words.reading import Reading
from linked.living import packed, scripts
from linked.view import SIDES, Gloss, colour_note, followed, glossed, strips_feed, tell
from linked.view.home import HOME, LARGEST, TOUR, head_map, next_feed
from transformer.model.sites import AttentionKind, Head
from transformer.runs.translation import NotCapturedError, Translation

if TYPE_CHECKING:
    from transformer.runs.language.generator import TextGenerator
    from transformer.runs.translator import Translator

Roles = Mapping[str, Sequence[Sequence[str]]]
MOST = 256
"""Most tokens a side of a run that a page can hold; its maps are whole, and scroll if they must."""
SCORED = 32
"""Most tokens a side with scores before the mask: they take more room than all else."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_NEEDS_MODEL = (
    "Another sentence, another token, or a head switched off needs the model, and is done in the explorer."
)


class PageError(ValueError):
    """A run cannot become a page."""


@dataclass(frozen=True)
class Known:
    """What is known of a model beyond one of its runs."""

    sha256: str | None = None  # of its weights
    opens: Mapping[str, Head] = field(default_factory=dict)  # the head of each kind that opens first, from 0
    aligner: Aligner | None = None  # where glosses come from
    roles: Roles = field(default_factory=dict)  # of every head, by kind and layer
    # source words under target words of one run, as in `strips_feed`; None for those of the aligner
    glosses: Mapping[int, Gloss] | None = None

    @classmethod
    def of(cls, model: Translator | TextGenerator | None, directory: str | Path | None) -> Known:
        """What a model and its directory say."""
        sha256, heads = None, {}
        if model is not None:
            from transformer.exports.npz import model_digest  # PyTorch is there, as the model is

            sha256, heads = model_digest(model.model), model.heads or {}
        opens = {kind: (int(at[0]), int(at[1])) for kind, at in heads.get("default", {}).items()}
        best = heads.get("aligner")
        aligner = best and Aligner(tuple((layer, head) for layer, head in best["heads"]), best["rows"])
        return cls(sha256, opens, aligner, {} if directory is None else surveyed(Path(directory)))


def page(
    run: Translation,
    model: Translator | TextGenerator | None = None,
    *,
    directory: str | Path | None = None,
    place: str = "",
) -> str:
    """One HTML file with the linked view of a run: every head of every layer, without a server.

    Args:
        run: A translation or a generated text, made with ``capture=True``, or opened from a file.
        model: The model of the run; the page then bears the hash of its weights, opens at its best heads,
            and shows source words under target words if it has an alignment head.
        directory: The model's directory, whose survey gives heads the names of their roles.
        place: Where the page opens, as its address says it: ``step=7&cross=3.5``, counted from 1.

    Raises:
        NotCapturedError: Attention was not recorded.
        PageError: The run has more than 256 tokens on a side.
        CellError: Its weights are not numbers from 0 to 1.
    """
    return written(run, Known.of(model, directory), place)


def written(run: Translation, known: Known, place: str = "") -> str:
    """``page`` of a run with what is known of its model."""
    if run.attention is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=True.")
    longest = max(len(run.source_tokens), len(run.target_tokens))
    if longest > MOST:
        raise PageError(f"A page holds runs of at most {MOST} tokens a side; this one has {longest}.")
    kinds = {str(kind): _Kind(run, str(kind), known) for kind in run.config.sites}
    texts = [text for text in (run.source_text * bool(run.source_tokens), run.text) if text]
    proof = _proof(run, known, kinds)
    values = {
        **_shown(run, known, kinds),
        "said": {"texts": texts, "proof": proof},
        "kinds": {name: kind.values for name, kind in kinds.items()},
    }
    arrays = [array for kind in kinds.values() for array in kind.arrays]
    data = base64.b64encode(packed.packed(values, arrays)).decode()
    return _FRAME.format(
        policy=html.escape(POLICY),
        title=_safe(" → ".join(texts)[:120]),
        style=scripts.style(),
        texts="\n".join(f'<p dir="auto">{_safe(text)}</p>' for text in texts),
        proof="\n".join(f"<p>{_safe(line)}</p>" for line in proof),
        digest=hashlib.sha256(data.encode()).hexdigest(),
        place=_safe(place),
        data=data,
        script=scripts.script(),
    )


def _safe(text: str) -> str:
    """A text as HTML; what UTF-8 cannot write becomes a question mark."""
    return html.escape(text.encode("utf-8", "replace").decode())


class _Kind:
    """All heads of one kind of attention: what their feeds share, what each has alone, their cells."""

    def __init__(self, run: Translation, kind: str, known: Known) -> None:
        layers, heads = run.config.sizes[kind]
        site = run.config.sites[AttentionKind(kind)]
        lengths = len(run.tokens(site.query_side)), len(run.tokens(site.key_side))
        self.opens = known.opens.get(kind, (layers - 1, 0))
        grid = [
            [read_checked(run.map(kind, layer, head), Reading()) for head in range(heads)]
            for layer in range(layers)
        ]
        self.weights = np.array([[each.weights for each in line] for line in grid])
        self.mask = np.array([[each.mask for each in line] for line in grid])
        scored = None
        if max(lengths) <= SCORED and all(each.scores is not None for line in grid for each in line):
            scored = packed.scores(np.array([[each.scores for each in line] for line in grid]))
        self.arrays = [*packed.cells(self.weights, self.mask), *(scored or ())]
        roles = known.roles.get(kind, ())

        def feed(layer: int, head: int) -> dict[str, Any]:
            view = grid[layer][head] if scored else replace(grid[layer][head], scores=None)
            largest = LARGEST * max(1, math.ceil(max(lengths) / WINDOW))
            found = head_map(run.model, run, view, lengths, self.opens, roles, largest=largest, most=MOST)
            figure = json.loads(found["figure"])
            figure["data"][0] |= {"z": None, "customdata": None}
            return {"off": False, **found, "acts": ["save"], "figure": to_json(figure)}

        shared = feed(0, 0)
        own = [[_differs(feed(layer, head), shared) for head in range(heads)] for layer in range(layers)]
        self.values: dict[str, Any] = {
            "size": (layers, heads),
            "shape": lengths,
            "scored": scored is not None,
            "shared": shared,
            "own": own,
            "tiles": self._tiles(run, kind, roles),
        }
        if kind == "cross":
            self.values["follow"] = [[followed(each) for each in line] for line in self.weights]

    def _tiles(self, run: Translation, kind: str, roles: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The grid of all heads, whose cells the browser pools from those of the maps."""
        pairs = zip(self.weights, self.mask, strict=True)
        tiles = [[Tile.of(*each) for each in zip(*pair, strict=True)] for pair in pairs]
        notes = {
            (layer, head): role for layer, line in enumerate(roles) for head, role in enumerate(line) if role
        }
        figure = overview_spec(tiles, kind, self.opens, notes)
        figure["data"][0]["z"] = None
        self.audit = run.audit(*((AttentionKind(kind), layer) for layer in range(len(tiles))))
        first, badge = tiles[0][0], captions.badge(self.audit, derived=True)
        pooled = f"each cell is the maximum over {first.rows}×{first.columns} cells · " * first.pooled
        layers, heads = len(tiles), len(tiles[0])
        return {
            "title": f"{captions.KIND_NAMES[kind]}: {layers} layer{'s' * (layers != 1)} of {heads} heads",
            "hue": kind,
            "figure": to_json(figure),
            "most": LARGEST_TILE,
            "alt": f"Tiles of {layers * heads} heads; each can be chosen above its map",
            "caption": f"each tile is a head: queries down, keys across, {colour_note('linear')} · {pooled}"
            f"{badge['text']} · click a tile to open it",
        }


def _differs(feed: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in feed.items() if value != shared[name]}


def _shown(run: Translation, known: Known, kinds: Mapping[str, _Kind]) -> dict[str, Any]:
    """The view's content, the feeds that are no maps, and the place where it opens."""
    focus = "cross" if "cross" in kinds else next(iter(kinds))
    sides = ("source", "target") if run.source_tokens else ("target",)
    told, glosses = tell(run, known.aligner or Aligner(((0, 0),), "predicted"), (0, 0)), {}
    if known.aligner is not None and "cross" in kinds:
        told = tell(run, known.aligner, kinds["cross"].opens)
        glosses = glossed(told.glosses, known.aligner) if known.glosses is None else dict(known.glosses)
    present = {*kinds, "controls", "next"}
    stops = [stop for stop in TOUR if stop[0] in present]
    tour = [
        {"plot": plot, "text": text, "step": told.step if i else None} for i, (plot, text) in enumerate(stops)
    ]
    strips = strips_feed(
        run.model,
        run.source_tokens,
        run.decoder_input_tokens,
        run.target_tokens,
        glosses=glosses,
        tour=tour,
        sides=SIDES if run.source_tokens else {**SIDES, "target": "text"},
        given=getattr(run, "given", 0),  # of a prompt
    )
    return {
        "spec": {
            "view": HOME.view,
            "layout": HOME.style,
            "strips": sides,
            "plots": [name for name in HOME.plots if name in present],
            "focus": focus,
            "cursor": HOME.cursor,
            "trace": run.model,
            "awaited": False,
        },
        "shown": {"strips": strips, "next": next_feed(run.model, run)},
        "place": {
            "step": told.step,
            "source": None,
            "heads": {name: kind.opens for name, kind in kinds.items()},
        },
    }


def _proof(run: Translation, known: Known, kinds: Mapping[str, _Kind]) -> list[str]:
    """Provenance, one line each: model and way of decoding, audit, changes, what this page cannot do."""
    sha256 = known.sha256 or run.model_sha256
    origin = f"weights SHA-256 {sha256}" if sha256 else "the hash of its weights was not given"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    audit = next(iter(kinds.values())).audit
    for kind in kinds.values():
        audit = audit.joined(kind.audit)
    badge = captions.badge(audit)
    tokens = f"{len(run.source_tokens)} source and " * bool(run.source_tokens)
    return [
        f"{run.model} · {origin} · decoding: {run.method} · {tokens}{len(run.target_tokens)} target tokens · "
        f"attention-explorer {transformer.__version__} · {today}",
        f"{badge['text']}: every head of every layer. {badge['title']}",
        *run.notes,
        f"Weights are written with three decimals{_scored(kinds)}. {_NEEDS_MODEL}",
    ]


def _scored(kinds: Mapping[str, _Kind]) -> str:
    if all(kind.values["scored"] for kind in kinds.values()):
        return ", scores before the mask with two"
    return f"; scores before the mask are in pages of up to {SCORED} tokens a side"


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main class="stMain"><div class="stVerticalBlock">
<div id="texts" class="living-texts">
{texts}
</div>
<div id="view"></div>
<section id="heads" class="living-heads" aria-label="All heads"></section>
<footer class="living-proof">
<div id="proof">
{proof}
</div>
<p id="digest" role="status">Not checked: scripts are blocked here, so only these texts are shown.</p>
</footer>
</div></main>
<script type="text/plain" id="run" data-sha256="{digest}" data-place="{place}">{data}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""
