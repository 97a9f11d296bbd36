from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache

import numpy as np
import pytest

from transformer.lenses.scores.kneser_ney import FALLBACK, KneserNey, discounts, train
from transformer.text.vocabulary import BOS_ID, EOS_ID, N_SPECIAL_PIECES, PAD_ID

A, B, C = range(N_SPECIAL_PIECES, N_SPECIAL_PIECES + 3)
VOCAB = 12


def random_text(count: int, seed: int, vocab: int = VOCAB) -> list[list[int]]:
    """Sentences of 0 to 9 pieces in which a piece makes the next one likely, and some are rare."""
    drawn, text = random.Random(seed), []
    for _ in range(count):
        sentence = [drawn.randrange(N_SPECIAL_PIECES, vocab)]
        while len(sentence) < 9 and drawn.random() < 0.85:
            near = N_SPECIAL_PIECES + (sentence[-1] + int(drawn.expovariate(1))) % (vocab - N_SPECIAL_PIECES)
            sentence.append(near)
        text.append(sentence if drawn.random() < 0.95 else [])
    return text


class BruteForce:
    """The definition with sets and dictionaries, one n-gram at a time."""

    def __init__(self, text: list[list[int]], vocab: int, order: int) -> None:
        self.order, self.vocab = order, vocab
        padded = [(BOS_ID, *sentence, EOS_ID) for sentence in text]
        self.counts: list[Counter[tuple[int, ...]]] = [
            Counter(row[at : at + n] for row in padded for at in range(len(row) - n + 1))
            for n in range(1, order + 1)
        ]
        for n in range(order - 1):
            preceded = Counter(gram[1:] for gram in self.counts[n + 1])
            for gram in self.counts[n]:
                if gram[0] != BOS_ID:
                    self.counts[n][gram] = preceded[gram]
        del self.counts[0][(BOS_ID,)]
        self.discounts = [discounts(np.array(list(counts.values()))) for counts in self.counts]
        self.p = cache(self.p)

    def p(self, word: int, history: tuple[int, ...]) -> float:
        history = history[max(0, len(history) - self.order + 1) :]
        below = self.p(word, history[1:]) if history else 1 / (self.vocab - 2)
        counts, taken = self.counts[len(history)], self.discounts[len(history)]
        successors = [counts[(*history, other)] for other in range(self.vocab) if (*history, other) in counts]
        if not successors:
            return below
        count = counts.get((*history, word), 0)
        share = count - taken[min(count, 3) - 1] if count else 0
        return (share + sum(taken[min(c, 3) - 1] for c in successors) * below) / sum(successors)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_it_equals_the_definition_on_a_small_text(order):
    text, held = random_text(60, 1), random_text(15, 2)
    model, slow = train(text, VOCAB, order), BruteForce(text, VOCAB, order)
    for sentence, logs in zip(held, model.piece_log_probs(held), strict=True):
        row = (BOS_ID, *sentence, EOS_ID)
        expected = [math.log(slow.p(row[at], row[:at])) for at in range(1, len(row))]
        assert logs == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_the_discounts_of_a_larger_text_come_from_counts_of_counts_and_it_still_equals_the_definition(seed):
    text, held = random_text(600, seed, vocab=40), random_text(10, seed + 10, vocab=40)
    model, slow = train(text, 40, 3), BruteForce(text, 40, 3)
    assert slow.discounts[-1] != FALLBACK
    for sentence, log in zip(held, model.log_probs(held), strict=True):
        row = (BOS_ID, *sentence, EOS_ID)
        assert log == pytest.approx(sum(math.log(slow.p(row[at], row[:at])) for at in range(1, len(row))))


def following(model: KneserNey, history: list[int]) -> np.ndarray:
    """(vocabulary,) probability of each piece after a history that begins a sentence."""
    words = [piece for piece in range(VOCAB) if piece not in (PAD_ID, BOS_ID, EOS_ID)]
    logs = model.piece_log_probs([[*history, piece] for piece in words])
    found = np.zeros(VOCAB)
    found[words] = np.exp([each[len(history)] for each in logs])
    found[EOS_ID] = np.exp(model.piece_log_probs([history])[0][-1])
    return found


def test_probabilities_sum_to_one_after_any_history():
    model, drawn = train(random_text(300, 3), VOCAB), random.Random(4)
    for size in (0, 1, 2, 3, 4, 6):
        for _ in range(20):
            history = [drawn.randrange(N_SPECIAL_PIECES, VOCAB) for _ in range(size)]
            found = following(model, history)
            assert found.sum() == pytest.approx(1, abs=1e-12)
            assert (np.delete(found, [PAD_ID, BOS_ID]) > 0).all()


def test_a_bigram_model_worked_out_by_hand():
    """Two sentences, `a b` and `a c`; discounts 0.5, 1 and 1.5, since no bigram occurs three times.

    Pieces that stand before: a 1 (<s>), b 1 (a), c 1 (a), </s> 2 (b, c); their sum is 5. Unigrams of the 10
    pieces that can be predicted: a, b, c (1 − 0.5)/5, </s> (2 − 1)/5; left (3 · 0.5 + 1)/5 = 0.5, spread over
    10. Histories: <s> has a twice, a has b and c once, b has </s> once.
    """
    model = train([[A, B], [A, C]], VOCAB, order=2)
    unigram = {A: 0.1 + 0.05, B: 0.1 + 0.05, C: 0.1 + 0.05, EOS_ID: 0.2 + 0.05, 11: 0.05}
    after_start = following(model, [])
    assert after_start[A] == pytest.approx((2 - 1) / 2 + 1 / 2 * unigram[A])
    assert after_start[B] == pytest.approx(1 / 2 * unigram[B])
    after_a = following(model, [A])
    assert after_a[B] == pytest.approx((1 - 0.5) / 2 + (0.5 + 0.5) / 2 * unigram[B])
    assert after_a[11] == pytest.approx(0.5 * unigram[11])
    after_b = following(model, [B])
    assert after_b[EOS_ID] == pytest.approx((1 - 0.5) / 1 + 0.5 * unigram[EOS_ID])
    expected = after_start[A] * after_a[B] * after_b[EOS_ID]
    assert math.exp(model.log_probs([[A, B]])[0]) == pytest.approx(expected)


def test_discounts_follow_from_counts_of_counts():
    counts = np.repeat([1, 2, 3, 4, 9], [60, 20, 10, 6, 5])
    y = 60 / (60 + 2 * 20)
    expected = (1 - 2 * y * 20 / 60, 2 - 3 * y * 10 / 20, 3 - 4 * y * 6 / 10)
    assert discounts(counts) == pytest.approx(expected)
    assert discounts(np.array([1, 1, 2])) == FALLBACK
    assert discounts(np.repeat([1, 2, 3, 4], [10, 5, 50, 1])) == FALLBACK


def test_it_prefers_the_kind_of_text_that_it_has_read():
    text = random_text(500, 7)
    model = train(text, VOCAB)
    shuffled = [random.Random(8).sample(sentence, len(sentence)) for sentence in text]
    assert model.log_probs(text).sum() > model.log_probs(shuffled).sum()
    assert model.sizes[0] <= VOCAB
    assert list(model.sizes) == sorted(model.sizes)


@pytest.mark.parametrize(("text", "order"), [([], 5), ([[A]], 0)])
def test_no_text_or_no_order_is_refused(text, order):
    with pytest.raises(ValueError, match="cannot be made"):
        train(text, VOCAB, order)
