from __future__ import annotations

from random_models import random_model

from explorer.lenses.inside.spread import product_spread
from transformer import Translator


def test_one_pair_has_no_spread(tokenizer):
    model = Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    record = model.translate("one", max_length=1).attention.layer("decoder", 0)
    assert product_spread(record, 0).products == 0
