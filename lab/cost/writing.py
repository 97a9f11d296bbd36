"""A language model over a whole text: one pass, against one pass for each token, with and without a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lab.cost.fitting import exponent
from lab.cost.measuring import least_and_median
from transformer.lenses.scores.bootstrap import rounded
from transformer.model.language_model import LanguageModel

Json = dict[str, Any]
Way = Callable[[LanguageModel, Tensor], Tensor]
LENGTHS = (8, 16, 32, 64, 128, 256)


def parallel(model: LanguageModel, ids: Tensor) -> Tensor:
    """(1, n) ids → (n,) most probable next tokens, all from one pass, as in training."""
    return model(ids)[0].argmax(-1)


def cached(model: LanguageModel, ids: Tensor) -> Tensor:
    """The same, one token after the other; keys and values of earlier tokens are kept."""
    cache = model.new_cache()
    rows = [model.features(ids[:, i : i + 1], cache=cache)[0, -1] for i in range(ids.shape[1])]
    return torch.stack([model.logits(row).argmax(-1) for row in rows])


def again(model: LanguageModel, ids: Tensor) -> Tensor:
    """The same, one token after the other; every step computes all tokens before it again."""
    rows = [model.features(ids[:, : i + 1])[0, -1] for i in range(ids.shape[1])]
    return torch.stack([model.logits(row).argmax(-1) for row in rows])


WAYS: dict[str, Way] = {"parallel": parallel, "cached": cached, "again": again}


def measure_writing(
    model: LanguageModel,  # the model
    lengths: Sequence[int],  # tokens of the text; those beyond the model's positions are left out
    repeats: int,  # runs of each, after one that does not count
) -> Json:
    """Processor time of a language model by length of the text and way.

    Returns:
        ``lengths``, and by way (``parallel``, ``cached``, ``again``) ``milliseconds`` (least), ``medians``
        and the exponent of the length (``time``).
    """
    lengths = [length for length in lengths if length <= model.config.max_positions]
    works = {(name, n): _work(way, model, n) for name, way in WAYS.items() for n in lengths}
    seconds = least_and_median(works, repeats)
    found = {name: _costs(lengths, [seconds[name, n] for n in lengths]) for name in WAYS}
    return {"lengths": list(lengths), "ways": found}


def _work(way: Way, model: LanguageModel, length: int) -> Callable[[], Tensor]:
    ids = torch.arange(length)[None] % (model.config.vocab_size - 4) + 4
    return lambda: way(model, ids)


def _costs(lengths: Sequence[int], times: Sequence[tuple[float, float]]) -> Json:
    least = [rounded(1000 * low, 4) for low, _ in times]
    medians = [rounded(1000 * middle, 4) for _, middle in times]
    return {"milliseconds": least, "medians": medians, "time": exponent(lengths, least)}
