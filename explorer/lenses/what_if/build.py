"""A query l (a k̂_i + b k̂_j) in the plane of two keys of a head, in the place of the model's
own."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from explorer.lenses.measures.stream import UnmeasuredError
from transformer.attention import attention_weights
from transformer.config import PlacedHead
from transformer.run import Translation
from transformer.trace import LayerTrace
from transformer.view import Array, Window

COPY, HALF, NEAR = 0.95, 0.5, 0.02
"""A key is copied from this weight on; two are averaged if both weights are so near to a half."""
FURTHEST = 100.0
"""Largest |l a| and |l b| that are searched for the best query: what a visitor can set."""
DRAWS = 200
SAFE = 0.99
"""The weight of a copy that is compared with a balance: as long a query as this takes, and no
longer."""
_GRID, _ROUNDS, _PAIRS, _HALVINGS = 33, 5, 40, 8
Pair = tuple[int, int]


def short_of(goal: str, first: float, second: float) -> float:
    """How far the weights of the two keys are from a goal; 0 or less if it is reached."""
    if goal == "copy":
        return COPY - first
    return max(abs(first - HALF), abs(second - HALF)) - NEAR


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of two keys of a head, for one of its rows."""

    record: LayerTrace  # the sub-layer
    head: int  # from 0
    row: int  # the row whose query is replaced, from 0
    pair: Pair  # keys i and j, from 0
    keys: Tensor  # (keys, d_head) the head's keys
    mask: Tensor  # (keys,) True for keys that the row may see

    @property
    def units(self) -> Tensor:
        """(2, d_head) the two keys, each of length 1."""
        return normalize(self.keys[[*self.pair]], dim=-1)

    @property
    def flat(self) -> Array:
        """(keys, 2) all keys seen from above the plane: the first axis is k̂_i, the other at right
        angles."""
        first, second = self.units
        across = normalize(second - (second @ first) * first, dim=0)
        places: Array = (self.keys @ torch.stack([first, across]).T).numpy()
        return places

    def query(self, a: float, b: float, length: float = 1.0) -> Tensor:
        """(d_head,) length · (a k̂_i + b k̂_j)."""
        return length * (a * self.units[0] + b * self.units[1])

    def scores(self, query: Tensor) -> Tensor:
        """(keys,) q·k / √d_k, with the bias of positions if there is one, of a query (d_head,) in
        the row."""
        record = replace(self.record, query=query.expand_as(self.record.query), used_weights=None)
        window = Window(self.row, self.row + 1, 0, self.record.shape[2])
        return record.map(self.head, window).scores[0]

    def weights(self, query: Tensor) -> Array:
        """(keys,) the softmax of the scores over the keys that the row may see."""
        weights: Array = attention_weights(self.scores(query), self.mask).numpy()
        return weights

    def best(self, goal: str, furthest: float = FURTHEST) -> tuple[float, tuple[float, float]]:
        """The largest weight that a query of the plane can give, and l·a and l·b, at most
        `furthest`, of it.

        Of the first key for "copy"; for "average" of the lesser of the two. The logarithm of a
        weight is concave in the query, so a grid that closes in on the best of a line, and of all
        lines, finds it.
        """
        base = self.scores(self.query(0, 0)).double()
        slopes = [self.scores(unit).double() - base for unit in self.units]
        chosen = list(self.pair[: 1 if goal == "copy" else 2])
        step = torch.linspace(0, 1, _GRID).double()
        low = -furthest
        high = furthest
        lines = torch.arange(_GRID)
        for _ in range(_ROUNDS):
            a = low + (high - low) * step
            start, stop = (
                torch.full((_GRID,), end, dtype=torch.double) for end in (-furthest, furthest)
            )
            for _ in range(_ROUNDS):
                b = start[:, None] + (stop - start)[:, None] * step
                scores = base + a[:, None, None] * slopes[0] + b[..., None] * slopes[1]
                least = attention_weights(scores, self.mask)[..., chosen].amin(-1)
                at = least.argmax(1)
                start = b[lines, (at - 1).clamp(0)]
                stop = b[lines, (at + 1).clamp(max=_GRID - 1)]
            line = int(least[lines, at].argmax())
            low = float(a[max(line - 1, 0)])
            high = float(a[min(line + 1, _GRID - 1)])
        return float(least[line, at[line]]), (float(a[line]), float(b[line, at[line]]))

    def copying(self) -> Tensor:
        """(d_head,) about the shortest query that gives key i a weight of `SAFE`; if none does, the
        best."""
        short, long = 0.0, FURTHEST
        for _ in range(_HALVINGS):
            middle = (short + long) / 2
            short, long = (
                (short, middle) if self.best("copy", middle)[0] >= SAFE else (middle, long)
            )
        return self.query(*self.best("copy", long)[1])

    def disturbed(self, query: Tensor, share: float) -> NDArray[np.float64]:
        """(DRAWS, keys) weights after each key moved by a share of its length in fixed random
        directions."""
        keys = self.keys.double()
        noise = torch.from_numpy(np.random.default_rng(0).standard_normal((DRAWS, *keys.shape)))
        noise *= share * keys.norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)
        moved = noise @ query.double() / self.record.score.divisor(keys.shape[-1])
        weights: NDArray[np.float64] = attention_weights(
            self.scores(query) + moved, self.mask
        ).numpy()
        return weights


def plane_of(run: Translation, place: PlacedHead, row: int, pair: Pair | None, goal: str) -> Plane:
    """The plane of two keys; without a pair that the row sees, one in which the goal is reached.

    UnmeasuredError if the row has no two keys, or the scores do not come from q·k / √d_k.
    """
    record = run.trace.layer(*place)
    head = place[2]
    if record.score.name != "scaled_dot" or record.focus is not None:
        raise UnmeasuredError(
            "The scores of this model's heads are not q·k / √d_k, so no query is built."
        )
    plane = Plane(
        record=record,
        head=head,
        row=row,
        pair=(0, 0),
        keys=record.keys(head),
        mask=record.mask()[row],
    )
    seen = torch.nonzero(plane.mask)[:, 0].tolist()
    if len(seen) < 2:
        raise UnmeasuredError("This row sees only one key, so there is nothing to choose between.")
    if pair is not None and pair[0] != pair[1] and {*pair} <= {*seen}:
        return replace(plane, pair=pair)
    units = normalize(plane.keys, dim=-1)
    pairs = sorted(combinations(seen, 2), key=lambda keys: float(units[keys[0]] @ units[keys[1]]))
    planes = [replace(plane, pair=keys) for keys in pairs[:_PAIRS]]
    least = COPY if goal == "copy" else HALF - NEAR
    return next((plane for plane in planes if plane.best(goal)[0] > least), planes[0])
