"""Times and memory of layers, measured on this machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lab.cost.fitting import exponent
from lab.cost.layers import layers
from lab.measurement import Json
from transformer.model.network import EncoderDecoder
from transformer.runs.bootstrap import rounded

Work = Callable[[], object]
WIDTHS = (64, 128, 256, 512)
LENGTHS = (64, 128, 256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096)
FITTED_FROM = 512
"""Exponents are fitted to this length and longer ones; at shorter ones, fixed costs weigh more."""


def measure_layers(widths: Sequence[int], lengths: Sequence[int], repeats: int) -> Iterator[tuple[int, Json]]:
    """Times and memory of every kind of layer, one width d at a time, by rising length n.

    Memory is the most that tensors hold at once, without the weights.
    """
    for width in widths:
        torch.manual_seed(1)
        made, inputs = layers(width), {n: torch.randn(1, n, width) for n in lengths}
        works = {name: _applied(layer, inputs) for name, layer in made.items()}
        found = measure_ways(works, lengths, repeats, FITTED_FROM)
        for name, work in works.items():
            held = [rounded(peak_bytes(work(n)) / 1e6, 4) for n in lengths]
            start = _start(lengths, FITTED_FROM)
            time, memory = found[name].pop("time"), exponent(lengths[start:], held[start:])
            found[name] |= {"megabytes": held, "time": time, "memory": memory}
        yield width, found


def _applied(layer: torch.nn.Module, inputs: Mapping[int, torch.Tensor]) -> Callable[[int], Work]:
    return lambda n: partial(layer, inputs[n])


def measure_ways(
    works: Mapping[str, Callable[[int], Work]], lengths: Sequence[int], repeats: int, fitted_from: int = 0
) -> Json:
    """Least and median milliseconds of work by name and length, and the exponent of the length.

    Names and lengths take turns, so that a busy moment of the machine affects all of them.
    """
    seconds = least_and_median({(name, n): work(n) for name, work in works.items() for n in lengths}, repeats)
    start, found = _start(lengths, fitted_from), {}
    for name in works:
        least, medians = ([rounded(1000 * seconds[name, n][place], 4) for n in lengths] for place in range(2))
        time = exponent(lengths[start:], least[start:])
        found[name] = {"milliseconds": least, "medians": medians, "time": time}
    return found


def _start(lengths: Sequence[int], fitted_from: int) -> int:
    return next((i for i, n in enumerate(lengths) if n >= fitted_from), 0)


def ordinary_ids(model: EncoderDecoder, length: int, rows: int = 1) -> torch.Tensor:
    """(rows, length) ordinary pieces; how long a pass takes does not depend on which."""
    return torch.arange(rows * length).view(rows, length) % (model.config.vocab_size - 4) + 4


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
