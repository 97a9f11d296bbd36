"""What a direction at the end of a stack reads, split over what wrote the stream there: the direct path.

With the σ of every norm held fixed, each is a linear map plus β, so a direction can be pulled back through
all of them to the place where a sub-layer wrote (Elhage et al. 2021, "logit attribution").
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from explorer.lenses.inside.parts import embedding_trace
from explorer.lenses.inside.weights import multi_head, output_rows
from explorer.lenses.measures.stream import (
    BIASES,
    POSITION,
    TOKEN,
    Writer,
    final_norm,
    first_norm,
    recorded,
    values_written,
    written,
)
from transformer.config import AttentionKind, Side
from transformer.layers import shift
from transformer.model import Network
from transformer.run import Translation

Read = dict[tuple[AttentionKind, int], Tensor]
"""A tensor by kind and layer."""


@dataclass(eq=False)
class Direct:
    """Parts of what n directions read, each at its own place; all float64."""

    writers: list[Writer] = field(default_factory=list)  # in the order of writing
    values: list[Tensor] = field(default_factory=list)  # (n,) of each writer; they sum to what is read
    keys: Read = field(default_factory=dict)  # (heads, n, keys) the values of heads, by key
    pulled: Read = field(default_factory=dict)  # (n, d_model) the directions where the heads wrote


def direct(
    model: Network,
    run: Translation,
    side: Side,
    directions: Tensor,  # (n, d_model) float64, at what leaves the stack
    places: list[int],  # the position of each
) -> Direct:
    """Splits what directions read over token, position, heads, feed-forward networks and biases.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
    """
    found, constant = Direct(), torch.zeros(len(places), dtype=torch.float64)
    norm = final_norm(model, run, side)
    if norm is not None:
        constant += directions @ norm.shift
        directions = norm.pulled(directions, places)
    for each in reversed(written(model, run, side)):
        if each.norm is not None:
            constant += directions @ each.norm.shift
            directions = each.norm.pulled(directions, places)
        name, layer = each.sublayer.name, each.sublayer.layer
        if each.kind is None:
            found.writers.append(Writer(name, layer))
            found.values.append((each.record.output[places].double() * directions).sum(-1))
            continue
        weights = torch.as_tensor(recorded(run).weights(each.kind, layer)[:, places]).double()
        split = weights * (values_written(model, run, each.kind, layer) @ directions.T).transpose(1, 2)
        found.keys[each.kind, layer], found.pulled[each.kind, layer] = split, directions
        for head in reversed(range(len(split))):
            found.writers.append(Writer(name, layer, head))
            found.values.append(split[head].sum(-1))
        constant += directions @ output_rows(model, each.kind, layer)[1]
    norm, embedded = first_norm(run, side), embedding_trace(run, side)
    if norm is not None:
        constant += directions @ norm.shift
        directions = norm.pulled(directions, places)
    for what, added in ((POSITION, embedded.positions), (TOKEN, embedded.tokens)):
        if added is not None:
            found.writers.append(Writer(what))
            found.values.append((added[places].double() * directions).sum(-1))
    found.writers.append(Writer(BIASES))
    found.values.append(constant)
    found.writers.reverse()
    found.values.reverse()
    return found


def without_biases(model: Network, run: Translation, found: Direct, places: list[int]) -> Read:
    """(heads, n, keys) as ``keys``, without what each key's value has of b_V: that is nobody's."""
    return {
        which: split - weights * _bias(model, *which, found.pulled[which])[..., None]
        for which, split in found.keys.items()
        for weights in [torch.as_tensor(recorded(run).weights(*which)[:, places]).double()]
    }


def _bias(model: Network, kind: AttentionKind, layer: int, directions: Tensor) -> Tensor:
    """(heads, n) b_V W_O of each head, read by each direction."""
    attention, (rows, _) = multi_head(model, kind, layer), output_rows(model, kind, layer)
    values = shift(attention.v_proj).detach().double().cpu().view(len(rows), 1, -1) @ rows
    return values[:, 0] @ directions.T
