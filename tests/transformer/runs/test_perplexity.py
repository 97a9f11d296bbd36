from __future__ import annotations

import math

import numpy as np
import pytest

from transformer.training.quality import perplexity


def test_even_probabilities_give_their_number_as_perplexity_and_each_sentence_has_one_end():
    pieces = [4, 1, 8]
    logs = np.array([-(n + 1) * math.log(50) for n in pieces])
    assert perplexity(logs, pieces) == pytest.approx(50)
