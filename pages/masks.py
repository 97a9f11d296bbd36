"""Masks: the keys that attention may not see, and the weight that would leak through a different mask."""

from __future__ import annotations

from ui.shell import sections
from ui.shell.changed import of_tokens
from ui.shell.page import open_sentence_page
from ui.shell.waiting import for_pytorch

with for_pytorch("masks"):
    from ui.views.masks import page

opened = open_sentence_page(
    "masks", lambda now: sections.switch("masks", now), changes=of_tokens, kinds=("encoder", "cross")
)
if opened is not None:
    page.show(opened)
