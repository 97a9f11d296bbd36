"""The untrained twin of a model: same shape and vocabulary, fresh weights; a control for attention maps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from transformer.config import ModelConfig
from transformer.model import EncoderDecoder
from transformer.run import Translation
from transformer.storage.directory import NETWORKS
from transformer.translator import Translator

_LOCK = threading.Lock()
"""There is one global generator; one user at a time, so that a seed fixes what is drawn."""


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Sets the CPU's global random generator to a seed; afterwards it continues as if nothing had been drawn.

    Threads that draw in such a context wait for one another.
    """
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def fresh_model(config: ModelConfig, seed: int) -> EncoderDecoder:
    """A model with the weights from which training with this seed would start."""
    with _seeded(seed):
        model = NETWORKS[type(config)](config)
    assert isinstance(model, EncoderDecoder)
    return model


def untrained_twin(translator: Translator, seed: int) -> Translator:
    """A model of the same config with the weights from which training would start."""
    model = fresh_model(translator.config, seed)
    name = f"{translator.name}, untrained twin, seed {seed}"
    return Translator(model, translator.tokenizer, name=name, rules=translator.rules)


def same_tokens(translator: Translator, translation: Translation) -> Translation:
    """Runs a finished translation's tokens through another model; InputError if they are too many for it."""
    return translator.force(translation.source_text, tuple(step.token_id for step in translation.steps))
