"""Masked decoder self-attention: every target token attends to the target tokens read so far."""

from __future__ import annotations

from ui.address import session
from ui.controls import pickers
from ui.shell.page import open_sentence_page
from ui.shell.waiting import for_pytorch

with for_pytorch("Masked decoder self-attention"):
    from ui.views.attention import page

PAGE = page.KindPage(
    kind="decoder",
    strips=("target",),
    cursor="step",
    note="**What to notice.** The hatched triangle is the mask: at step *t* the tokens after *t* do "
    "not exist yet, so "
    "row *t* has *t* keys and its weights share 1 among them. The first row has one key and no choice.",
    seeing="Every token that the decoder has read makes a query and compares it with the keys of the "
    "tokens read so "
    "far. Later tokens are masked: their scores become −∞ and their weights exactly 0. A row is "
    "labelled by the token "
    "it reads; the cursor names the token it predicts.",
    formula=r"\mathrm{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}} + M\right)V,\quad "
    r"M_{ij} = -\infty \text{ for } j > i",
)
_SENTENCES = {
    "decoded": "As decoded: one row after another. Rows still to come are faded, because nothing has "
    "been computed there.",
    "trained": "As trained: all rows at once under the mask (teacher forcing). The numbers are the "
    "same, because the "
    "mask hides from each row what decoding had not written yet.",
}

_VARIANTS = {"decoded": "as decoded", "trained": "as trained"}

opened = open_sentence_page(
    "Masked decoder self-attention", lambda now: pickers.variants(_VARIANTS, now.view, _SENTENCES)
)
if opened is not None:
    page.show(PAGE, opened, fade=session.current().view != "trained")
