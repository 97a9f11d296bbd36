"""Changes of the arithmetic of heads and layers."""

from __future__ import annotations

from figures.base import labels
from transformer import interventions as do
from transformer.interventions.base import PARTS
from ui.server.opened import Opened
from ui.views.what_if.sorts import fields
from ui.views.what_if.sorts.fields import Sort


def _temperature(opened: Opened) -> do.Intervention:
    kind = fields.kind(opened)
    return do.temperature(
        kind, *fields.heads(opened, kind), fields.number("Temperature", 2.0, 0.001, 1000.0, 0.5)
    )


def _unscaled(opened: Opened) -> do.Intervention:
    kind = fields.kind(opened)
    return do.unscaled(kind, *fields.heads(opened, kind))


def _positions(_opened: Opened) -> do.Intervention:
    return do.no_positions(fields.side())


def _sublayer(opened: Opened) -> do.Intervention:
    side = fields.side()
    return do.drop_sublayer(
        side, fields.layer_of(fields.layers_of_side(opened, side)), fields.part(opened, side)
    )


def _norm(opened: Opened) -> do.Intervention:
    side = fields.side()
    stack, pre = opened.translation.config.stacks[side], opened.translation.config.norm == "pre"
    places = [(layer, part) for layer in range(stack.n_layers) for part in stack.sublayers]
    names = [f"layer {labels.count(layer)}, {PARTS[part]}" for layer, part in places]
    ends = [f"at the end of the {side}"] * pre
    at = fields.one("LayerNorm", range(len(places) + pre), [*names, *ends], 280)
    return do.drop_norm(side, *(places[at] if at < len(places) else ()))


SORTS = (
    Sort(
        "temperature of a head",
        "The scores are divided by this number before the softmax: below 1 the weights get sharper, above 1 "
        "flatter.",
        _temperature,
    ),
    Sort("no ÷ √d_k in a head", "The scores stay q·k, so the weights get sharper.", _unscaled),
    Sort(
        "leave out the positions of a side",
        "Only masks then tell this side the order of its tokens.",
        _positions,
    ),
    Sort("leave out a sub-layer", "The sub-layer adds nothing to the stream.", _sublayer),
    Sort("leave out a LayerNorm", "The LayerNorm passes its input on as it is.", _norm),
)
