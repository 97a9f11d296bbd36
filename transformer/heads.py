"""Facts about heads (`heads.json`): where each head looks, measured over a fixed sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .alignment import AlignmentScore, GoldPair, Links, attention_links, score
from .capture import AttentionKind, AttentionTrace
from .config import TransformerConfig
from .tokenizer import EOS
from .words import is_special, readable

Floats = NDArray[np.float32]
Statistics = dict[str, float]
Grid = list[list[Statistics]]
RESTING_MASS = 0.5


class Traced(Protocol):
    """The part of a `Translation` that is measured."""

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """Pieces of the source, ending in `</s>`."""

    @property
    def decoder_input_tokens(self) -> tuple[str, ...]:
        """Pieces that the decoder read."""

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """Pieces that it predicted."""

    @property
    def attention(self) -> AttentionTrace | None:
        """The trace."""


class HeadStatistics:
    """Sums the patterns of all heads of one kind over many sentences.

    Rows that see a single key are left out: they can look nowhere else. The statistics of a head:

    - `previous`, `same`, `next`, `first`: share of rows whose largest weight is on the key one before the
      row's own place, at it, one after it, and on the first key;
    - `entropy`: of a row's weights, divided by the logarithm of its visible keys: 0 one key, 1 all alike;
    - `eos_mass`, `punctuation_mass`: mean weight on `</s>` and on pieces without a letter or digit;
    - `mean_distance`: mean of |row − key| under the weights, in pieces.
    """

    def __init__(self, kind: AttentionKind, n_layers: int, n_heads: int) -> None:
        self._kind = kind
        self._sums: list[dict[str, Floats]] = [{} for _ in range(n_layers)]
        self._shape = n_layers, n_heads
        self._rows = 0

    def add(self, translation: Traced) -> None:
        """Takes one sentence in."""
        trace = _trace(translation)
        keys = _key_tokens(self._kind, translation)
        rows = 0
        for layer, sums in enumerate(self._sums):
            mask = trace.mask(self._kind, layer, 0)
            weights = trace.weights(self._kind, layer)
            counted = mask.sum(-1) > 1
            rows = int(counted.sum())
            for name, values in row_statistics(weights, mask, keys).items():
                sums[name] = sums.get(name, np.float32(0)) + values[:, counted].sum(-1)
        self._rows += rows

    def grid(self) -> Grid:
        """The means, per layer and head."""
        rows = max(1, self._rows)
        n_layers, n_heads = self._shape
        return [
            [
                {name: round(float(total[head]) / rows, 4) for name, total in sums.items()}
                for head in range(n_heads)
            ]
            for sums in self._sums[:n_layers]
        ]


def row_statistics(weights: Floats, mask: NDArray[np.bool_], key_tokens: Sequence[str]) -> dict[str, Floats]:
    """The statistics of `HeadStatistics` for each row.

    Args:
        weights: (heads, queries, keys).
        mask: (queries, keys), True where a query may attend.
        key_tokens: Pieces of the keys.

    Returns:
        Name to (heads, queries).
    """
    _, n_queries, n_keys = weights.shape
    place, keys = np.arange(n_queries), np.arange(n_keys)
    best = weights.argmax(-1)
    shares = {
        "previous": best == place - 1,
        "same": best == place,
        "next": best == place + 1,
        "first": best == 0,
    }
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    visible = np.log(np.maximum(2, mask.sum(-1)))
    on_eos = np.array([token == EOS for token in key_tokens], dtype=np.float32)
    on_punctuation = np.array([is_punctuation(token) for token in key_tokens], dtype=np.float32)
    measures = {
        "entropy": -(weights * logs).sum(-1) / visible,
        "eos_mass": weights @ on_eos,
        "punctuation_mass": weights @ on_punctuation,
        "mean_distance": (weights * abs(place[:, None] - keys)).sum(-1),
    }
    return {name: values.astype(np.float32) for name, values in (shares | measures).items()}


def is_punctuation(piece: str) -> bool:
    """Whether a piece spells something, but no letter or digit."""
    return not is_special(piece) and not any(character.isalnum() for character in readable(piece))


class CrossAlignments:
    """Collects the word alignments of every cross-attention head, in both readings of a row."""

    def __init__(self, n_layers: int, n_heads: int) -> None:
        self._found: dict[bool, list[list[list[Links]]]] = {
            reading: [[[] for _ in range(n_heads)] for _ in range(n_layers)] for reading in (False, True)
        }
        self._gold: list[GoldPair] = []

    def add(self, translation: Traced, gold: GoldPair) -> None:
        """Takes one forced gold target in."""
        trace = _trace(translation)
        for reading, layers in self._found.items():
            for layer, heads in enumerate(layers):
                links = attention_links(
                    trace.weights(AttentionKind.CROSS, layer),
                    translation.source_tokens,
                    translation.target_tokens,
                    reading=reading,
                )
                for head, found in zip(heads, links, strict=True):
                    head.append(found)
        self._gold.append(gold)

    def scores(self, *, reading: bool) -> list[list[AlignmentScore]]:
        """One score per layer and head; `reading` as in `attention_links`."""
        return [[score(found, self._gold) for found in heads] for heads in self._found[reading]]


def measure_heads(
    config: TransformerConfig,
    translations: Iterable[Traced],
    aligned: Iterable[tuple[Traced, GoldPair]] = (),
) -> dict[str, Any]:
    """Statistics of all heads, and the heads to open first.

    Args:
        config: Of the model.
        translations: The sample for patterns.
        aligned: Forced gold targets with their links, for `aer` and `aer_read`; may be empty.

    Returns:
        `default` and `heads` of `heads.json`; layers and heads count from 0.
    """
    depths = {
        AttentionKind.ENCODER: config.n_encoder_layers,
        AttentionKind.DECODER: config.n_decoder_layers,
        AttentionKind.CROSS: config.n_decoder_layers,
    }
    collected = {kind: HeadStatistics(kind, depth, config.n_heads) for kind, depth in depths.items()}
    for translation in translations:
        for statistics in collected.values():
            statistics.add(translation)
    grids = {kind.value: statistics.grid() for kind, statistics in collected.items()}
    _add_alignments(grids[AttentionKind.CROSS.value], config, aligned)
    return {"default": {kind: list(choose_head(grid)) for kind, grid in grids.items()}, "heads": grids}


def _add_alignments(
    grid: Grid, config: TransformerConfig, aligned: Iterable[tuple[Traced, GoldPair]]
) -> None:
    alignments = CrossAlignments(config.n_decoder_layers, config.n_heads)
    empty = True
    for translation, gold in aligned:
        alignments.add(translation, gold)
        empty = False
    if empty:
        return
    for name, reading in (("aer", False), ("aer_read", True)):
        for heads, scores in zip(grid, alignments.scores(reading=reading), strict=True):
            for head, found in zip(heads, scores, strict=True):
                head[name] = round(found.aer, 4)


def choose_head(grid: Grid) -> tuple[int, int]:
    """The head to open first: lowest alignment error, else the clearest neighbour pattern; never one at rest.

    A head rests if over half of its weight lies on `</s>`, or over half of its rows on the first key.

    Returns:
        Layer and head, from 0.
    """
    places = [(layer, head) for layer, heads in enumerate(grid) for head in range(len(heads))]

    def rests(place: tuple[int, int]) -> bool:
        found = grid[place[0]][place[1]]
        return max(found.get("eos_mass", 0.0), found.get("first", 0.0)) > RESTING_MASS

    def merit(place: tuple[int, int]) -> float:
        found = grid[place[0]][place[1]]
        if "aer" in found:
            return -found["aer"]
        return max(found.get("previous", 0.0), found.get("next", 0.0))

    return max([place for place in places if not rests(place)] or places, key=merit)


def _trace(translation: Traced) -> AttentionTrace:
    if translation.attention is None:
        raise ValueError("Attention was not recorded; translate with capture=True.")
    return translation.attention


def _key_tokens(kind: AttentionKind, translation: Traced) -> tuple[str, ...]:
    return translation.decoder_input_tokens if kind is AttentionKind.DECODER else translation.source_tokens
