"""Feed-forward network, residual connections with their norms, layers and stacks (sections 3.1 and
3.3)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import AttentionMask, Cache, MultiHeadAttention
from transformer.config import AttentionKind, ModelConfig, Side, Sublayer
from transformer.encodings import BiasRule, PositionalEncoding, make_positions
from transformer.hooks import At, Hooks

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}
StreamNorm = nn.LayerNorm | nn.RMSNorm
"""gain · c(x) / √(mean c(x)² + ε) + shift: LayerNorm's c takes the mean away, RMSNorm's leaves x as
it is."""


def make_norm(config: ModelConfig) -> StreamNorm:
    """The norm that a config names: LayerNorm (Ba et al. 2016) or RMSNorm (Zhang and Sennrich
    2019)."""
    norm = nn.RMSNorm if config.norm_by == "rms" else nn.LayerNorm
    return norm(config.d_model, eps=config.norm_epsilon)


def centred(norm: nn.Module, x: Any) -> Any:
    """c(x) of a norm, (…, width), tensor or array: x without its mean, or x itself if the norm
    takes none."""
    if isinstance(norm, nn.RMSNorm):
        return x
    return x - (x.mean(-1, keepdim=True) if isinstance(x, Tensor) else x.mean(-1, keepdims=True))


def spread(norm: nn.Module, x: Any) -> Any:
    """(…, 1) √(mean c(x)² + ε), by which a norm divides; tensor or array."""
    assert isinstance(norm, StreamNorm)
    assert norm.eps is not None
    square = centred(norm, x) ** 2
    mean = (
        square.mean(-1, keepdim=True)
        if isinstance(square, Tensor)
        else square.mean(-1, keepdims=True)
    )
    return (mean + norm.eps) ** 0.5


def shift(part: nn.Module) -> Tensor:
    """(out,) what a norm or a linear map adds at the end: its bias, or zeros if it has none."""
    weight = part.get_parameter("weight")
    bias = getattr(part, "bias", None)
    return weight.new_zeros(len(weight)) if bias is None else bias


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (equation 2), or with another activation.

    Gated: FFN(x) = (act(x W_gate) ⊙ x W1) W2 (Shazeer 2020, equation 6): a gate for the value of
    each unit.
    """

    def __init__(self, config: ModelConfig, sublayer: Sublayer) -> None:
        super().__init__()
        width = config.inner_width(sublayer.side)
        self.name = f"{sublayer.path}.hidden"
        self.activation = ACTIVATIONS[config.activation]
        self.inner = nn.Linear(config.d_model, width, config.biases)
        self.outer = nn.Linear(width, config.d_model, config.biases)
        self.gate = nn.Linear(config.d_model, width, config.biases) if config.gated else None

    def forward(self, x: Tensor, hooks: Hooks | None = None, first: int = 0) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        hidden = self.inner(x)  # (batch, length, d_ff)
        hidden = (
            self.activation(hidden) if self.gate is None else self.activation(self.gate(x)) * hidden
        )
        if hooks is not None:
            hidden = hooks(self.name, hidden, At(first))
        output: Tensor = self.outer(hidden)
        return output


class Residual(nn.Module):
    """The residual connection around a sub-layer, with its norm.

    Post-norm is LayerNorm(x + Sublayer(x)), as in the paper (section 3.1); pre-norm is
    x + Sublayer(LayerNorm(x)) (Xiong et al. 2020, figure 1b).
    """

    def __init__(self, config: ModelConfig, sublayer: Sublayer) -> None:
        super().__init__()
        self.name = sublayer.path
        self.pre_norm = config.norm == "pre"
        self.norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,  # (batch, length, d_model) the stream, from position ``first`` on
        apply: Callable[[Tensor], Tensor],  # the sub-layer
        hooks: Hooks | None = None,
        first: int = 0,
        source: Tensor | None = None,  # the stream that it reads, if it is another one than ``x``
    ) -> Tensor:
        """The stream after the sub-layer, (batch, length, d_model)."""
        source = x if source is None else source
        if hooks is None or not hooks.in_stream:
            total = x + self.dropout(apply(self.norm(source) if self.pre_norm else source))
            return total if self.pre_norm else self.norm(total)
        norm = hooks(f"{self.name}.norm", self.norm)
        at = At(first)
        read = hooks(f"{self.name}.read", norm(source) if self.pre_norm else source, at)
        total = x + self.dropout(hooks(f"{self.name}.output", apply(read), at))
        stream: Tensor = hooks(f"{self.name}.stream", total if self.pre_norm else norm(total), at)
        return stream


class Layer(nn.Module):
    """The sub-layers of one layer: self-attention, in the decoder cross-attention, feed-forward
    (3.1).

    Under a causal mask, a layer without cross-attention makes a language model.
    """

    def __init__(self, config: ModelConfig, side: Side, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.parallel = config.parallel
        self.self_attention = MultiHeadAttention(config, AttentionKind(side), layer)
        self.self_attention_residual = Residual(config, Sublayer(side, layer, "self_attention"))
        self.cross_attention: MultiHeadAttention | None = None
        if "cross_attention" in config.stacks[side].sublayers:
            self.cross_attention = MultiHeadAttention(config, AttentionKind.CROSS, layer)
            self.cross_attention_residual = Residual(
                config, Sublayer(side, layer, "cross_attention")
            )
        self.feed_forward = FeedForward(config, Sublayer(side, layer, "feed_forward"))
        self.feed_forward_residual = Residual(config, Sublayer(side, layer, "feed_forward"))

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        positions: PositionalEncoding | None = None,
        rule: BiasRule | None = None,
        memory: Tensor | None = None,  # (batch, source, d_model)
        memory_mask: AttentionMask | None = None,
        cache: Cache | None = None,
        hooks: Hooks | None = None,
    ) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        first = mask.first_query
        entered = x
        kept_rows = None if cache is None else cache.decoder[self.layer]
        attend: Callable[[Tensor], Tensor] = partial(
            self.self_attention,
            mask=mask,
            positions=positions,
            rule=rule,
            cache=kept_rows,
            hooks=hooks,
        )
        x = self.self_attention_residual(x, attend, hooks, first)
        if (cross := self.cross_attention) is not None:
            assert memory_mask is not None
            source_rows = None if cache is None else cache.cross[self.layer]
            attend = partial(cross, memory=memory, mask=memory_mask, cache=source_rows, hooks=hooks)
            x = self.cross_attention_residual(x, attend, hooks, first)
        feed: Callable[[Tensor], Tensor] = partial(self.feed_forward, hooks=hooks, first=first)
        source = entered if self.parallel else None
        return self.feed_forward_residual(x, feed, hooks, first, source)


class LayerStack(nn.Module):
    """N layers of a side; with pre-norm, a LayerNorm at the end; by config, one before the first
    layer."""

    def __init__(self, config: ModelConfig, side: Side) -> None:
        super().__init__()
        self.side: Side = side
        depth = config.stacks[side].n_layers
        self.positions = make_positions(config, n_layers=depth, causal=side == "decoder")
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.layers = nn.ModuleList(Layer(config, side, layer) for layer in range(depth))
        self.final_norm = make_norm(config) if config.norm == "pre" else nn.Identity()

    @property
    def dtype(self) -> torch.dtype:
        """The type that the stack computes in."""
        return next(self.layers.parameters()).dtype

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        memory: Tensor | None = None,
        memory_mask: AttentionMask | None = None,
        cache: Cache | None = None,
        hooks: Hooks | None = None,
    ) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        positions = (
            self.positions if hooks is None else hooks(f"{self.side}.encoding", self.positions)
        )
        for layer, rule in zip(self.layers, positions.rules(len(self.layers)), strict=True):
            x = layer(x, mask, positions, rule, memory, memory_mask, cache, hooks)
        norm = self.final_norm if hooks is None else hooks(f"{self.side}.norm", self.final_norm)
        return norm(x)
