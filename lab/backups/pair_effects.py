"""Result of a measurement of backup heads: the pairs of heads, and the head that takes over.

It is small enough for a file (`backups.json`), so that a page can show it without measuring again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.backups.backup_heads import BackupHeads, Doubles
from lab.measurement import Json
from transformer.model.sites import AttentionKind, Head
from transformer.storage.description import BACKUPS_FILE
from transformer.storage.marks import measured_as

SEED, DRAWS = 1, 1000
"""Of the bootstrap over sentences."""


@dataclass(frozen=True)
class TakeOver:
    """A head missed less alone than when another is ablated; effects are Δ log p per token, in nats."""

    off: Head  # the other head, which is missed more alone
    head: Head  # the head that may take over
    usual: float  # the effect of ablating it alone
    then: float  # the effect of ablating it when the other is off
    low: float  # 95 % interval of the excess, then − usual, over the sentences
    high: float  # 95 % interval of the excess, then − usual, over the sentences
    sentences: int  # in how many sentences both together cost more than the sum of each alone
    control: float  # mean excess of the other head with all remaining heads
    strongest: float  # the lowest of these


@dataclass(frozen=True, eq=False)
class PairEffects:
    """Effects of ablating the heads of one kind, alone and in pairs, over many sentences."""

    kind: AttentionKind  # which attention
    by: str  # "zero" or "mean": what stood in the place of an ablated head's output
    heads: tuple[Head, ...]  # all heads of the kind, in the order of the axes
    sentences: int  # number of sentences measured
    # (heads, heads) mean Δ log p per token, in nats, of each pair; of each head alone on the diagonal
    joint: Doubles
    # (heads, heads) in how many sentences a pair costs more than the sum of each alone
    more: NDArray[np.int64]
    low: Doubles  # (heads, heads) ends of the 95 % interval of the excess, by resampling the sentences
    high: Doubles  # (heads, heads) ends of the 95 % interval of the excess, by resampling the sentences

    @property
    def alone(self) -> Doubles:
        """(heads,) effect of each head alone."""
        return self.joint.diagonal().copy()

    @property
    def excess(self) -> Doubles:
        """(heads, heads) effect of a pair − effects of both alone; NaN on the diagonal.

        Below 0, a pair is missed more than its parts: one may be a backup of the other. Near 0, both act by
        themselves. Above 0, they may need each other: without one, the other is of less use.
        """
        return excess_of(self.joint)

    def take_overs(self) -> tuple[TakeOver, ...]:
        """The pairs that cost more than the sum of each head alone, the largest excess first.

        The excess of a pair is symmetric; its head that is hardly missed alone may be the backup.
        """
        excess, alone = self.excess, self.alone
        pairs = [
            (float(excess[pair]), *(pair if alone[pair[0]] < alone[pair[1]] else pair[::-1]))
            for pair in combinations(range(len(self.heads)), 2)
        ]
        return tuple(
            self._take_over(off, head) for each, off, head in sorted(pairs) if each < 0 and alone[off] < 0
        )

    def _take_over(self, off: int, head: int) -> TakeOver:
        others = np.delete(self.excess[off], (off, head))
        return TakeOver(
            self.heads[off],
            self.heads[head],
            float(self.joint[head, head]),
            float(self.joint[off, head] - self.joint[off, off]),
            float(self.low[off, head]),
            float(self.high[off, head]),
            int(self.more[off, head]),
            *((float(others.mean()), float(others.min())) if len(others) else (math.nan, math.nan)),
        )


def pair_effects(found: BackupHeads) -> PairEffects:
    """Result of a measurement so far, after at least one sentence."""
    if not len(found.effects):
        raise ValueError("No sentence has been read yet.")
    excess = np.stack([excess_of(joint) for joint in found.effects])
    more = np.asarray((excess < 0).sum(0), np.int64)
    draws = np.random.default_rng(SEED).multinomial(len(excess), [1 / len(excess)] * len(excess), DRAWS)
    means = np.tensordot(draws, np.nan_to_num(excess), 1) / len(excess)
    low, high = np.percentile(means, (2.5, 97.5), axis=0)
    joint: Doubles = found.effects.mean(0)
    return PairEffects(found.kind, found.by, found.heads, len(excess), joint, more, low, high)


def excess_of(joint: Doubles) -> Doubles:
    """(heads, heads) effect of each pair − effects of both alone; NaN on the diagonal."""
    alone = joint.diagonal()
    excess: Doubles = joint - alone[:, None] - alone
    np.fill_diagonal(excess, np.nan)
    return excess


def to_json(found: PairEffects) -> Json:
    """A measurement as JSON values: of each matrix the lower triangle, row by row."""
    rows = range(len(found.heads))
    return {
        "by": found.by,
        "sentences": found.sentences,
        "heads": [list(head) for head in found.heads],
        **{
            name: [[round(float(each), 6) for each in values[i, : i + 1]] for i in rows]
            for name, values in (("joint", found.joint), ("low", found.low), ("high", found.high))
        },
        "more": [found.more[i, : i + 1].tolist() for i in rows],
    }


def effects_of(directory: Path) -> dict[AttentionKind, PairEffects]:
    """Results of the model of a directory, by kind."""
    return measured_as(directory, BACKUPS_FILE, _effects) or {}


def _effects(values: Mapping[str, Any]) -> dict[AttentionKind, PairEffects]:
    return {
        AttentionKind(kind): from_json(AttentionKind(kind), each) for kind, each in values["kinds"].items()
    }


def from_json(kind: AttentionKind, values: Mapping[str, Any]) -> PairEffects:
    """Reads what ``to_json`` wrote; an error of any sort says that it is something else."""
    heads = tuple((int(layer), int(head)) for layer, head in values["heads"])
    joint, more, *ends = (_whole(values[name], len(heads)) for name in ("joint", "more", "low", "high"))
    return PairEffects(kind, values["by"], heads, values["sentences"], joint, more.astype(np.int64), *ends)


def _whole(triangle: Any, count: int) -> Doubles:
    """(count, count) the symmetric matrix of a lower triangle."""
    rows = [[*row, *[0.0] * (count - len(row))] for row in triangle]
    lower = np.array(rows, np.float64).reshape(count, count)
    whole: Doubles = lower + np.tril(lower, -1).T
    return whole
