"""The decoder's page for a model whose decoder keeps a state instead of attending to itself."""

from __future__ import annotations

import streamlit as st

from figures.base import labels
from figures.maps.memory import memory_map
from lenses.again.memory import audit_memory
from lenses.inside.unit_memory import unit_memory
from linked.view.feeds import window_around
from transformer import Window
from ui.address import session
from ui.controls import panel, pickers
from ui.server import per_run
from ui.server.opened import Opened

_NOTE = (
    "**This model has no decoder self-attention.** A *simple recurrent unit* stands in its place: every "
    "layer "
    "keeps one state, and a gate f decides at each token how much of it stays and how much of the token "
    "enters. "
    "The map shows the weight of each token in the state after later ones. It is *memory*, not attention: "
    "no "
    "query chooses, and what was forgotten cannot come back. Firefox uses it because a token then costs the "
    "same at every step, and the state does not grow."
)
_SEEING = (
    "Row *t*, column *j*: the weight of W x of token *j* in the state after token *t*, that is the share "
    "(1 − f) of it that was let in, times the share that every later gate kept; as the mean over all "
    "dimensions, or in one of them. Each row sums to at most 1; what is missing is the empty state of the "
    "start."
)
_FORMULA = (
    r"c_t = f_t \odot c_{t-1} + (1 - f_t) \odot W x_t, \qquad "
    r"m_{tj} = \frac{1}{d} \sum_{i=1}^{d} (1 - f_{ji}) \prod_{s=j+1}^{t} f_{si}"
)


def show(opened: Opened) -> None:
    """Draws the memory of one layer."""
    now, run = session.current(), opened.translation
    layers = run.config.stacks["decoder"].n_layers
    chosen = min(now.decoder[0] if now.decoder else 0, layers - 1)
    dimension = None if now.dimension is None else min(now.dimension, run.config.d_model - 1)
    st.markdown(_NOTE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        names = {layer: f"layer {labels.count(layer)}" for layer in range(layers)}
        pickers.switch("unit", "Layer", names, chosen, lambda layer: session.change(decoder=(layer, 0)))
        places = {None: "mean over all dimensions"} | {
            i: f"dimension {i + 1}" for i in range(run.config.d_model)
        }
        with st.container(width=240):
            pickers.choose(
                "unit.dimension", "Dimensions", places, dimension, lambda i: session.change(dimension=i)
            )
    again, model = per_run.retraced(opened), opened.source.load().model
    found = unit_memory(model, again, chosen, dimension)
    start, stop = window_around(len(found.tokens), now.step or 0)
    window = Window(start, stop, start, stop)
    tokens, share = found.tokens[start:stop], found.share[start:stop, start:stop]
    over = "mean over dimensions" if dimension is None else f"dimension {dimension + 1}"
    caption = f"Memory of the recurrent unit · layer {labels.count(chosen)} · {over} · {run.model}"
    panel(
        "memory",
        lambda: memory_map(tokens, share),
        caption,
        lambda: [
            ("after", *tokens),
            *((token, *row) for token, row in zip(tokens, share.tolist(), strict=True)),
        ],
        seeing=_SEEING,
        formula=_FORMULA,
        audit=again.audit().joined(audit_memory(model, again, chosen, dimension, share, window)),
        derived=True,
        width="content",
        scrolls=True,
    )
