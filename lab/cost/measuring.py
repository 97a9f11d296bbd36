"""Times and memory of layers, measured on this machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lab.cost.fitting import exponent
from lab.cost.layers import layers
from transformer.lenses.scores.bootstrap import rounded

Json = dict[str, Any]
Work = Callable[[], object]
WIDTHS = (64, 128, 256, 512)
LENGTHS = (64, 128, 256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096)
FITTED_FROM = 512
"""Exponents are fitted to this length and longer ones; at shorter ones, fixed costs weigh more."""


def measure_layers(
    widths: Sequence[int],  # values of d
    lengths: Sequence[int],  # values of n, rising
    repeats: int,  # runs of each, after one that does not count
) -> Iterator[tuple[int, Json]]:
    """Times and memory of every kind of layer, one width at a time.

    Times are processor time, the least and the median of the repeats; kinds and lengths take turns, so that a
    busy moment of the machine affects all of them. Memory is the most that tensors hold at once, without the
    weights.

    Yields:
        The width, and by kind ``milliseconds`` (least), ``medians``, ``megabytes``, and the exponents of n.
    """
    for width in widths:
        torch.manual_seed(1)
        made, inputs = layers(width), {n: torch.randn(1, n, width) for n in lengths}
        works = {(name, n): _work(layer, x) for name, layer in made.items() for n, x in inputs.items()}
        seconds = least_and_median(works, repeats)
        held = {key: peak_bytes(work) for key, work in works.items()}
        yield (
            width,
            {
                name: _costs(lengths, [seconds[name, n] for n in lengths], [held[name, n] for n in lengths])
                for name in made
            },
        )


def _work(layer: torch.nn.Module, x: torch.Tensor) -> Work:
    return lambda: layer(x)


def _costs(lengths: Sequence[int], times: Sequence[tuple[float, float]], held: Sequence[int]) -> Json:
    least = [rounded(1000 * low, 4) for low, _ in times]
    megabytes = [rounded(each / 1e6, 4) for each in held]
    start = next((i for i, n in enumerate(lengths) if n >= FITTED_FROM), 0)
    return {
        "milliseconds": least,
        "medians": [rounded(1000 * middle, 4) for _, middle in times],
        "megabytes": megabytes,
        "time": exponent(lengths[start:], least[start:]),
        "memory": exponent(lengths[start:], megabytes[start:]),
    }


@torch.inference_mode()
def least_and_median(works: Mapping[Any, Work], repeats: int) -> dict[Any, tuple[float, float]]:
    """Seconds of processor time of each piece of work, which take turns: least and median of the repeats.

    Unlike the clock, processor time does not count what other programs do meanwhile.
    """
    return timed(works, repeats)


def timed(works: Mapping[Any, Work], repeats: int) -> dict[Any, tuple[float, float]]:
    """The same for work that needs gradients."""
    times: dict[Any, list[float]] = {key: [] for key in works}
    for _ in range(1 + repeats):
        for key, work in works.items():
            started = time.process_time()
            work()
            times[key].append(time.process_time() - started)
    return {key: (min(each[1:]), statistics.median(each[1:])) for key, each in times.items()}


@torch.inference_mode()
def peak_bytes(work: Work) -> int:
    """Most memory that tensors made by the work hold at once (CPU)."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise the profiler logs two lines per run
    with torch.profiler.profile(profile_memory=True) as profile:
        work()
    held = peak = 0
    for event in sorted(profile.events(), key=lambda event: event.time_range.start):
        held += event.cpu_memory_usage if event.name == "[memory]" else event.self_cpu_memory_usage
        peak = max(peak, held)
    return peak


def machine() -> Json:
    """This machine in words."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    found = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return found or platform.processor() or platform.machine()
