"""Masks: what attention may not see, and what would leak if the mask were another."""

from __future__ import annotations

from ui import masks_view, widgets
from ui.sentence_page import open_sentence_page

_VARIANTS = {"alone": "your sentence alone", "batch": "in a batch"}

opened = open_sentence_page("Masks", lambda: widgets.variants(_VARIANTS))
if opened is not None:
    masks_view.show(opened)
