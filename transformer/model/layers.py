"""Feed-forward network, residual connections, the two kinds of layer, and their stacks (section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.encodings.positions import PositionalEncoding, make_positions
from transformer.model.masks import AttentionMask
from transformer.model.norms import make_norm
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.model.watching.observer import UNWATCHED, Norm, Observer, Passed

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (equation 2), or with another activation."""

    def __init__(self, config: ModelConfig, side: Side = "encoder") -> None:
        super().__init__()
        width = config.inner_width(side)
        self.activation = ACTIVATIONS[config.activation]
        self.inner = nn.Linear(config.d_model, width, config.biases)
        self.outer = nn.Linear(width, config.d_model, config.biases)

    def units(self, x: Tensor) -> Tensor:
        """(…, d_model) → (…, d_ff): the inner units after the activation, as W2 reads them."""
        return self.activation(self.inner(x))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        return self.outer(self.units(x))


class GatedFeedForward(FeedForward):
    """FFN(x) = (act(x W_gate) ⊙ x W1) W2 (Shazeer 2020, equation 6): a gate for the value of each unit."""

    def __init__(self, config: ModelConfig, side: Side = "encoder") -> None:
        super().__init__(config, side)
        self.gate = nn.Linear(config.d_model, config.inner_width(side), config.biases)

    def units(self, x: Tensor) -> Tensor:
        return self.activation(self.gate(x)) * self.inner(x)


def feed_forward(config: ModelConfig, side: Side) -> FeedForward:
    """The feed-forward network of a stack."""
    return (GatedFeedForward if config.gated else FeedForward)(config, side)


class Residual(nn.Module):
    """The residual connection around a sub-layer; subclasses place the LayerNorm."""

    def __init__(self, config: ModelConfig, sublayer: Sublayer) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,  # the stream, from position ``first`` on
        apply: Callable[[Tensor], Tensor],  # the sub-layer
        observer: Observer = UNWATCHED,  # who watches, and what changes the computation
        first: int = 0,  # position of the first row, from 0
    ) -> Tensor:
        """Runs ``apply`` on the stream ``x`` (batch, length, d_model) and adds the result."""
        norm = observer.norm(self.sublayer, self.norm)
        read = self.before(x, norm)
        update = observer.update(self.sublayer, apply(read))
        output = self.after(x + (self.dropout(update) if self.training else update), norm)
        return observer.residual(Passed(self.sublayer, first, x, read, update, output))

    def before(self, x: Tensor, norm: Norm) -> Tensor:
        """The sub-layer's input, computed from the stream."""
        raise NotImplementedError

    def after(self, x: Tensor, norm: Norm) -> Tensor:
        """The new stream, computed from the sum."""
        raise NotImplementedError


class PostNorm(Residual):
    """LayerNorm(x + Sublayer(x)), as in the paper (section 3.1)."""

    def before(self, x: Tensor, norm: Norm) -> Tensor:
        return x

    def after(self, x: Tensor, norm: Norm) -> Tensor:
        return norm(x)


class PreNorm(Residual):
    """x + Sublayer(LayerNorm(x)) (Xiong et al. 2020, figure 1b)."""

    def before(self, x: Tensor, norm: Norm) -> Tensor:
        return norm(x)

    def after(self, x: Tensor, norm: Norm) -> Tensor:
        return x


RESIDUALS: dict[str, type[Residual]] = {"post": PostNorm, "pre": PreNorm}


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (section 3.1, "Encoder").

    Under a causal mask, the same layer makes a language model.
    """

    def __init__(self, config: ModelConfig, layer: int, side: Side = "encoder") -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.layer = layer
        self.self_attention = MultiHeadAttention(config, AttentionKind(side), layer)
        self.self_attention_residual = residual(config, Sublayer(side, layer, "self_attention"))
        self.feed_forward = feed_forward(config, side)
        self.feed_forward_residual = residual(config, Sublayer(side, layer, "feed_forward"))

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        positions: PositionalEncoding,
        observer: Observer = UNWATCHED,
        cache: KVCache | None = None,
    ) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        x = read_own(self, x, mask, positions, cache, observer)
        return self.feed_forward_residual(x, self.feed_forward, observer, mask.first_query)


def read_own(
    layer: EncoderLayer | DecoderLayer,
    x: Tensor,
    mask: AttentionMask,
    positions: PositionalEncoding,
    cache: KVCache | None,
    observer: Observer,
) -> Tensor:
    """The stream (batch, length, d_model) after the self-attention of a layer."""
    own = None if cache is None else cache.decoder[layer.layer]

    def attend(read: Tensor) -> Tensor:
        return layer.self_attention(read, mask=mask, positions=positions, cache=own, observer=observer)

    return layer.self_attention_residual(x, attend, observer, mask.first_query)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then feed-forward (section 3.1, "Decoder")."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.layer = layer
        self.self_attention = MultiHeadAttention(config, AttentionKind.DECODER, layer)
        self.self_attention_residual = residual(config, Sublayer("decoder", layer, "self_attention"))
        self.cross_attention = MultiHeadAttention(config, AttentionKind.CROSS, layer)
        self.cross_attention_residual = residual(config, Sublayer("decoder", layer, "cross_attention"))
        self.feed_forward = feed_forward(config, "decoder")
        self.feed_forward_residual = residual(config, Sublayer("decoder", layer, "feed_forward"))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: AttentionMask,
        memory_mask: AttentionMask,
        positions: PositionalEncoding,
        cache: KVCache | None = None,
        observer: Observer = UNWATCHED,
    ) -> Tensor:
        """(batch, target, d_model) and memory (batch, source, d_model) → (batch, target, d_model)."""
        cross = None if cache is None else cache.cross[self.layer]

        def attend_to_memory(read: Tensor) -> Tensor:
            return self.cross_attention(read, memory, mask=memory_mask, cache=cross, observer=observer)

        x = read_own(self, x, mask, positions, cache, observer)
        x = self.cross_attention_residual(x, attend_to_memory, observer, mask.first_query)
        return self.feed_forward_residual(x, self.feed_forward, observer, mask.first_query)


class Layers(nn.Module):
    """N layers of a stack; with pre-norm, a LayerNorm at the end; by config, one before the first layer."""

    def __init__(self, config: ModelConfig, side: Side, make: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.side: Side = side
        depth = config.stacks[side].n_layers
        self.positions = make_positions(config, n_layers=depth, causal=side == "decoder")
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.layers = nn.ModuleList(map(make, range(depth)))
        self.final_norm = make_norm(config) if config.norm == "pre" else nn.Identity()

    @property
    def dtype(self) -> torch.dtype:
        """The type that the stack computes in."""
        return next(self.layers.parameters()).dtype


class Encoder(Layers):
    """N encoder layers. With a causal mask: a language model."""

    def __init__(self, config: ModelConfig, side: Side = "encoder") -> None:
        super().__init__(config, side, lambda layer: EncoderLayer(config, layer, side))

    def forward(
        self, x: Tensor, mask: AttentionMask, observer: Observer = UNWATCHED, cache: KVCache | None = None
    ) -> Tensor:
        """(batch, length, d_model) → (batch, length, d_model)."""
        positions = observer.encoding(self.side, self.positions)
        for layer in self.layers:
            x = layer(x, mask, positions, observer, cache)
        return observer.norm(self.side, self.final_norm)(x)


class Decoder(Layers):
    """N decoder layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, "decoder", lambda layer: DecoderLayer(config, layer))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: AttentionMask,
        memory_mask: AttentionMask,
        cache: KVCache | None = None,
        observer: Observer = UNWATCHED,
    ) -> Tensor:
        """(batch, target, d_model) and memory (batch, source, d_model) → (batch, target, d_model)."""
        positions = observer.encoding("decoder", self.positions)
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, positions, cache, observer)
        return observer.norm("decoder", self.final_norm)(x)
