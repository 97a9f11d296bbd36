"""The models: the encoder-decoder Transformer (Vaswani et al. 2017, figure 1), a causal language
model, and an encoder alone."""

from abc import abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import Attention, AttentionMask, Cache, padding_mask
from transformer.config import (
    RELATIVE,
    AttentionKind,
    EncoderConfig,
    LanguageModelConfig,
    ModelConfig,
    Side,
    Sublayer,
    TransformerConfig,
)
from transformer.hooks import At, Hooks, hook_names
from transformer.layers import ACTIVATIONS, LayerStack, Residual, make_norm, shift

Projections = Callable[[AttentionKind, int], NDArray[np.float32]]
"""``Network.output_projection`` of some model."""


class PieceTable(nn.Embedding):
    """One vector for each piece; an id past the last piece is no piece, and has zeros."""

    def forward(self, ids: Tensor) -> Tensor:
        """(…) ids → (…, d_model)."""
        beyond = ids >= self.num_embeddings
        return super().forward(ids.masked_fill(beyond, 0)).masked_fill(beyond[..., None], 0.0)


class Network(nn.Module):
    """Tables of embeddings, an output projection, and attentions that ``config.sites`` names.

    A subclass sets ``config`` and the parts.
    """

    config: ModelConfig  # its sizes
    embedding: nn.Embedding  # the table of the pieces, or of the source's pieces
    target_embedding: nn.Embedding | None  # the table of the target's pieces, if it is another one
    output: (
        nn.Module | None
    )  # the output projection; None if it is the target's table (section 3.4)
    output_bias: nn.Parameter | None  # (pieces,) what is added to the logits, or None
    dropout: nn.Dropout
    # the last layer's output (batch, length, d_model) for the tensors that a batch reads, and
    # ``hooks=``
    features: Callable[..., Tensor]

    @abstractmethod
    def read(
        self,
        ids: Mapping[Side, Tensor],  # (batch, length) ids that each stack reads
        hooks: Hooks | None = None,  # who looks, and what changes the computation
    ) -> Tensor:
        """The last layer's output before the projection, (batch, length, d_model)."""

    @property
    def projection(self) -> tuple[Tensor, Tensor | None]:
        """Weight (target pieces, d_model) and bias (target pieces) of the last linear layer
        (section 3.4).

        It reads the features times ``config.output_scale``.
        """
        weight = self.table("decoder").weight if self.output is None else self.output.weight
        assert isinstance(weight, Tensor)
        return weight, self.output_bias

    def logits(self, features: Tensor, hooks: Hooks | None = None, first: int = 0) -> Tensor:
        """(…, d_model) → (…, target pieces)."""
        logits = self.projected(self.transformed(features))
        return logits if hooks is None else hooks("logits", logits, At(first))

    def transformed(self, features: Tensor) -> Tensor:
        """(…, d_model) what the output projection reads of the last layer's output."""
        return features

    def projected(self, features: Tensor) -> Tensor:
        """(…, d_model) → (…, target pieces): the last linear layer (section 3.4)."""
        if self.config.scaled_output:
            features = features * self.config.output_scale
        if self.output is None:
            return F.linear(features, self.table("decoder").weight, self.output_bias)
        logits: Tensor = self.output(features)
        return logits if self.output_bias is None else logits + self.output_bias

    def embed(self, ids: Tensor, side: Side, first: int, hooks: Hooks | None = None) -> Tensor:
        """Ids (batch, new) as the input of a stack (batch, new, d_model); ``first`` is their first
        position.

        Token embeddings × √d_model (section 3.4), plus the encoding (section 3.5).
        """
        stack = self.stack(side)
        at = At(first)
        x = self.looked_up(ids, side).to(stack.dtype)
        positions, norm = stack.positions, stack.embedding_norm
        if hooks is not None:
            hooks.check(self.config)
            positions = hooks(f"{side}.encoding", positions)
            x = hooks(f"{side}.tokens", x, at)
        encoding = positions.added(ids.shape[1], first)
        if encoding is not None:
            x = x + (encoding if hooks is None else hooks(f"{side}.positions", encoding, at))
        x = self.dropout(norm(x))
        if hooks is not None:
            if self.config.embedding_norm:
                hooks.constants(
                    f"{side}.input", gain=norm.get_parameter("weight"), shift=shift(norm)
                )
            x = hooks(f"{side}.input", x, at)
        return x

    def looked_up(self, ids: Tensor, side: Side) -> Tensor:
        """(batch, new) ids → (batch, new, d_model): the rows of the table × √d_model (section
        3.4)."""
        rows: Tensor = self.table(side)(ids)
        return rows * self.config.embedding_scale

    def hook_names(self) -> tuple[str, ...]:
        """Every name that hooks are called with, in the order of a run; see
        ``transformer.hooks``."""
        return hook_names(self.config)

    def output_projection(self, kind: AttentionKind, layer: int) -> NDArray[np.float32]:
        """(heads, d_head, d_model) each head's part of W^O (section 3.2.2)."""
        attention = self.attention(kind, layer)
        weight = attention.out_proj.weight.detach().float().cpu()
        heads: NDArray[np.float32] = weight.T.reshape(
            attention.n_heads, -1, weight.shape[0]
        ).numpy()
        return heads

    def stack(self, side: Side) -> LayerStack:
        """The stack of a side."""
        stack = getattr(self, side)
        assert isinstance(stack, LayerStack)
        return stack

    def attention(self, kind: AttentionKind, layer: int) -> Attention:
        """An attention sub-layer of a layer, from 0."""
        sublayer = self.config.sites[kind].sublayer(layer)
        attention = getattr(self.stack(sublayer.side).layers[layer], sublayer.name)
        assert isinstance(attention, Attention)
        return attention

    def residual(self, sublayer: Sublayer) -> Residual:
        """The way of a sub-layer's update back into the residual stream."""
        residual = getattr(
            self.stack(sublayer.side).layers[sublayer.layer], f"{sublayer.name}_residual"
        )
        assert isinstance(residual, Residual)
        return residual

    def table(self, side: Side) -> nn.Embedding:
        """The embedding table that a side looks its tokens up in (section 3.4)."""
        of_target = self.target_embedding if side == "decoder" else None
        return self.embedding if of_target is None else of_target

    def initialise(self) -> None:
        """Draws the initial weights: Xavier for matrices, 1/√d_model as the spread of
        embeddings."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in filter(None, (self.embedding, self.target_embedding)):
            nn.init.normal_(table.weight, std=self.config.d_model**-0.5)


class EncoderDecoder(Network):
    """A model that translates: an encoder's output, and a decoder that attends to it."""

    encoder: nn.Module  # inputs (batch, source, d_model), their mask and ``hooks=`` → its output

    @abstractmethod
    def run_decoder(
        self,
        x: Tensor,  # (batch, new, d_model) inputs
        memory: Tensor,  # (batch, source, d_model)
        mask: AttentionMask,  # that of cross-attention
        cache: Cache | None,
        hooks: Hooks | None,
    ) -> Tensor:
        """The decoder's output, (batch, new, d_model); its positions are in the cache
        afterwards."""

    def encode(
        self,
        src_ids: Tensor,  # (batch, source) ids
        src_padding: Tensor
        | None = None,  # (batch, source) bool, True for tokens; None if nothing is padded
        hooks: Hooks | None = None,  # who looks, and what changes the computation
    ) -> Tensor:
        """The memory (batch, source, d_model)."""
        x = self.embed(src_ids, "encoder", 0, hooks)
        memory: Tensor = self.encoder(x, AttentionMask(src_padding), hooks=hooks)
        return memory if hooks is None else hooks("encoder.output", memory)

    def decode(
        self,
        tgt_ids: Tensor,  # (batch, target) decoder input; with a cache, only the new tokens
        memory: Tensor,  # (batch, source, d_model) from ``encode``
        src_padding: Tensor
        | None = None,  # (batch, source) bool, True for tokens; None if nothing is padded
        *,
        cache: Cache | None = None,  # what the decoder keeps of the positions before ``tgt_ids``
        hooks: Hooks | None = None,  # who looks, and what changes the computation
    ) -> Tensor:
        """Decoder output (batch, target, d_model) for the given inputs.

        Padding at the end of a target needs no mask of its own, because the causal mask already
        hides the padding from every token before it.
        """
        first = 0 if cache is None else cache.length
        x = self.embed(tgt_ids, "decoder", first, hooks)
        mask = AttentionMask(src_padding, first_query=first)
        return self.run_decoder(x, memory.to(x.dtype), mask, cache, hooks)

    def forward(
        self,
        src_ids: Tensor,  # (batch, source) ids, padded with ``pad_id``
        # (batch, target) decoder input, starting with ``bos_id``, padded with ``pad_id``
        tgt_ids: Tensor,
        hooks: Hooks | None = None,
    ) -> Tensor:
        """(batch, target, vocab_size) logits of the next token at every position (teacher
        forcing)."""
        return self.logits(self.features(src_ids, tgt_ids, hooks), hooks)

    def read(self, ids: Mapping[Side, Tensor], hooks: Hooks | None = None) -> Tensor:
        """As ``Network.read``."""
        return self.features(ids["encoder"], ids["decoder"], hooks)

    def features(self, src_ids: Tensor, tgt_ids: Tensor, hooks: Hooks | None = None) -> Tensor:
        """The decoder's output before the projection, (batch, target, d_model); ids as in
        ``forward``."""
        src_padding = padding_mask(src_ids, self.config.pad_id)
        memory = self.encode(src_ids, src_padding, hooks)
        return self.decode(tgt_ids, memory, src_padding, hooks=hooks)


class Transformer(EncoderDecoder):
    """Encoder, decoder, embeddings and output projection, the last two one matrix (section 3.4) or
    separate.

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        beyond = config.pad_id == config.vocab_size or config.bos_id == config.n_target_pieces
        table = PieceTable if beyond else nn.Embedding
        pieces = config.n_target_pieces
        self.embedding = table(config.vocab_size, config.d_model)
        self.target_embedding = None if config.shared_embeddings else table(pieces, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = LayerStack(config, "encoder")
        self.decoder = LayerStack(config, "decoder")
        self.output = (
            None if config.tied_embeddings else nn.Linear(config.d_model, pieces, bias=False)
        )
        self.output_bias = nn.Parameter(torch.zeros(pieces)) if config.output_bias else None
        self.initialise()
        with torch.random.fork_rng(devices=[]):  # so that encodings share a seed's other draws
            self.encoder.positions.initialise()
            self.decoder.positions.initialise()

    def run_decoder(
        self,
        x: Tensor,
        memory: Tensor,
        mask: AttentionMask,
        cache: Cache | None,
        hooks: Hooks | None,
    ) -> Tensor:
        causal = AttentionMask(causal=True, first_query=mask.first_query)
        output: Tensor = self.decoder(x, causal, memory, mask, cache, hooks)
        if cache is not None:
            cache.advance(x.shape[1])
        return output


class OneStack(Network):
    """A network of one stack, whose pieces have one table; subclasses add the stack.

    The output projection is that table (Press and Wolf 2017), unless the config says otherwise.
    """

    def __init__(self, config: LanguageModelConfig | EncoderConfig, *, predicts: bool) -> None:
        super().__init__()
        self.config = config
        table = PieceTable if config.pad_id == config.vocab_size else nn.Embedding
        self.embedding = table(config.vocab_size, config.d_model)
        self.target_embedding = self.output_bias = self.output = None
        if predicts and not config.tied_embeddings:
            self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.dropout = nn.Dropout(config.dropout)


class LanguageModel(OneStack):
    """Masked self-attention and feed-forward, N times; each position predicts the token that
    follows it.

    A decoder without cross-attention (Radford et al. 2018).

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    config: LanguageModelConfig

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__(config, predicts=True)
        self.decoder = LayerStack(config, "decoder")
        self.initialise()
        self.decoder.positions.initialise()

    def forward(
        self, ids: Tensor, texts: Tensor | None = None, hooks: Hooks | None = None
    ) -> Tensor:
        """(batch, length, vocab_size) logits of the next token at every position; arguments as
        `features`."""
        return self.logits(self.features(ids, texts, hooks), hooks)

    def read(self, ids: Mapping[Side, Tensor], hooks: Hooks | None = None) -> Tensor:
        """As ``Network.read``."""
        return self.features(ids["decoder"], hooks=hooks)

    def features(
        self,
        # (batch, length) ids, each text from ``bos_id`` on; with a cache, the new tokens
        ids: Tensor,
        texts: Tensor
        | None = None,  # (batch, length) numbers of the texts that share a row: `AttentionMask`
        hooks: Hooks | None = None,
        cache: Cache | None = None,  # keys and values of the positions before ``ids``
    ) -> Tensor:
        """The last layer's output before the projection, (batch, length, d_model).

        Padding at the end of a row needs no mask of its own: the causal mask hides it from every
        token.
        """
        if texts is not None and (cache is not None or hooks is not None):
            raise ValueError(
                "Several texts in a row are read in one pass of training, without cache or hooks."
            )
        if texts is not None and self.config.positions not in RELATIVE:
            raise ValueError(
                f"Several texts in a row need relative positions, not {self.config.positions}."
            )
        first = 0 if cache is None else cache.length
        x = self.embed(ids, "decoder", first, hooks)
        mask = AttentionMask(causal=True, first_query=first, texts=texts)
        x = self.decoder(x, mask, cache=cache, hooks=hooks)
        if cache is not None:
            cache.advance(ids.shape[1])
        return x


class OutputTransform(nn.Module):
    """LayerNorm(act(x W + b)), which BERT's features pass before the output projection."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = make_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) → (…, d_model)."""
        transformed: Tensor = self.norm(self.activation(self.linear(x)))
        return transformed


class EncoderModel(OneStack):
    """Self-attention and feed-forward, N times, without a causal mask: BERT (Devlin et al. 2019).

    With ``mask_id``, each position predicts the token that stands there, masked. Without, there
    are no logits.

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    config: EncoderConfig

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config, predicts=config.mask_id is not None)
        self.segments: nn.Embedding | None = None
        if config.n_segments:
            self.segments = nn.Embedding(config.n_segments, config.d_model)
        self.output_transform: OutputTransform | None = None
        if config.mask_id is not None and config.output_transform:
            self.output_transform = OutputTransform(config)
        if config.mask_id is not None and config.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.encoder = LayerStack(config, "encoder")
        self.initialise()
        self.encoder.positions.initialise()

    def initialise(self) -> None:
        """Draws the initial weights, those of the segments as those of the tokens."""
        super().initialise()
        if self.segments is not None:
            nn.init.normal_(self.segments.weight, std=self.config.d_model**-0.5)

    def looked_up(self, ids: Tensor, side: Side) -> Tensor:
        """(batch, length) ids → (batch, length, d_model): the rows of tokens, with the vectors of
        their segments."""
        rows = super().looked_up(ids, side)
        if self.segments is None:
            return rows
        vectors: Tensor = self.segments(self.segments_of(ids))
        return rows + vectors

    def segments_of(self, ids: Tensor) -> Tensor:
        """(batch, length) ids → (batch, length) numbers of the texts that they belong to, from 0;
        an end belongs to the text that it ends."""
        ends = ids == self.config.eos_id
        ended = ends.long().cumsum(-1) - ends.long()
        return ended.clamp(max=self.config.n_segments - 1)

    def forward(self, ids: Tensor, hooks: Hooks | None = None) -> Tensor:
        """(batch, length, vocab_size) logits of the token at every position; ids as in
        ``features``."""
        return self.logits(self.features(ids, hooks=hooks), hooks)

    def read(self, ids: Mapping[Side, Tensor], hooks: Hooks | None = None) -> Tensor:
        """As ``Network.read``."""
        return self.features(ids["encoder"], hooks=hooks)

    def features(self, ids: Tensor, hooks: Hooks | None = None) -> Tensor:
        """The last layer's output, (batch, length, d_model), of (batch, length) ids, each text
        framed by ``bos_id`` and ``eos_id`` and padded with ``pad_id``."""
        padding = padding_mask(ids, self.config.pad_id)
        x = self.embed(ids, "encoder", 0, hooks)
        output: Tensor = self.encoder(x, AttentionMask(padding), hooks=hooks)
        return output if hooks is None else hooks("encoder.output", output)

    def transformed(self, features: Tensor) -> Tensor:
        """As ``Network.transformed``; ValueError if the model predicts no masked words."""
        if self.config.mask_id is None:
            raise ValueError(NO_OUTPUT)
        if self.output_transform is None:
            return features
        transformed: Tensor = self.output_transform(features)
        return transformed


NO_OUTPUT = "This model has no output for masked words: it only reads."


def count_parameters(model: nn.Module) -> int:
    """Number of parameters; a shared parameter counts once."""
    return sum(parameter.numel() for parameter in model.parameters())
