"""Where a run shows what an example claims: the row that predicts one word attends to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.lenses.words.groups import find_word
from transformer.config import AttentionKind
from transformer.run import Translation


@dataclass(frozen=True)
class ClaimHead:
    """A head that shows a claim."""

    layer: int  # layer of the cross-attention head, from 0
    head: int  # the head, from 0
    weight: float  # its weight on the source word, all pieces together


def heads_that_show(run: Translation, target: str, source: str, least: float) -> list[ClaimHead]:
    """Heads, strongest first, whose row predicting a word looks most, and so much, at a source word."""
    row, keys = find_word(run.target_tokens, target), find_word(run.source_tokens, source)
    if row is None or keys is None or run.attention is None:
        return []
    found = []
    for layer in range(run.config.sites[AttentionKind.CROSS].n_layers):
        rows = run.attention.weights(AttentionKind.CROSS, layer)[:, row[0]]
        for head, weights in enumerate(rows):
            weight = float(weights[keys[0] : keys[1] + 1].sum())
            if keys[0] <= int(np.argmax(weights)) <= keys[1] and weight >= least:
                found.append(ClaimHead(layer, head, weight))
    return sorted(found, key=lambda shown: -shown.weight)


def shared_heads(claim_heads: Sequence[Sequence[ClaimHead]]) -> list[ClaimHead | None]:
    """One head for each claim, so that one head shows as many as possible; None if no head shows it."""
    merits: dict[tuple[int, int], tuple[int, float]] = {}
    for shown in (each for heads in claim_heads for each in heads):
        count, total = merits.get((shown.layer, shown.head), (0, 0.0))
        merits[shown.layer, shown.head] = count + 1, total + shown.weight
    most = max(merits, key=lambda place: merits[place], default=None)
    return [
        next((each for each in heads if (each.layer, each.head) == most), heads[0] if heads else None)
        for heads in claim_heads
    ]
