"""Search: how a translation is looked for, as the tree of a beam search or of several samples."""

from __future__ import annotations

from explorer.app.shell.page import open_sentence_page, with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("beam_search"):
    from explorer.app.views.search import page

opened = open_sentence_page("beam_search", way=None)
if opened is not None:
    with_model(opened, page.show)
