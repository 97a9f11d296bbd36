"""What it is shown: the shifted target, its mask, the loss of every position, and the model on its own."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from figures.pages.masks import mask_map
from figures.pages.training.shown import COLUMNS, Column, shifted_right, two_ways
from transformer.lenses.targets.shown import Lesson
from transformer.trace.view import Window
from ui.address import session
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import computed
from ui.server.opened import Opened
from ui.shell import needs
from ui.views.training import parallel, told

_MASKED = 32
"""Most positions whose mask is drawn."""
_SEEING = (
    "The decoder reads the target one place late: a start token, then each token after it has been "
    "predicted. The thin lines show this shift. All positions are computed in one pass; the mask keeps each "
    "from reading what it should predict. A bar is −log p of the right token. Click a bar to choose its "
    "position."
)
_FORMULA = r"\mathrm{loss}_t = -\log p(y_t \mid y_{<t},\, x)"
_WAYS = (
    "In training, every step reads the target, whatever the model would have said (teacher forcing). On its "
    "own, every step reads what the step before wrote (here: greedy search). Wrong guesses are amber. After "
    "the grey column, the two read different texts, and what the model writes alone is faint."
)


def show(opened: Opened, now: State) -> None:
    """Draws the section."""
    lesson = computed.lesson(opened.asked.model, opened.translation)
    columns = columns_of(lesson)
    chosen = min(now.step or 0, len(columns) - 1)
    first = pickers.window(now.first, COLUMNS, max(len(columns), len(lesson.free)), "positions")
    model = opened.translation.model
    st.markdown(told.losses(lesson))
    _shifted(lesson, columns, chosen, first, model)
    st.markdown("##### The same target, and the model on its own")
    st.markdown(told.parted(lesson))
    _ways(lesson, columns, first, model)
    if not needs.tell_lack(opened.asked.model, ("decoder",)):
        _mask(opened)
    parallel.show()


def columns_of(lesson: Lesson) -> list[Column]:
    """The positions as the figures draw them."""
    return [Column(each.read, each.token, each.loss, each.guess, each.share) for each in lesson.positions]


def _shifted(lesson: Lesson, columns: list[Column], chosen: int, first: int, model: str) -> None:
    caption = (
        "What the decoder reads, what it should predict, and the loss of each position in nats · all from "
        f"one pass without dropout · mean {lesson.loss:.2f} nats per token · {model}"
    )

    def draw(ink: str | None = None) -> go.Figure:
        return shifted_right(columns, chosen, first, ink)

    _chart(
        "shifted",
        draw,
        caption,
        lambda: table(lesson),
        lambda: pickers.seen("What am I seeing?", _SEEING, _FORMULA),
    )


def _ways(lesson: Lesson, columns: list[Column], first: int, model: str) -> None:
    caption = (
        "The most probable token of each step: in training, where the target is read, and on its own, where "
        f"its own output is read (greedy search) · amber = not the target · {model}"
    )

    def draw(ink: str | None = None) -> go.Figure:
        return two_ways(columns, lesson.free, lesson.parting, first, ink)

    _chart("ways", draw, caption, None, lambda: pickers.seen("In training and on its own", _WAYS))


def _chart(
    name: str,
    draw: Callable[..., go.Figure],
    caption: str,
    numbers: Callable[[], Table] | None,
    explain: Callable[[], None],
) -> None:
    """A picture with a column per position, in a frame of its own, in which a wide one scrolls."""
    figure, key = draw(pickers.ink()), f"training.{name}"
    wide, frame = figure.layout.width, f"training-{name}"
    st.html(
        f"<style>.st-key-{frame} {{ overflow-x: auto; }}"
        f".st-key-{frame} > * {{ min-width: {wide}px; max-width: {wide}px; }}</style>"
    )
    with st.container(key=frame):
        pickers.clickable(figure, key, _choose, caption)
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        explain()
        export.picture(name, draw, caption, table=numbers)


def _choose(place: object) -> None:
    """Takes the position of the mark that the visitor clicked."""
    if isinstance(place, int):
        session.change(step=place)


def _mask(opened: Opened) -> None:
    """The causal mask, as the decoder used it in this run."""
    count = min(len(opened.translation.target_tokens), _MASKED)
    view = opened.translation.head("decoder", 0, 0, Window(0, count, 0, count))
    caption = (
        "The causal mask of the decoder, as recorded: the row that reads a token may read this token and "
        f"those before it; the rest is hatched · first {count} positions · {opened.translation.model}"
    )
    st.markdown("##### Why one pass is enough: the causal mask")
    left, right = st.columns([1, 1.4], gap="medium", vertical_alignment="center")
    with left:
        st.plotly_chart(
            mask_map(view),
            width="content",
            key="training.mask",
            config={"displayModeBar": False},
            alt=caption,
        )
    with right:
        hidden = int((~view.mask).sum())
        st.markdown(
            f"The whole target stands in the decoder at once. Its mask hides {hidden:,} of the "
            f"{view.mask.size:,} cells, so no position reads what it should predict, and each row computes "
            "what it would compute alone. Inference needs the same mask, but one pass per token, because "
            "the next token is not there yet."
        )
        st.caption(plain(caption))
        export.picture("causal mask", lambda: mask_map(view), caption)


def table(lesson: Lesson) -> Table:
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
