"""The section Causal trace: which places of the model carry the difference of one word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from figures.base import labels
from figures.pages.causal_trace import TracePanel, trace_end, trace_map
from lenses.what_if.causal_trace import SMALLEST_GAP, CausalTrace
from transformer import interventions as do
from transformer.interventions import DropSource, EditSource
from transformer.runs.translation import Translation
from ui.address import session
from ui.controls import Picture, chart, export, inform, options, pickers, seen
from ui.server import examples, per_run, runs
from ui.server.opened import Opened
from ui.server.runs import Request
from ui.shell import fitting, waiting
from ui.views.what_if import traced
from ui.views.what_if.traced import GROUPS, Traced

MOST_TOKENS = 24
"""Most tokens of the sentence and of its translation: the work grows with the third power of their number."""
_READS = (
    "The model reads the second sentence, but one place holds what it held for the first. A cell says what "
    "share of the lost log-probability comes back: 0 % is nothing, 100 % all of it. Click a cell to make "
    "this patch a change."
)
_SEEING = (
    "Two sentences differ in one word. The model reads the second and must write the translation of the "
    "first, which is then less probable. Now one place of the model, at one token, gets the vector that it "
    "had for the first sentence. What comes back of the log-probability passes through that place. Shares of "
    "different places need not add up to 100 %, because the same difference passes through many of them."
)
_FORMULA = r"\frac{\log p(y \mid \text{second, patched}) - \log p(y \mid \text{second})}"
_FORMULA += r"{\log p(y \mid \text{first}) - \log p(y \mid \text{second})}"


def show(opened: Opened) -> None:
    asked = replace(opened.asked, target=opened.asked.target or opened.translation.text, changes=())
    base = _first(asked, opened.translation)
    step, notes = fitting.fit_position("scored token", session.current().scored, len(base.target_tokens))
    for note in notes:
        st.caption(note)
    scored = step
    other = _second_sentence(opened, base, scored)
    if not other:
        inform(
            "Type the same sentence again with one other word that has the same number of tokens: the maps "
            "then show where the difference passes through the model."
        )
        return
    found = Traced(_causes(asked, other), base, scored)
    if abs(found.gap) < SMALLEST_GAP:
        inform(
            f"The other word moves the log-probability by only {abs(found.gap):.4f} nats, too little to "
            "measure what comes back. Choose another word, or score another token."
        )
        return
    st.markdown(traced.sentence(found))
    st.caption(_READS)
    _maps(found, lambda cell: _take(found, cell, other, asked.target))
    seen(_SEEING, _FORMULA)


def _first(asked: Request, shown: Translation) -> Translation:
    """The run of the first sentence with its target forced.

    Raises:
        ValueError: source tokens are changed, or there are too many tokens.
    """
    if any(isinstance(each, EditSource | DropSource) for each in shown.interventions):
        raise ValueError("A causal trace reads the sentence as typed; remove the changes of source tokens.")
    lengths = len(shown.source_tokens), len(shown.target_tokens)
    if max(lengths) <= MOST_TOKENS:
        base = runs.translate(asked, runs.NoProgress())
        lengths = len(base.source_tokens), len(base.target_tokens)
    if max(lengths) > MOST_TOKENS:
        raise ValueError(
            f"A causal trace takes at most {MOST_TOKENS} tokens; the sentence has {lengths[0]} "
            f"and its translation {lengths[1]}, so shorten it."
        )
    return base


def _second_sentence(opened: Opened, base: Translation, scored: int | None) -> str:
    """Draws the field of the second sentence, and the choice of what is scored."""
    usual = "" if opened.example is None else opened.example.other
    text = session.current().other or usual
    box, way = st.columns([6.2, 3.6], vertical_alignment="bottom")
    with box:
        st.text_input(
            "The second sentence, with one other word",
            text,
            placeholder="The same sentence with one other word",
            **pickers.control("causal.other", text, lambda new: session.change(other=new.strip() or None)),
        )
    with way:
        _scored_picker(base, scored)
    return text


def _scored_picker(base: Translation, chosen: int | None) -> None:
    names: dict[int | None, str] = {None: "the whole translation"}
    for step, name in options.rows("predicts", base.target_tokens).items():
        names[step] = name
    pickers.choose("causal.scored", "Scored", names, chosen, "scored", texts=True, labelled=True)


def _causes(asked: Request, other: str) -> CausalTrace:
    """The trace of a request with a target; raises ValueError if the two sentences have none."""
    second = runs.request(session.current(), asked.source, other).text
    with waiting.progress("Patching every place of the model at every token", stop="causal.stop") as tell:
        return per_run.causes(asked.source, asked, second, tell=tell)


def _maps(found: Traced, take: Callable[[list[object]], object]) -> None:
    panels = found.panels()
    end = trace_end(list(panels.values()))
    left, right = st.columns([1, 1], gap="large")
    with left:
        _map(found, panels["encoder"], end, take)
        _map(found, panels["decoder"], end, take)
    with right:
        _map(found, panels["heads"], end, take)
    pictures = {
        name: Picture(partial(trace_map, panel, end), _caption(found, name), table=found.table)
        for name, panel in panels.items()
    }
    export.pictures("causal trace", pictures)


def _map(found: Traced, panel: TracePanel, end: float, take: Callable[[list[object]], object]) -> None:
    st.markdown(f"###### {GROUPS[panel.name]}")
    largest = traced.percent_of(float(np.nanmax(panel.shares)))
    figure = trace_map(panel, end, legend=panel.name == "encoder")
    chart(f"causal.{panel.name}", figure, f"{_caption(found, panel.name)}; largest share {largest}", take)


def _caption(found: Traced, group: str) -> str:
    steps = labels.names(found.found.target_tokens)
    what = "the whole translation" if found.scored is None else f"“{steps[found.scored]}”"
    return (
        f"{GROUPS[group]} · share of {found.gap:.2f} nats that comes back, scored on {what} · "
        f"{found.base.model}"
    )


def _take(found: Traced, cell: list[object], other: str, target: str | None) -> None:
    """Makes a cell a change: the second sentence with this one patch, and the same target."""
    group, row, position = str(cell[0]), int(str(cell[1])), int(str(cell[2]))
    change = do.patch(found.place(group, row), found.base, [position])
    fresh = {**session.FRESH, "changes": (change,), "step": found.scored}
    session.change(
        **fresh, text=other, sentence=examples.whole(other), target=target, view=None, other=None, scored=None
    )
