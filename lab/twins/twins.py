"""Effects of positional encodings on translations: the same measurements on every trained twin.

Each function returns JSON values by name of the twin. Differences are from ``BASELINE``, with paired
bootstrap intervals over sentences.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lab.measurement import Json
from transformer.model.network import EncoderDecoder
from transformer.runs.bootstrap import (
    Floats,
    bleu,
    bleu_statistics,
    compare,
    ratio,
    rounded,
    unigram_precision,
)
from transformer.runs.corpus import translate_batched
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import SpecialIds
from transformer.training.batches import Batch, EncodedPairs, forced_pairs, group_by_length, make_batch

Twins = dict[str, Translator]
BASELINE = "sinusoidal"
BATCH_POSITIONS = 4096
LENGTH_EDGES = (1, 7, 10, 13, 17, 25)
"""Shortest source length, in tokens, of each group of sentences."""
FACTORS = (1, 2, 4)


@dataclass(frozen=True)
class Scored:
    """One model's translations of some pairs."""

    outputs: list[str]  # greedy translations
    bleu: Floats  # (sentences, 10) statistics of `bootstrap.bleu_statistics`
    loss: Floats  # (sentences, 2) negative log-probability of the reference in nats, and its number of tokens

    def rows(self, chosen: Sequence[int]) -> Scored:
        """The results for some of the sentences."""
        picked = np.asarray(chosen, dtype=np.intp)
        return Scored([self.outputs[row] for row in chosen], self.bleu[picked], self.loss[picked])


def score_pairs(translator: Translator, pairs: Sequence[SentencePair]) -> Scored:
    """Translates sources greedily and runs the references through the model."""
    outputs = translate_batched(translator, [pair.source for pair in pairs], 1)
    losses = sentence_losses(translator, pairs)
    return Scored(outputs, bleu_statistics(outputs, [pair.target for pair in pairs]), losses)


def encoded(translator: Translator, pairs: Sequence[SentencePair]) -> EncodedPairs:
    """Pairs as the ids of a model."""
    config = translator.config
    special = SpecialIds(config.pad_id, config.bos_id, config.eos_id, config.unk_id)
    return forced_pairs(pairs, translator.tokenizer, special)


def row_losses(model: EncoderDecoder, features: Tensor, batch: Batch) -> Tensor:
    """(rows, 2): negative log-probability of each target in nats, and its tokens with ``</s>``."""
    logits, pad = model.logits(features).float(), model.config.pad_id
    losses = F.cross_entropy(logits.transpose(1, 2), batch.tgt_ids, ignore_index=pad, reduction="none")
    return torch.stack([losses.sum(1), (batch.tgt_ids != pad).sum(1).to(losses)], 1)


@torch.inference_mode()
def sentence_losses(translator: Translator, pairs: Sequence[SentencePair]) -> Floats:
    """(sentences, 2): as ``row_losses``, of all pairs."""
    data, model = encoded(translator, pairs), translator.model
    found = np.zeros((len(data), 2))
    for rows in group_by_length(data, range(len(data)), BATCH_POSITIONS):
        batch = make_batch(data, rows).to(translator.device)
        features = model.features(batch.src_ids, batch.tgt_input_ids)
        found[rows] = row_losses(model, features, batch).double().cpu().numpy()
    return found


def summary(scored: dict[str, Scored], baseline: str = BASELINE) -> Json:
    """BLEU and loss in nats per token of each model."""
    scores = compare({name: found.bleu for name, found in scored.items()}, bleu, baseline)
    losses = compare({name: found.loss for name, found in scored.items()}, ratio, baseline)
    return {name: {"bleu": scores[name], "loss": losses[name]} for name in scored}


def source_lengths(translator: Translator, pairs: Sequence[SentencePair]) -> list[int]:
    """Number of tokens of each source, with ``</s>``."""
    return [len(translator.tokenizer.encode(pair.source)) + 1 for pair in pairs]


def target_lengths(translator: Translator, pairs: Sequence[SentencePair]) -> list[int]:
    """Number of tokens of each target, with ``</s>``."""
    return [len(translator.tokenizer.encode_target(pair.target)) + 1 for pair in pairs]


def by_length(scored: dict[str, Scored], lengths: Sequence[int], baseline: str = BASELINE) -> Json:
    """BLEU and loss of sentences grouped by source length; empty groups are left out."""
    stops = [*(edge - 1 for edge in LENGTH_EDGES[1:]), max(lengths)]
    groups = []
    for first, last in zip(LENGTH_EDGES, stops, strict=True):
        rows = [row for row, length in enumerate(lengths) if first <= length <= last]
        if rows:
            models = summary({name: found.rows(rows) for name, found in scored.items()}, baseline)
            groups.append({"first": first, "last": last, "sentences": len(rows), "models": models})
    return {"groups": groups}


def join_pairs(pairs: Sequence[SentencePair], lengths: Sequence[int], most: int) -> list[SentencePair]:
    """Joins sentences in the given order until one more would exceed ``most`` source tokens.

    An incomplete text at the end is left out, and so are sentences longer than ``most``.
    """
    joined: list[SentencePair] = []
    parts: list[SentencePair] = []
    held = 1
    for pair, length in zip(pairs, lengths, strict=True):
        if length > most:
            continue
        if held + length - 1 > most:
            source, target = zip(*((part.source, part.target) for part in parts), strict=True)
            joined.append(SentencePair(" ".join(source), " ".join(target)))
            parts, held = [], 1
        parts.append(pair)
        held += length - 1
    return joined


def long_texts(twins: Twins, pairs: Sequence[SentencePair], trained_length: int) -> Json:
    """BLEU and loss of the same sentences, joined up to 1, 2 and 4 times the training length.

    A length is left out if the data do not fill even one text.
    """
    some = next(iter(twins.values()))
    order = list(pairs)
    random.Random(1).shuffle(order)
    lengths = source_lengths(some, order)
    levels = []
    for factor in FACTORS:
        texts = join_pairs(order, lengths, factor * trained_length)
        if not texts:
            continue
        scored = {name: score_pairs(twin, texts) for name, twin in twins.items()}
        models = summary(scored)
        for name, found in scored.items():
            models[name]["length_ratio"] = rounded(found.bleu[:, 8].sum() / found.bleu[:, 9].sum())
        mean = float(np.mean(source_lengths(some, texts)))
        levels.append({"factor": factor, "texts": len(texts), "tokens": rounded(mean), "models": models})
    return {"trained_length": trained_length, "levels": levels}


def shuffle_words(text: str, order: random.Random) -> str:
    """The words of a text in random order; the closing punctuation stays."""
    body = text.rstrip(".?!…\"'”’ ")
    words = body.split()
    order.shuffle(words)
    return " ".join(words) + text[len(body) :]


def shuffled_sources(twins: Twins, scored: dict[str, Scored], pairs: Sequence[SentencePair]) -> Json:
    """Translates sources with shuffled words; compares each result with the twin's unshuffled translation."""
    order = random.Random(1)
    rows = [row for row, pair in enumerate(pairs) if len(pair.source.split()) > 2]
    texts = [shuffle_words(pairs[row].source, order) for row in rows]
    found = {
        name: bleu_statistics(translate_batched(twin, texts, 1), scored[name].rows(rows).outputs)
        for name, twin in twins.items()
    }
    scores, precisions = compare(found, bleu, BASELINE), compare(found, unigram_precision, BASELINE)
    models = {name: {"bleu": scores[name], "unigram_precision": precisions[name]} for name in twins}
    return {"sentences": len(rows), "models": models}
