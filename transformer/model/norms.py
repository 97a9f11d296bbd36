"""What normalises a residual stream: LayerNorm, or RMSNorm, which takes no mean and adds nothing.

Both are gain · c(x) / √(mean c(x)² + ε) + shift. LayerNorm's c takes the mean away, RMSNorm's leaves x as it
is. Whoever computes a norm by hand asks here for its parts, and is right for both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.config import ModelConfig


class RmsNorm(nn.Module):
    """x / √(mean x² + ε) · γ over the last axis (Zhang and Sennrich 2019): no mean, no β."""

    bias: None

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) → (…, width)."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


StreamNorm = nn.LayerNorm | RmsNorm
"""A norm of a stream; it has a gain ``weight``, perhaps a shift ``bias``, and ``eps``."""


def make_norm(config: ModelConfig) -> StreamNorm:
    """The norm that a config names."""
    of = RmsNorm if config.norm_by == "rms" else nn.LayerNorm
    return of(config.d_model, eps=config.norm_epsilon)


def centred(norm: nn.Module, x: Any) -> Any:
    """c(x) of a norm, (…, width), tensor or array: x without its mean, or x itself if the norm takes none."""
    assert isinstance(norm, StreamNorm)
    if isinstance(norm, RmsNorm):
        return x
    return x - (x.mean(-1, keepdim=True) if isinstance(x, Tensor) else x.mean(-1, keepdims=True))


def spread(norm: nn.Module, x: Any) -> Any:
    """(…, 1) √(mean c(x)² + ε), by which a norm divides; tensor or array."""
    assert isinstance(norm, StreamNorm)
    square = centred(norm, x) ** 2
    kept = square.mean(-1, keepdim=True) if isinstance(square, Tensor) else square.mean(-1, keepdims=True)
    return (kept + norm.eps) ** 0.5


def shift(part: nn.Module) -> Tensor:
    """(out,) what a norm or a linear map adds at the end: its bias, or zeros if it has none."""
    weight, bias = part.get_parameter("weight"), getattr(part, "bias", None)
    return weight.new_zeros(len(weight)) if bias is None else bias
