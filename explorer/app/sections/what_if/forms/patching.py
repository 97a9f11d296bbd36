"""Patching: what a place of the model holds for another sentence is put into this run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from explorer.app.address import session
from explorer.app.sections.what_if.forms import fields
from explorer.app.sections.what_if.forms.fields import Sort
from explorer.app.server import runs
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.lenses.what_if.difference import align_tokens
from transformer import interventions as do
from transformer.interventions import InterventionError
from transformer.run import Translation
from transformer.text.typed import clean

LONGEST = 300
"""Most letters of the other sentence, which the address carries."""
ALL, SHARED, OTHERS = "all", "shared", "others"
_PLACES: dict[str, tuple[str, Callable[[Opened], str]]] = {
    "output": ("the encoder's output", lambda opened: do.encoder_output()),
    "embeddings": ("the embeddings", lambda opened: do.embeddings(fields.side())),
    "stream": ("the stream after a sub-layer", lambda opened: do.stream(*fields.sublayer(opened))),
    "head": ("the output of a head", lambda opened: do.head_output(*fields.head(opened))),
}
_ENDS = {
    ALL: "every token, place by place",
    SHARED: "the words that both share",
    OTHERS: "the words that differ",
}


def _patch(opened: Opened) -> do.Intervention | None:
    with st.container(width=320):
        typed = clean(
            st.text_input("The other sentence", placeholder="The dog is …", max_chars=LONGEST)
        ).strip()
    with st.container(width=240):
        name = str(st.selectbox("Put in", list(_PLACES), format_func=lambda name: _PLACES[name][0]))
    place = _PLACES[name][1](opened)
    if not typed:
        return None
    text = opened.source.addressed(typed, session.current().language)
    other = runs.translate(replace(opened.asked, text=text, target=None, changes=()))
    return do.patch(place, other, _positions(opened.translation, other, place))


def _positions(here: Translation, there: Translation, place: str) -> list[tuple[int, int]]:
    """The pairs of positions (here, there) that the visitor chooses.

    Raises:
        InterventionError: no position of one sentence belongs to one of the other.
    """
    tokens = [
        run.source_tokens if place.startswith("encoder") else run.decoder_input_tokens
        for run in (here, there)
    ]
    pairs = [(a, b) for a, b in align_tokens(*tokens) if a is not None and b is not None]
    ways = [*_ENDS, *range(len(pairs))]

    def named(way: str | int) -> str:
        return (
            _ENDS[way]
            if isinstance(way, str)
            else _named(*(each[at] for each, at in zip(tokens, pairs[way], strict=True)))
        )

    with st.container(width=240):
        way = st.selectbox("At", ways, index=2, format_func=named)
    return [pairs[way]] if isinstance(way, int) else _aligned(way, tokens, pairs)


def _named(here: str, there: str) -> str:
    one, other = labels.piece(here), labels.piece(there)
    return one if one == other else f"{one} ← {other}"


def _aligned(way: str, tokens: list[tuple[str, ...]], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    here, there = tokens
    if way == ALL:
        if len(here) != len(there):
            raise InterventionError(
                f"The other sentence has {len(there)} tokens here and this one {len(here)}, so not every "
                "token has a counterpart; choose words."
            )
        return [(at, at) for at in range(len(here))]
    found = [(a, b) for a, b in pairs if (here[a] == there[b]) == (way == SHARED)]
    if not found:
        raise InterventionError(
            {
                SHARED: "The two sentences share no word.",
                OTHERS: "No word of one sentence stands where the other has a different word.",
            }[way]
        )
    return found


SORTS = (
    Sort(
        "put in what another sentence gives",
        "The other sentence runs through the same model; what it holds at this place is put into this run.",
        _patch,
    ),
)
