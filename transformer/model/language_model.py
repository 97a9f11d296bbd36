"""A causal language model: a decoder without cross-attention (Radford et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from transformer.model.cache import KVCache
from transformer.model.config import LanguageModelConfig
from transformer.model.layers import Encoder
from transformer.model.masks import AttentionMask
from transformer.model.network import Network
from transformer.model.sites import Side
from transformer.model.watching.observer import UNWATCHED, Observer


class LanguageModel(Network):
    """Masked self-attention and feed-forward, N times; each position predicts the token that follows it.

    The output projection is the table of embeddings (Press and Wolf 2017).

    Raises:
        ValueError: The config names an unknown positional encoding.
    """

    config: LanguageModelConfig

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.target_embedding = self.output = self.output_bias = None
        self.dropout = nn.Dropout(config.dropout)
        self.decoder = Encoder(config, "decoder")
        self.initialise()
        self.decoder.positions.initialise()

    def forward(self, ids: Tensor, texts: Tensor | None = None) -> Tensor:
        """(batch, length, vocab_size) logits of the next token at every position; arguments as `features`."""
        return self.logits(self.features(ids, texts))

    def features(
        self,
        ids: Tensor,
        texts: Tensor | None = None,
        observer: Observer = UNWATCHED,
        cache: KVCache | None = None,
    ) -> Tensor:
        """The last layer's output before the projection, (batch, length, d_model).

        Padding at the end of a row needs no mask of its own: the causal mask hides it from every token.

        Args:
            ids: (batch, length) ids, each text starting with ``bos_id``; with a cache, only the new tokens.
            texts: (batch, length) numbers of the texts that share a row, or None: see ``AttentionMask``.
            observer: Who watches, and what changes the computation.
            cache: Keys and values of the positions before ``ids``.
        """
        first = 0 if cache is None else cache.length
        x = self.embed(ids, "decoder", first, observer)
        mask = AttentionMask(causal=True, first_query=first, texts=texts)
        return self.decoder(x, mask, observer, cache)

    def new_cache(self) -> KVCache:
        """An empty cache for one request."""
        return KVCache(self.config.n_layers)

    def through(
        self, entered: Mapping[Side, Tensor], observer: Observer, src_padding: Tensor | None = None
    ) -> None:
        read = entered["decoder"].to(self.decoder.dtype)
        self.decoder(read, AttentionMask(causal=True), observer)
