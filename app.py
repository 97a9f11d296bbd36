"""Home page: type a sentence, watch the model translate it, and look into its attention."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import session
from explorer.app.shell import changed, frame, paragraph, sentence
from explorer.app.shell.lesson import strip
from explorer.app.shell.models.model_picker import pick_model
from explorer.app.views import home

now = frame.open_page("app")
frame.heading("app", now)
source = pick_model(now)
if source is not None:
    with st.container(key="top"):
        sentence.sentence_box(source, now)
        sentence.below_box(source, now)
    paragraph.draw(source, now, translated=True)
    opened = sentence.open_sentence(source, now)
    now = session.current()
    frame.show_notices(now, () if opened is None else opened.translation.notes)
    changed.show_changes(now, opened)
    if opened is not None:
        strip.ask(opened)
        home.show(opened)
