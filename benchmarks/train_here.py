"""*Train here*: how long its usual sizes take, and what other visitors feel of a run."""

from __future__ import annotations

import resource
import time
from itertools import count
from typing import TYPE_CHECKING, Annotated

import torch

from benchmarks.app import WORDS
from benchmarks.browser import READY, chromium, compare, enter, served, settle, visit
from benchmarks.timing import percentile
from explorer.app.server.hosted import Limits
from explorer.app.server.training import TrainingRun
from explorer.app.server.training_plan import Plan
from transformer.training.toys import TOYS

if TYPE_CHECKING:
    from playwright.sync_api import Page

PRODUCTS, SIDE, MOST_SECONDS, BLOCK = 20_000, 256, 180, 5
ENDLESS = Plan(task="reverse", length=12, width=128, layers=3, steps=5_000)
"""A run that is still going on when the visitor has typed everything."""


def train_here() -> int:
    """Seconds of each toy task as the app trains it, beside 20,000 products of two 256 × 256
    matrices."""
    torch.set_num_threads(1)
    matrix = torch.full((SIDE, SIDE), 1 / SIDE)

    def products() -> float:
        start = time.perf_counter()
        for _ in range(PRODUCTS):
            matrix @ matrix
        return time.perf_counter() - start

    for task in TOYS:
        before = products()
        used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        plan = Plan(task=task)
        run = TrainingRun(plan, limits=Limits(minutes=60))
        start = time.perf_counter()
        _train(run, plan.steps + 1)
        seconds = time.perf_counter() - start
        steps = run.steps()
        used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used  # of the processor
        reference = (before + products()) / 2
        exact = steps[-1].exact or 0.0
        verdict = "ok" if seconds <= MOST_SECONDS and len(steps) == plan.steps else "over"
        spent = f"{seconds:.1f} s, computing {used:.1f} s (at most {MOST_SECONDS})  {verdict}"
        times = f"{used / reference:.2f} × the products"
        print(
            f"{task:<8} {plan.steps} steps: {spent};  exact {100 * exact:.1f} %;  {times}",
            flush=True,
        )
    return 0


def beside_training(*, samples: Annotated[int, "sentences of each sort"] = 60) -> int:
    """Time from Enter to a painted view beside a run of training, and without one."""
    numbers = count(2)
    seconds = {"with a run": list[float](), "without": list[float]()}

    def typed(page: Page, place: int) -> float:
        """Types a sentence that nobody has typed before."""
        word = WORDS[place % len(WORDS)]
        painted = (
            f"{READY} && document.querySelector('.lv-strip-source .lv-word').textContent === "
            f"'{word}'"
        )
        text = f"{word} saw {next(numbers)} new houses in the city."
        return enter(page, "Sentence to translate", text, painted)

    with chromium() as browser, served() as there:
        page = visit(browser, there.url, READY)
        for number in range(-BLOCK, samples, BLOCK):
            for name in seconds:
                run = TrainingRun(ENDLESS)
                if name == "with a run":
                    _train(run, 1)
                settle(page)
                block = [typed(page, i) for i in range(BLOCK)]
                if number >= 0:  # the first block only warms up
                    seconds[name] += block
                run.stop()
                while not run.outcome:
                    time.sleep(0.1)
    for share, limit in ((0.5, float("inf")), (0.95, 1.5)):
        ours, theirs = ([percentile(second, share)] for second in seconds.values())
        compare(
            f"Enter to painted, percentile {100 * share:.0f}",
            ours,
            theirs,
            "ms",
            limit,
            named="without a run",
        )
    return 0


def _train(run: TrainingRun, step: int) -> None:
    """Begins a run, and waits until it has ended or reached a step."""
    run.wait("", "")
    while not run.outcome and len(run.steps()) < step:
        time.sleep(0.1)
