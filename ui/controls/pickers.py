"""Controls for more than one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from figures.base.captions import KIND_NAMES
from ui.address import session
from ui.controls import options
from ui.linked_view import Head
from ui.server import catalogue, runs
from ui.server.opened import Opened


def control(
    name: str,  # the widget
    value: object,  # the value that the widget should show
    apply: Callable[[Any], object],  # gets the value that the visitor chose
    texts: Iterable[str] = (),  # the texts of its options, if they depend on a sentence or a model
) -> dict[str, Any]:
    """Key and callback of a widget, in the form that `ui.address.session` needs."""
    key = session.control(name, value, texts)
    return {"key": key, "on_change": session.on_control, "args": (name, key, apply)}


_INK = {"light": "#1d232c", "dark": "#e8ebf0"}


def ink() -> str:
    """The colour of text in the coloured cells of a figure, by the visitor's theme."""
    return _INK.get(st.context.theme.type or "light", _INK["light"])


def head_picker(
    kind: str,  # encoder, decoder or cross
    chosen: Head,  # the one that is shown, from 0
    model: str,  # the name of the model
    # gets the chosen head; None if nothing but this head changes in the state
    take: Callable[[Head], object] | None = None,
) -> None:
    """Lets the visitor choose layer and head of one kind; for use inside the fragment that draws the head."""
    take = take or (lambda head: session.change(**{kind: head}))
    found = options.heads(catalogue.sizes(model)[kind], runs.default_head(model, kind))
    st.selectbox(
        f"Head of {KIND_NAMES[kind].lower()}",
        list(found),
        index=list(found).index(chosen),
        format_func=found.__getitem__,
        label_visibility="collapsed",
        **control(f"head.{kind}", chosen, lambda head: take(tuple(head)), found.values()),
    )


def kind_picker(
    kind: str,  # the kind on the screen
    take: Callable[[str], object],  # gets the chosen kind
) -> None:
    """Lets the visitor choose encoder, decoder or cross on a page that offers all three."""
    names = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross"}
    st.segmented_control(
        "Kind of attention",
        list(names),
        default=kind,
        required=True,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        width="content",
        **control("kind", kind, take),
    )


def row_picker(
    opened: Opened,  # the sentence
    kind: str,  # encoder, decoder or cross
    row: int,  # row of the cursor, from 0
) -> None:
    """Moves the cursor to another row of a map that is not linked."""
    run = opened.translation
    tokens, verb = {
        "encoder": (run.source_tokens, "token"),
        "decoder": (run.decoder_input_tokens, "reads"),
        "cross": (run.target_tokens, "predicts"),
    }[kind]
    names = options.rows(verb, tokens)
    moved = "source" if kind == "encoder" else "step"
    st.selectbox(
        "Row of the cursor",
        list(names),
        index=row,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        **control(f"row.{kind}", row, lambda i: session.change(**{moved: i}), names.values()),
    )


def clickable(
    figure: go.Figure,  # the figure; the `customdata` of a mark say what it stands for
    key: str,  # unique on the page
    take: Callable[[Any], object],  # takes the `customdata` of the mark that was clicked
    alt: str,  # what the figure shows, for people who do not see it
    width: Literal["stretch", "content"] = "stretch",  # as `st.plotly_chart` has it
) -> None:
    """Draws a figure whose marks can be clicked."""
    st.plotly_chart(
        figure,
        width=width,
        key=key,
        config={"displayModeBar": False},
        on_select=lambda: session.on_pick(key, take),
        selection_mode="points",
        alt=alt,
    )


def window(
    now: int | None,  # the first place that the address asks for, from 0
    most: int,  # how many places the window shows
    count: int,  # how many there are
    noun: str,  # what they are, in the plural
) -> int:
    """A slider over the places at which a window can begin; nothing is drawn if everything fits.

    Returns:
        The first place that the window shows, from 0.
    """
    last = count - most
    if last <= 0:
        return 0
    first = min(now or 0, last)
    st.slider(
        f"First of the {most} {noun} shown, of {count}",
        1,
        last + 1,
        first + 1,
        **control("first", first, lambda each: session.change(first=int(each) - 1 or None)),
    )
    return first


def seen(title: str, text: str, formula: str | None = None) -> None:
    """An explanation of the picture, one click away."""
    with st.popover(title, type="tertiary", icon=":material/help:"):
        st.markdown(text)
        if formula:
            st.latex(formula)


def variants(
    # labels by the value of `view` in the address; the first is the default, which the address leaves out
    choices: dict[str, str],
    now: str | None,  # that value
    sentences: dict[str, str] | None = None,  # what each variant shows
    # other values of the state with which a variant begins, by its name
    fresh: Callable[[str], Mapping[str, Any]] = lambda chosen: {},
) -> None:
    """A switch between the variants of a page, with one sentence about each."""
    usual = next(iter(choices))
    value = now if now in choices else usual

    def take(chosen: str) -> None:
        session.change(**{**fresh(chosen), "view": None if chosen == usual else chosen})

    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "View",
            list(choices),
            default=value,
            format_func=choices.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
            **control("view", value, take),
        )
        if sentences:
            st.caption(sentences[value], width="stretch")
