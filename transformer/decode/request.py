"""Sequences being written: translations of a batch of sentences, or continued texts."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from transformer.attention import padding_mask
from transformer.config import ModelConfig
from transformer.hooks import Hooks
from transformer.model import EncoderDecoder, LanguageModel


class OverflowedError(ValueError):
    """A model computes no numbers, because its weights are too large; the message says so in one sentence."""


def numbers(log_probs: Tensor) -> Tensor:
    """The log-probabilities themselves; OverflowedError if one of them is not a number."""
    if bool(log_probs[:, 0].isnan().any()):  # a softmax with one such number consists of them
        raise OverflowedError(
            "This model cannot be shown: its weights are so large that its numbers overflow, "
            "and no probability comes out."
        )
    return log_probs


class DecodeRequest(Protocol):
    """A batch of sequences being written, one token at a time: what every search needs of a model."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def sentences(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def start(self) -> Tensor:
        """(batch,) the last token that is given for each sequence."""

    def log_probs(self, token_ids: Tensor) -> Tensor:
        """(rows,) last tokens → (rows, vocab_size) log-probabilities of the next; as ``numbers``."""

    def select(self, rows: Tensor, *, same_source: bool) -> None:
        """Keeps, repeats or reorders rows; ``same_source`` says that every row keeps its sentence."""


class TranslationRequest:
    """A batch of sentences being translated: memory, padding, caches."""

    def __init__(
        self,
        model: EncoderDecoder,  # in ``eval()`` mode; nothing here changes it, so threads may share it
        src_ids: Tensor,  # (batch, source) ids, padded with ``pad_id``
        observer: Hooks | None = None,  # watches the encoder
        step_observer: Hooks | None = None,  # watches the decoding steps, or only carries hooks through them
    ) -> None:
        self.model, self.config = model, model.config
        self.step_observer = step_observer
        self.cache = model.new_cache()
        self.src_padding = padding_mask(src_ids, model.config.pad_id)
        with torch.inference_mode():
            self.memory = model.encode(src_ids, self.src_padding, observer)
        self.sentences, self.device = len(src_ids), self.memory.device

    @torch.inference_mode()
    def log_probs(self, token_ids: Tensor) -> Tensor:
        features = self.model.decode(
            token_ids[:, None], self.memory, self.src_padding, cache=self.cache, hooks=self.step_observer
        )
        return numbers(self.model.logits(features[:, -1]).float().log_softmax(-1))

    @torch.inference_mode()
    def select(self, rows: Tensor, *, same_source: bool) -> None:
        self.cache.select(rows, same_source=same_source)
        if not same_source and self.src_padding is not None:
            self.src_padding = self.src_padding[rows]

    def start(self) -> Tensor:
        return torch.full((self.sentences,), self.config.bos_id, device=self.device)


class Continuation:
    """Texts being continued by a language model: caches that already hold all but the last given token."""

    def __init__(
        self,
        model: LanguageModel,  # in ``eval()`` mode; nothing here changes it, so threads may share it
        prompt_ids: Tensor,  # (batch, given) ids of equal length, each starting with ``bos_id``
        observer: Hooks | None = None,  # watches the given tokens and the steps
    ) -> None:
        self.model, self.config, self.observer = model, model.config, observer
        self.cache = model.new_cache()
        self._last = prompt_ids[:, -1]
        self.sentences, self.device = len(prompt_ids), prompt_ids.device
        if prompt_ids.shape[1] > 1:
            with torch.inference_mode():
                model.features(prompt_ids[:, :-1], hooks=observer, cache=self.cache)

    @torch.inference_mode()
    def log_probs(self, token_ids: Tensor) -> Tensor:
        features = self.model.features(token_ids[:, None], hooks=self.observer, cache=self.cache)
        return numbers(self.model.logits(features[:, -1]).float().log_softmax(-1))

    @torch.inference_mode()
    def select(self, rows: Tensor, *, same_source: bool) -> None:
        self.cache.select(rows, same_source=True)

    def start(self) -> Tensor:
        return self._last
