from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_model

from explorer.lenses.inside.block import open_block
from transformer import Translator
from transformer.run import NotCapturedError
from transformer.translator import retrace

TEXT = "one two three four five"


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request, tokenizer):
    return Translator(
        random_model(vocab_size=tokenizer.vocab_size, norm=request.param), tokenizer, name="random"
    )


@pytest.fixture(scope="module")
def decoded(model):
    return model.translate(TEXT, max_length=6)


@pytest.mark.parametrize(("side", "sublayers"), [("encoder", 2), ("decoder", 3)])
def test_a_layer_s_chain_begins_and_ends_as_the_layer_does(model, decoded, side, sublayers):
    seen = {}

    def keep(_module, given, _named, result):
        seen.update(enters=given[0][0], leaves=result[0])

    layer = getattr(model.model, side).layers[1]
    handle = layer.register_forward_hook(keep, with_kwargs=True)
    src = torch.tensor([[*model.ids(TEXT), model.config.eos_id]])
    tgt = torch.tensor([[model.config.bos_id, *decoded.target_ids[:-1]]])
    model.model(src, tgt)
    handle.remove()
    block = open_block(model.model, retrace(model, decoded), side, 1, 2)
    assert len(block.points) == sublayers + 1
    np.testing.assert_allclose(block.points[0], seen["enters"][2], atol=1e-5)
    np.testing.assert_allclose(block.points[-1], seen["leaves"][2], atol=1e-5)
    assert block.audit.passed


def test_a_stream_that_does_not_join_fails(model, decoded, monkeypatch):
    traced = retrace(model, decoded)
    stream = type(traced).stream

    def moved(self, sublayer):
        found = stream(self, sublayer)
        return replace(found, stream=found.stream + 1) if sublayer.name == "feed_forward" else found

    monkeypatch.setattr(type(traced), "stream", moved)
    assert not open_block(model.model, traced, "encoder", 1, 2).audit.passed


def test_a_run_without_its_stream_cannot_be_opened(model, decoded):
    with pytest.raises(NotCapturedError):
        open_block(model.model, decoded, "encoder", 0, 0)
