"""One pass over a whole text, as in training, against one pass for each token, with and without a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from lab.cost.measuring import measure_ways, ordinary_ids
from lab.measurement import Json
from transformer.model.network import EncoderDecoder

LENGTHS = (4, 8, 16, 32, 64, 128)
"""Tokens of a target."""
SOURCE = 20
"""Tokens of the source."""
Features = Callable[..., Tensor]
"""(1, n) ids, and a cache or none → (1, n, d_model)."""


class Ways:
    """Ways to compute the most probable token after each of a text: (1, n) ids → (n,)."""

    def __init__(self, model: EncoderDecoder, features: Features) -> None:
        self._model, self._features = model, features

    def parallel(self, ids: Tensor) -> Tensor:
        """All from one pass (teacher forcing)."""
        return self._model.logits(self._features(ids))[0].argmax(-1)

    def cached(self, ids: Tensor) -> Tensor:
        """One token after the other; keys and values of earlier tokens are kept."""
        cache = self._model.new_cache()
        rows = [self._features(ids[:, i : i + 1], cache=cache)[0, -1] for i in range(ids.shape[1])]
        return torch.stack([self._model.logits(row).argmax(-1) for row in rows])

    def again(self, ids: Tensor) -> Tensor:
        """One token after the other; every step computes all tokens before it again."""
        rows = [self._features(ids[:, : i + 1])[0, -1] for i in range(ids.shape[1])]
        return torch.stack([self._model.logits(row).argmax(-1) for row in rows])


def ways_of(model: EncoderDecoder, source: int = SOURCE) -> Ways:
    """The ways of a decoder that reads a source of some tokens."""
    with torch.inference_mode():
        memory = model.encode(ordinary_ids(model, source))
    return Ways(model, partial(model.decode, memory=memory))


def measure_decoding(model: EncoderDecoder, lengths: Sequence[int], repeats: int) -> Json:
    """Processor time by way and number of tokens; lengths beyond the model's positions are left out."""
    lengths, ways = [n for n in lengths if n <= model.config.max_positions], ways_of(model)
    named = {"parallel": ways.parallel, "cached": ways.cached, "again": ways.again}
    works = {name: lambda n, way=way: partial(way, ordinary_ids(model, n)) for name, way in named.items()}
    return {"lengths": lengths, "ways": measure_ways(works, lengths, repeats)}
