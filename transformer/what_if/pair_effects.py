"""What a measurement of backup heads says in the end: the pairs of heads, and which head takes over.

It is small enough for a file (`backups.json`), so that a page can show it without measuring again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.model.sites import AttentionKind
from transformer.what_if.backup_heads import BackupHeads, Doubles, Head, excess_of

Json = dict[str, Any]


@dataclass(frozen=True)
class TakeOver:
    """A head that matters more when another is ablated; effects are Δ log p per token, in nats.

    Attributes:
        off: The other head.
        head: The head that takes over.
        usual: The effect of ablating it alone.
        then: The effect of ablating it when the other is off.
        sentences: In how many sentences both together cost more than the sum of each alone.
    """

    off: Head
    head: Head
    usual: float
    then: float
    sentences: int

    @property
    def times(self) -> float:
        """How many times as much the head matters."""
        return self.then / self.usual


@dataclass(frozen=True, eq=False)
class PairEffects:
    """Effects of ablating the heads of one kind, alone and in pairs, over many sentences.

    Attributes:
        kind: Which attention.
        by: "zero" or "mean": what stood in the place of an ablated head's output.
        heads: All heads of the kind, in the order of the axes.
        sentences: Number of sentences measured.
        joint: (heads, heads) mean Δ log p per token, in nats, of each pair; of each head alone on the
            diagonal.
        more: (heads, heads) in how many sentences a pair costs more than the sum of each alone.
    """

    kind: AttentionKind
    by: str
    heads: tuple[Head, ...]
    sentences: int
    joint: Doubles
    more: NDArray[np.int64]

    @property
    def alone(self) -> Doubles:
        """(heads,) effect of each head alone."""
        return self.joint.diagonal().copy()

    @property
    def excess(self) -> Doubles:
        """(heads, heads) as ``BackupHeads.excess``."""
        return excess_of(self.joint)

    def take_overs(self) -> tuple[TakeOver, ...]:
        """The pairs that cost more than the sum of each head alone, the largest excess first.

        Of a pair, the head that costs more alone is said to take over: a ratio to an effect near 0 would say
        nothing.
        """
        excess, alone = self.excess, self.alone
        pairs = [
            (float(excess[pair]), *(pair if alone[pair[0]] > alone[pair[1]] else pair[::-1]))
            for pair in combinations(range(len(self.heads)), 2)
        ]
        return tuple(
            self._take_over(off, head) for each, off, head in sorted(pairs) if each < 0 and alone[head] < 0
        )

    def _take_over(self, off: int, head: int) -> TakeOver:
        then = float(self.joint[off, head] - self.joint[off, off])
        return TakeOver(
            self.heads[off],
            self.heads[head],
            float(self.joint[head, head]),
            then,
            int(self.more[off, head]),
        )


def pair_effects(found: BackupHeads) -> PairEffects:
    """What a measurement of all pairs says so far.

    Raises:
        ValueError: No sentence has been read yet.
    """
    joint = found.joint
    more = sum((excess_of(each) < 0).astype(np.int64) for each in found.effects)
    return PairEffects(found.kind, found.by, found.heads, len(found.texts), joint, np.asarray(more))


def to_json(found: PairEffects) -> Json:
    """A measurement as JSON values: of each matrix the lower triangle, row by row."""
    rows = range(len(found.heads))
    return {
        "by": found.by,
        "sentences": found.sentences,
        "heads": [list(head) for head in found.heads],
        "joint": [[round(float(each), 6) for each in found.joint[i, : i + 1]] for i in rows],
        "more": [found.more[i, : i + 1].tolist() for i in rows],
    }


def from_json(kind: AttentionKind, values: Mapping[str, Any]) -> PairEffects:
    """Reads what ``to_json`` wrote.

    Raises:
        ValueError: The values are something else.
    """
    try:
        heads = tuple((int(layer), int(head)) for layer, head in values["heads"])
        joint, more = (_whole(values[name], len(heads)) for name in ("joint", "more"))
        return PairEffects(
            kind, str(values["by"]), heads, int(values["sentences"]), joint, more.astype(np.int64)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"This is not a measurement of pairs of heads ({error!r}).") from error


def _whole(triangle: Any, count: int) -> Doubles:
    """(count, count) the symmetric matrix of a lower triangle."""
    rows = [[*row, *[0.0] * (count - len(row))] for row in triangle]
    lower = np.array(rows, np.float64).reshape(count, count)
    whole: Doubles = lower + np.tril(lower, -1).T
    return whole
