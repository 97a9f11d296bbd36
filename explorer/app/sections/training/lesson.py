"""What it is shown: the shifted target, its mask, the loss of every position, and the model on its
own."""

import math
from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import Maps
from explorer.app.controls import Table, panel, pickers, say, word
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.app.shell import needs
from explorer.figures.base.labels import count, number
from explorer.figures.pages.distributions import small
from explorer.figures.pages.masks import mask_map
from explorer.figures.pages.training import COLUMNS, Column, shifted_right, two_ways
from explorer.lenses.targets.lesson import TrainingView
from transformer.storage.card import Header
from transformer.view import Window

MASKED = 32  # most positions whose mask is drawn
SEEING = (
    "The decoder reads the target one place late, as the thin lines show; the mask keeps each "
    "position from reading what it should predict. A bar is −log p of the right token. In "
    "training, dropout sets random numbers of what each sub-layer adds to zero; here nothing is "
    "dropped."
)
FORMULA = r"\mathrm{loss}_t = -\log p(y_t \mid y_{<t},\, x)"
WAYS = (
    "In training, every step reads the target, whatever the model would have said (teacher "
    "forcing). On its own, every step reads what the step before wrote. Wrong guesses are amber. "
    "After the grey column, the two read different texts."
)
MASK = (
    "The whole target stands in the decoder at once. Its mask hides {hidden:,} of the {cells:,} "
    "cells, so no position reads what it should predict. Inference needs the same mask, but one "
    "pass per token, because the next token is not there yet."
)


def show(opened: View, now: State) -> None:
    if needs.tell_no_output(opened.source):
        return
    lesson = per_run.lesson(opened)
    model = opened.translation.model
    columns = [
        Column(position.read, position.token, position.loss, position.guess, position.share)
        for position in lesson.positions
    ]
    chosen = min(now.step or 0, len(columns) - 1)
    first = pickers.window(
        now.values(Maps).first, COLUMNS, max(len(columns), len(lesson.free)), "positions"
    )

    def take(place: object) -> None:
        if isinstance(place, int):
            session.change(step=place)

    draw = partial(panel, table=lambda: table(lesson), take=take, scrolls=True, inked=True)
    say(losses(lesson))
    draw(
        "shifted",
        partial(shifted_right, columns, chosen, first),
        "What the decoder reads, what it should predict, and the loss of each position in nats · "
        f"all from one pass without dropout · mean {lesson.loss:.2f} nats per token · {model}",
        seeing=SEEING,
        formula=FORMULA,
    )
    st.markdown("##### The same target, and the model on its own")
    say(parted(lesson))
    draw(
        "ways",
        partial(two_ways, columns, lesson.free, lesson.parting, first),
        "The most probable token of each step: in training, where the target is read, and on its "
        f"own, where its own output is read (greedy search) · amber = not the target · {model}",
        seeing=WAYS,
        title="In training and on its own",
    )
    if needs.tell_lack(opened.source, ("decoder",)):
        return
    size = min(len(opened.translation.target_tokens), MASKED)
    view = opened.translation.head("decoder", 0, 0, Window(0, size, 0, size))
    st.markdown("##### Why one pass is enough: the causal mask")
    panel(
        "causal mask",
        lambda: mask_map(view),
        "The causal mask of the decoder, as recorded: the row that reads a token may read this "
        f"token and those before it; the rest is hatched · first {size} positions · {model}",
        note=MASK.format(hidden=int((~view.mask).sum()), cells=view.mask.size),
        width="content",
        beside=(1, 1.4),
    )


def about_target(header: Header) -> str:
    """What the target of an example is, and what targets were in training as far as the card says
    so."""
    sentence = "The target is the reference translation of this example, not the model's output."
    if not header.training_targets:
        return sentence
    return f"{sentence} In this model's training, targets were {header.training_targets}."


def table(lesson: TrainingView) -> Table:
    """Every position as a row of numbers, for CSV; programs count from 0."""
    names = ("position", "read", "token", "token id", "loss", "guess", "probability of the guess")
    free = [*lesson.free, *[""] * len(lesson.positions)]
    rows = (
        (
            i,
            position.read,
            position.token,
            position.token_id,
            position.loss,
            position.guess,
            position.share,
            free[i],
        )
        for i, position in enumerate(lesson.positions)
    )
    return [(*names, "on its own"), *rows]


def losses(lesson: TrainingView) -> str:
    """The loss of the pair, and the position that costs most."""
    n = len(lesson.positions)
    worst = max(range(n), key=lambda i: lesson.positions[i].loss)
    hardest = lesson.positions[worst]
    if n == 1:
        return f"The only position, {word(hardest.token)}, costs **{number(hardest.loss)} nats**."
    return (
        f"One pass predicts all {n} positions. The loss is **{number(lesson.loss)} nats** per "
        f"token; position {count(worst)}, {word(hardest.token)}, costs most: "
        f"{number(hardest.loss)} nats, because the model gives it {small(math.exp(-hardest.loss))}."
    )


def parted(lesson: TrainingView) -> str:
    """Where the two ways part, and why comparing ends there."""
    step = lesson.parting
    if step is None:
        return (
            "This target is what the model writes on its own, so both ways read the same tokens "
            "at every step and never part. Give an output of your own to see them part."
        )
    same = f"Both ways read the same tokens up to step {count(step)}. There"
    if step >= len(lesson.positions):
        return f"{same} the target has ended, so nothing is left to compare."
    if step >= len(lesson.free):
        return f"{same} the model on its own has ended, so nothing is left to compare."
    target = word(lesson.positions[step].token)
    free_word = word(lesson.free[step])
    agreed = "right at the start" if step == 0 else "having read the same tokens"
    return (
        f"They part at **step {count(step)}**: {agreed}, the model writes {free_word}, the target has "
        f"{target}. From the next step on, the two read different texts, so comparing them step by "
        "step ends here."
    )
