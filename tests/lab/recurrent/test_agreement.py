from __future__ import annotations

import numpy as np
import pytest
from random_models import random_recurrent

from lab.recurrent.agreement import agreement
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair

PAIRS = [SentencePair("one two three", "two one"), SentencePair("four five", "five four three")]


def test_a_model_agrees_with_itself_and_with_another_by_what_their_rows_share(tokenizer, translator):
    other = Translator(random_recurrent("dot", vocab_size=tokenizer.vocab_size), tokenizer, name="dot")
    twins = {"self": translator, "dot": other, "sinusoidal": translator}
    found = agreement(twins, PAIRS, "sinusoidal")
    assert found["self"]["common"]["value"]["value"] == pytest.approx(1, abs=1e-5)
    assert found["self"]["same"]["value"]["value"] == 1
    shared, uniform, rows = 0.0, 0.0, 0
    for pair in PAIRS:
        one = translator.force(pair.source, pair.target)
        two = other.force(pair.source, pair.target)
        for step in range(len(one.steps)):
            last = np.mean([one.weights("cross", 2, head)[step] for head in range(4)], axis=0)
            shared += 1 - np.abs(last - two.weights("cross", 0, 0)[step]).sum() / 2
            uniform += 1 - np.abs(last - 1 / len(last)).sum() / 2
            rows += 1
    assert found["dot"]["common"]["value"]["value"] == pytest.approx(shared / rows, abs=1e-3)
    assert found["uniform"]["common"]["value"]["value"] == pytest.approx(uniform / rows, abs=1e-3)
