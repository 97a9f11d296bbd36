"""BLEU and exact matches while a model is trained: greedy translations of some validation sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transformer.decoding import DecodingState, OverflowedError, decode, finish
from transformer.model import EncoderDecoder, Network
from transformer.text.kinds import at_least
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs, group_by_length, pad

BATCH_POSITIONS = 4096


@dataclass(frozen=True)
class TranslationQuality:
    """Quality of the translations of some sentences."""

    bleu: float  # their BLEU
    exact: float  # share of those that are their reference, letter for letter


@dataclass(frozen=True)
class GreedyBleu:
    """sacreBLEU's BLEU of a model's greedy translations, and the share that is exactly right.

    Greedy search draws no random numbers, so measuring changes nothing of a run.
    """

    pairs: tuple[SentencePair, ...]  # the sentences and their references
    tokenizer: Tokenizer  # the vocabulary of the model

    def __call__(self, model: Network) -> TranslationQuality | None:
        """The measures of a model, which stays in its mode; None if its numbers overflow."""
        from sacrebleu.metrics.bleu import BLEU

        was_training = model.training
        model.eval()
        try:
            outputs = self._translations(model)
        except OverflowedError:
            return None
        finally:
            model.train(was_training)
        references = [pair.target for pair in self.pairs]
        right = sum(output == target for output, target in zip(outputs, references, strict=True))
        return TranslationQuality(
            round(BLEU().corpus_score(outputs, [references]).score, 2), right / len(references)
        )

    def _translations(self, model: Network) -> list[str]:
        assert isinstance(model, EncoderDecoder)
        data, outputs = encode_pairs(self.pairs, self.tokenizer), [""] * len(self.pairs)
        device, longest = model.embedding.weight.device, model.config.max_positions
        for rows in group_by_length(data, range(len(data)), BATCH_POSITIONS):
            source = [[*data.source[row], data.special.eos] for row in rows]
            limits = [min(int(1.5 * len(ids)) + 10, longest) for ids in source]
            padded = pad(source, data.special.pad).to(device)
            with torch.inference_mode():
                done = finish(decode(DecodingState(model, padded), limits))
            for row, hypothesis in zip(rows, done, strict=True):
                outputs[row] = self.tokenizer.decode(hypothesis.token_ids)
        return outputs


def greedy_bleu(
    pairs: Sequence[SentencePair],  # the validation pairs
    tokenizer: Tokenizer,  # the vocabulary of the model
    sentences: int,  # how many to translate at most; 0 measures nothing
    max_tokens: int,  # longest side of a pair in tokens, with `</s>`
) -> GreedyBleu | None:
    """The measure on some pairs, spread evenly over the file, which may be sorted; ValueError below 0."""
    at_least(0).check("--bleu-sentences", sentences)
    data = encode_pairs(pairs, tokenizer)
    sides = zip(pairs, data.source, data.target, strict=True)
    short = [pair for pair, source, target in sides if max(len(source), len(target)) < max_tokens]
    count = min(sentences, len(short))
    if not count:
        return None
    return GreedyBleu(tuple(short[i * len(short) // count] for i in range(count)), tokenizer)
