"""The visitor's sentence under positional encodings, in one model and in all twins side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, part
from explorer.app.server.catalogue import twin_title as title
from explorer.app.server.opened import Opened
from explorer.app.shell import frame
from explorer.app.views.positions import rearranged, twins
from explorer.app.views.positions.encodings import in_cross_attention, stack_of, stack_switch, too_narrow
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.positions import token_norms, token_vectors
from transformer import Translation
from transformer.config import ModelConfig, Side

_INPUTS = 64


@part
def show(opened: Opened) -> None:
    """Draws the part."""
    now = session.current()
    notices = st.empty()
    _input(opened, stack_of(now))
    st.divider()
    runs = twins.translations(opened)
    if runs:
        twins.maps(runs, stack_of(now), now.twin_head)
        st.divider()
        rearranged.swap(opened, runs, now.swap)
        st.divider()
        rearranged.move(opened, runs, now)
    with notices:
        frame.show_notices(now)


def _input(opened: Opened, side: Side) -> None:
    translation = opened.translation
    tokens = translation.source_tokens if side == "encoder" else translation.decoder_input_tokens
    entered = translation.trace.embeddings[side]
    words = entered.tokens.numpy()
    encoding = None if entered.positions is None else entered.positions.numpy()
    shown = slice(0, _INPUTS)
    parts = {_scaled(translation.config): words[shown]}
    if encoding is not None:
        parts |= {"encoding": encoding[shown], "their sum": (words + encoding)[shown]}
    if translation.config.embedding_norm:
        parts["norm of the sum"] = entered.input.numpy()[shown]
    st.markdown(f"##### What goes into the {side}")
    stack_switch(side, "sentence")
    st.markdown(_input_sentence(translation, encoding, words))
    more = f", first {_INPUTS} of {len(tokens)} tokens" if len(tokens) > _INPUTS else ""
    audit = translation.audit() if translation.attention is not None else None
    where = f"{side}{more} · {translation.model}, {title(translation.config.positions)} positions"
    panel(
        "norms",
        lambda: token_norms(tokens[shown], {name: _norms(part) for name, part in parts.items()}),
        f"Norms of the input of the first layer of the {where}",
        alt="; ".join(f"{name}: {_norms(part).mean():.2f} on average" for name, part in parts.items()),
        audit=audit,
    )
    most = max(float(np.abs(part).max()) for part in parts.values())
    with st.expander("The vectors themselves, in all dimensions"):
        for i, (name, part) in enumerate(parts.items()):
            panel(
                f"vectors-{labels.count(i)}",
                _vectors(tokens[shown], part, most),
                f"{name[0].upper()}{name[1:]}: all dimensions, colours from −{most:.1f} to {most:.1f} · "
                f"{where}{too_narrow(part.shape[1])}",
                alt=f"{len(part)} tokens × {part.shape[1]} dimensions.",
                audit=audit,
            )


def _vectors(tokens: tuple[str, ...], part: np.ndarray, most: float) -> Callable[[], go.Figure]:
    return lambda: token_vectors(tokens, part, most)


def _input_sentence(translation: Translation, encoding: Any, words: Any) -> str:
    name = translation.config.positions
    cross = in_cross_attention(name)
    if encoding is None:
        acts = "nowhere" if name == "none" else "later, inside every self-attention"
        return f"This model's encoding ({title(name)}) adds nothing here: it acts {acts}. {cross}"
    share = float(_norms(encoding).mean() / _norms(words).mean())
    config = translation.config
    gives = f"gives, after a {config.norm_name}," if config.embedding_norm else "gives"
    return (
        f"{_scaled(config)[0].upper()}{_scaled(config)[1:]} plus encoding {gives} the first layer's input. "
        f"On this sentence, the encoding is on average {percent(share)} as long as the embedding. {cross}"
    )


def _scaled(config: ModelConfig) -> str:
    return "token embedding" + " × √d_model" * config.scaled_embeddings


def _norms(table: np.ndarray) -> np.ndarray:
    norms: np.ndarray = np.linalg.norm(table, axis=1)
    return norms
