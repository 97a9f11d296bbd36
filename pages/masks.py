"""Masks: the keys that attention may not see, and the weight that would leak through a different mask."""

from __future__ import annotations

from explorer.app.shell import sections
from explorer.app.shell.changed import of_tokens
from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("masks"):
    from explorer.app.views.masks import page

opened = open_sentence_page(
    "masks", lambda now: sections.switch("masks", now), changes=of_tokens, kinds=("encoder", "cross")
)
if opened is not None:
    page.show(opened)
