"""The line that says that a translation may be wrong, and offers a larger model."""

from __future__ import annotations

import math

import streamlit as st

from figures.base import labels
from lenses.words.familiarity import JUDGED, Doubtful
from ui.address import session
from ui.controls import plain, refusal
from ui.server import catalogue, models
from ui.server.hub_models import desk, is_allowed, is_offline
from ui.server.opened import Opened, doubted
from ui.shell.models.model_picker import take_model

_FAMILY = "Helsinki-NLP/opus-mt"
_OFFERED = "A larger model, trained on texts of many kinds"
_STRONGER = {"en-de": "en-pt"}
"""Bundled models, and those beside them that translate more of the blind list acceptably."""
_OFFLINE = (
    "the Hub cannot be reached from here. Where there is a network, `python -m transformer pull {name}` "
    "downloads it; once it is in the cache of this server, it is in the list of models."
)


def tell(opened: Opened) -> None:
    """Draws the line for a translation that is doubted; draws nothing for any other."""
    try:
        found = doubted(opened)
    except (ValueError, OSError) as error:
        st.caption(refusal(error))
        return
    if found is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="doubt"):
        st.caption(f":material/info: {plain(sentence(found))}", width="stretch", help=plain(meaning(found)))
        if (other := _STRONGER.get(opened.asked.model)) and models.exists(other):
            label, told = models.handle(other).languages, "The same text; this model makes fewer mistakes"
            st.button(label, type="tertiary", on_click=take_model, args=(other,), help=told)
        if found.measure.instead is not None:
            _offer(found.measure.instead, found.measure.instead_bytes)


def sentence(found: Doubtful) -> str:
    """Why the translation is doubted, with its numbers."""
    return f"This translation may be wrong: {_reason(found)}."


def meaning(found: Doubtful) -> str:
    """Precision of such a line, and its limits."""
    judged, often = found.measure.found.get(JUDGED), ""
    if judged is not None:
        wrong, good = judged.flagged - judged.caught, judged.texts - judged.bad
        often = (
            f"Such a line stood at {judged.caught} of {judged.bad} bad and {wrong} of {good} good "
            "translations that were judged by hand. "
        )
    return f"{often}✓\u00a0verified is about the pictures, not the translation."


def _reason(found: Doubtful) -> str:
    traits, usual = found.traits, found.measure.usual
    if found.reason == "tokens":
        low, high = usual["tokens"]
        return f"{traits.tokens:,} tokens (usual: {low:.0f} to {high:.0f})"
    if found.reason == "tokens_per_word":
        low, high = usual["tokens_per_word"]
        return f"{traits.tokens_per_word:.1f} tokens per word (usual: {low:.1f} to {high:.1f})"
    mean = 100 * math.exp(traits.log_prob)
    if found.reason == "log_prob":
        low, high = (100 * math.exp(end) for end in usual["log_prob"])
        if low <= mean <= high:
            likely = f"a mean probability of {mean:.0f}{labels.PER_CENT}"
            return f"{traits.tokens:,} tokens with {likely} are a doubtful pair"
        usually = f"usual: {low:.0f} to {high:.0f}{labels.PER_CENT}"
        return f"translated tokens have a mean probability of {mean:.0f}{labels.PER_CENT} ({usually})"
    stand = "token stands" if traits.unknown == 1 else "tokens stand"
    return f"{traits.unknown:,} {stand} for characters that the model does not know"


def _offer(name: str, nbytes: int) -> None:
    """Draws the button that opens the other model, if it is here or may be fetched."""
    shown = "OPUS-MT" if name.startswith(_FAMILY) else name
    if name in catalogue.available():
        st.button(f"Open {shown}", type="tertiary", on_click=take_model, args=(name,), help=_OFFERED)
        return
    if not is_allowed(name):
        return
    question = desk().question(session.visitor())
    asked = question if question is not None and question.name == name else None
    if is_offline() or (asked is not None and asked.unreachable):
        st.caption(f"{_OFFERED}: {_OFFLINE.format(name=plain(name))}")
    elif asked is not None and asked.download is not None:
        st.button(f"Downloading {shown}", type="tertiary", disabled=True, icon=":material/cloud_download:")
    else:
        _question(name, f"{nbytes / 1e6:.0f} MB", shown)
    if asked is not None and asked.problem:
        st.caption(refusal(asked.problem))


def _question(name: str, much: str, shown: str) -> None:
    """Asks before anything is downloaded."""
    with st.popover(f"Open {shown} ({much})", type="tertiary", icon=":material/cloud_download:"):
        st.markdown(
            f"{_OFFERED}: {plain(name)}. To open it, this server downloads {much} from the Hub, once, and "
            "keeps the files."
        )
        st.button("Download and open", type="primary", on_click=_fetch, args=(name,), key="doubt.fetch")


def _fetch(name: str) -> None:
    session.keep()
    desk().fetch_at_once(session.visitor(), name)
