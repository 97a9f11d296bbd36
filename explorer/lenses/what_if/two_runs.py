"""The difference between two runs of one model: what the second wrote, predicted and attended to instead.

Two runs can be compared step by step as long as both have written the same tokens: then their next-token
distributions answer the same question. At the step where they part this still holds; after it, each run
has a context of its own, and no number here compares them. In a forced pair (``Translator.force`` with one
target), all steps can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.what_if.difference import Pair, align_tokens
from transformer.config import AttentionKind, Side
from transformer.run import DecodeStep, Translation

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Both = tuple[int, int]
"""A position in the base run and the one in the changed run, from 0."""
UNKNOWN = float("nan")


@dataclass(frozen=True)
class Candidate:
    """A token that could come next at a shared step."""

    token: str  # the piece
    token_id: int  # its id
    base: float  # its log-probability in the base run, in nats; NaN if it is not known
    changed: float  # the same in the changed run


@dataclass(frozen=True)
class SharedStep:
    """A step before which both runs had written the same tokens."""

    base: DecodeStep  # what the base run wrote
    changed: DecodeStep  # what the changed run wrote; another token only at the step where the runs part
    # KL(base ‖ changed) = Σ p ln(p / q) of the next-token distributions, in nats; NaN if a run was opened
    # from a file, which keeps only the most probable tokens
    kl: float
    # the most probable tokens of either run, by their larger probability, best first; what the two runs wrote
    # is always among them
    candidates: tuple[Candidate, ...]

    @property
    def delta_log_p(self) -> float:
        """ln q(y) − ln p(y) of the token y that the base run wrote, in nats; negative if it became less
        probable. NaN if a run was opened from a file that does not keep it."""
        found = next(each for each in self.candidates if each.token_id == self.base.token_id)
        return found.changed - found.base


class Common(NamedTuple):
    """Common part of two maps: pairs of positions (base, changed), from 0."""

    rows: tuple[Both, ...]  # in the decoder, the rows of shared steps; in the encoder, aligned source tokens
    columns: tuple[Both, ...]  # aligned keys of these rows


@dataclass(frozen=True, eq=False, repr=False)
class RunDifference:
    """A changed run beside its base."""

    base: Translation  # the run that it is compared with
    changed: Translation  # the run with changes
    # Aligned target tokens: pairs of steps (base, changed) by the fewest insertions, deletions and
    # replacements (Levenshtein); None if a run has no such token. A replacement is a pair too.
    target: tuple[Pair, ...]
    source: tuple[Pair, ...]  # the same for the source tokens
    # the first step, from 0, at which the runs write different tokens, or only one still writes; None if both
    # wrote the same
    parting: int | None
    # the shared steps: all before the parting, and the parting itself if both runs have it
    steps: tuple[SharedStep, ...]

    @property
    def delta_log_p(self) -> Doubles:
        """(shared steps,) changed − base log-probability of the base run's token, in nats."""
        return np.array([step.delta_log_p for step in self.steps])

    @property
    def kl(self) -> Doubles:
        """(shared steps,) KL(base ‖ changed) of the next-token distributions, in nats."""
        return np.array([step.kl for step in self.steps])

    def common(self, kind: AttentionKind | str) -> Common:
        """The rows and columns that the maps of one kind have in common in both runs."""
        site = self.base.config.sites[AttentionKind(kind)]
        return Common(self._common(site.query_side), self._common(site.key_side))

    def maps(self, kind: AttentionKind | str, layer: int) -> Floats:
        """(heads, rows, columns) changed − base weights of a layer (from 0), on ``common(kind)``.

        NotCapturedError if a run was made without capture.
        """
        return np.stack([self.map(kind, layer, head) for head in range(self.base.config.n_heads)])

    def map(self, kind: AttentionKind | str, layer: int, head: int) -> Floats:
        """(rows, columns): changed − base weights of one head on ``common(kind)``; raises as ``maps``."""
        common = self.common(kind)
        sides = [
            run.weights(kind, layer, head)[np.ix_(*([pair[at] for pair in axis] for axis in common))]
            for at, run in enumerate((self.base, self.changed))
        ]
        found: Floats = sides[1] - sides[0]
        return found

    def largest(self, kind: AttentionKind | str) -> Floats:
        """(layers, heads): the largest |changed − base| of each; NotCapturedError as for ``maps``."""
        return self._largest[AttentionKind(kind)]

    @cached_property
    def _largest(self) -> dict[AttentionKind, Floats]:
        return {
            kind: np.stack(
                [np.abs(self.maps(kind, layer)).max((1, 2), initial=0.0) for layer in range(site.n_layers)]
            )
            for kind, site in self.base.config.sites.items()
        }

    def _common(self, side: Side) -> tuple[Both, ...]:
        if side == "decoder":
            return tuple((step, step) for step in range(len(self.steps)))
        return tuple((a, b) for a, b in self.source if a is not None and b is not None)


def compare_runs(base: Translation, changed: Translation) -> RunDifference:
    """Compares a run with a changed run of the same model.

    Next-token distributions are computed again: one uncached, teacher-forced pass over each run, with the
    changes of each. A run that was opened from a file knows only its most probable tokens; then Δ log p is
    given only for tokens that both runs keep, and KL not at all.

    Args:
        base: The run to compare with, such as one without changes.
        changed: The other run: of the same text with interventions, or of another text.

    Raises:
        ValueError: The runs come from models of different shapes.
    """
    _check(base, changed)
    parting = _parting(base.target_ids, changed.target_ids)
    longest = min(len(base.steps), len(changed.steps))
    shared = longest if parting is None else min(parting + 1, longest)
    return RunDifference(
        base,
        changed,
        align_tokens(base.target_tokens, changed.target_tokens),
        align_tokens(base.source_tokens, changed.source_tokens),
        parting,
        _shared_steps(base, changed, shared),
    )


def _check(base: Translation, changed: Translation) -> None:
    shapes = [(c.sites, c.n_heads, c.n_target_pieces) for c in (base.config, changed.config)]
    if shapes[0] != shapes[1]:
        raise ValueError("The two runs come from models of different shapes; compare runs of one model.")


def _parting(base: tuple[int, ...], changed: tuple[int, ...]) -> int | None:
    for step, (one, other) in enumerate(zip(base, changed, strict=False)):
        if one != other:
            return step
    return None if len(base) == len(changed) else min(len(base), len(changed))


def _shared_steps(base: Translation, changed: Translation, shared: int) -> tuple[SharedStep, ...]:
    rows = [_distributions(run) for run in (base, changed)]
    found = []
    for step, pair in enumerate(zip(base.steps[:shared], changed.steps[:shared], strict=True)):
        p, q = (None if each is None else each[step] for each in rows)
        kl = UNKNOWN if p is None or q is None else kl_divergence(p, q)
        found.append(SharedStep(*pair, kl, _candidates(pair, (p, q))))
    return tuple(found)


def _distributions(run: Translation) -> Floats | None:
    """(target, pieces) log-probabilities; None if the run cannot be repeated."""
    if run.distributions is None:
        return None
    found: Floats = run.distributions().float().cpu().numpy()
    return found


def kl_divergence(p: Floats, q: Floats) -> float:
    """Σ p ln(p / q), in nats, of two distributions (pieces,) given as log-probabilities."""
    one, other = p.astype(np.float64), q.astype(np.float64)
    with np.errstate(invalid="ignore"):
        terms = np.exp(one) * (one - other)
    return max(0.0, float(np.where(np.isneginf(one), 0.0, terms).sum()))


def _candidates(
    steps: tuple[DecodeStep, DecodeStep], rows: tuple[Floats | None, Floats | None]
) -> tuple[Candidate, ...]:
    named = {step.token_id: step.token for step in steps}
    named |= {each.token_id: each.token for step in steps for each in step.alternatives}
    base, changed = (_log_probs(list(named), *side) for side in zip(steps, rows, strict=True))
    found = [
        Candidate(token, token_id, p, q)
        for (token_id, token), p, q in zip(named.items(), base, changed, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: -np.nanmax((each.base, each.changed))))


def _log_probs(token_ids: list[int], step: DecodeStep, row: Floats | None) -> list[float]:
    """Log-probabilities of tokens at a step: of the whole distribution, or as far as the step keeps them."""
    if row is not None:
        whole: list[float] = row[token_ids].astype(float).tolist()
        return whole
    kept = {step.token_id: step.log_prob}
    kept |= {each.token_id: each.log_prob for each in step.alternatives}
    return [kept.get(token_id, UNKNOWN) for token_id in token_ids]
