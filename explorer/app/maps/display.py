"""Controls for the display of maps: words, hidden tokens, rows, colours, windows and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import HIDEABLE
from explorer.app.address.state import KINDS
from explorer.app.controls import plain, say
from explorer.app.controls.pickers import control, slide, switch
from explorer.app.maps.looking import HeadSelection
from explorer.app.server import models
from explorer.app.shell import waiting
from explorer.figures.base import labels
from explorer.figures.base.captions import KIND_NAMES, summary
from explorer.lenses.words.reading import ReadView
from transformer.config import Head

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

SHOWS = {"matrix": "matrix", "lines": "lines", "strongest": "strongest keys"}
_HIDE = {"special": "Hide special tokens", "punctuation": "Hide punctuation"}
_SCALES = {"linear": "linear", "sqrt": "square root", "log": "logarithmic"}
_ROWS = {"read": "token read", "predicted": "token predicted"}
_LINKS = {"mass": "share of each row", "weight": "weight"}
_WORDS = (
    "Merges the pieces of each word. Weights are summed over the pieces of a key and averaged over the "
    "pieces of a query, so each row still sums to 1. Chinese, Japanese and Thai texts keep their pieces."
)


def shows(now: str) -> None:
    """Draws the control that shows one head as a matrix, as lines or as its strongest keys."""
    switch("show", "Draw as", SHOWS, now)


def popover(
    kinds: Iterable[str],  # the kinds of maps that these settings change
    now: State,  # the state that the visitor asked for
    more: Callable[[], None] | None = None,  # draws further settings
) -> None:
    """Draws one button for words, hidden tokens, rows, colours and windows; its label says what is on."""
    on = ["words"] * now.words + [f"no {name}" for name in now.hide]
    with st.popover(
        "Display" + (f": {', '.join(on)}" if on else ""), type="tertiary", icon=":material/tune:"
    ):
        st.toggle("Words", now.words, help=_WORDS, **control("words", now.words))
        for name, label in _HIDE.items():
            st.toggle(label, name in now.hide, **control(f"hide.{name}", name in now.hide, _hider(name)))
        _choice("Colours", "scale", _SCALES, now.scale)
        if set(kinds) - {"encoder"}:
            _rows(tuple(kinds), now.rows)
        _choice(
            "At most this many rows and columns",
            "window",
            {n: str(n) for n in KINDS["window"].choices},
            now.window,
        )
        if more is not None:
            more()


def _hider(name: str) -> Callable[[bool], object]:
    def take(hide: bool) -> None:
        asked = {*session.current().hide, name} if hide else {*session.current().hide} - {name}
        session.change(hide=tuple(each for each in HIDEABLE if each in asked))

    return take


def _choice(label: str, field: str, options: Mapping[Any, str], value: object) -> None:
    switch(field, label, options, value, lambda chosen: session.change(**{field: chosen}), labelled=True)


def _rows(kinds: tuple[str, ...], chosen: str | None) -> None:
    usual = "predicted" if kinds == ("cross",) else "read" if kinds == ("decoder",) else None
    options = {"usual": "usual token", **_ROWS} if usual is None else _ROWS
    value = chosen or usual or "usual"

    def take(rows: str) -> None:
        session.change(rows=None if rows in {"usual", usual} else rows)

    switch("rows", "Decoder rows are named by the", options, value, take, labelled=True)


def lines(look: HeadSelection, now: State) -> None:
    """Draws the controls that choose the lines, and the other heads whose lines are drawn as well."""
    name, _, number = now.links.partition("-")
    left, middle, right = st.columns([1.5, 1.5, 2], gap="medium", vertical_alignment="bottom")
    with left:
        switch(
            "links.by",
            "Keep links by",
            _LINKS,
            name,
            lambda by: session.change(links="mass-70" if by == "mass" else "weight-10"),
            labelled=True,
        )
    with middle:
        label = "Share of each row, %" if name == "mass" else "Smallest weight, %"
        slide(
            "links", label, int(number), lambda share: session.change(links=f"{name}-{share}"), ends=(0, 100)
        )
    with right:
        _others(look, now.more or ())


def _others(look: HeadSelection, asked: Sequence[Head]) -> None:
    layers, heads = look.opened.translation.config.sizes[look.kind]
    options = [(i, j) for i in range(layers) for j in range(heads) if (i, j) != look.head]
    more = [head for head in asked if head in options]
    st.multiselect(
        "Other heads",
        options,
        more,
        format_func=lambda head: labels.head_name(*head),
        max_selections=3,
        placeholder="Up to three",
        **control("more", more, lambda heads: session.change(more=tuple(map(tuple, heads)) or None)),
    )


def links_name(links: str) -> str:
    """Describes the links that the value `links` of a state keeps."""
    name, _, number = links.partition("-")
    if name == "mass":
        return f"the links that carry {number}{labels.PER_CENT} of each row"
    return f"the links of at least {int(number) / 100:.2f}"


def tables(views: Callable[[], Sequence[ReadView]]) -> None:
    """Draws a button that opens the numbers of the maps; the numbers are read and sent only then."""
    with st.popover("Table", type="tertiary", icon=":material/table:", on_change="rerun") as place:
        if place.open and session.silent() is not None:
            say("")
        elif place.open:
            with waiting.while_loading():
                models.loading().wait()  # with PyTorch comes pandas
            shown = views()
            names = [KIND_NAMES[view.kind] for view in shown]
            for view, tab in zip(shown, st.tabs(names), strict=True):
                with tab:
                    st.markdown(plain(summary(view)))
                    st.dataframe(weights(view), height=420, alt=summary(view))


def weights(view: ReadView) -> pandas.DataFrame:
    """The weights of a view; tokens, numbered from 1, name rows and columns, and masked cells are empty."""
    import pandas

    rows = labels.row_names(view.query_tokens, view.predicted_tokens)
    columns = labels.names(view.key_tokens)
    cells = pandas.DataFrame(view.weights.round(4)).where(view.mask)
    cells.index = [f"{labels.count(i)} {name}" for i, name in enumerate(rows)]
    cells.columns = [f"{labels.count(i)} {name}" for i, name in enumerate(columns)]
    return cells
