"""One pass over a whole target, as in training, against one pass for each token, as in inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lab.cost.fitting import exponent
from lab.cost.measuring import least_and_median
from transformer.lenses.scores.bootstrap import rounded
from transformer.model.network import EncoderDecoder

Json = dict[str, Any]
LENGTHS = (4, 8, 16, 32, 64, 128)
SOURCE = 20
"""Tokens of the source."""


def measure_decoding(
    model: EncoderDecoder,  # the model
    lengths: Sequence[int],  # tokens of the target; those beyond the model's positions are left out
    repeats: int,  # runs of each, after one that does not count
) -> Json:
    """Processor time of a decoder, without the encoder, by target length and way; dropout is off.

    Returns:
        ``source``, ``lengths``, and by way (``parallel``, ``cached``, ``again``) ``milliseconds`` (least),
        ``medians`` and the exponent of the target length (``time``).
    """
    lengths = [length for length in lengths if length <= model.config.max_positions]
    with torch.inference_mode():
        memory = model.encode(_ids(model, SOURCE))
    ways: dict[str, Callable[[EncoderDecoder, Tensor, Tensor], Tensor]] = {
        "parallel": parallel,
        "cached": cached,
        "again": again,
    }
    works = {
        (name, length): _work(way, model, _ids(model, length), memory)
        for name, way in ways.items()
        for length in lengths
    }
    seconds = least_and_median(works, repeats)
    return {
        "source": SOURCE,
        "lengths": list(lengths),
        "ways": {name: _costs(lengths, [seconds[name, n] for n in lengths]) for name in ways},
    }


def _work(
    way: Callable[[EncoderDecoder, Tensor, Tensor], Tensor],
    model: EncoderDecoder,
    ids: Tensor,
    memory: Tensor,
) -> Callable[[], Tensor]:
    return lambda: way(model, ids, memory)


def _costs(lengths: Sequence[int], times: Sequence[tuple[float, float]]) -> Json:
    least = [rounded(1000 * low, 4) for low, _ in times]
    medians = [rounded(1000 * middle, 4) for _, middle in times]
    return {"milliseconds": least, "medians": medians, "time": exponent(lengths, least)}


def parallel(model: EncoderDecoder, ids: Tensor, memory: Tensor) -> Tensor:
    """(1, target) ids → (target,) most probable next tokens, all from one pass (teacher forcing)."""
    return model.logits(model.decode(ids, memory))[0].argmax(-1)


def cached(model: EncoderDecoder, ids: Tensor, memory: Tensor) -> Tensor:
    """The same, one token after the other; keys and values of earlier tokens are kept."""
    cache = model.new_cache()
    rows = [model.decode(ids[:, i : i + 1], memory, cache=cache)[0, -1] for i in range(ids.shape[1])]
    return torch.stack([model.logits(row).argmax(-1) for row in rows])


def again(model: EncoderDecoder, ids: Tensor, memory: Tensor) -> Tensor:
    """The same, one token after the other; every step computes all tokens before it again."""
    rows = [model.decode(ids[:, : i + 1], memory)[0, -1] for i in range(ids.shape[1])]
    return torch.stack([model.logits(row).argmax(-1) for row in rows])


def _ids(model: EncoderDecoder, length: int) -> Tensor:
    """(1, length) ordinary pieces; how long a pass takes does not depend on which."""
    return torch.arange(length)[None] % (model.config.vocab_size - 4) + 4
