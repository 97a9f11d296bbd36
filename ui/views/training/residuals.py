"""Residuals and norms: the gradient of every layer with and without them, and in trained models."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from figures.base import labels, style
from figures.base.bars import percent
from figures.pages.training.depth import FLOOR, Layers, by_layer
from lab.studies.residuals import PAIRS, Gradients, Variant
from ui.address import State
from ui.address.state import KINDS
from ui.controls import Table, panel, pickers, plain, power
from ui.server.opened import Opened
from ui.server.training import gradients

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
_PRE, _POST = Variant("pre"), Variant("post")
_BARE = Variant("pre", residual=False)
_LOUD = Variant("post", layer_norm=False)


def show(_opened: Opened, now: State) -> None:
    with st.container(width=300):
        st.select_slider(
            "Layers of each stack",
            KINDS["depth"].choices,
            now.depth,
            **pickers.control("depth", now.depth, "depth"),
        )
    found = gradients.untrained(now.depth)
    st.markdown(untrained_sentence(found, now.depth))
    panel(
        "residuals",
        lambda: by_layer(lines(found), _TITLE),
        f"{_TITLE.capitalize()} of the weights of each layer, on {PAIRS} bundled sentence pairs at "
        f"initialisation · {now.depth} layers each, d_model 32, the same weights for all six · values below "
        "10⁻¹⁰ lie under the axis, where rounding decides",
        lambda: table({variant_name(each): values for each, values in found.items()}),
        seeing=_SEEING,
        formula=_FORMULA,
        sentence=False,
    )
    _trained()


def _trained() -> None:
    found = gradients.trained()
    if not found:
        return
    st.markdown("##### The same number after training")
    st.markdown(trained_sentence(found))
    panel(
        "after training",
        lambda: by_layer(trained_lines(found), _TITLE),
        f"{_TITLE.capitalize()} of the weights of each layer, on the same {PAIRS} pairs in each model's own "
        f"vocabulary, before and after training · {', '.join(found)}",
        lambda: table(
            {
                f"{name}, {when}": values
                for name, both in found.items()
                for when, values in zip(("before", "after"), both, strict=True)
            }
        ),
        seeing=_AFTER,
        title="Before and after",
        sentence=False,
    )


def lines(found: Mapping[Variant, Gradients]) -> list[Layers]:
    """A line for each variant: its colour says where LayerNorm stands, dashes that there is no residual."""
    return [
        Layers(
            variant_name(each),
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


def variant_name(each: Variant) -> str:
    """A variant as the legend names it."""
    if each.layer_norm:
        return f"{each.norm}-norm" if each.residual else f"{each.norm}-norm, no residual"
    return "no LayerNorm" if each.residual else "neither"


def untrained_sentence(found: Mapping[Variant, Gradients], depth: int) -> str:
    """Differences between the layers with both, and the trouble without either."""
    bare, loud = found[_BARE], found[_LOUD]
    large = f"{loud.loss:,.0f}" if loud.loss >= 100 else labels.number(loud.loss)
    return (
        f"With {depth} layers, residual connections and LayerNorm, the strongest gradient of a layer is "
        f"**{_times(found[_PRE].spread)}** the weakest in pre-norm and **{_times(found[_POST].spread)}** in "
        "post-norm. Without residual connections (pre-norm), all tokens grow alike: two of a sentence leave "
        f"the encoder with a cosine of {_cosine(bare.alike)} (with residual connections "
        f"{_cosine(found[_PRE].alike)}), and the decoder's first layer gets "
        f"{_share(bare.decoder[0] / bare.decoder[-1])} of the gradient that its last layer gets. Without "
        f"LayerNorm, the loss begins at {large} nats per token, with LayerNorm (post-norm) at "
        f"{labels.number(found[_POST].loss)}."
    )


def trained_sentence(found: Mapping[str, tuple[Gradients, Gradients]]) -> str:
    """The strongest and the weakest layer of each model, before and after its training."""
    told = (
        f"{plain(name)}: {_times(before.spread)} before training, **{_times(after.spread)}** after it"
        for name, (before, after) in found.items()
    )
    return f"The strongest gradient of a layer against the weakest, {'; '.join(told)}."


def _times(spread: float) -> str:
    if spread > 1 / FLOOR:
        return "over 10¹⁰ times"
    return f"{labels.number(spread, '.1f')} times" if spread < 100 else f"{spread:,.0f} times"


def _share(part: float) -> str:
    if part < FLOOR:
        return "less than $10^{-10}$"
    return f"${power(part)}$" if part < 0.01 else percent(part)


def _cosine(value: float) -> str:
    """Three digits, but never 1.000 for what is not 1."""
    return "1" if value > 1 - 1e-12 else labels.number(min(value, 0.999), ".3f")
