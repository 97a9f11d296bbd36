"""Many texts at once in padded batches: translated, scored, recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.decoding import AnyModel, DecodingState, Hypothesis, decode, finish, numbers
from transformer.hooks import Capture
from transformer.requests import Request
from transformer.run import Translation
from transformer.text.pairs import SentencePair
from transformer.text.words import PAD
from transformer.text_model import InputError
from transformer.trace import TokenTrace, hooks_of
from transformer.training.data import pad
from transformer.training.distributed import ALONE, Workers
from transformer.translator import Translator

T = TypeVar("T")
BATCH_POSITIONS = 4096
"""Most positions of a padded batch of texts, and most tokens of a pass with many changes."""
MOST_LOGITS = 1 << 22
"""Logits that are computed at a time."""
IN_BATCHES = "This model continues texts one at a time; only translations are made in batches."
CPU_WIDTH = 8
"""On a CPU, batches of an eighth: less padding, and their numbers stay in its caches (*measured*)."""


def in_batches(
    lengths: Sequence[int],  # of the texts, in tokens
    compute: Callable[[list[int]], Iterable[T]],  # places of the texts of a batch → one value for each
    width: int = 1,  # rows a text
    workers: Workers = ALONE,  # the processes that share the batches
) -> list[T]:
    """A value for each text, computed in batches of texts of similar length, the longest first, so that a
    padded batch has at most ``BATCH_POSITIONS`` positions."""
    groups: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not groups or (len(groups[-1]) + 1) * lengths[groups[-1][0]] * width > BATCH_POSITIONS:
            groups.append([])
        groups[-1].append(place)
    values: dict[int, T] = {}
    for places, done in zip(groups, workers.each(lambda group: list(compute(group)), groups), strict=True):
        values |= dict(zip(places, done, strict=True))
    return [values[place] for place in range(len(lengths))]


def hypotheses(
    translator: Translator,
    texts: Sequence[str],
    beam_size: int | None = None,
    max_length: int | None = None,
    workers: Workers = ALONE,  # the processes that share the batches
) -> list[Hypothesis]:
    """The outputs of many texts in their order, without capture; options and errors as in ``translate``.

    ValueError if the model continues texts instead of translating them.
    """
    if translator.continues:
        raise ValueError(IN_BATCHES)
    wanted = [Request(translator, text, beam_size=beam_size, max_length=max_length) for text in texts]

    def searched(places: list[int]) -> list[Hypothesis]:
        first, results = wanted[places[0]], list[Hypothesis]()
        source = pad([wanted[i].source_ids for i in places], first.config.pad_id).to(translator.device)
        state = DecodingState(translator.model, source)
        deque(first.search(state, [wanted[i].limit for i in places], results), 0)
        return results

    def compute(places: list[int]) -> list[Hypothesis]:
        outputs = dict[int, Hypothesis]()
        for rules in dict.fromkeys(wanted[i].rules for i in places):  # texts into one language share a batch
            group = [i for i in places if wanted[i].rules == rules]
            outputs |= zip(group, translator.computed(partial(searched, group)), strict=True)
        return [outputs[i] for i in places]

    rows = max((each.beam_size for each in wanted), default=1)
    return in_batches([len(each.source_ids) for each in wanted], compute, rows, workers)


def translate_all(
    translator: Translator,
    texts: Sequence[str],
    beam_size: int | None = None,
    max_length: int | None = None,
    workers: Workers = ALONE,
) -> list[str]:
    """The texts of ``hypotheses``."""
    outputs = hypotheses(translator, texts, beam_size, max_length, workers)
    return [translator.text(each.token_ids) for each in outputs]


def token_log_probs(model: AnyModel, features: Tensor, ids: Tensor) -> Tensor:
    """(rows, d_model), (rows,) ids → (rows,) float32 log-probabilities of the ids, some logits at a time."""
    at_once = max(1, MOST_LOGITS // model.config.n_target_pieces)
    parts = zip(torch.split(features, at_once), torch.split(ids, at_once), strict=True)
    return torch.cat(
        [model.logits(part).float().log_softmax(1).gather(1, i[:, None])[:, 0] for part, i in parts]
    )


def forced_log_probs(
    model: Translator,
    pairs: Sequence[SentencePair | str],  # with a language model, whole texts
) -> list[tuple[float, ...]]:
    """For each pair, the log-probability (in nats) of every token of its target, ``</s>`` included.

    As the ``log_probs`` of ``force``, but many pairs a pass: at most ``BATCH_POSITIONS`` positions, and
    ``MOST_LOGITS`` logits at a time.

    Raises:
        InputError: A text is empty or too long.
        OverflowedError: The model's numbers overflow.
    """
    config = model.config
    texts = [("", each) if isinstance(each, str) else (each.source, each.target) for each in pairs]
    sources = [(*model.ids(source), config.eos_id) for source, _ in texts]
    targets = [model.output(target, source).ids for source, target in texts]

    @torch.inference_mode()
    def scored(places: list[int]) -> list[tuple[float, ...]]:
        written = [targets[i] for i in places]
        source = (
            None if model.continues else pad([sources[i] for i in places], config.pad_id).to(model.device)
        )
        state = DecodingState(model.model, source)
        read = pad([(config.bos_id, *target[:-1]) for target in written], config.pad_id).to(state.device)
        # padding is cut off before the logits, which cost the most
        rows = zip(state.features(read), written, strict=True)
        features = torch.cat([row[: len(target)] for row, target in rows])
        ids = torch.tensor([i for target in written for i in target], device=state.device)
        rest = iter(numbers(token_log_probs(state.model, features, ids)[:, None])[:, 0].tolist())
        return [tuple(islice(rest, len(target))) for target in written]

    lengths = [max(map(len, both)) for both in zip(sources, targets, strict=True)]
    width = CPU_WIDTH if model.device.type == "cpu" else 1
    return in_batches(lengths, lambda places: model.computed(partial(scored, places)), width)


def perplexity(log_probs: NDArray[np.float64], units: Sequence[int]) -> float:
    """Perplexity of sentences: ln p of each, its end included, and its words or pieces without the end.

    Per word it is exp(−Σ ln p(sentence) / (words + sentences)). White space separates the words of the raw
    text; each sentence also has an end, which is predicted too. So models with different pieces can be
    compared. p(sentence) is the probability of the one way in which the vocabulary splits the sentence; the
    other ways would add to it, so the figure is an upper bound. Per piece it divides by pieces + sentences.
    """
    return float(np.exp(-log_probs.sum() / (sum(units) + len(units))))


@torch.inference_mode()
def run_batch(translator: Translator, texts: Sequence[str]) -> tuple[Translation, ...]:
    """Translates texts greedily in one padded batch, then records one teacher-forced pass over all of them.

    Each run is as the model saw it: its tokens have ``<pad>`` up to the longest text, its steps and
    log-probabilities end before. The decoder runs as in training: all rows at once under the causal mask,
    which already hides the padding at the end of a target; cross-attention masks that of the source.

    InputError if a text is empty or too long, or the texts ask for several languages.
    """
    if translator.continues:
        raise ValueError(IN_BATCHES)
    config, model = translator.config, translator.model
    wanted = [Request(translator, text, beam_size=1) for text in texts]
    if not wanted:
        return ()
    if any(each.rules != wanted[0].rules for each in wanted):
        raise InputError("The texts of a batch ask for several languages; let all of them ask for one.")
    source = pad([each.source_ids for each in wanted], config.pad_id).to(translator.device)
    hooks = hooks_of(config, Capture())
    state = DecodingState(model, source, hooks)
    outputs = finish(decode(state, [each.limit for each in wanted], rules=wanted[0].rules))
    read = pad([(config.bos_id, *each.token_ids[:-1]) for each in outputs], config.pad_id).to(
        translator.device
    )
    distributions = model.logits(state.features(read, hooks)).float().log_softmax(-1)
    lengths = {"encoder": source.shape[1], "decoder": read.shape[1], "written": read.shape[1]}
    runs = []
    for row, (request, output) in enumerate(zip(wanted, outputs, strict=True)):
        ids = output.token_ids
        passed = distributions[row, : len(ids)]
        run = request.read_off(passed, hooks, ids, output.log_probs, "greedy", row)
        runs.append(_padded(run, lengths, config.pad_id))
    return tuple(runs)


def _padded(run: Translation, lengths: dict[str, int], pad_id: int) -> Translation:
    """A run whose tokens are filled up to the lengths of a batch."""
    assert run.attention is not None
    tokens = dict[str, TokenTrace]()
    for side, own in run.attention.tokens.items():
        more = lengths[side] - len(own.ids)
        tokens[side] = replace(own, ids=(*own.ids, *[pad_id] * more), pieces=(*own.pieces, *[PAD] * more))
    source, read, written = (tokens[side].pieces for side in lengths)
    labels = {"source_tokens": source, "decoder_input_tokens": read, "target_tokens": written}
    return replace(run, attention=replace(run.attention, tokens=tokens), **labels)  # type: ignore[arg-type]
