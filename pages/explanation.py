"""Is attention an explanation? Weights beside what they carried and what they did."""

from __future__ import annotations

from explorer.app.shell.changed import none
from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("explanation"):
    from explorer.app.views.explanation import page

opened = open_sentence_page("explanation", changes=none, kinds=("encoder", "cross"))
if opened is not None:
    with_model(opened, page.show)
