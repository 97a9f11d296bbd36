"""The sink of a head against hooks on the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_translator

from explorer.lenses.circuits.sinks import OUTLIER, sink
from transformer.model.sites import AttentionKind
from transformer.trace.recorder import Capture

TEXTS = ("one two three four", "two one")


@pytest.fixture(scope="module", params=["pre", "post"])
def translator(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", AttentionKind)
def test_a_sink_is_what_hooks_say(translator, kind):
    runs = [translator.translate(text, capture=Capture(residual=True)) for text in TEXTS]
    layer, head = 1, 2
    told: list[float] = []
    found = sink(translator, runs, (kind, layer, head), told.append)
    attention, size = translator.model.attention(kind, layer), translator.config.d_head
    own = slice(head * size, (head + 1) * size)
    ratios, lost, rests = [], [], []
    for run in runs:
        last = len(run.labels(kind).keys) - 1
        place = 0 if kind is AttentionKind.DECODER else last
        held = {}
        handle = attention.v_proj.register_forward_hook(lambda _, x, y: held.update(value=y))  # noqa: B023
        source = torch.tensor([[*translator.ids(run.source_text), translator.config.eos_id]])
        target = torch.tensor([[translator.config.bos_id, *run.target_ids[:-1]]])
        joined, attention.joined = attention.joined, None
        before = translator.model(source, target)[0].log_softmax(-1)
        handle.remove()
        written = (held["value"][0, :, own] @ attention.out_proj.weight[:, own].T).norm(dim=-1).tolist()
        ratios.append(written[place] / np.mean([each for i, each in enumerate(written) if i != place]))
        view = run.head(kind, layer, head)
        kept = np.delete(view.weights, place, 1)
        rests += [float(w[place]) for w, m in zip(view.weights, view.mask, strict=True) if m.sum() > 1]
        new = np.insert(kept / np.maximum(kept.sum(1, keepdims=True), 1e-12), place, 0, 1)
        new[kept.sum(1) < 1e-6] = view.weights[kept.sum(1) < 1e-6]
        output = torch.tensor(new, dtype=torch.float32) @ held["value"][0, :, own]

        def change(_, inputs):
            x = inputs[0].clone()
            x[0, :, own] = output  # noqa: B023
            return (x,)

        handle = attention.out_proj.register_forward_pre_hook(change)
        after = translator.model(source, target)[0].log_softmax(-1)
        handle.remove()
        attention.joined = joined
        for step, token in enumerate(run.target_ids):
            lost.append(float(before[step, token] - after[step, token]))
    assert found.token == ("<s>" if kind is AttentionKind.DECODER else "</s>")
    assert found.value == pytest.approx(np.mean(ratios), rel=1e-4)
    assert found.weight == pytest.approx(np.mean(rests), abs=1e-5)
    assert found.lost == pytest.approx(np.mean(lost), abs=1e-4)
    assert found.rows == len(lost)
    assert told[-1] == 1


def test_dimensions_far_above_the_others_are_outliers(tokenizer):
    translator = random_translator(tokenizer, "post")
    translator.model.embedding.weight.data[translator.config.eos_id, 3] = 500
    runs = [translator.translate(text, capture=Capture(residual=True)) for text in TEXTS]
    assert sink(translator, runs, (AttentionKind.ENCODER, 0, 0)).outliers == (3,)
    assert OUTLIER > 1
