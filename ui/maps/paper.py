"""A figure for a paper from the maps of a page: which heads, what format, and how it will look.

Only the visitor who asks for such a figure waits for matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import streamlit as st

from figures.base import captions, labels, style
from figures.paper.form import FILES, LETTERS, MOST_HEADS, WIDTHS, File, Form, Paper
from figures.paper.sheet import sheet
from transformer.lenses.reading import ReadView
from ui.address import session
from ui.address.parameters import State
from ui.controls.export import provenance, sentence_of
from ui.controls.file_names import file_name
from ui.controls.text import plain
from ui.maps.looking import Looks
from ui.server import catalogue

Chosen = tuple[str, int, int]
"""Kind, layer and head, from 0."""
_KEY = "export.paper"
_PREVIEW_DPI = 120
_MIME = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}


def heads_of(kinds: Sequence[str], model: str) -> dict[Chosen, str]:
    """The heads that can stand on a sheet, with their names."""
    sizes = catalogue.sizes(model)
    return {
        (kind, layer, head): f"{kind} {labels.head_name(layer, head)}"
        for kind in kinds
        for layer in range(sizes[kind][0])
        for head in range(sizes[kind][1])
    }


def about(views: Sequence[ReadView], looks: Looks, now: State) -> tuple[str, str]:
    """What a sheet shows, and where it comes from."""
    places: dict[str, list[str]] = {}
    for view in views:
        places.setdefault(captions.KIND_NAMES[view.kind], []).append(
            f"layer {labels.count(view.layer)}, head {labels.count(view.head)}"
        )
    named = " · ".join(f"{kind}: {'; '.join(heads)}" for kind, heads in places.items())
    first = views[0]
    colour = f"colour from 0 to 1, {style.SCALE_NAMES[looks[first.kind].scale]}"
    notes = dict.fromkeys(captions.window_note(view.window, looks[view.kind].lengths) for view in views)
    badges = dict.fromkeys(str(captions.badge(view.audit, view.derived)["text"]) for view in views)
    what = f"{captions.quantity_name(first)}, {colour}{''.join(notes)}"
    model = f"{first.model} ({captions.norm_name(first.norm)})"
    return f"{named} · {what} · {model} · {', '.join(badges)}", provenance(now)


def offer(kinds: Sequence[str], looks: Looks, now: State) -> None:
    """Draws the choices, the figure as it will look, and the button that saves it."""
    look = looks[kinds[-1]]
    heads = heads_of(kinds, look.opened.asked.model)
    chosen = _choose_heads(heads, (look.kind, *look.head))
    form = _choose_form(look.scale, len(chosen))
    if not chosen:
        st.caption("Choose at least one head.")
        return
    views = [looks[kind].read((layer, head)) for kind, layer, head in chosen]
    texts = about(views, looks, now)
    with st.spinner("Drawing the figure"):
        paper = _draft(views, form, texts)
    if paper is None:
        return
    st.image(paper.data, width="stretch")
    size = f"{paper.width:g} × {paper.height:.1f} cm"
    st.caption(plain(" ".join((f"{size}, without cursor and fading.", *paper.notes))))
    name = file_name(sentence_of(now), " ".join(heads[each] for each in chosen))
    st.download_button(
        f"Save {form.file.upper()}",
        lambda: sheet(views, form, texts).data,
        f"{name}.{form.file}",
        _MIME[form.file],
        key=f"{_KEY}.save",
        on_click="ignore",
    )


def _choose_heads(heads: Mapping[Chosen, str], shown: Chosen) -> list[Chosen]:
    return st.multiselect(
        "Heads on the sheet",
        list(heads),
        default=[shown],
        format_func=heads.__getitem__,
        max_selections=MOST_HEADS,
        key=session.control(f"{_KEY}.heads", shown, heads.values()),
    )


def _choose_form(scale: str, count: int) -> Form:
    file, width, letters, beside = st.columns([1.5, 1, 1, 1], vertical_alignment="bottom")
    with file:
        chosen = st.segmented_control(
            "File", FILES, default=FILES[0], format_func=str.upper, required=True, key=f"{_KEY}.file"
        )
    usual = Form()
    with width:
        centimetres = st.number_input(
            "Width, cm", *WIDTHS, usual.width, 0.5, format="%g", key=f"{_KEY}.width"
        )
    with letters:
        points = st.number_input(
            "Letters, pt", *LETTERS, usual.letters, 0.5, format="%g", key=f"{_KEY}.letters"
        )
    with beside:
        columns = st.number_input(
            "Maps in a row", 1, MOST_HEADS, usual.columns, disabled=count < 2, key=f"{_KEY}.columns"
        )
    footnote = st.checkbox("Print model, date and link under the figure", key=f"{_KEY}.footnote")
    return Form(cast(File, chosen), centimetres, points, columns, scale, footnote)


def _draft(views: Sequence[ReadView], form: Form, texts: Sequence[str]) -> Paper | None:
    """The figure as an image for the page; None if it cannot be drawn, and the page has said why."""
    try:
        return sheet(views, replace(form, file="png", dpi=_PREVIEW_DPI), texts)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
