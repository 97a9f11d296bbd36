"""Times of interleaved runs, so that a slow phase of the machine affects all; texts of a given
length."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from transformer import Translator

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "assets"
MODELS = ASSETS / "models"
SOURCE = ("the", "cat", "was", "tired", "and", "I", "know", "that")
TARGET = ("die", "Katze", "war", "alt", "und", "ich", "war", "da")
Repeats = Annotated[int, "rounds of all runs"]
Threads = Annotated[int, "threads of each run"]
Tokens = Annotated[int, "length of a text"]
Model = Annotated[str, "a bundled model"]
Seconds = dict[str, list[float]]
"""Of each run, by its name, round by round."""


def interleaved(
    runs: Mapping[str, Callable[[], object]], repeats: int, warm_up: int = 2
) -> Seconds:
    """Seconds of each run; the runs take turns ``repeats`` times after ``warm_up`` uncounted
    rounds."""
    seconds: Seconds = {name: [] for name in runs}
    for round_number in range(warm_up + repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if round_number >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: Seconds, name: str, reference: str) -> tuple[float, float, float]:
    """Median, smallest and largest of the ratios name / reference, round by round."""
    ratios = [a / b for a, b in zip(seconds[name], seconds[reference], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def report(label: str, seconds: Seconds, name: str, reference: str, limit: str) -> None:
    """Prints one line: the ratio, its spread, and the limit."""
    median, low, high = ratio(seconds, name, reference)
    print(
        f"{label}: {name} / {reference} = {median:.3f} (from {low:.3f} to {high:.3f}; wanted "
        f"{limit}); {1000 * statistics.median(seconds[name]):.1f} ms",
        flush=True,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile; not a number without values."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def text_of(translator: Translator, tokens: int, words: Sequence[str] = SOURCE) -> str:
    """A text that a model splits into at most so many tokens, with `</s>`."""
    text = ""
    for i in range(tokens):
        longer = f"{text} {words[i % len(words)]}".strip()
        if len(translator.tokenizer.source.encode(longer)) + 1 > tokens:
            break
        text = longer
    return text
