"""What if: change one thing in the running model, decode again, and see what it did."""

from __future__ import annotations

from ui.shell.page import open_sentence_page, with_model
from ui.shell.waiting import for_pytorch

with for_pytorch("What if"):
    from ui.views.what_if import changes, page

opened = open_sentence_page("What if", tell=changes.tell)
if opened is not None:
    with_model(opened, page.show)
