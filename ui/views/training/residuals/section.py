"""Residuals and norms: the gradient of every layer with and without them, and in trained models."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from figures.base import style
from figures.pages.training.depth import Layers, by_layer
from lab.learning.depth import PAIRS, Gradients, Variant
from ui.address import session
from ui.address.state import State
from ui.address.values import DEPTHS
from ui.controls import pickers
from ui.controls.export import Table
from ui.server.opened import Opened
from ui.server.training import gradients
from ui.views.training import drawn
from ui.views.training.residuals import told

_SEEING = (
    "Each point is the norm of the gradient of a layer's weights. Training needs it neither "
    "vanishing nor exploding; sizes that merely differ are rescaled by Adam. Without residual connections, "
    "layers pass on only mixtures: the tokens grow alike, "
    "queries no longer matter, and the decoder's gradient vanishes. Without LayerNorm, the stream and its "
    "gradients grow from layer to layer."
)
_FORMULA = (
    r"\begin{aligned} \text{post-norm:}\quad & \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x)) \\ "
    r"\text{pre-norm:}\quad & x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x)) \\ "
    r"\text{without residual:}\quad & \text{the same without } x\, + \end{aligned}"
)
_AFTER = (
    "Dotted: before training, with fresh weights of the same shape. Solid: after it. The models differ in "
    "size, training data and learning rate, so their lines are not a comparison of pre- and post-norm alone; "
    "the two twins differ in their norm, learning rate and warm-up. A low gradient after training means that "
    "these weights are near a place where the loss changes little."
)
_HUES = {"pre": style.POSITIVE, "post": style.NEGATIVE}
_MODEL_HUES = (style.CHOSEN, style.POSITIVE, style.NEGATIVE)
_TITLE = "norm of the gradient"


def show(_opened: Opened, now: State) -> None:
    """Draws the section."""
    _control(now.depth)
    found = gradients.untrained(now.depth)
    st.markdown(told.untrained(found, now.depth))
    drawn.draw(
        "residuals",
        lambda: by_layer(lines(found), _TITLE),
        f"{_TITLE.capitalize()} of the weights of each layer, on {PAIRS} bundled sentence pairs at "
        f"initialisation · {now.depth} layers each, d_model 32, the same weights for all six · values below "
        "10⁻¹⁰ lie under the axis, where rounding decides",
        lambda: pickers.seen("What am I seeing?", _SEEING, _FORMULA),
        lambda: table({told.variant(each): values for each, values in found.items()}),
    )
    _trained()


def _control(depth: int) -> None:
    with st.container(width=300):
        st.select_slider(
            "Layers of each stack",
            DEPTHS,
            depth,
            **pickers.control("depth", depth, lambda each: session.change(depth=int(each))),
        )


def _trained() -> None:
    found = gradients.trained()
    if not found:
        return
    st.markdown("##### The same number after training")
    st.markdown(told.trained(found))
    drawn.draw(
        "after training",
        lambda: by_layer(trained_lines(found), _TITLE),
        f"{_TITLE.capitalize()} of the weights of each layer, on the same {PAIRS} pairs in each model's own "
        f"vocabulary, before and after training · {', '.join(found)}",
        lambda: pickers.seen("Before and after", _AFTER),
        lambda: table(
            {
                f"{name}, {when}": values
                for name, both in found.items()
                for when, values in zip(("before", "after"), both, strict=True)
            }
        ),
    )


def lines(found: Mapping[Variant, Gradients]) -> list[Layers]:
    """A line for each variant: its colour says where LayerNorm stands, dashes that there is no residual."""
    return [
        Layers(
            told.variant(each),
            values.encoder,
            values.decoder,
            _HUES[each.norm] if each.layer_norm else style.CHOSEN,
            "solid" if each.residual else "dash",
        )
        for each, values in found.items()
    ]


def trained_lines(found: Mapping[str, tuple[Gradients, Gradients]]) -> list[Layers]:
    """Two lines for each model."""
    return [
        Layers(f"{name}, {when} training", values.encoder, values.decoder, hue, dash)
        for (name, both), hue in zip(found.items(), _MODEL_HUES, strict=False)
        for values, when, dash in zip(both, ("before", "after"), ("dot", "solid"), strict=True)
    ]


def table(found: Mapping[str, Gradients]) -> Table:
    """Every layer of every line, for CSV; programs count from 0."""
    rows = [
        (name, side, layer, value, values.loss, values.alike)
        for name, values in found.items()
        for side, norms in (("encoder", values.encoder), ("decoder", values.decoder))
        for layer, value in enumerate(norms)
    ]
    return [("model", "stack", "layer", _TITLE, "loss", "cosine between tokens"), *rows]
