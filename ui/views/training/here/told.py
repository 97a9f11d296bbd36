"""What a run does and did, in sentences."""

from __future__ import annotations

from figures.base.bars import percent
from transformer.training.runs.progress import duration
from transformer.training.toys.tasks import TOYS
from ui.controls.text import plain
from ui.server.here.looks import Look
from ui.server.here.plan import OWN, Plan
from ui.server.here.progress import Curves
from ui.server.here.run import Run

NAMES = {name: f"{name}: {toy.about}" for name, toy in TOYS.items()} | {OWN: "your own pairs (TSV)"}
"""The tasks as options of a list."""


def plan(asked: Plan) -> str:
    """A task and its sizes, for a line of progress."""
    about = "own pairs" if asked.task == OWN else asked.task
    long = f", at most {asked.length} letters" if asked.task in TOYS and TOYS[asked.task].spelled else ""
    layers = f"{asked.layers} + {asked.layers} layers"
    return f"{about}{long} · {layers}, d_model {asked.width}, heads: {asked.heads}"


def progress(run: Run, curves: Curves) -> str:
    """How far a run is."""
    total = run.asked.plan.steps
    if run.paused:
        state = "paused at step"
    elif not curves.step:
        return f"{plan(run.asked.plan)} · starting"
    else:
        state = "step"
    return f"{plan(run.asked.plan)} · {state} {curves.step:,} of {total:,} · {duration(curves.seconds)}"


def ended(run: Run) -> str:
    """How a run ended, and what is left of it."""
    kept = "" if run.has_model else " Nothing is left of it."
    return f"**{plain(plan(run.asked.plan))}.** {plain(run.told)}{kept}"


def exact(curves: Curves) -> str:
    """What the last evaluation found."""
    if not curves.exact:
        return "The first evaluation has not come yet."
    step, share = curves.exact[-1]
    return (
        f"At step {step:,}, the model writes **{percent(share)}** of the held-out pairs exactly as they "
        "should be."
    )


def written(run: Run, look: Look) -> str:
    """What the checkpoint makes of the pair on the screen."""
    pair = run.asked.shown
    read = f"After step {look.step:,}, the model reads “{plain(pair.source)}”"
    start = f"{read}, which is not in its training data, and writes "
    if not look.written:
        return f"{start}nothing; the right output is “{plain(pair.target)}”."
    right = look.written == pair.target
    verdict = "which is right." if right else f"but the right output is “{plain(pair.target)}”."
    return f"{start}“{plain(look.written)}”, {verdict}"
