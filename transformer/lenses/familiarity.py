"""Whether a text is like the texts that a model knows best, by traits of the text and its translation.

The measure is a weighted sum of three traits. A logistic regression chooses the weights on texts that
the model knows best (known) and texts unlike them (unknown). The threshold is set so that few of the known
texts exceed it. `python -m transformer familiarity` writes the result beside the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.storage.description import FAMILIARITY_FILE
from transformer.storage.files import CheckpointError, read_json
from transformer.text.vocabulary import UNK
from transformer.text.words import byte_of

ALLOWED = 0.04
"""Share of the known texts above the threshold; below 5 %, so that other texts of the kind keep to 5 %."""
ROUNDS = 40
"""Newton steps of the regression; it converges in about ten."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Traits:
    """What the measure looks at.

    Attributes:
        log_prob: Mean log-probability of the tokens of the greedy translation, in nats.
        tokens: Number of source tokens, without `</s>`.
        tokens_per_word: Source tokens per space-separated word.
        unknown: Number of source tokens that are bytes of characters without a token, or `<unk>`.
    """

    log_prob: float
    tokens: int
    tokens_per_word: float
    unknown: int

    @property
    def is_foreign(self) -> bool:
        """Whether more than half of the tokens are bytes of characters that the vocabulary lacks."""
        return 2 * self.unknown > self.tokens

    @property
    def row(self) -> tuple[float, ...]:
        """The numbers that are weighted, in the order of ``WEIGHTED``."""
        return self.log_prob, math.log(self.tokens), self.tokens_per_word


WEIGHTED = ("log_prob", "tokens", "tokens_per_word")
"""The weighted traits. Bytes are no such trait: no known text has any, so no weight could be learned."""


@dataclass(frozen=True)
class Measure:
    """How a model's familiarity with a text is judged.

    Attributes:
        weights: One per trait of ``WEIGHTED``.
        bias: Added to the weighted sum.
        threshold: A text above it is unlike the known texts.
        usual: The range of each weighted trait that holds 90 % of the known texts.
        middle: The median of each number of ``Traits.row`` over the known texts.
        flagged: Share of known and of unknown held-out texts above the threshold.
        instead: Name of a model on the Hub that suits other texts, or None.
        instead_bytes: Size of that model's files.
    """

    weights: tuple[float, ...]
    bias: float
    threshold: float
    usual: Mapping[str, tuple[float, float]]
    middle: tuple[float, ...]
    flagged: Mapping[str, float]
    instead: str | None = None
    instead_bytes: int = 0

    def unlikeness(self, traits: Traits) -> float:
        """How unlike the known texts a text is, as the log-odds of the regression."""
        return self.bias + sum(w * x for w, x in zip(self.weights, traits.row, strict=True))

    def is_unlike(self, traits: Traits) -> bool:
        """Whether a text is unlike the known texts."""
        return traits.is_foreign or self.unlikeness(traits) > self.threshold

    def reason(self, traits: Traits) -> str:
        """The name of the trait that speaks most against a text."""
        if traits.is_foreign:
            return "unknown"
        parts = zip(self.weights, traits.row, self.middle, strict=True)
        against = [weight * (value - middle) for weight, value, middle in parts]
        return WEIGHTED[int(np.argmax(against))]


@dataclass(frozen=True)
class Unfamiliar:
    """A text that is unlike the known texts.

    Attributes:
        traits: What was measured on it.
        measure: How the model judges.
    """

    traits: Traits
    measure: Measure

    @property
    def reason(self) -> str:
        """The name of the trait that speaks most against the text."""
        return self.measure.reason(self.traits)


def traits_of(text: str, pieces: Sequence[str], log_probs: Sequence[float]) -> Traits:
    """The traits of a text.

    Args:
        text: The source text.
        pieces: Its source pieces, without `</s>`.
        log_probs: Log-probabilities of the tokens of its greedy translation.
    """
    unknown = sum(piece == UNK or byte_of(piece) is not None for piece in pieces)
    words = max(1, len(text.split()))
    return Traits(sum(log_probs) / max(1, len(log_probs)), len(pieces), len(pieces) / words, unknown)


def choose(known: Sequence[Traits], unknown: Sequence[Traits]) -> Measure:
    """Chooses weights and threshold.

    Args:
        known: Traits of texts that the model knows best.
        unknown: Traits of texts unlike them.

    Raises:
        ValueError: There are fewer than two texts of a kind.
    """
    if min(len(known), len(unknown)) < 2:
        raise ValueError("The measure needs at least two texts of each kind.")
    rows = np.array([each.row for each in (*known, *unknown)])
    own = rows[: len(known)]
    weights, bias = _regression(rows, np.repeat([0.0, 1.0], [len(known), len(unknown)]))
    threshold = float(np.quantile(own @ weights + bias, 1 - ALLOWED))
    usual = {name: _middle_range([getattr(each, name) for each in known]) for name in WEIGHTED}
    middle = tuple(map(float, np.median(own, axis=0)))
    return Measure(tuple(map(float, weights)), float(bias), threshold, usual, middle, {})


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


def share_flagged(measure: Measure, texts: Sequence[Traits]) -> float:
    """The share of texts that are unlike the known texts, from 0 to 1."""
    return sum(map(measure.is_unlike, texts)) / len(texts)


def as_json(measure: Measure) -> dict[str, Any]:
    """The measure as the content of `familiarity.json`."""
    values = {field.name: getattr(measure, field.name) for field in fields(Measure)}
    return values | {"traits": list(WEIGHTED)}


def read_measure(directory: Path) -> Measure | None:
    """The measure beside a model; None if there is none.

    Raises:
        CheckpointError: The file is damaged.
    """
    path = directory / FAMILIARITY_FILE
    if not path.exists():
        return None
    values = read_json(path)
    try:
        return Measure(
            weights=_numbers(values["weights"], len(WEIGHTED)),
            bias=_number(values["bias"]),
            threshold=_number(values["threshold"]),
            usual={name: _pair(values["usual"][name]) for name in WEIGHTED},
            middle=_numbers(values["middle"], len(WEIGHTED)),
            flagged={str(name): _number(value) for name, value in values["flagged"].items()},
            instead=None if values.get("instead") is None else str(values["instead"]),
            instead_bytes=int(_number(values.get("instead_bytes", 0))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error


def _number(value: Any) -> float:
    number = float(value)
    if isinstance(value, str | bool) or not math.isfinite(number):
        raise ValueError(value)
    return number


def _pair(values: Any) -> tuple[float, float]:
    low, high = _numbers(values, 2)
    return low, high


def _numbers(values: Any, count: int) -> tuple[float, ...]:
    if len(values) != count:
        raise ValueError(values)
    return tuple(map(_number, values))
