"""What the gradients of layers show, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from figures.base import labels
from figures.base.bars import percent
from figures.pages.training.depth import FLOOR
from lab.learning.depth import Gradients, Variant
from ui.controls.text import plain
from ui.views.training.told import power

_PRE, _POST = Variant("pre"), Variant("post")
_BARE = Variant("pre", residual=False)
_LOUD = Variant("post", layer_norm=False)


def variant(each: Variant) -> str:
    """A variant as the legend names it."""
    if each.layer_norm:
        return f"{each.norm}-norm" if each.residual else f"{each.norm}-norm, no residual"
    return "no LayerNorm" if each.residual else "neither"


def untrained(found: Mapping[Variant, Gradients], depth: int) -> str:
    """How much the layers differ with both, and what goes wrong without either."""
    bare, loud = found[_BARE], found[_LOUD]
    return (
        f"With {depth} layers, residual connections and LayerNorm, the strongest gradient of a layer is "
        f"**{_times(found[_PRE].spread)}** the weakest in pre-norm and **{_times(found[_POST].spread)}** in "
        "post-norm. Without residual connections (pre-norm), all tokens grow alike: two of a sentence leave "
        f"the encoder with a cosine of {_cosine(bare.alike)} (with residual connections "
        f"{_cosine(found[_PRE].alike)}), and the decoder's first layer gets "
        f"{_share(bare.decoder[0] / bare.decoder[-1])} of the gradient that its last layer gets. Without "
        f"LayerNorm, the loss begins at {_large(loud.loss)} nats per token, with LayerNorm (post-norm) at "
        f"{labels.number(found[_POST].loss)}."
    )


def trained(found: Mapping[str, tuple[Gradients, Gradients]]) -> str:
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


def _large(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else labels.number(value)


def _cosine(value: float) -> str:
    """Three digits, but never 1.000 for what is not 1."""
    return "1" if value > 1 - 1e-12 else labels.number(min(value, 0.999), ".3f")
