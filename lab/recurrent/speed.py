"""Training reads a target at once, translating writes it token by token: the speed of both, by length."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import torch

from lab.cost.decoding import ways_of
from lab.cost.measuring import least_and_median, ordinary_ids, timed
from lab.measurement import Json
from lab.twins.twins import Twins
from transformer.model.network import EncoderDecoder
from transformer.runs.bootstrap import rounded
from transformer.training.objective import SummedLoss
from transformer.training.options import TrainingOptions

LENGTHS = (8, 16, 32, 64, 128, 256)
POSITIONS = 2048
"""Target tokens of a training batch."""


def measure_speed(twins: Twins, reference: str, lengths: Sequence[int], repeats: int) -> Json:
    """Speed of training and of writing by rising length, of each model, and as a ratio to the reference's.

    Processor time of one thread; models and lengths take turns, and the least and the median of the repeats
    are kept. A training step is the forward and the backward pass of a batch of ``POSITIONS`` target tokens,
    whose sources are as long as its targets. Writing is decoding with a cache, token by token, one sentence
    whose source is as long, without the encoder.
    """
    models = {name: twin.model for name, twin in twins.items()}
    places = [(name, n) for name in models for n in lengths]
    steps = timed({(name, n): training_step(models[name], n) for name, n in places}, repeats)
    writing = {
        (name, n): partial(ways_of(models[name], source=n).cached, ordinary_ids(models[name], n))
        for name, n in places
    }
    words = least_and_median(writing, repeats)
    found = {
        "training": {(name, n): [rows(n) * n / each for each in steps[name, n]] for name, n in places},
        "writing": {(name, n): [1000 * each / n for each in words[name, n]] for name, n in places},
    }
    return {"positions": POSITIONS, "lengths": list(lengths), "repeats": repeats} | {
        kind: {
            name: {
                "best": [rounded(speeds[name, n][0], 4) for n in lengths],
                "median": [rounded(speeds[name, n][1], 4) for n in lengths],
                "ratio": [rounded(speeds[name, n][0] / speeds[reference, n][0], 3) for n in lengths],
            }
            for name in models
        }
        for kind, speeds in found.items()
    }


def rows(length: int) -> int:
    """Sentences of that length in a training batch."""
    return max(1, POSITIONS // length)


def training_step(model: EncoderDecoder, length: int) -> Callable[[], object]:
    """A forward and a backward pass of a copy of a model, with dropout and float32 products."""
    own = copy.deepcopy(model).train().requires_grad_(True)
    ids = ordinary_ids(model, length, rows(length))
    loss = SummedLoss(own, TrainingOptions(), torch.float32)

    def step() -> None:
        own.zero_grad()
        torch.autograd.backward(loss(ids, ids, ids))

    return step
