"""An encoder that begins as a language model computes what the language model computes."""

from __future__ import annotations

import pytest
import torch
from random_models import random_ids, random_language_model, random_model

from transformer.model.masks import AttentionMask
from transformer.model.watching.observer import UNWATCHED
from transformer.training.runs.pretrained import take_encoder

SAME = {"norm": "pre", "positions": "rotary", "n_encoder_layers": 2}


def test_the_encoder_under_a_causal_mask_is_the_language_model():
    model, source, ids = random_model(**SAME), random_language_model(seed=3), random_ids(2, 7)
    take_encoder(model, source)
    x = model.embed(ids, "encoder", 0, UNWATCHED)
    found = model.encoder(x, AttentionMask(causal=True))
    torch.testing.assert_close(found, source.features(ids), atol=1e-5, rtol=1e-4)


def test_the_decoder_stays_as_it_was():
    model, fresh = random_model(**SAME), random_model(**SAME)
    take_encoder(model, random_language_model(seed=3))
    for name, value in fresh.decoder.state_dict().items():
        torch.testing.assert_close(model.decoder.state_dict()[name], value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"d_ff": 64}, "d_ff"), ({"n_layers": 3}, "3 layers"), ({"positions": "alibi"}, "positions")],
)
def test_other_sizes_are_refused_in_one_sentence(changes, reason):
    with pytest.raises(ValueError, match=reason):
        take_encoder(random_model(**SAME), random_language_model(**changes))
