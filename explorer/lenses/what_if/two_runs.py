"""The difference of two attention maps, and of two runs of one model up to the step where they
part."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind
from transformer.run import DecodeStep, Translation
from transformer.view import Array, BoolArray

Doubles = NDArray[np.float64]
Pair = tuple[int | None, int | None]
"""Positions in the first and second sequence, from 0; None if a sequence has no matching token."""
Both = tuple[int, int]
"""Positions in the base run and in the changed run, from 0."""


def align_tokens(first: Sequence[str], second: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs two sequences with the fewest edits (Levenshtein), the common beginning first."""
    start = next((i for i, (a, b) in enumerate(zip_longest(first, second)) if a != b), len(first))
    a = first[start:]
    b = second[start:]
    costs = [list(range(len(b) + 1))]  # number of edits between all prefixes
    for i, token in enumerate(a, start=1):
        line = [i]
        for j, against in enumerate(b, start=1):
            replaced = costs[-1][j - 1] + (token != against)
            line.append(min(replaced, costs[-1][j] + 1, line[-1] + 1))
        costs.append(line)
    pairs: list[Pair] = []
    i = len(a)
    j = len(b)
    while i or j:
        if i and j and costs[i][j] == costs[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            i = i - 1
            j = j - 1
            pairs.append((start + i, start + j))
        elif i and costs[i][j] == costs[i - 1][j] + 1:
            i -= 1
            pairs.append((start + i, None))
        else:
            j -= 1
            pairs.append((None, start + j))
    return (*((i, i) for i in range(start)), *pairs[::-1])


def in_both(pairs: Sequence[Pair]) -> tuple[Both, ...]:
    """The pairs that both sequences have."""
    return tuple((a, b) for a, b in pairs if a is not None and b is not None)


class Map(NamedTuple):
    """A whole attention map with the names of its rows and columns."""

    rows: Sequence[str]  # tokens of the queries
    columns: Sequence[str]  # tokens of the keys
    weights: Array  # (queries, keys)
    mask: BoolArray  # (queries, keys), True if a query may attend to the key


class Difference(NamedTuple):
    """The first map minus the second, over the rows and columns of both."""

    rows: tuple[Pair, ...]  # aligned rows
    columns: tuple[Pair, ...]  # aligned columns
    first: Array  # (rows, columns) weights of the first map; 0 for cells that it lacks
    second: Array  # the same for the second map
    # (rows, columns), True for cells that both maps have and that at least one mask allows
    compared: BoolArray
    values: Array  # (rows, columns) first − second for compared cells, else 0
    distances: (
        Array  # (rows,) ½ Σ |first − second| of rows that both maps have, from 0 to 1; else NaN
    )


def difference(first: Map, second: Map) -> Difference:
    """Aligns two maps and subtracts the second from the first."""
    axes = align_tokens(first.rows, second.rows), align_tokens(first.columns, second.columns)
    known = [
        np.ix_(*([pair[side] is not None for pair in axis] for axis in axes)) for side in (0, 1)
    ]
    weights = np.zeros((2, len(axes[0]), len(axes[1])), np.float32)
    mask = np.zeros(weights.shape, bool)
    present = np.zeros(weights.shape, bool)
    for side, one in enumerate((first, second)):
        weights[side][known[side]] = one.weights
        mask[side][known[side]] = one.mask
        present[side][known[side]] = True
    compared = present[0] & present[1] & (mask[0] | mask[1])
    a, b = weights
    rows = np.array([None not in pair for pair in axes[0]], bool)
    distances = np.where(rows, np.abs(a - b).sum(-1) / 2, np.float32(np.nan))
    return Difference(*axes, a, b, compared, np.where(compared, a - b, np.float32(0)), distances)


class Candidate(NamedTuple):
    """A token that could come next at a shared step."""

    token: str  # the piece
    token_id: int  # its id
    base: float  # its log-probability in the base run, in nats; NaN if it is not known
    changed: float  # the same in the changed run


class SharedStep(NamedTuple):
    """A step before which both runs had written the same tokens; or a mask of both texts."""

    base: DecodeStep  # what the base run wrote
    changed: (
        DecodeStep  # what the changed run wrote; another token only at the step where the runs part
    )
    kl: float  # Σ p ln(p / q) of the next token, in nats; NaN if a run was opened from a file
    candidates: tuple[
        Candidate, ...
    ]  # the most probable of either run, best first; with what both wrote
    delta_log_p: (
        float  # ln q(y) − ln p(y) of the token y that the base run wrote, in nats; NaN if not kept
    )


@dataclass(frozen=True, eq=False, repr=False)
class RunDifference:
    """A changed run beside its base."""

    base: Translation  # the run that it is compared with
    changed: Translation  # the run with changes
    # aligned predictions (base, changed), in the order of each text: of steps, or of masks at
    # aligned tokens
    target: tuple[Pair, ...]
    source: tuple[Pair, ...]  # aligned source tokens: pairs of positions (base, changed)
    parting: int | None  # first step, from 0, at which tokens differ or one run has ended; or None
    shared: tuple[Both, ...]  # those of `target` that are compared
    # of those, all before the parting, and the parting itself if both runs have it
    steps: tuple[SharedStep, ...]
    delta_log_p: Doubles  # (shared steps,) that of each, in nats
    kl: Doubles  # (shared steps,) KL(base ‖ changed) of the next-token distributions, in nats

    def common(self, kind: AttentionKind | str) -> tuple[tuple[Both, ...], tuple[Both, ...]]:
        """Rows and columns that the maps of a kind have in common: shared steps, or aligned source
        tokens."""
        shared = {"decoder": self.shared, "encoder": in_both(self.source)}
        site = self.base.config.sites[AttentionKind(kind)]
        return shared[site.query_side], shared[site.key_side]

    def map(self, kind: AttentionKind | str, layer: int, head: int) -> Array:
        """(rows, columns): changed − base weights of one head on ``common(kind)``; or
        NotCapturedError."""
        axes = self.common(kind)
        base, changed = (
            run.weights(kind, layer, head)[
                np.ix_(*([pair[side] for pair in axis] for axis in axes))
            ]
            for side, run in enumerate((self.base, self.changed))
        )
        return changed - base

    def largest(self, kind: AttentionKind | str) -> Array:
        """(layers, heads): the largest |changed − base| of each; raises as ``map``."""
        layers, heads = (
            self.base.config.sites[AttentionKind(kind)].n_layers,
            self.base.config.n_heads,
        )
        places = [self.map(kind, layer, head) for layer in range(layers) for head in range(heads)]
        return np.array([np.abs(place).max(initial=0.0) for place in places]).reshape(layers, heads)


def predicted(run: Translation) -> tuple[DecodeStep, ...]:
    """What a run predicted, in the order of the text."""
    return tuple(run.predictions.values())


def _masks_of_both(base: Translation, changed: Translation, source: Sequence[Pair]) -> list[Pair]:
    """The masks of two texts, in the order of each, in pairs at aligned tokens."""
    before, after = (
        {position: at for at, position in enumerate(run.fills)} for run in (base, changed)
    )
    pairs = list[Pair]()
    for i, j in source:
        pair = (None if i is None else before.get(i), None if j is None else after.get(j))
        if pair != (None, None):
            pairs.append(pair)
    return pairs


def shared_predictions(base: Translation, changed: Translation) -> tuple[Both, ...]:
    """What both runs predicted, by numbers from 0: steps, or masks at aligned tokens of the source."""
    source = align_tokens(base.source_tokens, changed.source_tokens)
    return _shared(base, changed, _masks_of_both(base, changed, source))


def _shared(base: Translation, changed: Translation, masks: Sequence[Pair]) -> tuple[Both, ...]:
    """The steps of both runs, of which an encoder alone has none, and the masks of both, of which
    a run that writes has none."""
    n_steps = min(len(base.steps), len(changed.steps))
    return (*((step, step) for step in range(n_steps)), *in_both(masks))


def compare_runs(base: Translation, changed: Translation) -> RunDifference:
    """Compares a run with another of the same model: with interventions, or of another text.

    A run of a file knows only its most probable tokens. ValueError if the models have different
    shapes.
    """
    runs = base, changed
    shapes = [(run.config.sites, run.config.n_heads, run.config.n_target_pieces) for run in runs]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "The two runs come from models of different shapes; compare runs of one model."
        )
    source = align_tokens(base.source_tokens, changed.source_tokens)
    masks = _masks_of_both(base, changed, source)
    target = (*align_tokens(base.target_tokens, changed.target_tokens), *masks)
    shared = _shared(base, changed, masks)
    # what stands at one mask changes nothing of what another mask is read with: only steps part
    pairs = enumerate(zip_longest(base.target_ids, changed.target_ids))
    parting = next((step for step, (before, after) in pairs if before != after), None)
    if parting is not None:
        shared = shared[: parting + 1]
    rows = [
        None if run.distributions is None else run.distributions().float().cpu().numpy()
        for run in runs
    ]
    before, after = map(predicted, runs)
    steps = [
        _shared_step(
            (before[i], after[j]),
            [None if row is None else row[at] for row, at in zip(rows, (i, j), strict=True)],
        )
        for i, j in shared
    ]
    return RunDifference(
        base=base,
        changed=changed,
        target=target,
        source=source,
        parting=parting,
        shared=shared,
        steps=tuple(steps),
        delta_log_p=np.array([step.delta_log_p for step in steps]),
        kl=np.array([step.kl for step in steps]),
    )


def _shared_step(steps: tuple[DecodeStep, DecodeStep], rows: Sequence[Array | None]) -> SharedStep:
    names = {step.token_id: step.token for step in steps}
    names |= {
        alternative.token_id: alternative.token
        for step in steps
        for alternative in step.alternatives
    }
    logs = []
    for step, row in zip(steps, rows, strict=True):
        known = {step.token_id: step.log_prob} | {
            alternative.token_id: alternative.log_prob for alternative in step.alternatives
        }
        logs.append([known.get(at, np.nan) if row is None else float(row[at]) for at in names])
    candidates = [Candidate(names[at], at, *pair) for at, *pair in zip(names, *logs, strict=True)]
    moved = candidates[0].changed - candidates[0].base  # the base run's token is named first
    candidates.sort(key=lambda each: -np.nanmax((each.base, each.changed)))
    p, q = rows
    divergence = np.nan
    if p is not None and q is not None:  # as log-probabilities
        log_p = p.astype(np.float64)
        log_q = q.astype(np.float64)
        with np.errstate(invalid="ignore"):
            terms = np.exp(log_p) * (log_p - log_q)
        divergence = max(0.0, float(np.where(np.isneginf(log_p), 0.0, terms).sum()))
    return SharedStep(*steps, divergence, tuple(candidates), moved)
