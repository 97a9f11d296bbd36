"""When heads appear: the statistics of a run against its steps, with other seeds as thin lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import style
from figures.pages.training.birth import Trend, over_snapshots
from lab.birth.appearing import Born
from ui.controls import export, pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.views.training.birth import told

_PREVIOUS = (
    "For each head, the share of rows whose largest weight is on the token before; the line is the best head "
    "at each snapshot. Such a head needs to know positions, so it cannot exist from the start."
)
_ALIGNER = (
    "Cross-attention as a word aligner, against links made by hand: 0 % is perfect. The line is the best "
    "head at each snapshot, by the better of its two rows. The dotted line is the error of linking words by "
    "their place alone; only below it has a head learned more than word order."
)
_LATER = (
    "How much of a row's weight would lie on later tokens if no mask hid any. The encoder has no mask, so "
    "its line is real. The decoder's line is the softmax of its real scores without the causal mask. The "
    "mask gives these scores no gradient, so nothing in training asks for this line to fall: it is "
    "extrapolation. A falling line would mean that the model looks back on its own."
)


def show(runs: Sequence[Born], name: str) -> None:
    """Draws the statistics, or says how to measure them; `name` is that of the run."""
    st.markdown("##### When heads appear")
    if not runs:
        st.info(
            "Nobody has measured these snapshots; `python -m lab birth` does, and writes birth.json.",
            icon=":material/info:",
        )
        return
    runs = (replace(runs[0], name=name), *runs[1:])
    steps, columns = list(runs[0].steps), st.columns(3, gap="medium")
    with columns[0]:
        found = [*_seeds(runs, "encoder", _previous), *_seeds(runs, "decoder", _previous)]
        sentence = f"{told.previous(runs, 'encoder')} {told.previous(runs, 'decoder')}"
        _picture("previous token", steps, found, "rows", sentence, _PREVIOUS, runs)
    with columns[1]:
        found = [*_seeds(runs, "cross", lambda run, _: run.aligner_best()), _level(runs[0].diagonal, steps)]
        _picture("aligner", steps, found, "alignment error", told.aligner(runs), _ALIGNER, runs)
    with columns[2]:
        even = _level(runs[0].even["decoder"], steps, "even weight")
        found = [*_seeds(runs, "encoder", _later), *_seeds(runs, "decoder", _later), even]
        _picture("later tokens", steps, found, "weight", told.later(runs), _LATER, runs)


def _previous(run: Born, kind: str) -> np.ndarray:
    return run.previous_best(kind)


def _later(run: Born, kind: str) -> np.ndarray:
    return run.later_mean(kind)


def _seeds(runs: Sequence[Born], kind: str, values: Callable[[Born, str], np.ndarray]) -> list[Trend]:
    """A line for the run, and thin ones for the other seeds, in the hue of a kind."""
    names = {"encoder": "encoder", "decoder": "decoder", "cross": "best head"}
    return [
        Trend("" if i else names[kind], values(run, kind).tolist(), style.HUES[kind], i > 0)
        for i, run in enumerate(runs)
    ]


def _level(value: float, steps: Sequence[int], name: str = "diagonal") -> Trend:
    return Trend(name, [value] * len(steps), style.CHOSEN, dash="dot")


def _picture(
    name: str,
    steps: list[int],
    found: list[Trend],
    title: str,
    sentence: str,
    seeing: str,
    runs: Sequence[Born],
) -> None:
    others = len(runs) - 1
    seeds = f"thin lines: {others} other seed{'s' * (others > 1)} · " if others else ""
    caption = f"{name.capitalize()} by training step · {seeds}{runs[0].name}"

    def draw() -> go.Figure:
        return over_snapshots(steps, found, title, percent=True)

    st.plotly_chart(draw(), key=f"training.birth.{name}", config={"displayModeBar": False}, alt=caption)
    st.caption(plain(caption))
    st.markdown(sentence)
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", seeing)
        export.picture(f"birth {name}", draw, caption, sentence=False, table=lambda: table(runs))


def table(runs: Sequence[Born]) -> Table:
    """Every statistic of every head at every snapshot of every run, for CSV; programs count from 0."""
    rows = [
        (run.name, step, kind, layer, head, statistic, values[i, layer, head])
        for run in runs
        for kind, statistic, values in _measured(run)
        for i, step in enumerate(run.steps)
        for layer in range(values.shape[1])
        for head in range(values.shape[2])
    ]
    return [("run", "step", "kind", "layer", "head", "statistic", "value"), *rows]


def _measured(run: Born) -> list[tuple[str, str, np.ndarray]]:
    found = [(kind, "previous", values) for kind, values in run.previous.items()]
    found += [(kind, "later", values) for kind, values in run.later.items()]
    return [*found, ("cross", "aer", run.errors)]
