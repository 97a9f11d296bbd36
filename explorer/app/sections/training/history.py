"""How it went: the measurements of the model's own training, against the step."""

from collections.abc import Sequence

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, inform, panel, plain
from explorer.app.server.view import View
from explorer.app.shell import menu
from explorer.figures.base import style
from explorer.figures.base.labels import number
from explorer.figures.pages.training import FAINT, Curve, Panel, panels
from transformer.storage.card import Header, Score, scores
from transformer.storage.description import read_card
from transformer.training.history import History, read_history

SEEING = (
    "Grey: single steps, which differ because their batches do. Purple: their mean over "
    "neighbouring steps. The training loss includes label smoothing and dropout where the run had "
    "them, the validation loss neither. The average is a running mean of the weights; the "
    "gradient is measured before clipping."
)
NONE = "This model comes without a log of its training, so there is no history to draw."


def show(opened: View, _now: State) -> None:
    run = opened.source.beside(read_history)
    if run is None:
        inform(NONE)
        menu.link_with_model("training/history", session.FORMER)
        return
    points = len(run.training["step"])
    bleu = run.measured("bleu")
    every = "every step" if points == run.steps else f"{points:,} of {run.steps:,} steps"
    header = opened.source.header
    st.markdown(sentence(run))
    st.markdown(plain(of_targets(header, run, scores(opened.source.beside(read_card)))))
    panel(
        "history",
        lambda: panels(parts(run), "step"),
        f"Loss{' · BLEU' if bleu else ''} · learning rate · norm of the gradient before clipping, "
        f"against the step · {every}, means over {run.window:,} steps · from the log of this "
        f"model's training · {opened.source.load().name}",
        lambda: table(run),
        seeing=SEEING,
        sentence=False,
    )
    st.caption(plain(f"{header.training_start} {header.training_course}".strip()))


def of_targets(header: Header, run: History, tests: Sequence[Score]) -> str:
    """What the model's card states of the targets, and how it did on tests."""
    sentences = list[str]()
    if header.training_targets:
        sentences.append(
            f"The targets, those of the validation too, are {header.training_targets}: "
            "BLEU says how like them the output is."
        )
    bleu = [
        f"{number(test.value, '.1f')} on {test.dataset}" for test in tests if test.metric == "bleu"
    ]
    if bleu and run.measured("bleu"):
        sentences.append(f"BLEU on tests, as its card states it: {'; '.join(bleu)}.")
    return " ".join(sentences)


def parts(run: History) -> list[Panel]:
    """The panels of a history; what the run did not measure has none."""

    def trained(column: str) -> list[Curve]:
        steps = run.training["step"]
        of = run.training
        mean = Curve(
            "mean over neighbouring steps", steps, of[f"smoothed_{column}"], style.POSITIVE
        )
        return [Curve("single steps", steps, of[column], FAINT, width=1), mean]

    def evaluated(column: str, name: str, dash: str = "solid") -> list[Curve]:
        points = run.measured(column)
        steps, values = zip(*points, strict=True) if points else ((), ())
        return [Curve(name, steps, values, style.NEGATIVE, dash)] if points else []

    valid = evaluated("valid_loss", "validation loss", "dot")
    average = evaluated("valid_loss_average", "validation loss, averaged weights")
    rate = Curve(
        "learning rate", run.training["step"], run.training["learning_rate"], style.POSITIVE
    )
    bleu = evaluated("bleu", "BLEU")
    return [
        Panel("loss in nats", [*trained("loss"), *valid, *average], 220),
        *([Panel("BLEU", bleu)] if bleu else []),
        Panel("learning rate", [rate], 90),
        Panel("norm of the gradient", trained("gradient_norm")),
    ]


def table(run: History) -> Table:
    """Every point that is drawn, for CSV: one quantity, step and value in a row."""
    steps = run.training["step"]
    names = [name for name in run.training if name != "step"]
    trained = (
        (name, *point) for name in names for point in zip(steps, run.training[name], strict=True)
    )
    names = [name for name in run.evaluations if name != "step"]
    evaluated = ((name, *point) for name in names for point in run.measured(name))
    return [("quantity", "step", "value"), *trained, *evaluated]


def sentence(run: History) -> str:
    """Fall of the losses, and the BLEU reached."""
    loss = run.training["smoothed_loss"]
    bleu = run.measured("bleu")
    text = (
        f"In {run.steps:,} steps, the training loss fell from {number(loss[0])} to "
        f"**{number(loss[-1])} nats** per token. "
    )
    valid = [*run.measured("valid_loss"), *run.measured("valid_loss_average")]
    if valid:
        value, step = min((value, step) for step, value in valid)
        text += (
            f"On the validation pairs, the lowest loss was **{number(value)} nats**, at step "
            f"{step:,}. "
        )
    if not bleu:
        return f"{text}The run measured no BLEU."
    step, value = bleu[-1]
    best = max(value for _, value in bleu)
    peak = "" if value == best else f"; the highest was {number(best, '.1f')}"
    return (
        f"{text}On {run.bleu_sentences:,} validation sentences, BLEU (greedy) was "
        f"**{number(value, '.1f')}** at step {step:,}{peak}."
    )
