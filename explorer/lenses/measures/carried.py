"""What a weight carried: ‖α_ij x_j W_V W_O‖, the length of what a key really added (Kobayashi et al. 2020).

b_V is kept apart, because it enters through every key and weights sum to 1; b_O belongs to no key. With
pre-norm, x_j is the key's own LayerNorm of the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from explorer.lenses.inside.weights import exact, multi_head, output_rows
from explorer.lenses.measures.stream import recorded
from transformer.config import AttentionKind
from transformer.layers import shift
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, Check

_SUMS = (
    "What the keys carried sums to what the head wrote: that proves its total, not which key carried what."
)
LIMIT = 1e-3
"""Share of the longest output by which the parts may miss it."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Vectors that the keys of one head carried to its queries, by their lengths."""

    norms: Array  # (queries, keys) ‖α_ij x_j W_V W_O‖
    values: Array  # (keys,) ‖x_j W_V W_O‖, what a key would carry with a weight of 1
    bias: float  # ‖b_V W_O‖, which every query gets as a whole
    audit: AuditReport  # whether Σ_j α_ij x_j W_V W_O + b_V W_O is what the head wrote


def carried(model: Network, run: Translation, kind: AttentionKind | str, layer: int, head: int) -> Carried:
    """The length of what each key added to each query of a head: ‖α x W_V W_O‖ (Kobayashi et al. 2020).

    Args:
        model: The model of the run.
        run: A recorded run without changes.
        kind: "encoder", "decoder" or "cross".
        layer: The layer, from 0.
        head: The head, from 0.

    Returns:
        (queries, keys) lengths in the unit of the stream, the length of every value, and that of b_V W_O.

    Raises:
        NotCapturedError: Attention was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such layer or head.
    """
    kind, trace = AttentionKind(kind), recorded(run)
    record = trace.layer(kind, layer, head)
    rows, attention = output_rows(model, kind, layer)[0][head], multi_head(model, kind, layer)
    bias = exact(shift(attention.v_proj)).view(attention.n_heads, -1)[head]
    weights = torch.as_tensor(trace.weights(kind, layer, head)).double()
    own = (record.value[head].double() - bias) @ rows
    length, wrote = own.norm(dim=-1), record.output[head].double() @ rows
    missed = weights @ own + weights.sum(-1, keepdim=True) * (bias @ rows) - wrote
    gap = float(missed.norm(dim=-1).max() / wrote.norm(dim=-1).max().clamp(min=1e-2))
    return Carried(
        _array(weights.abs() * length),
        _array(length),
        float((bias @ rows).norm()),
        AuditReport((Check("parts sum to the head's output", gap, LIMIT),), told=(_SUMS,), claim="sums up"),
    )


def carried_together(model: Network, run: Translation, kind: AttentionKind | str, layer: int) -> Array:
    """The length of what all heads of a layer added from a key: ‖Σ_h α_h x_j W_V W_O‖.

    Several heads may cancel each other, so it is not the sum of their lengths (Kobayashi et al. 2020, 2.2).

    Returns:
        (queries, keys) float32, in the unit of the stream.

    Raises:
        NotCapturedError, UnmeasuredError: As ``carried``.
    """
    kind, trace = AttentionKind(kind), recorded(run)
    rows, attention = output_rows(model, kind, layer)[0], multi_head(model, kind, layer)
    bias = exact(shift(attention.v_proj)).view(attention.n_heads, 1, -1)
    own = (trace.layer(kind, layer).value.double() - bias) @ rows
    weights = torch.as_tensor(trace.weights(kind, layer)).double()
    lengths = [torch.einsum("hk,hkd->kd", each, own).norm(dim=-1) for each in weights.unbind(1)]
    return _array(torch.stack(lengths))


def _array(tensor: torch.Tensor) -> Array:
    found: Array = tensor.float().numpy().astype(np.float32)
    return found
