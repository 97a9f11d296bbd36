"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import KVCache
from transformer.model.config import TransformerConfig
from transformer.model.encodings.positions import make_positions
from transformer.model.layers import DecoderLayer, EncoderLayer, Residual
from transformer.model.masks import AttentionMask, padding_mask
from transformer.model.packed import PackedLinear, can_pack, check_bfloat16, joined, pack
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.model.watching.observer import UNWATCHED, Entered, Observer


class Encoder(nn.Module):
    """N encoder layers; with pre-norm, a LayerNorm at the end."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.positions = make_positions(config, n_layers=config.n_encoder_layers)
        self.layers = nn.ModuleList(EncoderLayer(config, layer) for layer in range(config.n_encoder_layers))
        self.final_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    @property
    def dtype(self) -> torch.dtype:
        """The type that the stack computes in."""
        return next(self.layers.parameters()).dtype

    def forward(self, x: Tensor, mask: AttentionMask, observer: Observer = UNWATCHED) -> Tensor:
        """(batch, source, d_model) → the memory, (batch, source, d_model)."""
        positions = observer.encoding("encoder", self.positions)
        for layer in self.layers:
            x = layer(x, mask, positions, observer)
        return observer.norm("encoder", self.final_norm)(x)


class Decoder(nn.Module):
    """N decoder layers; with pre-norm, a LayerNorm at the end."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.positions = make_positions(config, n_layers=config.n_decoder_layers, causal=True)
        self.layers = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.n_decoder_layers))
        self.final_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    @property
    def dtype(self) -> torch.dtype:
        """The type that the stack computes in."""
        return next(self.layers.parameters()).dtype

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


class Transformer(nn.Module):
    """Encoder, decoder, embeddings and output projection, the last two one matrix (section 3.4) or separate.

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.target_embedding = (
            None if config.shared_embeddings else nn.Embedding(config.n_target_pieces, config.d_model)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = (
            None if config.tied_embeddings else nn.Linear(config.d_model, config.n_target_pieces, bias=False)
        )
        self.output_bias = nn.Parameter(torch.zeros(config.n_target_pieces)) if config.output_bias else None
        self._initialise()

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Logits of the next token at every target position, all at once (teacher forcing).

        Args:
            src_ids: (batch, source) ids, padded with ``pad_id``.
            tgt_ids: (batch, target) decoder input, starting with ``bos_id``, padded with ``pad_id``.

        Returns:
            (batch, target, vocab_size) logits.
        """
        return self.logits(self.features(src_ids, tgt_ids))

    def features(self, src_ids: Tensor, tgt_ids: Tensor, observer: Observer = UNWATCHED) -> Tensor:
        """The decoder's output before the projection, (batch, target, d_model); ids as in ``forward``."""
        src_padding = padding_mask(src_ids, self.config.pad_id)
        memory = self.encode(src_ids, src_padding, observer)
        return self.decode(tgt_ids, memory, src_padding, observer=observer)

    def encode(
        self, src_ids: Tensor, src_padding: Tensor | None = None, observer: Observer = UNWATCHED
    ) -> Tensor:
        """The memory (batch, source, d_model).

        Args:
            src_ids: (batch, source) ids.
            src_padding: (batch, source) bool, True for tokens; None if nothing is padded.
            observer: Who watches, and what changes the computation.
        """
        x = self.embed(src_ids, "encoder", 0, observer)
        return observer.memory(self.encoder(x, AttentionMask(src_padding), observer))

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor,
        src_padding: Tensor | None = None,
        *,
        cache: KVCache | None = None,
        observer: Observer = UNWATCHED,
    ) -> Tensor:
        """Decoder output (batch, target, d_model) for the given inputs.

        Padding at the end of a target needs no mask of its own, because the causal mask already hides the
        padding from every token before it.

        Args:
            tgt_ids: (batch, target) decoder input; with a cache, only the new tokens.
            memory: (batch, source, d_model) from ``encode``.
            src_padding: (batch, source) bool, True for tokens; None if nothing is padded.
            cache: Keys and values of the positions before ``tgt_ids``.
            observer: Who watches, and what changes the computation.
        """
        first = 0 if cache is None else cache.length
        x = self.embed(tgt_ids, "decoder", first, observer)
        memory = memory.to(x.dtype)
        mask = AttentionMask(causal=True, first_query=first)
        memory_mask = AttentionMask(src_padding, first_query=first)
        return self.decoder(x, memory, mask, memory_mask, cache, observer)

    @property
    def projection(self) -> tuple[Tensor, Tensor | None]:
        """Weight (target pieces, d_model) and bias (target pieces) of the last linear layer (section 3.4)."""
        weight = self.table("decoder").weight if self.output is None else self.output.weight
        return weight, self.output_bias

    def logits(self, features: Tensor) -> Tensor:
        """(…, d_model) → (…, target pieces)."""
        if self.output is None:
            return F.linear(features, self.table("decoder").weight, self.output_bias)
        logits: Tensor = self.output(features)
        return logits if self.output_bias is None else logits + self.output_bias

    def embed(self, ids: Tensor, side: Side, first: int, observer: Observer) -> Tensor:
        """Ids (batch, new) as the input of a stack (batch, new, d_model); `first` is their first position."""
        stack = self.stack(side)
        scaled = self.table(side)(ids).to(stack.dtype) * self.config.embedding_scale
        encoding = observer.encoding(side, stack.positions).added(ids.shape[1], first)
        x = self.dropout(scaled if encoding is None else scaled + encoding)
        return observer.embedding(Entered(side, first, scaled, encoding, x))

    def stack(self, side: Side) -> Encoder | Decoder:
        """The encoder or the decoder."""
        return self.encoder if side == "encoder" else self.decoder

    def layer(self, side: Side, layer: int) -> EncoderLayer | DecoderLayer:
        """A layer of a stack, from 0."""
        found = self.stack(side).layers[layer]
        assert isinstance(found, EncoderLayer | DecoderLayer)
        return found

    def attention(self, kind: AttentionKind, layer: int) -> MultiHeadAttention:
        """An attention sub-layer of a layer, from 0."""
        sublayer = self.config.sites[kind].sublayer(layer)
        found = getattr(self.layer(sublayer.side, layer), sublayer.name)
        assert isinstance(found, MultiHeadAttention)
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

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in filter(None, (self.embedding, self.target_embedding)):
            nn.init.normal_(table.weight, std=self.config.d_model**-0.5)
        self._initialise_positions()

    def _initialise_positions(self) -> None:
        """Restores the random state after drawing tables, so that encodings share a seed's other draws."""
        with torch.random.fork_rng(devices=[]):
            self.encoder.positions.initialise()
            self.decoder.positions.initialise()


def count_parameters(model: nn.Module) -> int:
    """Number of parameters; a shared parameter counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def input_major(tensor: Tensor) -> Tensor:
    """The same matrix (out, in), laid out in memory as (in, out).

    Products with few rows, as in a decoding step, read this layout 1.1 to 1.7 times as fast (*measured*).
    """
    return tensor.t().contiguous().t() if tensor.dim() == 2 else tensor


def convert(
    model: Transformer, device: torch.device | str, dtype: torch.dtype = torch.float32
) -> Transformer:
    """Moves a model to a device, changes its computing type, and lays out its matrices for few rows.

    On a CPU the encoder still computes in float32, from embeddings of the new type. The encoder reads its
    weights once per sentence, for many rows; 16 bits then gain little, or even lose on processors without
    units for them.

    Raises:
        ValueError: This processor cannot multiply in bfloat16.
    """
    for parameter in model.parameters():
        parameter.data = input_major(parameter.data)
    model.to(device)
    encoder_too = torch.device(device).type != "cpu"
    for name, part in model.named_children():
        if name != "encoder" or encoder_too:
            part.to(dtype)
    if model.output_bias is not None:
        model.output_bias.data = model.output_bias.data.to(dtype)
    if dtype == torch.bfloat16 and not encoder_too:
        check_bfloat16()
        if can_pack():
            _pack(model)
    return model


def _pack(model: Transformer) -> None:
    """Packs the matrices that every decoding step reads."""
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        own = layer.self_attention
        own.joined = joined(own.q_proj, own.k_proj, own.v_proj)
        own.out_proj = PackedLinear(own.out_proj.weight, own.out_proj.bias)
        pack(layer.cross_attention)
        pack(layer.feed_forward)
    model.output = PackedLinear((model.output or model.target_embedding or model.embedding).weight)
