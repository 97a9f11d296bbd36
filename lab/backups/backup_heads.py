"""Backup heads: which heads may take over when another is ablated (Wang et al. 2022, "backup name movers").

Every head of a kind is ablated alone, and then every pair of heads together. If a pair costs more than the
sum of the two, one of them may stand in for the other. But log p is curved, so that most pairs cost more: an
excess says something only beside those of other pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.interventions import HeadOutput, InterventionError, ablate
from transformer.interventions.base import SITES
from transformer.interventions.heads import OUTPUTS
from transformer.model.sites import AttentionKind
from transformer.runs.prepared import NO_MEANS
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.what_if.batched import OneRun, Passes, Swap

Doubles = NDArray[np.float64]
Head = tuple[int, int]
"""Layer and head, both from 0."""
Progress = Callable[[int, int], None]
"""Is told how many sentences are done, and how many there are."""


@dataclass(frozen=True, eq=False)
class BackupHeads:
    """Effects of ablating heads of one kind, alone and in pairs."""

    kind: AttentionKind  # which attention
    by: str  # "zero" or "mean": what stands in the place of an ablated head's output
    head: Head | None  # the head that was paired with all others; None if all were
    heads: tuple[Head, ...]  # all heads of the kind, in the order of the axes
    texts: tuple[str, ...]  # the sentences that were measured
    # (sentences, heads, heads) Δ log p per token of the model's own translation, in nats, with both heads
    # ablated; on the diagonal with one. NaN for pairs that were not asked for.
    effects: Doubles

    @property
    def joint(self) -> Doubles:
        """(heads, heads) mean effect of each pair over the sentences; of each head alone on the diagonal.

        Raises:
            ValueError: No sentence has been read yet.
        """
        if not self.texts:
            raise ValueError("No sentence has been read yet.")
        mean: Doubles = self.effects.mean(0)
        return mean

    @property
    def alone(self) -> Doubles:
        """(heads,) mean effect of each head alone; raises as ``joint``."""
        return self.joint.diagonal().copy()

    @property
    def excess(self) -> Doubles:
        """(heads, heads) effect of a pair − effects of both alone; NaN on the diagonal; raises as ``joint``.

        Below 0, a pair is missed more than its parts: one may be a backup of the other. Near 0, both act by
        themselves. Above 0, they may need each other: without one, the other is of less use.
        """
        return excess_of(self.joint)


def excess_of(joint: Doubles) -> Doubles:
    """(heads, heads) effect of each pair − effects of both alone, from ``joint``; NaN on the diagonal."""
    alone = joint.diagonal()
    excess: Doubles = joint - alone[:, None] - alone
    np.fill_diagonal(excess, np.nan)
    return excess


def backup_heads(
    translator: Translator,  # the model
    texts: Sequence[str],  # the sentences; those that are too long for the model are left out
    kind: AttentionKind | str,  # "encoder", "decoder" or "cross"
    head: Head | None = None,  # layer and head, from 0, that is paired with every other; None for all pairs
    by: str = "mean",  # "mean" or "zero"
    progress: Progress | None = None,  # is called after each sentence
    # is asked before each pass; if it returns True, the sentences done so far are returned
    cancelled: Callable[[], bool] | None = None,
    so_far: BackupHeads | None = None,  # an earlier result to continue; its sentences are not measured again
) -> BackupHeads:
    """Ablates heads of one kind, alone and in pairs, and scores each sentence's own translation.

    Raises:
        InterventionError: The model has no such head, no mean outputs, or the head is ablated otherwise.
        ValueError: ``so_far`` measured something else.
    """
    asked = _nothing(translator, kind, head, by)
    measured = asked if so_far is None else _checked(so_far, asked)
    ablations = _Ablations(translator, asked)
    for number, text in enumerate(texts, start=1):
        if text not in measured.texts:
            found = ablations.effects(text, cancelled or _never)
            if found is None:
                return measured
            measured = _with(measured, text, found)
        if progress is not None:
            progress(number, len(texts))
    return measured


def _checked(earlier: BackupHeads, asked: BackupHeads) -> BackupHeads:
    """An earlier result, if it answers the same question."""
    one, other = ((each.kind, each.by, each.head, each.heads) for each in (earlier, asked))
    if one != other:
        raise ValueError("The earlier result belongs to other heads; start again without it.")
    return earlier


def _with(measured: BackupHeads, text: str, effects: Doubles) -> BackupHeads:
    """A result with one more sentence, or the same if the sentence could not be read."""
    if not effects.size:
        return measured
    joined = np.concatenate([measured.effects, effects[None]])
    return replace(measured, texts=(*measured.texts, text), effects=joined)


def _never() -> bool:
    return False


def _nothing(translator: Translator, kind: AttentionKind | str, head: Head | None, by: str) -> BackupHeads:
    """A result without sentences, whose arguments are checked."""
    if by not in OUTPUTS:
        raise InterventionError(f"Backup heads are found by {' or '.join(OUTPUTS)}, not by {by!r:.40}.")
    if by == "mean" and translator.means is None:
        raise InterventionError(NO_MEANS)
    layer, number = head or (0, 0)
    kind = ablate(kind, layer, number).kind
    config = translator.config
    if kind not in config.sites:
        raise InterventionError(f"This model has no {SITES[kind]}.")
    heads = tuple((at, each) for at in range(config.sites[kind].n_layers) for each in range(config.n_heads))
    if head is not None and head not in heads:
        raise InterventionError(f"There is no layer {layer + 1} with a head {number + 1} in this model.")
    return BackupHeads(kind, by, head, heads, (), np.zeros((0, len(heads), len(heads))))


class _Ablations:
    """Every ablation that a result asks for."""

    def __init__(
        self,
        translator: Translator,  # the model
        asked: BackupHeads,  # a result without sentences
    ) -> None:
        self._translator, self._asked = translator, asked
        count = len(asked.heads)
        own = None if asked.head is None else asked.heads.index(asked.head)
        pairs = [pair for pair in combinations(range(count), 2) if own is None or own in pair]
        self._sets: list[tuple[int, ...]] = [(), *((at,) for at in range(count)), *pairs]
        swaps = [self._swap(*place) for place in asked.heads]
        self._runs: list[OneRun] = [[swaps[at] for at in each] for each in self._sets]

    def _swap(self, layer: int, head: int) -> Swap:
        kind, means = self._asked.kind, self._translator.means
        vector = torch.zeros(self._translator.config.d_head)
        if self._asked.by == "mean":
            assert means is not None
            vector = means.of(kind, layer, (head,))[0]
        return Swap(HeadOutput(kind, layer, head), vector)

    def effects(self, text: str, cancelled: Callable[[], bool]) -> Doubles | None:
        """(heads, heads) Δ log p per target token of one sentence; empty if the sentence is too long.

        Returns:
            None if cancelled.
        """
        passes = self._passes(text)
        if passes is None:
            return np.zeros((0, 0))
        means: list[float] = []
        parts = passes.parts(self._runs)
        while len(means) < len(self._runs):
            if cancelled():
                return None
            means += next(parts).double().mean(-1).tolist()
        return self._matrix([mean - means[0] for mean in means])

    def _passes(self, text: str) -> Passes | None:
        """Passes over a text and the model's own translation of it; None if the text is empty or too long."""
        translator = self._translator
        try:
            done = translator.translate(text, capture=False)
        except InputError:
            return None
        ids = (*translator.ids(text), translator.config.eos_id)
        return Passes(translator.model, ids, done.target_ids)

    def _matrix(self, effects: Sequence[float]) -> Doubles:
        count = len(self._asked.heads)
        matrix = np.full((count, count), np.nan)
        for heads, effect in zip(self._sets, effects, strict=True):
            if heads:
                matrix[heads[0], heads[-1]] = matrix[heads[-1], heads[0]] = effect
        return matrix
