"""Perplexity per word and per piece.

Perplexity per word is exp(−Σ ln p(sentence) / (words + sentences)). White space separates the words of the
raw text; each sentence also has an end, which is predicted too. So models with different pieces can be
compared. p(sentence) is the probability of the one way in which the vocabulary splits the sentence; the other
ways would add to it, so the figure is an upper bound. Perplexity per piece divides by pieces + sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def perplexity(log_probs: NDArray[np.float64], units: Sequence[int]) -> float:
    """Perplexity of sentences: ln p of each, its end included, and its words or pieces without the end."""
    return float(np.exp(-log_probs.sum() / (sum(units) + len(units))))
