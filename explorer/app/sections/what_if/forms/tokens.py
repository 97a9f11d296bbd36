"""Changes of what the model reads and writes."""

from __future__ import annotations

import streamlit as st

from explorer.app.sections.what_if.forms import fields
from explorer.app.sections.what_if.forms.fields import EVERY, Sort
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from transformer import interventions as do
from transformer.interventions import InterventionError


def _edit(opened: Opened) -> do.Intervention | None:
    typed = fields.typed(opened)
    at = fields.one("Source token", range(len(typed)), labels.names(typed))
    with st.container(width=180):
        word = st.text_input("Replacement token", placeholder="another word", max_chars=60).strip()
    return do.edit_source(at, _piece(opened, word, typed[at])) if word else None


def _piece(opened: Opened, word: str, before: str) -> str:
    """A word as one piece of the vocabulary, at the beginning of a word if the piece before it was there."""
    ways = [f"{labels.WORD_START}{word}", word]
    for way in ways if before.startswith(labels.WORD_START) else ways[::-1]:
        try:
            fields.translator(opened).token_id(way, "source")
        except InterventionError:
            continue
        return way
    raise InterventionError(f"This model has no single token for “{word}”; take a more common word.")


def _choose(opened: Opened) -> do.Intervention:
    run = opened.translation
    step = fields.one("Step", range(len(run.steps)), fields.step_names(run.target_tokens))
    offered = run.steps[step].alternatives
    at = fields.one("writes", range(len(offered)), [labels.piece(each.token) for each in offered])
    token = offered[at]
    alike = [each for each in offered if each.token == token.token]
    return do.choose(step, token.token if len(alike) == 1 else token.token_id)


def _forbid(opened: Opened) -> do.Intervention:
    tokens = list(dict.fromkeys(opened.translation.target_tokens))
    at = fields.one("Token", range(len(tokens)), [labels.piece(each) for each in tokens])
    steps = fields.step_names(opened.translation.target_tokens)
    step = fields.one("at", [EVERY, *range(len(steps))], ["every step", *(f"step {each}" for each in steps)])
    return do.forbid(tokens[at], None if step == EVERY else step)


SORTS = (
    Sort("another source token", "The encoder reads another token at this place.", _edit),
    Sort("leave out a source token", "The encoder never reads this token.", fields.form(do.DropSource)),
    Sort(
        "choose the token of a step",
        "The model writes this token at this step and goes on from there.",
        _choose,
    ),
    Sort("forbid a token of the translation", "The model may not write this token.", _forbid),
)
