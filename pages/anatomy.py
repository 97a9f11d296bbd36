"""Anatomy: the running model as a diagram, and what each part does to the token at the cursor."""

from __future__ import annotations

from ui import anatomy_view
from ui.sentence_page import open_sentence_page, with_model

opened = open_sentence_page("Anatomy")
if opened is not None:
    with_model(opened, anatomy_view.show)
