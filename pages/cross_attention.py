"""Cross-attention: every target token attends to the source tokens through the encoder's output."""

from __future__ import annotations

from ui.address import session
from ui.controls import pickers
from ui.shell.page import open_sentence_page
from ui.shell.waiting import for_pytorch

with for_pytorch("Cross-attention"):
    from ui.views.attention import alignment, page

PAGE = page.KindPage(
    kind="cross",
    strips=("source", "target"),
    cursor="step",
    note="**What to notice.** Self-attention looks inside its own sequence; here the queries come "
    "from the decoder and "
    "the keys and values from the encoder's output. This is the only way in which the source reaches "
    "the translation. "
    "A map of words that move looks like a diagonal with crossings.",
    seeing="The decoder's state at each step makes a query and compares it with the keys of all "
    "source tokens, which "
    "the encoder computed once. A row is labelled by the token it predicts; hovering also names the "
    "token it reads. "
    "Nothing is masked: the whole source is there from the start.",
    formula=r"\mathrm{softmax}\!\left(\frac{Q_{\text{decoder}}K_{\text{encoder}}^{\top}}{\sqrt{d_k}}\right)"
    r"V_{\text{encoder}}",
)

_VARIANTS = {"attention": "attention", "alignment": "word alignment"}

opened = open_sentence_page("Cross-attention", lambda now: pickers.variants(_VARIANTS, now.view))
if opened is not None and session.current().view == "alignment":
    alignment.show(opened)
elif opened is not None:
    page.show(PAGE, opened)
