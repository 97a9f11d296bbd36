"""A Transformer's parameters as the lenses read them: float64, on the CPU, head by head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config import AttentionKind
from transformer.encodings import PositionalEncoding
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.view import Array, Check, difference, worst

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating]


def compared(limit: float, name: str, *pairs: Sequence[Floats]) -> Check:
    """The worst difference of pairs (shown, true), as a share of the largest true number, or of 0.01."""
    return Check(name, worst(*(difference(shown, true, 1e-2) for shown, true in pairs)), limit)


def multi_head(model: Network, kind: AttentionKind, layer: int) -> MultiHeadAttention:
    """An attention sub-layer of a Transformer."""
    attention = model.attention(kind, layer)
    assert isinstance(attention, MultiHeadAttention)
    return attention


def exact(parameter: Tensor) -> Tensor:
    """The same numbers in float64."""
    return parameter.detach().double().cpu()


def as_array(tensor: Tensor) -> Array:
    """The same numbers in float32, read-only."""
    array: Array = tensor.detach().float().cpu().contiguous().numpy()
    array.flags.writeable = False
    return array


def layer_norm(norm: StreamNorm, x: Floats) -> Doubles:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    exactly, gain, bias = x.astype(np.float64), exact(norm.weight).numpy(), exact(shift(norm)).numpy()
    found: Doubles = gain * centred(norm, exactly) / spread(norm, exactly) + bias
    return found


def head_rows(linear: nn.Linear, n_heads: int, head: int) -> Tensor:
    """(d_head, d_model): the rows of W_Q, W_K or W_V that make the vectors of a head."""
    return exact(linear.weight).view(n_heads, -1, linear.in_features)[head]


def output_rows(model: Network, kind: AttentionKind, layer: int) -> tuple[Tensor, Tensor]:
    """W_O by head (heads, d_head, d_model) and b_O (d_model,)."""
    attention = multi_head(model, kind, layer)
    weight = exact(attention.out_proj.weight)
    return weight.T.reshape(attention.n_heads, -1, weight.shape[0]), exact(shift(attention.out_proj))


def projected(linear: nn.Linear, parts: Tensor, n_heads: int, head: int) -> Tensor:
    """(writers, …, d_head) of parts (writers, …, d_model); the bias belongs to the first, the biases."""
    found = parts @ head_rows(linear, n_heads, head).T
    found[0] += exact(shift(linear)).view(n_heads, -1)[head]
    return found


def rotated(positions: PositionalEncoding | None, vectors: Tensor, first: int = 0) -> Tensor:
    """(…, length, d_head) float64, each turned by its position if the encoding of the head rotates."""
    if positions is None:
        return vectors.double()
    device = next(iter(positions.buffers()), torch.empty(0)).device
    return positions.rotate(vectors.float()[:, None].to(device), first)[:, 0].double().cpu()
