"""Backup heads: which heads may take over when another is ablated (Wang et al. 2022, "backup name movers").

Every head of a kind is ablated alone, and then every pair of heads together. If a pair costs more than the
sum of the two, one of them may stand in for the other. But log p is curved, so that most pairs cost more: an
excess says something only beside those of other pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.interventions import HeadOutput, InterventionError, ablate
from transformer.interventions.base import SITES
from transformer.interventions.heads import OUTPUTS
from transformer.model.sites import AttentionKind, Head
from transformer.runs.batched import OneRun, Passes, RowChanges, Swap
from transformer.runs.translator import NO_MEANS, Translator
from transformer.runs.wording import InputError

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BackupHeads:
    """Effects of ablating heads of one kind, alone and in pairs."""

    kind: AttentionKind  # which attention
    by: str  # "zero" or "mean": what stands in the place of an ablated head's output
    heads: tuple[Head, ...]  # all heads of the kind, in the order of the axes
    # (sentences, heads, heads) Δ log p per token of the model's own translation, in nats, with both heads
    # ablated; on the diagonal with one
    effects: Doubles


def backup_heads(
    translator: Translator, texts: Iterable[str], kind: AttentionKind | str, by: str = "mean"
) -> Iterator[BackupHeads]:
    """Ablates heads of one kind, alone and in pairs, and scores each sentence's own translation.

    Yields the effects so far after each sentence that is not too long for the model; InterventionError if it
    has no such attention, or no mean outputs.
    """
    kind, heads = _checked(translator, kind, by)
    count = len(heads)
    sets = [(), *((at,) for at in range(count)), *combinations(range(count), 2)]
    swaps = [_swap(translator, kind, by, head) for head in heads]
    runs: list[OneRun] = [[swaps[at] for at in places] for places in sets]
    effects = np.zeros((0, count, count))
    for text in texts:
        if (passes := _passes(translator, text)) is not None:
            base, *means = (mean for part in passes.parts(runs) for mean in part.double().mean(-1).tolist())
            joint = np.zeros((1, count, count))
            for places, mean in zip(sets[1:], means, strict=True):
                joint[0, places[0], places[-1]] = joint[0, places[-1], places[0]] = mean - base
            effects = np.concatenate([effects, joint])
        yield BackupHeads(kind, by, heads, effects)


def _checked(
    translator: Translator, kind: AttentionKind | str, by: str
) -> tuple[AttentionKind, tuple[Head, ...]]:
    """The kind, and all of its heads."""
    if by not in OUTPUTS:
        raise InterventionError(f"Backup heads are found by {' or '.join(OUTPUTS)}, not by {by!r:.40}.")
    if by == "mean" and translator.means is None:
        raise InterventionError(NO_MEANS)
    kind = ablate(kind, 0, 0).kind
    sites, n_heads = translator.config.sites, translator.config.n_heads
    if kind not in sites:
        raise InterventionError(f"This model has no {SITES[kind]}.")
    return kind, tuple((layer, head) for layer in range(sites[kind].n_layers) for head in range(n_heads))


def _swap(translator: Translator, kind: AttentionKind, by: str, head: Head) -> Swap:
    vector = torch.zeros(translator.config.d_head)
    if by == "mean" and translator.means is not None:
        vector = translator.means.of(kind, head[0], (head[1],))[0]
    return Swap(HeadOutput(kind, *head), vector)


def _passes(translator: Translator, text: str) -> Passes[Swap] | None:
    """Passes over a text and the model's own translation of it; None if the text is empty or too long."""
    try:
        done = translator.translate(text, capture=False)
    except InputError:
        return None
    ids = *translator.ids(text), translator.config.eos_id
    return Passes(translator.model, ids, done.target_ids, RowChanges)
