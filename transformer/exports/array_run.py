"""A run of weights of one's own: tokens and maps, no model, and nothing that checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from transformer.config import AttentionKind, ModelConfig, Place, Side, Site, Stack, SublayerName
from transformer.exports.arrays import (
    KindWeights,
    OwnArrays,
    Tokens,
    Weights,
    own_arrays,
    sides_of,
)
from transformer.exports.maps import RunOfMaps
from transformer.text.words import is_special, spelled
from transformer.view import Array, AuditReport, BoolArray

YOURS = "your numbers"
"""What weights are called that have no name."""
UNCHECKED = f"{YOURS}, not checked"
"""The badge of weights of one's own."""
SUM_LIMIT = 1e-3
HALF_SUM_LIMIT = 1e-2
"""How far from 1 a row may sum for which nothing is said; of half precision, which rounds more."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ArrayConfig(ModelConfig):
    """What is known of a model of which there are only weights: what they connect, and how many
    there are. All other sizes have no meaning here."""

    architecture: Literal["arrays"] = "arrays"
    vocab_size: int = 4
    d_model: int = 1
    n_heads: int = 1
    attentions: tuple[Site, ...] = ()  # in the order of a model's table
    heads: tuple[int, ...] = ()  # of each of them

    @property
    def task(self) -> str:
        """They can be shown: nothing is known of an output."""
        return "show"

    @property
    def writes(self) -> bool:
        """Not as far as is known."""
        return False

    @property
    def placement(self) -> str:
        """Nobody knows where LayerNorm stands."""
        return "unknown"

    @cached_property
    def sites(self) -> Mapping[AttentionKind, Site]:
        """Those of the arrays."""
        return {site.kind: site for site in self.attentions}

    @cached_property
    def stacks(self) -> Mapping[Side, Stack]:
        """A stack for each side that they connect, of the attentions that are known."""
        connected = {side for site in self.attentions for side in (site.query_side, site.key_side)}
        sides: tuple[Side, ...] = ("encoder", "decoder")
        return {side: self._stack(side) for side in sides if side in connected}

    def _stack(self, side: Side) -> Stack:
        sites = [site for site in self.attentions if site.query_side == side]
        n_layers = max((site.n_layers for site in sites), default=0)
        return Stack(side, n_layers, tuple(site.name for site in sites))

    @cached_property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Number of layers and of heads by kind."""
        return {
            str(site.kind): (site.n_layers, n_heads)
            for site, n_heads in zip(self.attentions, self.heads, strict=True)
        }


@dataclass(frozen=True, kw_only=True)
class HeadNumbers:
    """What the numbers of a head have that weights have not."""

    sums: Array  # (queries,) of the rows
    n_rows: int  # rows that do not sum to 1
    furthest: float  # the sum that is furthest from 1
    n_negative: int
    n_above: int  # of cells above 1
    n_missing: int  # of cells that are no number

    @classmethod
    def of(cls, weights: Array, limit: float) -> HeadNumbers:
        """Of (queries, keys) weights, whose rows may sum to 1 ± a limit."""
        sums = weights.sum(1, dtype=np.float64)
        away = np.nan_to_num(np.abs(sums - 1), posinf=np.inf)  # a sum that is no number is none
        with np.errstate(invalid="ignore"):
            n_negative = int((weights < 0).sum())
            n_above = int((weights > 1 + limit).sum())
        return cls(
            sums=sums.astype(np.float32),
            n_rows=int((away > limit).sum()),
            furthest=float(sums[int(away.argmax())]),
            n_negative=n_negative,
            n_above=n_above,
            n_missing=int(np.isnan(weights).sum()),
        )

    @property
    def oddities(self) -> tuple[str, ...]:
        """One sentence for each; none for weights as a softmax gives them."""
        texts = list[str]()
        if self.n_rows:
            n_rows = len(self.sums)
            texts.append(
                f"{self.n_rows:,} of {n_rows:,} rows do not sum to 1; the furthest sums to "
                f"{self.furthest:.3g}."
            )
        texts += [
            f"{_counted(count)} {what}."
            for count, what in (
                (self.n_negative, "negative, drawn as 0 is"),
                (self.n_above, "above 1, drawn as 1 is"),
                (self.n_missing, "no number (NaN), drawn empty"),
            )
            if count
        ]
        return tuple(texts)

    @staticmethod
    def joined(heads: list[HeadNumbers]) -> HeadNumbers:
        """Those of several heads as one."""
        furthest = max(heads, key=lambda head: abs(np.nan_to_num(head.furthest, nan=1.0) - 1))
        return HeadNumbers(
            sums=np.concatenate([head.sums for head in heads]),
            n_rows=sum(head.n_rows for head in heads),
            furthest=furthest.furthest,
            n_negative=sum(head.n_negative for head in heads),
            n_above=sum(head.n_above for head in heads),
            n_missing=sum(head.n_missing for head in heads),
        )


def _counted(count: int) -> str:
    if count == 1:
        return "1 cell is"
    return f"{count:,} cells are"


@dataclass(frozen=True, eq=False, repr=False)
class ArrayRun(RunOfMaps):
    """A run of weights of one's own. The decoder's tokens were read; what they predict is not
    known, so there are no steps."""

    arrays: Mapping[AttentionKind, KindWeights] = field(default_factory=dict)
    # by kind, layer and head, what is odd about the numbers
    numbers: Mapping[AttentionKind, list[list[HeadNumbers]]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers as they are held."""
        return sum(weights.nbytes for weights in self.arrays.values())

    def weights(self, kind: AttentionKind | str, layer: int, head: int) -> Array:
        """(queries, keys) weights of a whole head."""
        return self.arrays[AttentionKind(kind)].weights(layer, head)

    def mask(self, kind: AttentionKind | str, layer: int, head: int) -> BoolArray:
        """(queries, keys) of a whole head, True = may attend."""
        return self.arrays[AttentionKind(kind)].mask

    def scores(self, kind: AttentionKind, layer: int, head: int) -> None:
        """Nobody knows them."""
        return

    def row_sums(self, kind: AttentionKind, layer: int, head: int) -> Array:
        """(queries,) what the rows of a head sum to."""
        return self.numbers[kind][layer][head].sums

    def report(self, kind: AttentionKind, layer: int, head: int) -> AuditReport:
        """That nothing was checked, what was inferred, and what is odd about a head's numbers."""
        return self._report([kind], [self.numbers[kind][layer][head]])

    def audit(self, *places: Place) -> AuditReport:
        """The same of all heads of some attentions, of all without any, together."""
        chosen = places or [
            (kind, layer) for kind, layers in self.numbers.items() for layer in range(len(layers))
        ]
        heads = [head for kind, layer in chosen for head in self.numbers[kind][layer]]
        return self._report([kind for kind, _ in chosen], heads)

    def _report(self, kinds: list[AttentionKind], heads: list[HeadNumbers]) -> AuditReport:
        inferred = [self.arrays[kind].inferred for kind in dict.fromkeys(kinds)]
        oddities = HeadNumbers.joined(heads).oddities
        remarks = (*filter(None, inferred), *oddities)
        return AuditReport((), unchecked=UNCHECKED, remarks=remarks)


def _numbers(weights: KindWeights) -> list[list[HeadNumbers]]:
    """Of every head, by layer."""
    n_layers, n_heads, *_ = weights.shape
    is_half = "16" in str(getattr(weights.layers[0], "dtype", ""))
    limit = SUM_LIMIT
    if is_half:
        limit = HALF_SUM_LIMIT
    return [
        [HeadNumbers.of(weights.weights(layer, head), limit) for head in range(n_heads)]
        for layer in range(n_layers)
    ]


def run_of(
    weights: Weights,
    tokens: Tokens | None = None,
    *,
    kinds: str | Mapping[str, str] = "",
    name: str = "",
) -> ArrayRun:
    """Weights and tokens as a run; arguments and errors as in ``arrays.own_arrays``.

    ``name``: what the run is called, such as that of the model.
    """
    return array_run(own_arrays(weights, tokens, kinds), name)


def array_run(arrays: OwnArrays, name: str = "") -> ArrayRun:
    """Typed arrays as a run."""
    sites = tuple(map(_site, arrays.kinds.values()))
    heads = tuple(weights.shape[1] for weights in arrays.kinds.values())
    source = arrays.tokens.get("encoder", ())
    target = arrays.tokens.get("decoder", ())
    numbers = {kind: _numbers(weights) for kind, weights in arrays.kinds.items()}
    every = [head for layers in numbers.values() for layer in layers for head in layer]
    oddities = " ".join(HeadNumbers.joined(every).oddities)
    notes: tuple[str, ...] = ()
    if oddities:
        notes = (f"{oddities} The numbers are shown as they are.",)
    return ArrayRun(
        source_text=_text(source),
        text=_text(target),
        source_tokens=source,
        decoder_input_tokens=target,
        target_tokens=target,
        log_probs=(),
        steps=(),
        method="read",
        model=name or YOURS,
        config=ArrayConfig(attentions=sites, heads=heads, n_heads=max(heads), d_model=max(heads)),
        notes=notes,
        arrays=arrays.kinds,
        numbers=numbers,
    )


def _text(pieces: tuple[str, ...]) -> str:
    """What tokens spell, without those that stand for no text if there are others."""
    words = [piece for piece in pieces if not is_special(piece)]
    if not words:
        return " ".join(pieces)
    return spelled(words)


def _site(weights: KindWeights) -> Site:
    query, key = sides_of(weights.kind)
    name: SublayerName = "self_attention"
    if query != key:
        name = "cross_attention"
    return Site(
        kind=weights.kind,
        query_side=query,
        key_side=key,
        name=name,
        n_layers=weights.shape[0],
        own_keys=query == key,
        causal=weights.causal,
        title=weights.title,
    )
