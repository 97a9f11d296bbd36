"""Perplexity per word and per piece, with bootstrap intervals over sentences.

Perplexity per word is exp(−Σ ln p(sentence) / (words + sentences)). White space separates the words of the
raw text; each sentence also has an end, which is predicted too. So models with different pieces can be
compared. p(sentence) is the probability of the one way in which the vocabulary splits the sentence; the other
ways would add to it, so the figure is an upper bound. Perplexity per piece divides by pieces + sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.runs.bootstrap import Cell, Floats, compare, ratio


def per_word(log_probs: Floats, texts: Sequence[str]) -> Floats:
    """(sentences, 2): nats, and words with one end, of each sentence; log-probabilities include its end."""
    return np.stack([-log_probs, [len(text.split()) + 1.0 for text in texts]], 1)


def per_piece(log_probs: Floats, pieces: Sequence[int]) -> Floats:
    """(sentences, 2): nats, and pieces with one end, of each sentence; arguments as in ``per_word``."""
    return np.stack([-log_probs, np.array(pieces) + 1.0], 1)


def perplexity(sums: Floats) -> Floats:
    """Perplexity of summed nats and counts (…, 2) → (…)."""
    return np.exp(ratio(sums))


def ranged(sentences: Floats) -> Cell:
    """The perplexity with its interval, of ``per_word`` or ``per_piece`` of a model's sentences."""
    return compare({"": sentences}, perplexity)[""]["value"]
