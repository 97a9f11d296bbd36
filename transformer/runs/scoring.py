"""Log-probabilities of many given translations, in padded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from transformer.decode.request import TranslationRequest, numbers
from transformer.runs.batched import MOST_LOGITS
from transformer.runs.corpus import batches
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair
from transformer.training.data import pad

Ids = tuple[int, ...]
CPU_WIDTH = 8
"""On a CPU, batches of an eighth: less padding, and their numbers stay in its caches (*measured*)."""


def forced_log_probs(translator: Translator, pairs: Sequence[SentencePair]) -> list[tuple[float, ...]]:
    """For each pair, the log-probability (in nats) of every token of its target, ``</s>`` included.

    As the ``log_probs`` of ``translator.force``, but many pairs a pass: at most ``BATCH_POSITIONS``
    positions, and at most ``MOST_LOGITS`` logits at a time.

    Raises:
        InputError: A text is empty or too long.
        OverflowedError: The model's numbers overflow.
    """
    end = translator.config.eos_id
    ids = [((*translator.ids(p.source), end), translator.written_ids(p.source, p.target)) for p in pairs]
    found: list[tuple[float, ...]] = [()] * len(pairs)
    width = CPU_WIDTH if translator.device.type == "cpu" else 1
    for places in batches([max(map(len, both)) for both in ids], width):
        rows = [ids[place] for place in places]
        done = next(translator.answered(partial(_answer, translator, rows)))
        for place, values in zip(places, done, strict=True):
            found[place] = values
    return found


def _answer(translator: Translator, rows: Sequence[tuple[Ids, Ids]]) -> Iterator[list[tuple[float, ...]]]:
    """One batch, as a model answers that may leave a full GPU."""
    yield _batch(translator, rows)


@torch.inference_mode()
def _batch(translator: Translator, rows: Sequence[tuple[Ids, Ids]]) -> list[tuple[float, ...]]:
    """The log-probabilities of one padded batch."""
    model, config, device = translator.model, translator.config, translator.device
    sources, targets = zip(*rows, strict=True)
    request = TranslationRequest(model, pad(sources, config.pad_id).to(device))
    read = pad([(config.bos_id, *target[:-1]) for target in targets], config.pad_id).to(device)
    features = model.decode(read, request.memory, request.src_padding)
    # padding is cut off before the logits, which cost the most
    real = torch.cat([row[: len(target)] for row, target in zip(features, targets, strict=True)])
    written = torch.tensor([each for target in targets for each in target], device=device)
    values = iter(_chosen(translator, real, written))
    return [tuple(islice(values, len(target))) for target in targets]


def _chosen(translator: Translator, features: Tensor, written: Tensor) -> Iterator[float]:
    """(tokens, d_model) features → the log-probability of each written token (tokens,)."""
    at_once = max(1, MOST_LOGITS // translator.config.n_target_pieces)
    for part, ids in zip(torch.split(features, at_once), torch.split(written, at_once), strict=True):
        found = translator.model.logits(part).float().log_softmax(-1).gather(1, ids[:, None])
        yield from numbers(found)[:, 0].tolist()
