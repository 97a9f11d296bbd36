"""Timing for all benchmarks: medians of interleaved runs, so that a slow phase of the machine affects all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(
    runs: Mapping[str, Callable[[], object]], repeats: int, warm_up: int = 2
) -> dict[str, list[float]]:
    """Seconds of each run; the runs take turns ``repeats`` times after ``warm_up`` uncounted rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_number in range(warm_up + repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if round_number >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, reference: str) -> tuple[float, float, float]:
    """Median, smallest and largest of the ratios name / reference, round by round."""
    ratios = [a / b for a, b in zip(seconds[name], seconds[reference], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def report(label: str, seconds: dict[str, list[float]], name: str, reference: str, limit: str) -> None:
    """Prints one line: the ratio, its spread, and the limit."""
    median, low, high = ratio(seconds, name, reference)
    milliseconds = 1000 * statistics.median(seconds[name])
    print(
        f"{label}: {name} / {reference} = {median:.3f} (from {low:.3f} to {high:.3f}; wanted {limit}); "
        f"{milliseconds:.1f} ms"
    )
