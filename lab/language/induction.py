"""Induction heads and previous-token heads, on sequences of random pieces that repeat.

Olsson et al., "In-context learning and induction heads", Transformer Circuits Thread 2022: an induction head
looks from a token back to the token that followed the same token before ([A][B] … [A] → [B]). The prefix
matching score of a head is the mean weight that it gives to such places, over the rows of a repeated random
sequence after its first copy. Random pieces have no meaning and no grammar, so nothing but the repetition can
tell which piece comes next. A head like that needs one in an earlier layer that looks at the previous token.

Copying is what they are good for: the loss on the second copy against that on the first, at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.runs.bootstrap import Cell, cell, resamples, rounded

Floats = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]
Weights = Callable[[list[int]], Floats]
"""All attention weights of a sequence of n ids: → (layers, heads, n, n), rows are queries."""
PieceLogProbs = Callable[[list[int]], Floats]
"""Natural logs of the probability of each id but the first, after those before it: n ids → (n − 1,)."""


@dataclass(frozen=True, eq=False)
class Repeated:
    """Sequences of different random pieces, each after a start token and followed by copies of itself."""

    ids: Ids  # (sequences, 1 + copies × length)
    length: int  # pieces of one copy

    @classmethod
    def drawn(
        cls,
        pieces: Sequence[int],  # ids to draw from
        start: int,  # id of the start token
        length: int = 25,  # pieces of one copy
        count: int = 20,  # number of sequences
        copies: int = 2,  # how often the pieces stand in a sequence; 2 repeats them once
        seed: int = 1,  # seed of the draw
    ) -> Repeated:
        """Draws sequences; the pieces of one differ, so that each has one place to look back to."""
        if copies < 2 or not 2 <= length <= len(set(pieces)):
            raise ValueError(
                f"Give at least 2 copies, of 2 to {len(set(pieces))} pieces each; not {copies} of {length}."
            )
        random = np.random.default_rng(seed)
        rows = [random.choice(sorted(set(pieces)), length, replace=False) for _ in range(count)]
        starts = np.full((count, 1), start)
        return cls(np.concatenate([starts, *[np.stack(rows)] * copies], 1).astype(np.int64), length)

    @property
    def again(self) -> NDArray[np.bool_]:
        """(positions,) which pieces stand after the first copy."""
        return np.arange(self.ids.shape[1]) > self.length


def followers(ids: Ids) -> Floats:
    """(n, n) 1 at the keys right after an earlier occurrence of a row's own token."""
    same = np.tril(ids[:, None] == ids[None, :], -1)
    found = np.zeros(same.shape)
    found[:, 1:] = same[:, :-1]
    return found


def previous(n: int) -> Floats:
    """(n, n) 1 at the key before each row's own position."""
    return np.eye(n, k=-1)


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Mean weights of all heads on the places of two patterns."""

    # (layers, heads) weight on the tokens that followed the same token before (prefix matching)
    induction: Floats
    previous: Floats  # (layers, heads) weight on the previous token
    even_induction: float  # the same for weight spread evenly over all keys that a row sees
    even_previous: float  # the same, for the previous token


def head_scores(weights: Weights, sequences: Repeated) -> HeadScores:
    """Scores every head; rows of the first copy and of the start token do not count."""
    n = sequences.ids.shape[1]
    even = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    sums: list[Any] = [0.0, 0.0, 0.0, 0.0]
    for ids in sequences.ids:
        found = np.asarray(weights(ids.tolist()), np.float64)
        places = (followers(ids), previous(n))
        parts = [
            (maps * place).sum(-1)[..., sequences.again].mean(-1)
            for maps in (found, even)
            for place in places
        ]
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    means = [total / len(sequences.ids) for total in sums]
    return HeadScores(means[0], means[1], float(means[2]), float(means[3]))


@dataclass(frozen=True)
class Copying:
    """The loss on repeated random pieces in nats per piece, with 95 % intervals over sequences.

    The first piece of a copy is left out: nothing says that a copy begins there.
    """

    first: Cell  # loss on the first copy
    last: Cell  # loss on the last copy, at the same places
    gain: Cell  # the first minus the last; paired


def copying(log_probs: PieceLogProbs, sequences: Repeated) -> Copying:
    """Saving by repetition."""
    losses = -np.stack([np.asarray(log_probs(ids.tolist()), np.float64) for ids in sequences.ids])
    inside = sequences.length - 1
    first, last = losses[:, 1 : 1 + inside].mean(1), losses[:, -inside:].mean(1)
    weights = resamples(len(losses)) / len(losses)
    cells = [cell(float(each.mean()), weights @ each) for each in (first, last, first - last)]
    return Copying(*cells)


def ranked(scores: Floats) -> list[tuple[int, int, float]]:
    """(layer, head, score) of a table (layers, heads), highest first; both count from 0."""
    order = np.argsort(-scores, axis=None, kind="stable")
    places = (divmod(int(at), scores.shape[1]) for at in order)
    return [(layer, head, rounded(scores[layer, head])) for layer, head in places]
