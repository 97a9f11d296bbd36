"""Input of a training: the shifted target, its mask, the loss of every position, and the model on its own."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, panel, pickers, say, word
from explorer.app.sections.training.loss import share
from explorer.app.server import per_run
from explorer.app.server.opened import Opened
from explorer.app.shell.models import needs
from explorer.figures.base import labels
from explorer.figures.pages.masks import mask_map
from explorer.figures.pages.training.lesson import COLUMNS, Column, shifted_right, two_ways
from explorer.lenses.targets.lesson import TrainingView
from transformer.view import Window

_MASKED = 32
"""Most positions whose mask is drawn."""
_SEEING = (
    "The decoder reads the target one place late: a start token, then each token after it has been "
    "predicted. The thin lines show this shift. All positions are computed in one pass; the mask keeps each "
    "from reading what it should predict. A bar is −log p of the right token. Click a bar to choose its "
    "position. In training, dropout sets random numbers of what each sub-layer adds to zero; here nothing "
    "is dropped."
)
_FORMULA = r"\mathrm{loss}_t = -\log p(y_t \mid y_{<t},\, x)"
_WAYS = (
    "In training, every step reads the target, whatever the model would have said (teacher forcing). On its "
    "own, every step reads what the step before wrote (here: greedy search). Wrong guesses are amber. After "
    "the grey column, the two read different texts, and what the model writes alone is faint."
)


def show(opened: Opened, now: State) -> None:
    lesson = per_run.lesson(opened)
    columns = columns_of(lesson)
    chosen = min(now.step or 0, len(columns) - 1)
    first = pickers.window(now.first, COLUMNS, max(len(columns), len(lesson.free)), "positions")
    model = opened.translation.model
    say(losses(lesson))
    _shifted(lesson, columns, chosen, first, model)
    st.markdown("##### The same target, and the model on its own")
    say(parted(lesson))
    _ways(lesson, columns, first, model)
    if not needs.tell_lack(opened.source, ("decoder",)):
        _mask(opened)


def columns_of(lesson: TrainingView) -> list[Column]:
    """The positions as the figures draw them."""
    return [Column(each.read, each.token, each.loss, each.guess, each.share) for each in lesson.positions]


def _shifted(lesson: TrainingView, columns: list[Column], chosen: int, first: int, model: str) -> None:
    panel(
        "shifted",
        partial(shifted_right, columns, chosen, first),
        "What the decoder reads, what it should predict, and the loss of each position in nats · all from "
        f"one pass without dropout · mean {lesson.loss:.2f} nats per token · {model}",
        lambda: table(lesson),
        seeing=_SEEING,
        formula=_FORMULA,
        take=_choose,
        scrolls=True,
        inked=True,
    )


def _ways(lesson: TrainingView, columns: list[Column], first: int, model: str) -> None:
    panel(
        "ways",
        partial(two_ways, columns, lesson.free, lesson.parting, first),
        "The most probable token of each step: in training, where the target is read, and on its own, where "
        f"its own output is read (greedy search) · amber = not the target · {model}",
        lambda: table(lesson),
        seeing=_WAYS,
        title="In training and on its own",
        take=_choose,
        scrolls=True,
        inked=True,
    )


def _choose(place: object) -> None:
    """Takes the position of the mark that the visitor clicked."""
    if isinstance(place, int):
        session.change(step=place)


def _mask(opened: Opened) -> None:
    """The causal mask, as the decoder used it in this run."""
    count = min(len(opened.translation.target_tokens), _MASKED)
    view = opened.translation.head("decoder", 0, 0, Window(0, count, 0, count))
    st.markdown("##### Why one pass is enough: the causal mask")
    panel(
        "causal mask",
        lambda: mask_map(view),
        "The causal mask of the decoder, as recorded: the row that reads a token may read this token and "
        f"those before it; the rest is hatched · first {count} positions · {opened.translation.model}",
        note=f"The whole target stands in the decoder at once. Its mask hides {int((~view.mask).sum()):,} of "
        f"the {view.mask.size:,} cells, so no position reads what it should predict, and each row computes "
        "what it would compute alone. Inference needs the same mask, but one pass per token, because "
        "the next token is not there yet.",
        width="content",
        beside=(1, 1.4),
    )


def table(lesson: TrainingView) -> Table:
    """Every position as a row of numbers, for CSV; programs count from 0."""
    names = (
        "position",
        "read",
        "token",
        "token id",
        "loss",
        "guess",
        "probability of the guess",
        "on its own",
    )
    free = [*lesson.free, *[""] * max(0, len(lesson.positions) - len(lesson.free))]
    rows = [
        (i, each.read, each.token, each.token_id, each.loss, each.guess, each.share, free[i])
        for i, each in enumerate(lesson.positions)
    ]
    return [names, *rows]


def losses(lesson: TrainingView) -> str:
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


def parted(lesson: TrainingView) -> str:
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
    agreed = "right at the start," if step == 0 else "having read the same tokens,"
    return (
        f"They part at **step {labels.count(step)}**: {agreed} the model writes {word(own)}, the "
        f"target has {word(target)}. From the next step on, training reads {word(target)}, but the model on "
        f"its own reads {word(own)}: the two predict from different texts, so comparing them step by step "
        "ends here."
    )


def _ended(lesson: TrainingView, step: int) -> str:
    """Which of the two has no further step, if one of them has none."""
    if step >= len(lesson.positions):
        return "There the target has ended, so nothing is left to compare."
    if step >= len(lesson.free):
        return "There the model on its own has ended, so nothing is left to compare."
    return ""
