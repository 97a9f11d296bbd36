"""Inside a head: one query step by step, from the residual stream and back into it."""

from __future__ import annotations

from ui import inside_view
from ui.sentence_page import open_sentence_page, with_model

opened = open_sentence_page("Inside a head", inside_view.controls)
if opened is not None:
    with_model(opened, inside_view.show)
