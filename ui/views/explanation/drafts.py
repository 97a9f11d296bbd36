"""Unfinished computations: drafts from fewer encoder layers, guesses from fewer decoder layers."""

from __future__ import annotations

import streamlit as st

from figures.base import labels
from figures.base.captions import badge
from figures.maps.measures import lens_map
from transformer.lenses.measures.drafts import draft_audit
from ui.address import State
from ui.controls import panel, plain
from ui.maps import measures
from ui.server.opened import Opened
from ui.shell import waiting

_SEEING = (
    "Each row reads the decoder's stream after some layers with the model's own output matrix, as if "
    "no layer followed (the logit lens). The top row is the model's own distribution. A layer below "
    "was never trained to be read like this, so a strange token does not mean that the model believed "
    "it."
)


def show(opened: Opened, now: State) -> None:
    with waiting.progress("Translating from every layer") as tell:
        drafts, lens = measures.unfinished(opened.asked, opened.translation, tell)
    st.markdown("#### Translations from the encoder's stream after each layer")
    last = len(drafts) - 1
    lines = ["| the decoder reads | and writes, greedily |", "|---|---|"]
    for each in drafts:
        name = "the encoder's input" if each.layers == 0 else f"encoder layer {each.layers}"
        bold = "**" * (each.layers == last)
        lines.append(f"| {name} | {bold}{plain(labels.shorten(each.text, 160)) or '(nothing)'}{bold} |")
    st.markdown("\n".join(lines))
    audit = draft_audit(opened.translation, drafts)
    checked = "" if audit is None else f" · {badge(audit)['text']}"
    st.caption(
        "DecoderLens (Langedijk et al. 2023). The decoder was trained on the last row alone; with post-norm, "
        f"streams before the last layer are far from what it knows{checked}",
        help=None if audit is None else str(badge(audit)["title"]),
    )
    st.markdown("#### The decoder's best guess after each layer")
    steps = labels.names(opened.translation.target_tokens)
    panel(
        "lens",
        lambda ink: lens_map(lens.best, lens.probability, steps, ink),
        "The most probable token after each decoder layer, by step; colour: its probability · "
        f"{opened.asked.model}",
        lambda: [["layers", *steps], *([i, *row] for i, row in enumerate(lens.best))],
        seeing=_SEEING,
        audit=lens.audit,
        inked=True,
        scrolls=True,
    )
