"""The line that says that a text is unlike those that the model knows best, and offers a model for it."""

from __future__ import annotations

import math

import streamlit as st

from figures.base import labels
from transformer.lenses.familiarity import Unfamiliar
from ui.address import session
from ui.controls.text import plain
from ui.server import catalogue, runs
from ui.server.hub_models import desk, may_be_fetched
from ui.server.opened import Opened
from ui.shell.model_picker import take_model

_FAMILY = "Helsinki-NLP/opus-mt"
_OFFERED = "A larger model, trained on texts of many kinds"


def tell(opened: Opened) -> None:
    """Draws the line for a text unlike those that the model knows best; draws nothing for any other text."""
    try:
        found = runs.unfamiliar(opened.asked, opened.translation)
    except (ValueError, OSError) as error:
        st.caption(plain(str(error)))
        return
    if found is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="unfamiliar"):
        st.caption(f":material/info: {plain(sentence(found))}", width="stretch")
        if found.measure.instead is not None:
            _offer(found.measure.instead, found.measure.instead_bytes)


def sentence(found: Unfamiliar) -> str:
    """How the text differs from what the model knows best, with its numbers."""
    return (
        f"Unlike what this model knows best: {_reason(found)}. Expect mistakes: ✓ verified is about the "
        "pictures, not the translation."
    )


def _reason(found: Unfamiliar) -> str:
    traits, usual = found.traits, found.measure.usual
    if found.reason == "tokens":
        low, high = usual["tokens"]
        return f"{traits.tokens:,} tokens (usual: {low:.0f} to {high:.0f})"
    if found.reason == "tokens_per_word":
        low, high = usual["tokens_per_word"]
        return f"{traits.tokens_per_word:.1f} tokens per word (usual: {low:.1f} to {high:.1f})"
    if found.reason == "log_prob":
        low, high = (100 * math.exp(end) for end in usual["log_prob"])
        mean = 100 * math.exp(traits.log_prob)
        usually = f"usual: {low:.0f} to {high:.0f}{labels.PER_CENT}"
        return f"translated tokens have a mean probability of {mean:.0f}{labels.PER_CENT} ({usually})"
    return f"{traits.unknown:,} of {traits.tokens:,} tokens are bytes of characters that have no token"


def _offer(name: str, nbytes: int) -> None:
    """Draws the button that opens the other model, if it is here or may be fetched."""
    shown = "OPUS-MT" if name.startswith(_FAMILY) else name
    if name in catalogue.available():
        st.button(f"Open {shown}", type="tertiary", on_click=take_model, args=(name,), help=_OFFERED)
        return
    if not may_be_fetched(name):
        return
    question = desk().question(session.visitor())
    asked = question if question is not None and question.name == name else None
    fetching = asked is not None and asked.download is not None
    st.button(
        f"Downloading {shown}" if fetching else f"Open {shown} ({nbytes / 1e6:.0f} MB)",
        type="tertiary",
        icon=":material/cloud_download:",
        disabled=fetching,
        on_click=_fetch,
        args=(name,),
        help=_OFFERED,
        key="unfamiliar.fetch",
    )
    if asked is not None and asked.problem:
        st.caption(plain(asked.problem))


def _fetch(name: str) -> None:
    session.keep()
    desk().fetch_at_once(session.visitor(), name)
