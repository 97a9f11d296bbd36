"""The opening of every page with a sentence: title, model, sentence box, translation, notices."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import inform, refusals
from explorer.app.server.source import NEEDS_MODEL, NEEDS_VECTORS, Source
from explorer.app.server.view import View
from explorer.app.shell import changed, frame, needs, paragraph, sentence, strip
from explorer.app.shell.model_picker import pick_model


def open_sentence_page(
    page: str,  # the name of the page, as `sitemap` has it
    # draws the controls between the sentence box and the picture; gets the state
    controls: Callable[[State], None] | None = None,
    changes: changed.Holds = changed.every,  # which changes hold on the page
    tell: changed.Tell = changed.show_changes,  # draws what is said about changes
    kinds: Sequence[
        str
    ] = (),  # the kinds of attention that the page can show, of which it needs one
    writes: bool = False,  # whether the page shows how an output is written
    # the state with what a model is given to read, where the page does not let it write
    reading: Callable[[Source, State], State] = lambda source, state: state,
    # draws the choice of the way of decoding; None if the page decides it
    way: Callable[[State], None] | None = sentence.decoding,
    vectors: bool = False,  # whether the page computes with queries, keys and values
) -> View | None:
    """Draws the top of a page and translates its sentence.

    Returns:
        The sentence, ready to be shown; None if something was refused, and the page has said why.
    """
    now = frame.open_page(page)
    frame.heading(page, now)
    source = pick_model(now, page)
    now = session.current()  # names that model, whatever the address named
    opened = None
    if source is not None:
        with st.container(key="top"):
            sentence.sentence_box(source, reading(source, now), way)
            paragraph.draw(source, now)
            if controls is not None:
                controls(now)
        if vectors and not source.has_vectors:
            inform(NEEDS_VECTORS)
        elif not needs.tell_lack(source, kinds) and not (writes and needs.tell_no_output(source)):
            wanted = replace(now, changes=tuple(filter(changes, now.changes)))
            opened = sentence.open_sentence(source, reading(source, wanted))
    now = session.current()
    frame.show_notices(now, () if opened is None else opened.notes)
    tell(now, opened, changes)
    if opened is not None and now.lesson is not None:
        strip.ask(opened)
    tokens = () if opened is None else opened.tokens(page == "beam_search")
    frame.end(page, now, tokens, refused=opened is None)
    return opened


def open_plain_page(page: str, style: str = "") -> State:
    """Draws the top of a page without a sentence, in its own style: title, model, notices.

    And its end.
    """
    now = frame.open_page(page)
    if style:
        st.html(style)
    frame.heading(page, now)
    frame.end(page, now)
    pick_model(now)
    frame.show_notices(session.current())
    return now


def show_with_model(
    opened: View,  # the sentence
    show: Callable[[View], None],  # draws the rest of the page
) -> None:
    """Shows results that only the model can compute; says that the model is missing for a file."""
    if opened.source.has_model:
        with refusals():
            show(opened)
    else:
        inform(NEEDS_MODEL)
