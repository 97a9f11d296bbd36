"""A figure for a paper from the maps of a page: which heads, what format, and how it will look."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import plain
from explorer.app.controls.export import file_name, provenance, sentence_of
from explorer.app.maps.looking import Looks
from explorer.figures.base import captions, labels, style
from explorer.figures.maps.paper import INCH, Form, sheet
from explorer.lenses.words.reading import ReadView

_KEY, _MOST = "export.paper", 12
_FILES = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}


def offer(kinds: Sequence[str], looks: Looks, now: State) -> None:
    """Draws the choices, the button that saves the figure, and the figure as it will look."""
    choices, picture = st.columns(2, gap="medium")
    with choices:
        heads = _choose_heads(kinds, looks)
        if not heads:
            st.caption("Choose at least one head.")
            return
        views = list(heads.values())
        form = _choose_form(looks[kinds[-1]].scale, views)
        look = looks[views[0].kind]
        first = views[0]
        parts = (captions.window_note(view.window, looks[view.kind].lengths) for view in views)
        drawn = "; ".join(
            f"{captions.place(view)}{title}" for view, title in zip(views, parts, strict=True)
        )
        scale = (
            f"{captions.quantity_name(first)}, colour from 0 to 1, {style.SCALE_NAMES[look.scale]}"
        )
        model = captions.model_name(first.model, first.norm)
        badges = dict.fromkeys(
            str(captions.badge(view.audit, view.derived)["text"]) for view in views
        )
        run = look.opened.translation
        sentence = f"“{run.source_text}” → “{run.text}” ({run.method})"
        about = " · ".join((drawn, scale, model, *badges)), sentence, provenance(now)
        name = file_name(sentence_of(now), *heads)
        button = f"Save {form.file.upper()}"
        mime = _FILES[form.file]
        st.download_button(
            button,
            lambda: sheet(views, form, about)[0],
            f"{name}.{form.file}",
            mime,
            key=f"{_KEY}.save",
            on_click="ignore",
        )
    with picture, st.spinner("Drawing the figure"):
        _show(views, form, about)


def _show(views: Sequence[ReadView], form: Form, about: Sequence[str]) -> None:
    """The figure in the size that it has on paper, its caption, and notes that the visitor should
    know."""
    try:
        image, height, notes = sheet(views, replace(form, file="png"))
    except UserWarning:
        st.error("The labels leave no room for the maps: choose a larger width, or a smaller font.")
        return
    alt = " ".join(map(captions.summary, views))
    st.image(image, width=round(form.width / INCH * 96), alt=alt)  # 96 px are an inch
    st.caption(plain(f"{about[0]} · {about[1]}"))
    size = f"{form.width:g} × {height:.1f} cm, without the cursor and without fading."
    st.caption(
        plain(" ".join((size, "The file's metadata holds this caption and the link.", *notes)))
    )


def _choose_heads(kinds: Sequence[str], looks: Looks) -> dict[str, ReadView]:
    """The heads that the visitor chooses from all, by name."""
    look = looks[kinds[-1]]
    sizes = look.opened.source.sizes
    places = [
        (kind, i, j) for kind in kinds for i in range(sizes[kind][0]) for j in range(sizes[kind][1])
    ]
    heads = {f"{kind} {labels.head_name(i, j)}": (kind, (i, j)) for kind, i, j in places}
    shown = f"{look.kind} {labels.head_name(*look.head)}"
    key = session.control(f"{_KEY}.heads", shown, texts=heads)["key"]
    names = st.multiselect(
        "Heads in the figure", list(heads), [shown], max_selections=_MOST, key=key
    )
    return {name: looks[heads[name][0]].read(heads[name][1]) for name in names}


def _choose_form(scale: str, views: Sequence[ReadView]) -> Form:
    """The file and its sizes.

    At first as wide as one column of a journal if that has room, else as two.
    """
    file = st.segmented_control(
        "Format",
        list(_FILES),
        default="pdf",
        format_func=str.upper,
        required=True,
        key=f"{_KEY}.file",
    )
    several = len(views) > 1
    usual = 8.5 if not several and max(views[0].weights.shape) <= 30 else 17.0
    first, second, third = st.columns(3)
    key = session.control(f"{_KEY}.width", usual)["key"]
    width = first.number_input("Width, cm", 3.0, 40.0, usual, step=0.5, format="%g", key=key)
    letters = second.number_input(
        "Font size, pt", 4.0, 24.0, 8.0, step=0.5, format="%g", key=f"{_KEY}.letters"
    )
    columns = third.number_input(
        "Maps per row", 1, _MOST, 3, key=f"{_KEY}.columns", disabled=not several
    )
    return Form(file, width, letters, columns, scale)
