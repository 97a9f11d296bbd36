"""What a lesson shows, in sentences."""

from __future__ import annotations

import math

from figures.base import labels
from figures.base.bars import percent
from figures.pages.training.smoothing import small
from transformer.lenses.targets.shown import Lesson, Position
from transformer.lenses.targets.smoothing import SmoothedPosition
from transformer.training.options import TrainingOptions, learning_rate
from ui.controls.text import plain

_CARD = "from the training command on its card"


def word(token: str) -> str:
    """A piece inside a sentence, escaped for Markdown."""
    return f"“{plain(labels.piece(token))}”"


def share(loss: float) -> str:
    """The probability behind a loss in nats."""
    return small(min(1.0, math.exp(-loss)))


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
    return f"{labels.count(place)}: {labels.piece(each.token)}"


def smoothed(each: Position, place: int, found: SmoothedPosition) -> str:
    """What a smoothing makes of a position, and where it pushes the right piece."""
    target = found.entries[found.right].target
    lines = (
        f"At position {labels.count(place)}, the model gives the right piece, {word(each.token)}, "
        f"**{share(each.loss)}**: −log p is {labels.number(found.bare_loss)} nats. "
    )
    if not found.epsilon:
        return f"{lines}Without smoothing, that is the loss; it would be 0 only at {percent(1)}."
    other = small(found.epsilon / found.pieces)
    return (
        f"{lines}The smoothed target wants {percent(target)} there and {other} for each of the other "
        f"{found.pieces - 1:,} pieces. The loss is **{labels.number(found.loss)} nats**, and no prediction "
        f"makes it less than {labels.number(found.floor)}. {_push(found)}"
    )


def _push(found: SmoothedPosition) -> str:
    right = found.entries[found.right]
    bare = labels.number(right.bare_gradient, "+.3f")
    sizes = f"(gradient {labels.number(right.gradient, '+.3f')}; {bare} without smoothing)"
    if right.gradient > 0:
        return f"The model is surer than this target, so training *lowers* the right piece's logit {sizes}."
    return f"Training raises the right piece's logit {sizes}."


def power(value: float, digits: int = 1) -> str:
    """A number in LaTeX, with some digits after the point: `7.0 \\times 10^{-4}`."""
    if value == 0:
        return "0"
    factor, exponent = f"{value:.{digits}e}".split("e")
    return rf"{factor} \times 10^{{{int(exponent)}}}"


def paper_schedule(paper: TrainingOptions, width: int) -> str:
    """The two slopes of equation 3, in numbers."""
    peak = learning_rate(paper, paper.warmup, width)
    later = 4 * paper.warmup
    return (
        f"Up to step {paper.warmup:,}, each step adds ${power(peak / paper.warmup)}$ to the rate; the peak "
        f"is **${power(peak)}$**. Then it falls with 1/√step: at step {later:,}, four times as late, it is "
        f"{percent(learning_rate(paper, later, width) / peak)} of the peak."
    )


def own_schedule(name: str, own: TrainingOptions, width: int) -> str:
    """How a model was trained, from the command on its card."""
    peak = learning_rate(own, min(own.warmup, own.steps), width)
    rises = (
        f"{plain(name)} itself was trained for {own.steps:,} steps: up to ${power(peak)}$ by step "
        f"{own.warmup:,}"
    )
    if own.schedule == "constant":
        begins = own.steps - own.decay_steps
        return f"{rises}, the same rate up to step {begins:,}, then straight down to 0 ({_CARD})."
    if own.schedule == "linear":
        return f"{rises}, then straight down to 0 at the last step ({_CARD})."
    return f"{rises}, then down with 1/√step ({_CARD})."
