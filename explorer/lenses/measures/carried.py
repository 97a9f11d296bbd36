"""What a weight carried: ‖α_ij x_j W_V W_O‖, the length of what a key really added (Kobayashi et al. 2020).

b_V is kept apart, because it enters through every key and weights sum to 1; b_O belongs to no key. With
pre-norm, x_j is the key's own norm of the stream. Beside it, how far a layer's output turns without a value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.inside import memory
from explorer.lenses.inside.parts import output_rows
from explorer.lenses.measures.stream import recorded, summed, value_biases, values_written, written
from transformer.attention import AttentionMask
from transformer.config import AttentionKind
from transformer.hooks import At, Hooks
from transformer.model import Network
from transformer.run import Translation
from transformer.trace import Kind
from transformer.view import Array, AuditReport, HeadMap, read_only

_AT_ONCE = 2**22
"""Numbers of the streams that run at once."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Vectors that the keys of one head carried to its queries, by their lengths."""

    norms: Array  # (queries, keys) ‖α_ij x_j W_V W_O‖
    values: Array  # (keys,) ‖x_j W_V W_O‖, what a key would carry with a weight of 1
    bias: float  # ‖b_V W_O‖, which every query gets as a whole
    audit: AuditReport  # whether Σ_j α_ij x_j W_V W_O + b_V W_O is what the head wrote


def carried(model: Network, run: Translation, kind: Kind, layer: int, head: int) -> Carried:
    """The length of what each key added to each query of a head: ‖α x W_V W_O‖ (Kobayashi et al. 2020).

    Returns (queries, keys) lengths in the unit of the stream, the length of every value, and of b_V W_O.
    NotCapturedError and UnmeasuredError as ``recorded``; IndexError if there is no such head.
    """
    kind, trace = AttentionKind(kind), recorded(run)
    record = trace.layer(kind, layer, head)
    rows, bias = output_rows(model, kind, layer)[0][head], value_biases(model, kind, layer)[head]
    weights = torch.as_tensor(trace.weights(kind, layer, head)).double()
    own, wrote = (record.value[head].double() - bias) @ rows, record.output[head].double() @ rows
    missed = weights @ own + weights.sum(-1, keepdim=True) * (bias @ rows) - wrote
    gap = float(missed.norm(dim=-1).max() / wrote.norm(dim=-1).max().clamp(min=1e-2))
    lengths, always = own.norm(dim=-1), float((bias @ rows).norm())
    norms, values = (read_only(each.float()) for each in (weights.abs() * lengths, lengths))
    return Carried(norms, values, always, summed("parts sum to the head's output", gap, 1e-3))


def carried_together(model: Network, run: Translation, kind: Kind, layer: int) -> Array:
    """The length of what all heads of a layer added from a key: ‖Σ_h α_h x_j W_V W_O‖.

    Several heads may cancel each other, so it is not the sum of their lengths (Kobayashi et al. 2020, 2.2).
    Returns (queries, keys) float32 lengths; NotCapturedError and UnmeasuredError as ``recorded``.
    """
    kind = AttentionKind(kind)
    weights = torch.as_tensor(recorded(run).weights(kind, layer)).double()
    own = values_written(model, run, kind, layer, value_biases(model, kind, layer))
    lengths = [torch.einsum("hk,hkd->kd", each, own).norm(dim=-1) for each in weights.unbind(1)]
    return read_only(torch.stack(lengths).float())


def shares(norms: Array) -> Array:
    """(queries, keys) what each key carried, as a share of its row's sum; 0 in a row that carried nothing."""
    total = norms.sum(-1, keepdims=True)
    return np.divide(norms, total, out=np.zeros_like(norms), where=total > 0)


def carried_map(view: HeadMap, carried: Carried) -> HeadMap:
    """A map, or a window of one, with shares of what was carried for its weights (``carried``)."""
    part = view.window.queries, view.window.keys
    checks = view.audit.joined(replace(carried.audit, claim=view.audit.claim))
    return replace(
        view,
        weights=shares(carried.norms)[part],
        measure="carried",
        measured=carried.norms[part],
        report=checks,
    )


@torch.inference_mode()
def value_zeroing(model: Network, run: Translation, kind: Kind, layer: int) -> Array:
    """Value zeroing (Mohebbi et al. 2023): 1 − cos of a layer's output with and without each key's value.

    The key's value is 0 in every head of the layer, for all queries; the layer runs again to its end. Shares
    of a row, as they are usually drawn, hide how small such distances can be. Returns (queries, keys)
    float32; NotCapturedError and UnmeasuredError as ``recorded``.
    """
    kind, keys = AttentionKind(kind), recorded(run).layer(kind, layer).shape[2]
    site, device = model.config.sites[kind], model.embedding.weight.device
    stack, causal, read = model.stack(site.query_side), site.query_side == "decoder", None
    blocks = [each for each in written(model, run, site.query_side) if each.sublayer.layer == layer]
    whole, part, rule = blocks[-1].record.stream.double(), stack.layers[layer], stack.positions.bias(layer)
    if causal and AttentionKind.CROSS in model.config.sites:
        read = memory(model, run)[None].to(device)
    entered = blocks[0].record.before[None].to(device=device, dtype=stack.dtype)
    found, at_once = [], max(1, _AT_ONCE // entered.numel())

    def zeroed(original: Tensor, at: At) -> Tensor:
        """Takes from row r of a batch the value of key ``first`` + r, in every head."""
        value, rows = original.clone(), torch.arange(len(original))
        value[rows, :, rows + first] = 0
        return value

    hooks, mask = Hooks((), {f"{site.sublayer(layer).path}.value": [zeroed]}), AttentionMask(causal=causal)
    for first in range(0, keys, at_once):
        count = min(at_once, keys - first)
        rows, source = (None if each is None else each.expand(count, -1, -1) for each in (entered, read))
        output = part(rows, mask, stack.positions, rule, source, AttentionMask(), hooks=hooks)
        found.append(1 - torch.cosine_similarity(whole[None], output.double().cpu(), dim=-1))
    distances: Array = torch.cat(found).T.float().contiguous().numpy()
    return distances
