"""Probability that a model's translation of a text is bad, by traits of the text and of the translation.

The measure is a weighted sum of three traits. A logistic regression chooses the weights on sentences with
reference translations, where bad means: the sentence's chrF against its reference is below ``BAD_BELOW``. The
threshold is where precision and recall are best together (F1). `python -m lab familiarity` writes the
result beside the model, with what it finds among other sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.storage.description import FAMILIARITY_FILE
from transformer.storage.typed import read_typed, typed
from transformer.text.words import UNK, byte_of, unknown_text

BAD_BELOW = 50.0
"""A translation of a smaller chrF is called bad; of 35, 40, 45 and 50 the one that the traits tell best."""
ROUNDS = 40
"""Newton steps of the regression; it converges in about ten."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Traits:
    """The traits that the measure reads."""

    log_prob: float  # mean log-probability of the tokens of the greedy translation, in nats
    tokens: int  # number of source tokens, without `</s>`
    tokens_per_word: float  # source tokens per space-separated word
    unknown: int  # number of source tokens that are bytes of characters without a token, or `<unk>`

    @property
    def row(self) -> tuple[float, ...]:
        """The numbers that are weighted, in the order of ``WEIGHTED``."""
        return self.log_prob, math.log(self.tokens), self.tokens_per_word


WEIGHTED = ("log_prob", "tokens", "tokens_per_word")
"""The weighted traits. What has no token is none of them: hardly any known text has it, so no weight can be
learned. A translation of such a text is always doubted."""


@dataclass(frozen=True)
class DoubtHits:
    """Hits and misses of the measure among texts whose translations were called good or bad without it."""

    texts: int  # number of texts
    bad: int  # how many of their translations are bad
    flagged: int  # how many the measure doubts
    caught: int  # how many of these are bad

    @property
    def precision(self) -> float:
        """The share of bad translations among the doubted ones; NaN if none is doubted."""
        return self.caught / self.flagged if self.flagged else math.nan

    @property
    def recall(self) -> float:
        """The share of doubted translations among the bad ones; NaN if none is bad."""
        return self.caught / self.bad if self.bad else math.nan


@dataclass(frozen=True)
class DoubtMeasure:
    """The measure of a doubtful translation, with its threshold."""

    weights: tuple[float, ...]  # one per trait of ``WEIGHTED``
    bias: float  # added to the weighted sum
    threshold: float  # a translation above it is doubted
    # the range of each weighted trait that holds 90 % of the texts with good translations
    usual: Mapping[str, tuple[float, float]]
    middle: tuple[float, ...]  # the median of each number of ``Traits.row`` over the same texts
    # what it finds among texts that it was not chosen on, by name; people judged ``JUDGED``
    found: Mapping[str, DoubtHits]
    instead: str | None = None  # name of a larger model on the Hub, or None
    instead_bytes: int = 0  # size of that model's files
    sentences: int | None = None  # how many lines of each file it was chosen and tested with; None if unknown

    def __post_init__(self) -> None:
        if {len(self.weights), len(self.middle)} != {len(WEIGHTED)} or not {*WEIGHTED} <= {*self.usual}:
            raise ValueError(f"A measure needs a number for each of {', '.join(WEIGHTED)}.")

    def doubt(self, traits: Traits) -> float:
        """Evidence against a translation, as the log-odds of the regression."""
        return self.bias + sum(w * x for w, x in zip(self.weights, traits.row, strict=True))

    def doubts(self, traits: Traits) -> bool:
        """True if a translation is doubted."""
        return traits.unknown > 0 or self.doubt(traits) > self.threshold

    def reason(self, traits: Traits) -> str:
        """The name of the trait that speaks most against a translation."""
        if traits.unknown:
            return "unknown"
        parts = zip(self.weights, traits.row, self.middle, strict=True)
        against = [weight * (value - middle) for weight, value, middle in parts]
        return WEIGHTED[int(np.argmax(against))]


JUDGED = "judged"
"""The name of the texts whose translations people judged."""


@dataclass(frozen=True)
class Doubtful:
    """A text whose translation is doubted."""

    traits: Traits  # what was measured on it
    measure: DoubtMeasure  # how the model's translations are doubted

    @property
    def reason(self) -> str:
        """The name of the trait that speaks most against the translation."""
        return self.measure.reason(self.traits)


def traits_of(text: str, pieces: Sequence[str], log_probs: Sequence[float]) -> Traits:
    """The traits of a text, by its source pieces without `</s>` and by its greedy translation."""
    unknown = sum(
        piece == UNK or unknown_text(piece) is not None or byte_of(piece) is not None for piece in pieces
    )
    words = max(1, len(text.split()))
    return Traits(sum(log_probs) / max(1, len(log_probs)), len(pieces), len(pieces) / words, unknown)


UNKNOWN_ONLY = DoubtMeasure((0.0,) * 3, 0.0, 1.0, dict.fromkeys(WEIGHTED, (0.0, 0.0)), (0.0,) * 3, {})
"""Doubts what has no token, and nothing else: for models whose mistakes the weighted traits do not tell."""


def choose(texts: Sequence[Traits], bad: Sequence[bool]) -> DoubtMeasure:
    """Chooses weights and threshold; ValueError if there are fewer than two good or two bad translations."""
    labels = np.array(bad, dtype=bool)
    if min(labels.sum(), (~labels).sum()) < 2:
        raise ValueError("The measure needs at least two good and two bad translations.")
    rows = np.array([each.row for each in texts])
    weights, bias = _regression(rows, labels.astype(np.float64))
    good = [each for each, is_bad in zip(texts, bad, strict=True) if not is_bad]
    usual = {name: _middle_range([getattr(each, name) for each in good]) for name in WEIGHTED}
    middle = tuple(map(float, np.median(rows[~labels], axis=0)))
    threshold = _threshold(rows @ weights + bias, labels)
    return DoubtMeasure(tuple(map(float, weights)), float(bias), threshold, usual, middle, {})


def _threshold(doubts: Floats, bad: NDArray[np.bool_]) -> float:
    """The doubt above which F1 is largest."""
    order = np.argsort(-doubts)
    caught, flagged = np.cumsum(bad[order]), np.arange(1, len(bad) + 1)
    last = int(np.argmax(2 * caught / (flagged + bad.sum())))
    return float(np.mean(doubts[order][last : last + 2]))


def _middle_range(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.05, 0.95))
    return round(float(low), 4), round(float(high), 4)


def _regression(rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """Weights and bias of a logistic regression with a small ridge, by Newton's method."""
    mean, deviation = rows.mean(0), rows.std(0) + 1e-9
    inputs = np.column_stack([(rows - mean) / deviation, np.ones(len(rows))])
    ridge = np.diag([*[1.0] * rows.shape[1], 0.0])
    found = np.zeros(inputs.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ found, -50, 50)))
        slope = inputs.T @ (chance - labels) + ridge @ found
        curve = inputs.T @ (inputs * (chance * (1 - chance))[:, None]) + ridge
        found = found - np.linalg.solve(curve + 1e-9 * np.eye(len(found)), slope)
    weights: Floats = found[:-1] / deviation
    return weights, float(found[-1] - weights @ mean)


def findings(measure: DoubtMeasure, texts: Sequence[Traits], bad: Sequence[bool]) -> DoubtHits:
    """Hits and misses of the measure among texts; arguments as in ``choose``."""
    doubted = list(map(measure.doubts, texts))
    both = sum(each and is_bad for each, is_bad in zip(doubted, bad, strict=True))
    return DoubtHits(len(texts), sum(bad), sum(doubted), both)


def as_json(measure: DoubtMeasure) -> dict[str, Any]:
    """The measure as the content of `familiarity.json`."""
    return asdict(measure) | {"traits": list(WEIGHTED), "bad_below": BAD_BELOW}


def read_measure(directory: Path) -> DoubtMeasure | None:
    """The measure beside a model; None if there is none; CheckpointError if the file is damaged."""
    path = directory / FAMILIARITY_FILE
    if not path.exists():
        return None
    return read_typed(path, partial(typed, DoubtMeasure))
