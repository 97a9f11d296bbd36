"""Masks: the keys that attention may not see, and the weight that would leak through a different mask."""

from __future__ import annotations

from ui.controls import pickers
from ui.shell.changed import of_tokens
from ui.shell.page import open_sentence_page
from ui.shell.waiting import for_pytorch

with for_pytorch("Masks"):
    from ui.views.masks import page

_VARIANTS = {"alone": "your sentence alone", "batch": "in a batch"}

opened = open_sentence_page(
    "Masks", lambda now: pickers.variants(_VARIANTS, now.view), changes=of_tokens, kinds=("encoder", "cross")
)
if opened is not None:
    page.show(opened)
