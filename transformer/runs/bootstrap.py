"""BLEU, losses and shares with bootstrap intervals; compared models share their resamples (paired)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cell = dict[str, float]
"""A value and its 95 % interval: value, low, high."""
Measure = Callable[[Floats], Floats]
"""Turns sums over sentences (…, columns) into values (…)."""

SAMPLES = 1000
SEED = 1
ORDERS = 4


@lru_cache(maxsize=4)
def resamples(sentences: int, samples: int = SAMPLES, seed: int = SEED) -> Floats:
    """(samples, sentences): how often each resample, as large as the data, draws each sentence."""
    draws = np.random.default_rng(seed).integers(0, sentences, (samples, sentences))
    drawn = np.stack([np.bincount(row, minlength=sentences) for row in draws]).astype(np.float64)
    drawn.flags.writeable = False
    return drawn


def bleu_statistics(outputs: Sequence[str], references: Sequence[str]) -> Floats:
    """(sentences, 10) from sacreBLEU: matching n-grams and all n-grams of 1 to 4 words, both lengths."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(effective_order=True)
    scores = (metric.sentence_score(output, [ref]) for output, ref in zip(outputs, references, strict=True))
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], np.float64)


def bleu(sums: Floats) -> Floats:
    """Corpus BLEU of summed statistics (…, 10) → (…), as in sacreBLEU with default smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    def one(row: Floats) -> float:
        counts = [int(n) for n in row]
        correct, total, (length, wanted) = counts[:ORDERS], counts[ORDERS : 2 * ORDERS], counts[2 * ORDERS :]
        return float(BLEU.compute_bleu(correct, total, length, wanted, smooth_method="exp").score)

    return np.apply_along_axis(one, -1, sums)


def unigram_precision(sums: Floats) -> Floats:
    """Share of output words that occur in the reference, from summed statistics (…, 10) → (…)."""
    return sums[..., 0] / np.maximum(sums[..., ORDERS], 1)


def ratio(sums: Floats) -> Floats:
    """First column over second (…, 2) → (…), such as a loss per token or a share."""
    return sums[..., 0] / np.maximum(sums[..., 1], 1)


def compare(
    statistics: dict[str, Floats],  # (sentences, columns) per model, the same sentences in the same order
    measure: Measure,  # turns summed statistics into a value
    # model to compare the others with; no comparison if None or missing from `statistics`
    baseline: str | None = None,
    samples: int = SAMPLES,  # number of resamples
) -> dict[str, dict[str, Cell]]:
    """Per model "value", and but for the baseline "difference", with intervals over shared resamples."""
    weights = resamples(len(next(iter(statistics.values()))), samples)
    points = {name: float(measure(table.sum(0))) for name, table in statistics.items()}
    draws = {name: measure(weights @ table) for name, table in statistics.items()}
    found = {name: {"value": cell(points[name], draws[name])} for name in statistics}
    for name in statistics if baseline in statistics else ():
        if name != baseline:
            gap = cell(points[name] - points[str(baseline)], draws[name] - draws[str(baseline)])
            found[name]["difference"] = gap
    return found


def cell(value: float, draws: Floats) -> Cell:
    """A value with its 95 % interval."""
    low, high = interval(draws)
    return {"value": rounded(value), "low": rounded(low), "high": rounded(high)}


def interval(draws: Floats) -> tuple[float, float]:
    """The 95 % interval of resampled values (samples): their 2.5th and 97.5th percentile."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def rounded(value: Any, digits: int = 5) -> float:
    """A number rounded for storage, to five significant digits."""
    return float(f"{float(value):.{digits}g}")
