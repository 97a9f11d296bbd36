"""Path length: how many steps lie between two tokens, through a recurrent network and through attention."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.sections.recurrent import twins
from explorer.app.server import catalogue, models
from explorer.app.server.source import Source
from explorer.figures.base.captions import quote
from explorer.figures.pages.recurrent import paths
from transformer.config import TransformerConfig

_SEEING = (
    "Each circle is what a layer holds at one token. A recurrent layer computes it from the one before, so "
    "what it knows of a token has passed every state between. Self-attention reads any token directly. Table "
    "1 of Vaswani et al. (2017) calls this the maximum path length: O(n) against O(1)."
)


def show(now: State) -> None:
    source = models.known(twins.REFERENCE)
    score = twins.score_of(now)
    if source is None and score is None:
        twins.missing()
        return
    _part(source or models.find(f"{catalogue.RECURRENT}/{score}"))


@part
def _part(source: Source) -> None:
    now = session.current()
    run = twins.opened(now, source).translation
    tokens = run.source_tokens
    stop = len(tokens) - 1 if now.source is None else min(now.source, len(tokens) - 1)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=280):
            names = options.rows("from the first token to", tokens)
            pickers.choose("recurrent.path", "To", names, stop, "source", texts=True)
        seen(_SEEING)
    layers = run.config.n_encoder_layers if isinstance(run.config, TransformerConfig) else None
    st.markdown(sentence(tokens, stop, layers))
    caption = (
        f"A picture of the computation inside one layer, not of weights: the way from “{quote(tokens[0])}” "
        f"to “{quote(tokens[stop])}”, {len(tokens)} tokens as {run.model} splits the sentence"
    )
    panel("path length", lambda: paths(tokens, (0, stop)), caption)


def sentence(
    tokens: tuple[str, ...],  # the pieces of the sentence
    stop: int,  # the place where the first token is needed, from 0
    layers: int | None,  # layers of the Transformer's encoder; None if it is not here
) -> str:
    """The steps of this sentence, counted."""
    ends = (plain(quote(tokens[0])), plain(quote(tokens[stop])))
    steps = f"**{stop} step{'s' * (stop != 1)}**"
    told = (
        f"What the forward GRU knows of **{ends[0]}** when it reads **{ends[1]}** has passed through "
        f"{steps}; in self-attention it is **1 step** away, however long the sentence."
    )
    if stop == 0:
        told = "The first token is here already: choose a later one."
    count = len(tokens)
    whole = (
        f" To read all {count} tokens, a GRU takes {count} steps, one after the other: O(n). Both directions "
        "may run at the same time."
    )
    if layers is None:
        return told + whole
    plural = "s" * (layers != 1)
    return (
        f"{told}{whole} The Transformer's encoder takes {layers} layer{plural}, each for all tokens at once."
    )
