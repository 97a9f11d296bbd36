"""A run of weights of one's own: tokens and maps, no model, and nothing that checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind, ModelConfig, Place, Side, Site, Stack, SublayerName
from transformer.exports.array_numbers import Weights, WeightsError
from transformer.exports.array_tokens import Marks, Tokens
from transformer.exports.arrays import KindWeights, OwnArrays, own_arrays, sides_of
from transformer.exports.maps import RunOfMaps
from transformer.text.typed import without_surrogates
from transformer.text.words import is_special, spelled
from transformer.view import Array, AuditReport, BoolArray

Counts = NDArray[np.int64]
FloatArray = NDArray[np.float64]
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

    @cached_property
    def writes(self) -> bool:
        """Not as far as is known."""
        return False

    @cached_property
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
    """What the numbers of some heads have that weights have not; counts are by head."""

    sums: Array  # (heads, queries) of the rows
    furthest: FloatArray  # (heads,) the sum that is furthest from 1
    n_rows: Counts  # rows that do not sum to 1
    n_negative: Counts  # cells below 0
    n_above: Counts  # cells above 1
    n_missing: Counts  # cells that are no number

    @classmethod
    def of(cls, weights: Array, limit: float) -> HeadNumbers:
        """Of (heads, queries, keys) weights, whose rows may sum to 1 ± a limit."""
        with np.errstate(invalid="ignore", over="ignore"):
            sums = weights.sum(2, dtype=np.float64)
            away = np.nan_to_num(np.abs(sums - 1), posinf=np.inf)  # NaN is at no distance
            furthest = np.take_along_axis(sums, away.argmax(1)[:, None], 1)[:, 0]
            return cls(
                sums=sums.astype(np.float32),
                furthest=furthest,
                n_rows=(away > limit).sum(1),
                n_negative=(weights < 0).sum((1, 2)),
                n_above=(weights > 1 + limit).sum((1, 2)),
                n_missing=np.isnan(weights).sum((1, 2)),
            )

    def alone(self, head: int) -> HeadNumbers:
        """Those of one head."""
        only = slice(head, head + 1)
        return HeadNumbers(
            sums=self.sums[only],
            furthest=self.furthest[only],
            n_rows=self.n_rows[only],
            n_negative=self.n_negative[only],
            n_above=self.n_above[only],
            n_missing=self.n_missing[only],
        )


def _oddities(layers: list[HeadNumbers]) -> tuple[str, ...]:
    """One sentence for each of some layers; none for weights as a softmax gives them."""
    texts = list[str]()
    n_wrong = sum(int(layer.n_rows.sum()) for layer in layers)
    if n_wrong:
        n_rows = sum(layer.sums.size for layer in layers)
        furthest = np.concatenate([layer.furthest for layer in layers])
        away = np.nan_to_num(np.abs(furthest - 1), posinf=np.inf)
        texts.append(
            f"{n_wrong:,} of {n_rows:,} rows do not sum to 1; the furthest sums to "
            f"{furthest[away.argmax()]:.3g}."
        )
    n_negative = sum(int(layer.n_negative.sum()) for layer in layers)
    n_above = sum(int(layer.n_above.sum()) for layer in layers)
    n_missing = sum(int(layer.n_missing.sum()) for layer in layers)
    texts += [
        f"{_counted(count)} {what}."
        for count, what in (
            (n_negative, "negative, drawn as 0 is"),
            (n_above, "above 1, drawn as 1 is"),
            (n_missing, "no number (NaN), drawn empty"),
        )
        if count
    ]
    return tuple(texts)


def _counted(count: int) -> str:
    if count == 1:
        return "1 cell is"
    return f"{count:,} cells are"


@dataclass(frozen=True, eq=False, repr=False)
class ArrayRun(RunOfMaps):
    """A run of weights of one's own. The decoder's tokens were read; what they predict is not
    known, so there are no steps."""

    arrays: Mapping[AttentionKind, KindWeights] = field(default_factory=dict)
    # by kind and layer, what is odd about the numbers
    numbers: Mapping[AttentionKind, list[HeadNumbers]] = field(default_factory=dict)

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
        return self.numbers[kind][layer].sums[head]

    def report(self, kind: AttentionKind, layer: int, head: int) -> AuditReport:
        """That nothing was checked, what was inferred, and what is odd about a head's numbers."""
        return self._report([kind], [self.numbers[kind][layer].alone(head)])

    def audit(self, *places: Place) -> AuditReport:
        """The same of all heads of some attentions, of all without any, together."""
        chosen = places or [
            (kind, layer) for kind, layers in self.numbers.items() for layer in range(len(layers))
        ]
        numbers = [self.numbers[kind][layer] for kind, layer in chosen]
        return self._report([kind for kind, _ in chosen], numbers)

    def _report(self, kinds: list[AttentionKind], numbers: list[HeadNumbers]) -> AuditReport:
        inferred = [self.arrays[kind].inferred for kind in dict.fromkeys(kinds)]
        oddities = _oddities(numbers)
        remarks = (*filter(None, inferred), *oddities)
        return AuditReport((), unchecked=UNCHECKED, remarks=remarks)


def _numbers(weights: KindWeights) -> list[HeadNumbers]:
    """Of every layer."""
    is_half = "16" in str(getattr(weights.layers[0], "dtype", ""))
    limit = SUM_LIMIT
    if is_half:
        limit = HALF_SUM_LIMIT
    return [HeadNumbers.of(weights.layer(layer), limit) for layer in range(len(weights.layers))]


def run_of(
    weights: Weights,
    tokens: Tokens | None = None,
    *,
    kinds: str | Mapping[str, str] | None = "",
    name: str | None = "",
    special: Marks | None = None,
) -> ArrayRun:
    """Weights and tokens as a run; arguments and errors as in ``arrays.own_arrays``.

    ``name``: what the run is called, such as that of the model.
    """
    return array_run(own_arrays(weights, tokens, kinds, special), name_of(name))


def name_of(name: object) -> str:
    """What a run is called, as a text that a file can hold; WeightsError if it is none."""
    if name is None:
        return ""
    if not isinstance(name, str):
        raise WeightsError(f"The name {name!r:.40} is no text.")
    return without_surrogates(name)


def array_run(arrays: OwnArrays, name: str = "") -> ArrayRun:
    """Typed arrays as a run."""
    sites = tuple(map(_site, arrays.kinds.values()))
    heads = tuple(weights.shape[1] for weights in arrays.kinds.values())
    source = arrays.tokens.get("encoder", ())
    target = arrays.tokens.get("decoder", ())
    numbers = {kind: _numbers(weights) for kind, weights in arrays.kinds.items()}
    every = [layer for layers in numbers.values() for layer in layers]
    oddities = " ".join(_oddities(every))
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
