"""Controls for more than one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
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
    name: str, value: object, apply: Callable[[Any], object], texts: Iterable[str] = ()
) -> dict[str, Any]:
    """Key and callback of a widget, in the form that `ui.address.session` needs.

    Args:
        name: the widget.
        value: the value that the widget should show.
        apply: gets the value that the visitor chose.
        texts: the texts of its options, if they depend on a sentence or a model.
    """
    key = session.control(name, value, texts)
    return {"key": key, "on_change": session.on_control, "args": (name, key, apply)}


_INK = {"light": "#1d232c", "dark": "#e8ebf0"}


def ink() -> str:
    """The colour of text in the coloured cells of a figure, by the visitor's theme."""
    return _INK.get(st.context.theme.type or "light", _INK["light"])


def head_picker(kind: str, chosen: Head, model: str, take: Callable[[Head], object] | None = None) -> None:
    """Lets the visitor choose layer and head of one kind; for use inside the fragment that draws the head.

    Args:
        kind: encoder, decoder or cross.
        chosen: the one that is shown, from 0.
        model: the name of the model.
        take: gets the chosen head; None if nothing but this head changes in the state.
    """
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


def kind_picker(kind: str, take: Callable[[str], object]) -> None:
    """Lets the visitor choose encoder, decoder or cross on a page that offers all three.

    Args:
        kind: the kind on the screen.
        take: gets the chosen kind.
    """
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


def row_picker(opened: Opened, kind: str, row: int) -> None:
    """Moves the cursor to another row of a map that is not linked.

    Args:
        opened: the sentence.
        kind: encoder, decoder or cross.
        row: row of the cursor, from 0.
    """
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
    figure: go.Figure,
    key: str,
    take: Callable[[Any], object],
    alt: str,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """Draws a figure whose marks can be clicked.

    Args:
        figure: the figure; the `customdata` of a mark say what it stands for.
        key: unique on the page.
        take: takes the `customdata` of the mark that was clicked.
        alt: what the figure shows, for people who do not see it.
        width: as `st.plotly_chart` has it.
    """
    st.plotly_chart(
        figure,
        width=width,
        key=key,
        config={"displayModeBar": False},
        on_select=lambda: session.on_pick(key, take),
        selection_mode="points",
        alt=alt,
    )


def window(now: int | None, most: int, count: int, noun: str) -> int:
    """A slider over the places at which a window can begin; nothing is drawn if everything fits.

    Args:
        now: the first place that the address asks for, from 0.
        most: how many places the window shows.
        count: how many there are.
        noun: what they are, in the plural.

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
    choices: dict[str, str],
    now: str | None,
    sentences: dict[str, str] | None = None,
    fresh: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """A switch between the variants of a page, with one sentence about each.

    Args:
        choices: labels by the value of `view` in the address; the first is the default, which the address
            leaves out.
        now: that value.
        sentences: what each variant shows.
        fresh: other values of the state with which a variant begins.
    """
    usual = next(iter(choices))
    value = now if now in choices else usual

    def take(chosen: str) -> None:
        session.change(**{**fresh, "view": None if chosen == usual else chosen})

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
