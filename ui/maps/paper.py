"""A figure for a paper from the maps of a page: which heads, what format, and how it will look.

Only the visitor who asks for such a figure waits for matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from figures.base import captions, labels, style
from figures.paper.form import FILES, INCH, LETTERS, MOST_HEADS, WIDTHS, Form, Paper
from figures.paper.sheet import sheet
from lenses.words.reading import ReadView
from ui.address import State, session
from ui.controls import plain
from ui.controls.export import provenance, sentence_of
from ui.controls.file_names import file_name
from ui.maps.looking import Looks
from ui.server import catalogue

Chosen = tuple[str, int, int]
"""Kind, layer and head, from 0."""
_KEY = "export.paper"
_SCREEN = 96
"""Px of a page in an inch."""
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


def about(views: Sequence[ReadView], looks: Looks, now: State) -> tuple[str, str, str]:
    """Content of a sheet, its sentence, and its source."""
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
    run = looks[first.kind].translation
    sentence = f"“{run.source_text}” → “{run.text}” ({run.method})"
    return f"{named} · {what} · {model} · {', '.join(badges)}", sentence, provenance(now)


def offer(kinds: Sequence[str], looks: Looks, now: State) -> None:
    """Draws the choices, the button that saves the figure, and the figure as it will look."""
    look = looks[kinds[-1]]
    heads = heads_of(kinds, look.opened.asked.model)
    choices, picture = st.columns(2, gap="medium")
    with choices:
        chosen = _choose_heads(heads, (look.kind, *look.head))
        views = [looks[kind].read((layer, head)) for kind, layer, head in chosen]
        form = _choose_form(look.scale, views)
        if not views:
            st.caption("Choose at least one head.")
            return
        texts = about(views, looks, now)
        _save(views, form, texts, file_name(sentence_of(now), " ".join(heads[each] for each in chosen)))
    with picture:
        _show(views, form, texts)


def _save(views: Sequence[ReadView], form: Form, texts: Sequence[str], name: str) -> None:
    st.download_button(
        f"Save {form.file.upper()}",
        lambda: sheet(views, form, texts).data,
        f"{name}.{form.file}",
        _MIME[form.file],
        key=f"{_KEY}.save",
        on_click="ignore",
    )


def _show(views: Sequence[ReadView], form: Form, texts: Sequence[str]) -> None:
    """The figure in the size that it has on paper, its caption, and notes that the visitor should know."""
    with st.spinner("Drawing the figure"):
        paper = _draft(views, form, texts)
    if paper is None:
        return
    alt = " ".join(map(captions.summary, views))
    st.image(paper.data, width=round(paper.width / INCH * _SCREEN), alt=alt)
    st.caption(plain(f"{texts[0]} · {texts[1]}"))
    size = f"{paper.width:g} × {paper.height:.1f} cm"
    told = (
        f"{size}, without the cursor and without fading. The file's metadata holds this caption and the link."
    )
    st.caption(plain(" ".join((told, *paper.notes))))


def _choose_heads(heads: Mapping[Chosen, str], shown: Chosen) -> list[Chosen]:
    return st.multiselect(
        "Heads in the figure",
        list(heads),
        default=[shown],
        format_func=heads.__getitem__,
        max_selections=MOST_HEADS,
        key=session.control(f"{_KEY}.heads", shown, heads.values()),
    )


def _choose_form(scale: str, views: Sequence[ReadView]) -> Form:
    usual = Form.usual_for(len(views), max((max(view.weights.shape) for view in views), default=0))
    file = st.segmented_control(
        "File", FILES, default=FILES[0], format_func=str.upper, required=True, key=f"{_KEY}.file"
    )
    width, letters, beside = st.columns(3)
    with width:
        key = session.control(f"{_KEY}.width", usual.width)
        centimetres = st.number_input("Width, cm", *WIDTHS, usual.width, 0.5, format="%g", key=key)
    with letters:
        points = st.number_input(
            "Font size, pt", *LETTERS, usual.letters, 0.5, format="%g", key=f"{_KEY}.letters"
        )
    with beside:
        columns = st.number_input(
            "Maps per row", 1, MOST_HEADS, usual.columns, disabled=len(views) < 2, key=f"{_KEY}.columns"
        )
    footnote = st.checkbox("Print caption, date and link under the figure", key=f"{_KEY}.footnote")
    return Form(file, centimetres, points, columns, scale, footnote)


def _draft(views: Sequence[ReadView], form: Form, texts: Sequence[str]) -> Paper | None:
    """The figure as an image for the page; None if it cannot be drawn, and the page has said why."""
    try:
        return sheet(views, replace(form, draft=True), texts)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
