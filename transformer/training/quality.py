"""BLEU and exact matches while a model is trained: greedy translations of some validation
sentences."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.decoding import DecodingState, OverflowedError, decode, finish
from transformer.model import EncoderDecoder
from transformer.text.kinds import at_least
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs, group_by_length, make_batch

BATCH_POSITIONS = 4096


class Quality(TypedDict, total=False):
    """What greedy translations are worth, as fields of a `TrainingStep`."""

    bleu: float
    exact: float
    bleu_sentences: int


class GreedyBleu:
    """sacreBLEU's BLEU of a model's greedy translations, and the share that is exactly right.

    Greedy search draws no random numbers, so measuring changes nothing of a run.
    """

    def __init__(
        self,
        pairs: Sequence[SentencePair],  # the validation pairs
        tokenizer: Tokenizer,  # the vocabulary of the model
        # how many to translate at most, spread evenly over the file, which may be sorted
        sentences: int,
        max_tokens: int,  # longest side of a pair in tokens, with `</s>`
    ) -> None:
        at_least(0).check("--bleu-sentences", sentences)
        data = encode_pairs(pairs, tokenizer)
        short = [pair for row, pair in enumerate(pairs) if data.length(row) <= max_tokens]
        count = min(sentences, len(short))
        self.pairs = [short[i * len(short) // count] for i in range(count)]
        self._data = encode_pairs(self.pairs, tokenizer)
        self._tokenizer = tokenizer

    def __call__(self, model: EncoderDecoder) -> Quality:
        """The measures; none if the model's numbers overflow, or of
        no pairs.

        The model stays in its mode.
        """
        from sacrebleu.metrics.bleu import BLEU

        if not self.pairs:
            return {}
        was_training = model.training
        references = [pair.target for pair in self.pairs]
        data = self._data
        outputs = [""] * len(self.pairs)
        model.eval()
        try:
            for rows in group_by_length(data, range(len(data)), BATCH_POSITIONS):
                source = make_batch(data, rows).src_ids.to(model.embedding.weight.device)
                lengths = [len(data.source[row]) + 1 for row in rows]
                limits = [
                    min(int(1.5 * length) + 10, model.config.max_positions) for length in lengths
                ]
                with torch.inference_mode():
                    done = finish(decode(DecodingState(model, source), limits))
                for row, hypothesis in zip(rows, done, strict=True):
                    outputs[row] = self._tokenizer.target.decode(hypothesis.token_ids)
        except OverflowedError:
            return {}
        finally:
            model.train(was_training)
        bleu = round(BLEU().corpus_score(outputs, [references]).score, 2)
        right = sum(output == target for output, target in zip(outputs, references, strict=True))
        return {"bleu": bleu, "exact": right / len(outputs), "bleu_sentences": len(outputs)}


def perplexity(log_probs: NDArray[np.float64], units: Sequence[int]) -> float:
    """Perplexity of sentences: ln p of each, its end included, and its words or pieces without the
    end.

    Per word it is exp(−Σ ln p(sentence) / (words + sentences)), since each end is predicted, too:
    so models with different pieces can be compared. p(sentence) is that of the one way in which the
    vocabulary splits it; the other ways would add to it, so the figure is an upper bound.
    """
    return float(np.exp(-log_probs.sum() / (sum(units) + len(units))))
