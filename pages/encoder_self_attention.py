"""Encoder self-attention: every source token looks at every source token, once, before step 1."""

from __future__ import annotations

from ui import batch_view, kind_page, state, widgets
from ui.sentence_page import open_sentence_page

PAGE = kind_page.KindPage(
    kind="encoder",
    strips=("source",),
    cursor="source",
    note="**What to notice.** Rows and columns are the same tokens, and nothing is masked: the "
    "encoder sees the whole "
    "sentence at once. It runs once, before step 1, so no decode step belongs to it.",
    seeing="Every source token makes a query and compares it with the keys of all source tokens. The "
    "weights of a row "
    "say how much of each token's value it takes up; a row sums to 1. The grid shows all heads: rows "
    "are layers, "
    "columns are heads.",
    formula=r"\mathrm{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V",
)

_VARIANTS = {"alone": "this sentence", "batch": "put it in a batch"}

opened = open_sentence_page("Encoder self-attention", lambda: widgets.variants(_VARIANTS))
if opened is not None and state.current().view == "batch":
    batch_view.show(opened)
elif opened is not None:
    kind_page.show(PAGE, opened)
