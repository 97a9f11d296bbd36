"""Agreement of two decoders on the source tokens that they read when they write the same text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.measurement import Json
from lab.twins.twins import Twins
from transformer.lenses.scores.bootstrap import Floats, compare, ratio
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair

PAIRS = 200
"""Pairs that are compared at most."""


def agreement(twins: Twins, pairs: Sequence[SentencePair], reference: str) -> Json:
    """Agreement of the cross-attention of each model with that of the reference, on forced targets.

    Compared is the mean over heads of each last layer, row by row: the share of weight that two rows
    have in common, Σ min(α, β) = 1 − total variation distance; and how often both have their largest one on
    the same token. Beside it, the row that is uniform.
    """
    pairs = pairs[:: max(1, len(pairs) // PAIRS)][:PAIRS]
    maps = {name: [_last(twin, pair) for pair in pairs] for name, twin in twins.items()}
    own = maps.pop(reference)
    found = {name: [_common(a, b) for a, b in zip(each, own, strict=True)] for name, each in maps.items()}
    found["uniform"] = [_common(np.full_like(rows, 1 / rows.shape[1]), rows) for rows in own]
    shares = {name: np.array(rows) for name, rows in found.items()}
    common = compare({name: rows[:, [0, 2]] for name, rows in shares.items()}, ratio, "uniform")
    same = compare({name: rows[:, [1, 2]] for name, rows in shares.items()}, ratio, "uniform")
    return {"pairs": len(pairs)} | {name: {"common": common[name], "same": same[name]} for name in found}


def _last(twin: Translator, pair: SentencePair) -> Floats:
    """(target tokens, source tokens): mean weights of the last layer's cross-attention."""
    trace = twin.force(pair.source, pair.target, capture=True).attention
    assert trace is not None
    kind = AttentionKind.CROSS
    return trace.weights(kind, twin.config.sites[kind].n_layers - 1).mean(0).astype(np.float64)


def _common(first: Floats, second: Floats) -> tuple[float, int, int]:
    """Σ min over all rows, rows whose largest weights are on one token, number of rows."""
    same = first.argmax(1) == second.argmax(1)
    return float(np.minimum(first, second).sum()), int(same.sum()), len(first)
