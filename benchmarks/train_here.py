"""Measures "train here": how long the page's usual sizes take, and what other visitors feel of a run.

    python benchmarks/train_here.py [--tasks copy reverse] [--samples 60] [--skip-visitors]

For each task, it trains once with the sizes that the page offers first, as the app does it (one thread, low
priority), and prints the seconds, the seconds of computing time, the share of exact matches, and the ratio to
the time of 20,000 products of two 256 × 256 matrices on one thread, made before and after. Then a visitor
types sentences while another visitor's run goes on or is held, in turns: the 95th percentile of the time from
Enter to a painted view, with and without a run.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.app import ARGUMENTS, CHROMIUM, READY, enter, server, settle, visit  # noqa: E402
from explorer.app.server.hosted import SWITCH, Limits  # noqa: E402
from explorer.app.server.workshop.plan import Plan, TrainingOrder, example  # noqa: E402
from explorer.app.server.workshop.run import RUN, TrainingRun  # noqa: E402
from explorer.app.server.workshop.workshop import FOLDER  # noqa: E402
from transformer.training.toys import TOYS  # noqa: E402

PRODUCTS, SIDE = 20_000, 256
MOST_SECONDS, MOST_RATIO = 180, 1.5
BLOCK = 5
"""Sentences between two changes of the run."""
LONG = Plan(task="reverse", length=12, width=128, layers=3, steps=5_000)
"""A run that is still going on when the visitor has typed everything."""


def products() -> float:
    """Seconds of the reference."""
    torch.set_num_threads(1)
    matrix = torch.full((SIDE, SIDE), 1 / SIDE)
    start = time.perf_counter()
    for _ in range(PRODUCTS):
        matrix @ matrix
    return time.perf_counter() - start


def train(task: str, folder: Path) -> None:
    """Trains once, as the app does, and prints what it took."""
    before = products()
    used = _computed()
    plan = Plan(task=task)
    run = TrainingRun(TrainingOrder(plan, example(plan, None)), folder / task)
    run.folder.mkdir(parents=True)
    start = time.perf_counter()
    run.begin(Limits(minutes=60), lambda: 0)
    run.wait(3600)
    seconds, computed = time.perf_counter() - start, _computed() - used
    reference = statistics.mean((before, products()))
    curves = run.curves()
    exact = curves.exact[-1][1] if curves.exact else 0.0
    verdict = "ok" if seconds <= MOST_SECONDS and curves.step == plan.steps else "over"
    print(
        f"{task:<8} {plan.steps} steps: {seconds:6.1f} s (computing {computed:.1f} s; at most "
        f"{MOST_SECONDS})  {verdict};  exact {100 * exact:.1f} %;  / {PRODUCTS} products of "
        f"{reference:.1f} s = {seconds / reference:.2f} (computing {computed / reference:.2f})",
        flush=True,
    )


def _computed() -> float:
    """Seconds of computing time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def visitors(samples: int, folder: Path) -> None:
    """Prints what a visitor waits with a run and without."""
    left = folder / FOLDER / RUN
    left.mkdir(parents=True)
    TrainingOrder(LONG, example(LONG, None)).write(left)  # fills the form with these sizes
    os.environ[SWITCH] = "on"
    with sync_playwright() as playwright, server("app.py", folder) as url:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page, owner = visit(browser, url), visit(browser, f"{url}/training?view=here")
        page.wait_for_function(READY, timeout=120_000)
        _press(owner, "Train")
        owner.get_by_text(re.compile(r"step \d")).first.wait_for(timeout=300_000)
        seconds: dict[str, list[float]] = {"with a run": [], "without": []}
        for number in range(-BLOCK, samples, BLOCK):
            for name, button in (("without", "Pause"), ("with a run", "Continue")):
                _press(owner, button)
                settle(owner)
                taken = [_enter(page, i) for i in range(BLOCK)]
                seconds[name] += taken if number >= 0 else []
        _press(owner, "Stop")
        browser.close()
    for low in (50, 95):
        ours, theirs = (_percentile(seconds[name], low) for name in ("with a run", "without"))
        limit = (
            "" if low == 50 else f"  at most {MOST_RATIO}  {'ok' if ours / theirs <= MOST_RATIO else 'over'}"
        )
        print(
            f"Enter to painted, {low}th percentile of {len(seconds['without'])}: {ours:.0f} ms with a run, "
            f"{theirs:.0f} ms without, ratio {ours / theirs:.2f}{limit}",
            flush=True,
        )


_WORDS = ("I", "We", "They", "She", "He", "You", "It")
_typed: Callable[[], int] = iter(range(10**9)).__next__


def _enter(page: Page, place: int) -> float:
    """Types a sentence that nobody has typed before; milliseconds until it is painted."""
    word = _WORDS[place % len(_WORDS)]
    painted = f"{READY} && document.querySelector('.lv-strip-source .lv-word').textContent === '{word}'"
    return enter(page, "Sentence to translate", f"{word} saw {_typed() + 2} new houses in the city.", painted)


def _press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click(timeout=120_000)


def _percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def main() -> None:
    """Runs both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", nargs="*", default=list(TOYS), choices=list(TOYS))
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--skip-visitors", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for task in asked.tasks:
            train(task, Path(folder))
    if not asked.skip_visitors:
        with tempfile.TemporaryDirectory() as folder:
            visitors(asked.samples, Path(folder))


if __name__ == "__main__":
    main()
