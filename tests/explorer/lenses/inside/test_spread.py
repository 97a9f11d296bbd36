from __future__ import annotations

import numpy as np
import pytest
from random_models import random_model

from explorer.lenses.inside.spread import product_spread
from transformer import Translator


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_spread_is_the_variance_over_all_visible_pairs(tokenizer, kind):
    model = Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    translation = model.translate("one two three four", max_length=6)
    record = translation.attention.layer(kind, 1)
    query, key = (each[2].double().numpy() for each in (record.query, record.key))
    products = [
        float(q @ k) for i, q in enumerate(query) for j, k in enumerate(key) if kind != "decoder" or j <= i
    ]
    spread = product_spread(record, 2)
    assert spread.pairs == len(products)
    assert spread.products == pytest.approx(np.var(products), rel=1e-9)
    assert spread.query == pytest.approx(query.var(), rel=1e-9)
    assert spread.key == pytest.approx(key.var(), rel=1e-9)
    assert spread.divided == pytest.approx(np.var(np.array(products) / np.sqrt(query.shape[1])), rel=1e-9)


def test_one_pair_has_no_spread(tokenizer):
    model = Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    record = model.translate("one", max_length=1).attention.layer("decoder", 0)
    assert product_spread(record, 0).products == 0
