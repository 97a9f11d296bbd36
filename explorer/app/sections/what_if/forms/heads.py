"""Changes of what heads give, and of the arithmetic of heads and layers."""

from __future__ import annotations

from explorer.app.sections.what_if.forms.fields import Sort, form, norm
from transformer import interventions as do

HEADS = (
    Sort(
        "switch off a head",
        "Zero removes the head's output. The mean keeps what the head gives for any sentence and removes "
        "what it says about this one.",
        form(do.Ablate),
    ),
    Sort(
        "scale a head", "The head's output is multiplied: 0 switches it off, −1 reverses it.", form(do.Scale)
    ),
)
ARITHMETIC = (
    Sort(
        "temperature of a head",
        "The scores are divided by this number before the softmax: below 1 the weights get sharper, above 1 "
        "flatter.",
        form(do.Temperature),
    ),
    Sort("no ÷ √d_k in a head", "The scores stay q·k, so the weights get sharper.", form(do.Unscaled)),
    Sort(
        "leave out the positions of a side",
        "A decoder then knows the order from its causal mask alone, an encoder not at all.",
        form(do.NoPositions),
    ),
    Sort("leave out a sub-layer", "The sub-layer adds nothing to the stream.", form(do.DropSublayer)),
    Sort("leave out a norm", "LayerNorm, or RMSNorm, passes its input on as it is.", norm),
)
