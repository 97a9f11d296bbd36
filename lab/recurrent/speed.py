"""Training reads a target at once, translating writes it token by token: the speed of both, by length."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lab.cost.decoding import cached
from lab.cost.measuring import least_and_median, timed
from lab.twins.twins import Twins
from transformer.lenses.scores.bootstrap import rounded
from transformer.model.network import EncoderDecoder
from transformer.training.objective import SummedLoss
from transformer.training.options import TrainingOptions

Json = dict[str, Any]
LENGTHS = (8, 16, 32, 64, 128, 256)
POSITIONS = 2048
"""Target tokens of a training batch."""
Place = tuple[str, int]
"""A model's name, and a length."""


def measure_speed(
    twins: Twins,  # the models
    reference: str,  # the one that the others are compared with
    lengths: Sequence[int],  # tokens of each sentence, rising
    repeats: int,  # runs of each, after one that does not count; the least and the median are kept
) -> Json:
    """Speed of training and of writing by length, of each model, and as a ratio to the reference's.

    Processor time of one thread; models and lengths take turns. A training step is the forward and the
    backward pass of a batch of ``POSITIONS`` target tokens, whose sources are as long as its targets. Writing
    is decoding with a cache, token by token, one sentence whose source is as long, without the encoder.

    Returns:
        ``positions``, ``lengths``, ``repeats``; ``training`` with tokens per second, and ``writing`` with
        milliseconds per token, by model, each with ``best``, ``median`` and ``ratio``.
    """
    models = {name: twin.model for name, twin in twins.items()}
    places = [(name, length) for name in models for length in lengths]
    steps = timed({(name, n): training_step(models[name], n) for name, n in places}, repeats)
    words = least_and_median({(name, n): writing(models[name], n) for name, n in places}, repeats)
    trained = {(name, n): [rows(n) * n / each for each in steps[name, n]] for name, n in places}
    written = {(name, n): [1000 * each / n for each in words[name, n]] for name, n in places}
    return {
        "positions": POSITIONS,
        "lengths": list(lengths),
        "repeats": repeats,
        "training": _by_model(trained, list(models), lengths, reference),
        "writing": _by_model(written, list(models), lengths, reference),
    }


def rows(length: int) -> int:
    """Sentences of that length in a training batch."""
    return max(1, POSITIONS // length)


def training_step(model: EncoderDecoder, length: int) -> Callable[[], object]:
    """A forward and a backward pass of a copy of a model, with dropout and float32 products."""
    own = copy.deepcopy(model).train().requires_grad_(True)
    source, target = (_ids(model, rows(length), length) for _ in range(2))
    loss = SummedLoss(own, TrainingOptions(), torch.float32)

    def step() -> None:
        own.zero_grad()
        torch.autograd.backward(loss(source, target, target))

    return step


def writing(model: EncoderDecoder, length: int) -> Callable[[], Tensor]:
    """Writes one sentence token by token with a cache."""
    with torch.inference_mode():
        ids = _ids(model, 1, length)
        memory = model.encode(ids)
    return lambda: cached(model, ids, memory)


def _ids(model: EncoderDecoder, rows: int, length: int) -> Tensor:
    """(rows, length) ordinary pieces; how long a pass takes does not depend on which."""
    return torch.arange(rows * length).view(rows, length) % (model.config.vocab_size - 4) + 4


def _by_model(
    found: dict[Place, list[float]], names: Sequence[str], lengths: Sequence[int], reference: str
) -> Json:
    return {
        name: {
            "best": [rounded(found[name, n][0], 4) for n in lengths],
            "median": [rounded(found[name, n][1], 4) for n in lengths],
            "ratio": [rounded(found[name, n][0] / found[reference, n][0], 3) for n in lengths],
        }
        for name in names
    }
