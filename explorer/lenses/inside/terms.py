"""One score of a head, number by number: what each dimension of query and key adds to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transformer.config import PlacedHead, ScoreName
from transformer.trace import AttentionTrace
from transformer.view import Array, read_only


@dataclass(frozen=True)
class ScoreTerms:
    """The sum behind one score, and what becomes of it."""

    rule: ScoreName  # how the score comes from query and key
    query: Array  # (d_head,) q
    key: Array  # (d_head,) k
    vector: Array | None  # (d_head,) v of additive scores; otherwise None
    # (d_head,) what each dimension adds: q k, divided by √d_k if scaled; v tanh(q + k) if additive
    terms: Array
    score: float  # their sum
    log_total: float  # logarithm of Σ exp(score) over the keys that the query sees
    # the Gaussian of local attention at this key, which multiplies the softmax; otherwise 1
    factor: float = 1.0
    centre: float | None = None  # where the query looks in local attention, counted from 0; otherwise None

    @property
    def weight(self) -> float:
        """The weight that the score becomes, for a key that the query sees."""
        return math.exp(self.score - self.log_total) * self.factor

    @property
    def order(self) -> list[int]:
        """The dimensions, from 0: the one that adds or takes away most first."""
        return [int(i) for i in np.argsort(-np.abs(self.terms), kind="stable")]


def score_terms(
    trace: AttentionTrace,  # what was recorded
    place: PlacedHead,
    query: int,  # the row, from 0
    key: int,  # the column, from 0
) -> ScoreTerms:
    """The terms of one score of a head to whose scores positions add nothing."""
    kind, number, head = place
    layer = trace.layer(kind, number, head)
    q, k = (read_only(each[head, at]) for each, at in ((layer.query, query), (layer.key, key)))
    vector = None if layer.score.vector is None else read_only(layer.score.vector[head])
    scores, seen = trace.scores(kind, number, head)[query], trace.mask(kind, number, head)[query]
    top = float(scores[seen].max(initial=-math.inf))
    log_total = top + math.log(float(np.exp(scores[seen] - top).sum())) if seen.any() else -math.inf
    factor, centre = 1.0, None
    if layer.focus is not None:
        factor = float(layer.focus.factors(layer.shape[2])[query, key])
        centre = float(layer.focus.centres[query])
    terms = _terms(layer.score.name, q, k, vector)
    return ScoreTerms(layer.score.name, q, k, vector, terms, float(terms.sum()), log_total, factor, centre)


def _terms(rule: ScoreName, query: Array, key: Array, vector: Array | None) -> Array:
    if vector is not None:
        return vector * np.tanh(query + key)
    divisor = math.sqrt(len(query)) if rule == "scaled_dot" else 1.0
    return query * key / divisor
