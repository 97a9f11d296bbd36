"""Base of every model of this package: embeddings, stacks under names, and an output projection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.attention import Attention
from transformer.model.config import ModelConfig
from transformer.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, Residual
from transformer.model.masks import padding_mask
from transformer.model.packed import PackedLinear
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.model.watching.observer import UNWATCHED, Entered, Observer
from transformer.text.brief import Brief


class Cache(Protocol):
    """A decoder's memory of the positions that it has read."""

    @property
    def length(self) -> int:
        """Number of positions."""

    def select(self, rows: Tensor, *, same_source: bool = False) -> None:
        """Keeps, repeats or reorders rows of the batch, as ``KVCache.select``."""


class PieceTable(nn.Embedding):
    """One vector for each piece; an id past the last piece is no piece, and has zeros."""

    def forward(self, ids: Tensor) -> Tensor:
        """(…) ids → (…, d_model)."""
        beyond = ids >= self.num_embeddings
        return super().forward(ids.masked_fill(beyond, 0)).masked_fill(beyond[..., None], 0.0)


def piece_table(config: ModelConfig, pieces: int) -> nn.Embedding:
    """The table of embeddings for some pieces (section 3.4)."""
    return (PieceTable if config.beyond_pieces else nn.Embedding)(pieces, config.d_model)


class Network(Brief, nn.Module):
    """Tables of embeddings, an output projection, and attentions that ``config.sites`` names.

    A subclass sets ``config`` and the parts.
    """

    config: ModelConfig  # its sizes
    embedding: nn.Embedding  # the table of the pieces, or of the source's pieces
    target_embedding: nn.Embedding | None  # the table of the target's pieces, if it is another one
    output: nn.Module | None  # the output projection; None if it is the target's table (section 3.4)
    output_bias: nn.Parameter | None  # (pieces,) what is added to the logits, or None
    dropout: nn.Dropout
    # the last layer's output (batch, length, d_model) for the tensors that a batch reads, and ``observer=``
    features: Callable[..., Tensor]

    def through(
        self,
        entered: Mapping[Side, Tensor],  # the inputs by side
        observer: Observer,  # is asked at every place
        src_padding: Tensor | None = None,  # (1, source) bool, True for tokens; None if nothing is padded
    ) -> None:
        """Passes inputs of the stacks (1, length, d_model), as recorded, through the stacks once more."""
        raise NotImplementedError

    @property
    def projection(self) -> tuple[Tensor, Tensor | None]:
        """Weight (target pieces, d_model) and bias (target pieces) of the last linear layer (section 3.4).

        It reads the features times ``config.output_scale``.
        """
        weight = self.table("decoder").weight if self.output is None else self.output.weight
        assert isinstance(weight, Tensor)
        return weight, self.output_bias

    def logits(self, features: Tensor) -> Tensor:
        """(…, d_model) → (…, target pieces)."""
        if self.config.scaled_output:
            features = features * self.config.output_scale
        if self.output is None:
            return F.linear(features, self.table("decoder").weight, self.output_bias)
        logits: Tensor = self.output(features)
        return logits if self.output_bias is None else logits + self.output_bias

    def embed(self, ids: Tensor, side: Side, first: int, observer: Observer) -> Tensor:
        """Ids (batch, new) as the input of a stack (batch, new, d_model); `first` is their first position."""
        stack = self.stack(side)
        scaled = self.table(side)(ids).to(stack.dtype) * self.config.embedding_scale
        encoding = observer.encoding(side, stack.positions).added(ids.shape[1], first)
        norm = stack.embedding_norm
        x = self.dropout(norm(scaled if encoding is None else scaled + encoding))
        return observer.embedding(Entered(side, first, scaled, encoding, x, norm))

    def stack(self, side: Side) -> Encoder | Decoder:
        """The stack of a side."""
        found = getattr(self, side)
        assert isinstance(found, Encoder | Decoder)
        return found

    def layer(self, side: Side, layer: int) -> EncoderLayer | DecoderLayer:
        """A layer of a stack, from 0."""
        found = self.stack(side).layers[layer]
        assert isinstance(found, EncoderLayer | DecoderLayer)
        return found

    def attention(self, kind: AttentionKind, layer: int) -> Attention:
        """An attention sub-layer of a layer, from 0."""
        sublayer = self.config.sites[kind].sublayer(layer)
        found = getattr(self.layer(sublayer.side, layer), sublayer.name)
        assert isinstance(found, Attention)
        return found

    def residual(self, sublayer: Sublayer) -> Residual:
        """The way of a sub-layer's update back into the residual stream."""
        found = getattr(self.layer(sublayer.side, sublayer.layer), f"{sublayer.name}_residual")
        assert isinstance(found, Residual)
        return found

    def table(self, side: Side) -> nn.Embedding:
        """The embedding table that a side looks its tokens up in (section 3.4)."""
        own = self.target_embedding if side == "decoder" else None
        return self.embedding if own is None else own

    def pack(self) -> None:
        """Packs the matrices that every decoding step reads, in bfloat16: at least that of the output."""
        self.output = PackedLinear(self.projection[0])

    def initialise(self) -> None:
        """Draws the initial weights: Xavier for matrices, 1/√d_model as the spread of embeddings."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in filter(None, (self.embedding, self.target_embedding)):
            nn.init.normal_(table.weight, std=self.config.d_model**-0.5)


class EncoderDecoder(Network):
    """A model that translates: an encoder's output, and a decoder that attends to it."""

    def encode(
        self,
        src_ids: Tensor,  # (batch, source) ids
        src_padding: Tensor | None = None,  # (batch, source) bool, True for tokens; None if nothing is padded
        observer: Observer = UNWATCHED,  # who watches, and what changes the computation
    ) -> Tensor:
        """The memory (batch, source, d_model)."""
        raise NotImplementedError

    def decode(
        self,
        tgt_ids: Tensor,  # (batch, target) decoder input; with a cache, only the new tokens
        memory: Tensor,  # (batch, source, d_model) from ``encode``
        src_padding: Tensor | None = None,  # (batch, source) bool, True for tokens; None if nothing is padded
        *,
        cache: Cache | None = None,  # what the decoder keeps of the positions before ``tgt_ids``
        observer: Observer = UNWATCHED,  # who watches, and what changes the computation
    ) -> Tensor:
        """Decoder output (batch, target, d_model) for the given inputs."""
        raise NotImplementedError

    def new_cache(self) -> Cache:
        """An empty cache for one request."""
        raise NotImplementedError

    def forward(
        self,
        src_ids: Tensor,  # (batch, source) ids, padded with ``pad_id``
        tgt_ids: Tensor,  # (batch, target) decoder input, starting with ``bos_id``, padded with ``pad_id``
    ) -> Tensor:
        """(batch, target, vocab_size) logits of the next token at every position (teacher forcing)."""
        return self.logits(self.features(src_ids, tgt_ids))

    def features(self, src_ids: Tensor, tgt_ids: Tensor, observer: Observer = UNWATCHED) -> Tensor:
        """The decoder's output before the projection, (batch, target, d_model); ids as in ``forward``."""
        src_padding = padding_mask(src_ids, self.config.pad_id)
        memory = self.encode(src_ids, src_padding, observer)
        return self.decode(tgt_ids, memory, src_padding, observer=observer)


def count_parameters(model: nn.Module) -> int:
    """Number of parameters; a shared parameter counts once."""
    return sum(parameter.numel() for parameter in model.parameters())
