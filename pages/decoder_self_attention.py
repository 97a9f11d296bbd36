"""Masked decoder self-attention: every target token looks back at the target tokens read so far."""

from __future__ import annotations

import streamlit as st

from ui import frame, kind_page, state, widgets

PAGE = kind_page.KindPage(
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

frame.open_page("Decoder self-attention")
st.title("Masked decoder self-attention")
model = frame.pick_model()
opened = None
if model is not None:
    widgets.sentence_box()
    widgets.variants({"decoded": "as decoded", "trained": "as trained"}, _SENTENCES)
    opened = widgets.open_sentence(model)
if opened is None:
    frame.menu()
    frame.show_notices()
else:
    frame.show_notices(opened.translation.notes)
    kind_page.show(PAGE, opened, fade=state.current().view != "trained")
