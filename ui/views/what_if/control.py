"""The control beside a change of heads: the same change at other heads of the same layer."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from figures.base import labels
from figures.pages.what_if import control_strip
from transformer import interventions as do
from transformer.interventions import InterventionError
from transformer.interventions.heads import InHeads
from transformer.runs.translation import Translation
from transformer.what_if.random_heads import RandomHeads, random_heads
from ui.controls import export
from ui.controls.text import plain
from ui.server import catalogue
from ui.server.opened import Opened
from ui.server.stores import kept

_SEED = 0


def draw(
    opened: Opened,  # the sentence with its changes
    base: Translation,  # the run without changes, whose translation is measured
) -> None:
    """Draws the effect of the last change of heads among those of other heads, if there is one."""
    taken = [each for each in opened.asked.changes if _of_heads(each)]
    if not taken:
        return
    st.markdown("##### The same change at other heads")
    try:
        with st.spinner("Measuring the same change at other heads …"):
            found = _measured(opened, base, taken[-1])
    except InterventionError as error:
        st.caption(plain(f"There is no control: {error}"))
        return
    caption = _caption(found, len(opened.asked.changes) - 1, base.model)
    notes = [f"{each}: {labels.number(effect, '+.3f')} nats" for each, effect in _rows(found)]

    def picture() -> go.Figure:
        return control_strip(found.effect, found.effects.tolist(), notes)

    st.plotly_chart(picture(), key="what-if.control", config={"displayModeBar": False}, alt=caption)
    st.caption(plain(caption))
    export.picture(
        "what-if.control", picture, caption, table=lambda: [("change", "Δ log p, nats"), *_rows(found)]
    )


def _of_heads(change: do.Intervention) -> bool:
    return isinstance(change, InHeads) or (
        isinstance(change, do.Patch) and isinstance(change.place, do.HeadOutput)
    )


def _measured(opened: Opened, base: Translation, change: do.Intervention) -> RandomHeads:
    model = catalogue.translator(opened.asked.model)
    beside = [each for each in opened.asked.changes if each != change]

    def make() -> RandomHeads:
        return random_heads(model, opened.asked.text, base.target_ids, change, beside, seed=_SEED)

    found: RandomHeads = kept("controls").get((opened.asked, id(model), base.target_ids), make)
    return found


def _rows(found: RandomHeads) -> list[tuple[str, float]]:
    """Each change and its effect: the visitor's own, then the others."""
    effects = [found.effect, *found.effects.tolist()]
    return [
        (str(each), effect) for each, effect in zip((found.change, *found.controls), effects, strict=True)
    ]


def _caption(found: RandomHeads, beside: int, model: str) -> str:
    count, effect = len(found.controls), labels.moved(found.effect)
    which = f"all {count} others" if found.complete else f"{count} at random, seed {_SEED}"
    with_rest = f", beside the other {'change' if beside == 1 else f'{beside} changes'}" * bool(beside)
    return (
        f"Δ log p of the unchanged translation by “{found.change}” (bar: {effect}){with_rest}, and by the "
        f"same change at other heads of the layer (dots: {which}); {found.as_large} of {count} move it as "
        f"far · {model}"
    )
