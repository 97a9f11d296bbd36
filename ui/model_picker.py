"""Which model is open: the list in the sidebar, what a model needs, its languages, and the way to the Hub."""

from __future__ import annotations

import streamlit as st

from transformer.hub_files import size
from transformer.hub_settings import is_name
from transformer.sources import hub_title
from ui import hub_picker, imported, memory, models, state
from ui.frame import plain
from ui.hub_models import desk
from ui.linked_view import Head
from ui.opening import fit_model
from ui.widgets import control

LARGE = 100_000_000
"""From so many bytes of memory on, the list says what a model needs."""


def pick_model() -> str | None:
    """Draws the model picker in the sidebar and gives the name of the model; None where there is none."""
    names = [*models.available(), *imported.traces()]
    if not names:
        st.error(
            "There is no model here. Put one under assets/models, or train one into models/ with "
            "`python -m transformer train`."
        )
        return None
    name = _fitted(names)
    with st.sidebar:
        st.selectbox(
            "Model",
            names,
            index=names.index(name),
            format_func=_label,
            label_visibility="collapsed",
            **control("model", name, _take_model),
        )
    _load(name)
    with st.sidebar:
        _pick_language(name)
        hub_picker.draw(_take_model)
    return name


def _fitted(names: list[str]) -> str:
    asked = state.current().model
    name, notes = fit_model(asked, names)
    if notes and asked is not None and is_name(asked):
        desk().suggest(state.visitor(), asked)
        notes = [f"{asked} is not on this machine: get it from the Hub, on the left. This is {name}."]
    for note in notes:
        state.notice(note)
    if notes:
        state.resolve(model=name)
    return name


def _label(name: str) -> str:
    """What the list shows: of a model of the Hub its owner last, so that a narrow list tells models apart."""
    if imported.is_imported(name):
        return name
    path = models.directory(name)
    owner, _, model = name.partition("/") if hub_title(path) else ("", "", name)
    needed = memory.of_model(path)
    return " · ".join(filter(None, (model, size(needed) if needed >= LARGE else "", owner)))


def _take_model(name: str) -> None:
    """Opens another model: the sentence, the step and the view stay, and heads that the visitor chose."""
    if imported.is_imported(name):
        run = imported.find(name).selection
        state.change(model=name, step=None, source=None, encoder=None, decoder=None, cross=None, **run)
        return
    now = state.current()
    if now.source is not None:
        state.notice("The source token is not kept: every model cuts a sentence into tokens of its own.")
    state.change(model=name, source=None, **{kind: _chosen(kind) for kind in models.KINDS})


def _chosen(kind: str) -> Head | None:
    """The head of a kind where it is not merely the one that the model opened with."""
    now = state.current()
    head: Head | None = getattr(now, kind)
    try:
        opened_with = models.default_head(now.model or next(iter(models.available())), kind)
    except (KeyError, ValueError, OSError):
        return head
    return None if head == opened_with else head


def _load(name: str) -> None:
    """Loads a model, and finds the heads to open first, where that was not done; errors are said later."""
    if not models.has_model(name):
        return
    try:
        if not models.is_resident(name):
            needed, free = memory.of_model(models.directory(name)), memory.available()
            with st.spinner(f"Loading {plain(name)}: {size(needed)} of memory, {size(free)} are free"):
                models.first_choice(name)
    except (KeyError, ValueError, OSError):
        return


def _pick_language(name: str) -> None:
    """Chooses the language that a model of several translates into; the sentence may name one itself."""
    pieces = models.languages(name)
    if not pieces:
        return
    text = state.current().text or ""
    named = next((piece for piece in pieces if text.startswith(piece)), None)
    chosen = named or models.language_of(name, state.current().language)
    st.selectbox(
        "Translate into",
        pieces,
        index=pieces.index(chosen),
        format_func=lambda piece: piece.strip("<>"),
        disabled=named is not None,
        help="This model translates into several languages, so a text begins with the one that is wanted.",
        **control("language", chosen, lambda piece: state.change(language=piece, **state.FRESH)),
    )
