from __future__ import annotations

from typing import get_args

import pytest
from random_models import random_recurrent

from explorer.lenses.inside.terms import score_terms
from transformer.config import AttentionKind, Score
from transformer.translator import Translator

CROSS = AttentionKind.CROSS


@pytest.fixture(scope="module", params=[*get_args(Score), "transformer"])
def run(request, tokenizer, translator):
    if request.param == "transformer":
        return translator.force("one two three four", "four two")
    model = random_recurrent(request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name=request.param).force("one two three four five six", "six two")


def test_the_terms_of_a_score_add_up_to_it_and_its_weight_is_the_model_s(run):
    view = run.head(CROSS, 0, 0)
    for query in range(len(view.query_tokens)):
        for key in range(len(view.key_tokens)):
            found = score_terms(run.attention, (CROSS, 0, 0), query, key)
            assert found.score == pytest.approx(view.scores[query, key], abs=1e-5)
            assert found.terms.sum() == pytest.approx(found.score, abs=1e-5)
            if view.mask[query, key]:
                assert found.weight == pytest.approx(view.weights[query, key], abs=1e-5)


def test_the_largest_term_comes_first(run):
    found = score_terms(run.attention, (CROSS, 0, 0), 0, 1)
    sizes = [abs(found.terms[i]) for i in found.order]
    assert sizes == sorted(sizes, reverse=True)
    assert sorted(found.order) == list(range(len(found.terms)))


def test_only_local_attention_has_a_centre(run):
    found = score_terms(run.attention, (CROSS, 0, 0), 0, 1)
    view = run.head(CROSS, 0, 0)
    assert (found.centre is None) == (view.centres is None)
    if view.centres is not None:
        assert found.centre == pytest.approx(view.centres[0])
    else:
        assert found.factor == 1.0
