"""What a lesson shows, in sentences."""

from __future__ import annotations

import math

from figures.base import labels
from figures.base.bars import percent
from transformer.lenses.shown import Lesson, Position
from ui.controls.text import plain


def word(token: str) -> str:
    """A piece inside a sentence, escaped for Markdown."""
    return f"“{plain(labels.display(token))}”"


def share(loss: float) -> str:
    """The probability behind a loss in nats."""
    return percent(min(1.0, math.exp(-loss)))


def losses(lesson: Lesson) -> str:
    """The loss of the pair, and the position that costs most."""
    count = len(lesson.positions)
    worst = max(range(count), key=lambda i: lesson.positions[i].loss)
    hardest = lesson.positions[worst]
    if count == 1:
        return f"The only position, {word(hardest.token)}, costs **{labels.number(hardest.loss)} nats**."
    return (
        f"One pass predicts all {count} positions. The loss is **{labels.number(lesson.loss)} nats** per "
        f"token; position {labels.count(worst)}, {word(hardest.token)}, costs most: "
        f"{labels.number(hardest.loss)} nats, because the model gives it {share(hardest.loss)}."
    )


def parted(lesson: Lesson) -> str:
    """Where the two ways part, and why comparing ends there."""
    step = lesson.parting
    if step is None:
        return (
            "This target is what the model writes on its own, so both ways read the same tokens at every "
            "step and never part. Give a translation of your own to see them part."
        )
    ended = _ended(lesson, step)
    if ended:
        return f"Both ways read the same tokens up to step {labels.count(step)}. {ended}"
    target, own = lesson.positions[step].token, lesson.free[step]
    return (
        f"They part at **step {labels.count(step)}**: {_agreed(step)} the model writes {word(own)}, the "
        f"target has {word(target)}. From the next step on, training reads {word(target)}, but the model on "
        f"its own reads {word(own)}: the two predict from different texts, so comparing them step by step "
        "ends here."
    )


def _agreed(step: int) -> str:
    return "right at the start," if step == 0 else "having read the same tokens,"


def _ended(lesson: Lesson, step: int) -> str:
    """Which of the two has no further step, if one of them has none."""
    if step >= len(lesson.positions):
        return "There the target has ended, so nothing is left to compare."
    if step >= len(lesson.free):
        return "There the model on its own has ended, so nothing is left to compare."
    return ""


def position(each: Position, place: int) -> str:
    """A position as an option of a list."""
    return f"{labels.count(place)}: {labels.display(each.token)}"
