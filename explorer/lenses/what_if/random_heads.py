"""The control beside a change of heads: the same change at random other heads of the same layer.

Without it, the effect of a change means little: if any head of a layer costs as much, the chosen head is
nothing special.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.config import ModelConfig
from transformer.interventions import Intervention, InterventionError, Patch
from transformer.text.kinds import at_least
from transformer.translator import Translator

Doubles = NDArray[np.float64]
COUNT = 20
"""Most controls: if there are more, this many are drawn."""


@dataclass(frozen=True, eq=False)
class RandomHeads:
    """The effect of a change on a given output, and of the same change at other heads."""

    change: Intervention  # the change
    controls: tuple[Intervention, ...]  # the same change at other heads of its layer
    base: Doubles  # (target,) log-probability of each target token without the change, in nats
    with_change: Doubles  # (target,) the same with it
    with_controls: Doubles  # (controls, target) the same with each control in its place
    complete: bool  # whether the controls are all that there are, not a random sample of them

    @property
    def effect(self) -> float:
        """Δ log p of the whole target by the change, in nats; negative if it became less probable."""
        return float((self.with_change - self.base).sum())

    @property
    def effects(self) -> Doubles:
        """(controls,) Δ log p of the whole target by each control, in nats."""
        effects: Doubles = (self.with_controls - self.base).sum(-1)
        return effects

    @property
    def as_large(self) -> int:
        """Number of controls that move the target's log-probability at least as far as the change does."""
        return int((np.abs(self.effects) >= abs(self.effect)).sum())


def random_heads(
    translator: Translator,  # the model
    text: str,  # the source
    # the output whose log-probability is measured, as in ``Translator.force``
    target: str | Sequence[int] | Sequence[str],
    change: Intervention,  # a change of one head or several, or a patch of a head's output
    beside: Iterable[Intervention] = (),  # other changes, which hold in every run
    count: int = COUNT,  # most controls; all other heads are taken if they are no more, else a random sample
    seed: int = 0,  # seed of the sample
) -> RandomHeads:
    """Measures a change of heads, and the same change at other heads of the same kind and layer.

    InputError if a text is empty or too long; InterventionError if a change does not fit, is not one of
    heads, or leaves too few heads for a control; ValueError if ``count`` is below 1.
    """
    controls, complete = same_change_elsewhere(change, translator.config, count, seed)
    others = tuple(beside)

    def log_probs(*changes: Intervention) -> list[float]:
        done = translator.force(text, target, capture=False, interventions=(*others, *changes))
        return list(done.log_probs)

    return RandomHeads(
        change,
        controls,
        np.array(log_probs()),
        np.array(log_probs(change)),
        np.array([log_probs(each) for each in controls]),
        complete,
    )


def same_change_elsewhere(
    change: Intervention, config: ModelConfig, count: int = COUNT, seed: int = 0
) -> tuple[tuple[Intervention, ...], bool]:
    """A change at as many other heads of its layer; and whether these are all ways to choose such heads.

    Errors as for ``random_heads``.
    """
    at_least(1).check("count", count)
    if change.part not in ("scores", "weights", "heads"):
        raise InterventionError(
            f"Random heads are a control for a change of heads, not for this one: {change}."
        )
    own = change.heads(config.n_heads)
    free = [head for head in range(config.n_heads) if head not in own]
    ways = math.comb(len(free), len(own))
    if not ways:
        raise InterventionError(
            f"A control needs {len(own)} other heads of the same layer, and there are {len(free)}."
        )
    return tuple(_moved(change, heads) for heads in _drawn(free, len(own), count, seed)), ways <= count


def _moved(change: Any, heads: tuple[int, ...]) -> Intervention:
    moved: dict[str, Any] = {"head": heads}
    if isinstance(change, Patch):
        moved = {"place": f"{change.hook}.{heads[0]}"}
    other: Intervention = replace(change, **moved)
    return other


def _drawn(free: Sequence[int], size: int, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """All sets of ``size`` heads if they are no more than ``count``, else ``count`` different ones."""
    if math.comb(len(free), size) <= count:
        yield from combinations(free, size)
        return
    generator = torch.Generator().manual_seed(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        order = torch.randperm(len(free), generator=generator)[:size].tolist()
        found[tuple(sorted(free[at] for at in order))] = None
    yield from found
