"""Compare: two maps side by side, and the difference between them."""

from __future__ import annotations

from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("compare"):
    from explorer.app.sections.what_if import compare

opened = open_sentence_page("compare")
if opened is not None:
    compare.show(opened)
