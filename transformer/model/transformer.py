"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer.model import packed
from transformer.model.cache import KVCache
from transformer.model.config import TransformerConfig
from transformer.model.layers import Decoder, DecoderLayer, Encoder
from transformer.model.masks import AttentionMask
from transformer.model.network import Cache, EncoderDecoder, piece_table
from transformer.model.sites import Side
from transformer.model.watching.observer import UNWATCHED, Observer


class Transformer(EncoderDecoder):
    """Encoder, decoder, embeddings and output projection, the last two one matrix (section 3.4) or separate.

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = piece_table(config, config.vocab_size)
        self.target_embedding = (
            None if config.shared_embeddings else piece_table(config, config.n_target_pieces)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = (
            None if config.tied_embeddings else nn.Linear(config.d_model, config.n_target_pieces, bias=False)
        )
        self.output_bias = nn.Parameter(torch.zeros(config.n_target_pieces)) if config.output_bias else None
        self.initialise()
        self._initialise_positions()

    def encode(
        self, src_ids: Tensor, src_padding: Tensor | None = None, observer: Observer = UNWATCHED
    ) -> Tensor:
        x = self.embed(src_ids, "encoder", 0, observer)
        return observer.memory(self.encoder(x, AttentionMask(src_padding), observer))

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor,
        src_padding: Tensor | None = None,
        *,
        cache: Cache | None = None,
        observer: Observer = UNWATCHED,
    ) -> Tensor:
        """Decoder output (batch, target, d_model); arguments as for every ``EncoderDecoder``.

        Padding at the end of a target needs no mask of its own, because the causal mask already hides the
        padding from every token before it.
        """
        assert cache is None or isinstance(cache, KVCache)
        first = 0 if cache is None else cache.length
        x = self.embed(tgt_ids, "decoder", first, observer)
        memory = memory.to(x.dtype)
        mask = AttentionMask(causal=True, first_query=first)
        memory_mask = AttentionMask(src_padding, first_query=first)
        return self.decoder(x, memory, mask, memory_mask, cache, observer)

    def new_cache(self) -> KVCache:
        """An empty cache for one request."""
        return KVCache(self.config.n_decoder_layers)

    def through(
        self, entered: Mapping[Side, Tensor], observer: Observer, src_padding: Tensor | None = None
    ) -> None:
        memory = self.encoder(entered["encoder"].to(self.encoder.dtype), AttentionMask(), observer)
        read, memory = (each.to(self.decoder.dtype) for each in (entered["decoder"], memory))
        self.decoder(read, memory, AttentionMask(causal=True), AttentionMask(), None, observer)

    def pack(self) -> None:
        for layer in self.decoder.layers:
            assert isinstance(layer, DecoderLayer)
            own = layer.self_attention
            own.joined = packed.PackedProduct.of_maps(own.q_proj, own.k_proj, own.v_proj)
            own.out_proj = packed.PackedLinear(own.out_proj.weight, own.out_proj.bias)
            packed.pack(layer.cross_attention)
            packed.pack(layer.feed_forward)
        super().pack()

    def _initialise_positions(self) -> None:
        """Restores the random state after drawing tables, so that encodings share a seed's other draws."""
        with torch.random.fork_rng(devices=[]):
            self.encoder.positions.initialise()
            self.decoder.positions.initialise()


def convert(
    model: EncoderDecoder, device: torch.device | str, dtype: torch.dtype = torch.float32
) -> EncoderDecoder:
    """Moves a model to a device, changes its computing type, and lays out its matrices for few rows.

    On a CPU the encoder still computes in float32, from embeddings of the new type. The encoder reads its
    weights once per sentence, for many rows; 16 bits then gain little, or even lose on processors without
    units for them. ValueError if this processor cannot multiply in bfloat16.
    """
    packed.lay_out(model)
    model.to(device)
    encoder_too = torch.device(device).type != "cpu"
    for name, part in model.named_children():
        if name != "encoder" or encoder_too:
            part.to(dtype)
    if model.output_bias is not None:
        model.output_bias.data = model.output_bias.data.to(dtype)
    packed.join_inputs(model)
    if dtype == torch.bfloat16 and not encoder_too:
        packed.check_bfloat16()
        if packed.can_pack():
            model.pack()
    return model
