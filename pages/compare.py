"""Compare: two maps side by side, and their difference."""

from __future__ import annotations

from ui import compare_view
from ui.sentence_page import open_sentence_page

opened = open_sentence_page("Compare")
if opened is not None:
    compare_view.show(opened)
