"""Encoder self-attention: every source token looks at every source token, once, before step 1."""

from __future__ import annotations

import streamlit as st

from ui import batch_view, frame, kind_page, state, widgets

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

frame.open_page("Encoder self-attention")
st.title("Encoder self-attention")
model = frame.pick_model()
opened = None
if model is not None:
    widgets.sentence_box()
    widgets.variants({"alone": "this sentence", "batch": "put it in a batch"})
    opened = widgets.open_sentence(model)
if opened is None:
    frame.menu()
    frame.show_notices()
elif state.current().view == "batch":
    frame.show_notices(opened.translation.notes)
    batch_view.show(opened)
else:
    frame.show_notices(opened.translation.notes)
    kind_page.show(PAGE, opened)
