"""Masked decoder self-attention: every target token attends to the target tokens read so far."""

from __future__ import annotations

from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("decoder_self_attention"):
    from explorer.app.views.attention import decoder

opened = open_sentence_page("decoder_self_attention", decoder.controls)
if opened is not None:
    decoder.show(opened)
