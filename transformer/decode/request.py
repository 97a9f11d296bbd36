"""A batch of sentences being translated."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.model.cache import KVCache
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer
from transformer.model.watching.observer import UNWATCHED, Observer


class OverflowedError(ValueError):
    """A model computes no numbers, because its weights are too large; the message says so in one sentence."""


def numbers(log_probs: Tensor) -> Tensor:
    """The log-probabilities themselves.

    Raises:
        OverflowedError: One of them is not a number.
    """
    if bool(log_probs.isnan().any()):
        raise OverflowedError(
            "This model cannot be shown: its weights are so large that its numbers overflow, "
            "and no probability comes out."
        )
    return log_probs


class Request:
    """A batch of sentences being translated: memory, padding, caches.

    Args:
        model: In ``eval()`` mode; nothing here changes it, so threads may share it.
        src_ids: (batch, source) ids, padded with ``pad_id``.
        observer: Watches the encoder.
        step_observer: Watches the decoding steps, or only carries hooks through them.
    """

    def __init__(
        self,
        model: Transformer,
        src_ids: Tensor,
        observer: Observer = UNWATCHED,
        step_observer: Observer = UNWATCHED,
    ) -> None:
        self.model, self.config = model, model.config
        self.step_observer = step_observer
        self.cache = KVCache(model.config.n_decoder_layers)
        self.src_padding = padding_mask(src_ids, model.config.pad_id)
        with torch.inference_mode():
            self.memory = model.encode(src_ids, self.src_padding, observer)
        self.sentences = len(src_ids)

    @torch.inference_mode()
    def log_probs(self, token_ids: Tensor) -> Tensor:
        """(rows,) last tokens → (rows, vocab_size) log-probabilities of the next.

        Raises:
            OverflowedError: The model's numbers overflow.
        """
        features = self.model.decode(
            token_ids[:, None],
            self.memory,
            self.src_padding,
            cache=self.cache,
            observer=self.step_observer,
        )
        return numbers(self.model.logits(features[:, -1]).float().log_softmax(-1))

    @torch.inference_mode()
    def select(self, rows: Tensor, *, same_source: bool) -> None:
        """Keeps, repeats or reorders rows; ``same_source`` says that every row keeps its sentence."""
        self.cache.select(rows, same_source=same_source)
        if not same_source and self.src_padding is not None:
            self.src_padding = self.src_padding[rows]

    def start(self) -> Tensor:
        """(batch,) the decoder's start token for each sentence."""
        return torch.full((self.sentences,), self.config.bos_id, device=self.memory.device)
