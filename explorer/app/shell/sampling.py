"""The controls of sampling: temperature, top-k and top-p."""

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls.pickers import slide
from explorer.app.server.run_key import Drawing

_TOP_KS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000)
_ALL = 0
_TEMPERATURE = (
    "Divides the logits: below 1 the probable tokens gain, above 1 the improbable ones. At 0 the "
    "best one would always be taken, which is greedy search."
)
_TOP_K = "Draws from the k most probable tokens only."
_TOP_P = "Draws from the fewest tokens whose probabilities reach p together; 1 keeps all tokens."


def popover(now: State) -> None:
    """A button that says how samples are drawn, and opens the controls."""
    label = str(Drawing.of(now))
    with st.popover(label, type="tertiary", icon=":material/tune:", key="sampling-settings"):
        for draw in CONTROLS:
            draw(now)


def _take(**values: float | None) -> None:
    session.change(**{**session.RUN, **values})


def _temperature(now: State) -> None:
    slide(
        "temperature",
        "Temperature",
        now.temperature,
        lambda value: _take(temperature=round(value, 2)),
        help=_TEMPERATURE,
    )


def _top_k(now: State) -> None:
    chosen = now.top_k or _ALL
    numbers = sorted({_ALL, *_TOP_KS, chosen})
    st.select_slider(
        "Top-k",
        numbers,
        chosen,
        format_func=lambda number: f"{number:,}" if number else "all",
        help=_TOP_K,
        **session.control(
            "top_k", chosen, lambda value: _take(top_k=value or None), map(str, numbers)
        ),
    )


def _top_p(now: State) -> None:
    chosen = 1.0 if now.top_p is None else now.top_p
    slide(
        "top_p",
        "Top-p",
        chosen,
        lambda value: _take(top_p=None if value >= 1 else round(value, 2)),
        help=_TOP_P,
    )


CONTROLS = (_temperature, _top_k, _top_p)
"""Each draws one control."""
