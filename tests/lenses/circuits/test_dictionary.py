"""What a head's keys raise in the logits, against a model with hooks that hold all else still."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_translator

from lenses.circuits.dictionary import CROSS, asked_for, norms_behind, raises, written_by
from transformer.model.layers import PostNorm
from transformer.runs.translator import Translator
from transformer.text.words import readable
from transformer.trace.recorder import Capture

PAIRS = (("one two three four", "eins zwei drei"), ("two one", "zwei eins"), ("three two", "drei zwei"))


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request: pytest.FixtureRequest, tokenizer) -> Translator:
    return random_translator(tokenizer, request.param)


def logits(translator: Translator, run, layer: int, step: int, added: torch.Tensor | None):
    """(pieces,) logits of a step with a vector added where cross-attention of a layer writes; from there on,
    sub-layers write what they wrote in the run, and LayerNorms have the σ of the run. And Π σ."""
    network, held, spreads, handles = translator.model, {}, [], []
    order = list(network.config.stacks["decoder"].passed())
    later = order[order.index(network.config.sites[CROSS].sublayer(layer)) :]
    modules = [getattr(network.layer("decoder", each.layer), each.name) for each in later]
    residuals = [network.residual(each) for each in later]
    norms = [each.norm for each in residuals if isinstance(each, PostNorm)]
    norms += [network.decoder.final_norm] * isinstance(network.decoder.final_norm, torch.nn.LayerNorm)

    def keep(module, _, output):
        held[module] = output

    def enter(module, inputs):
        spread = (inputs[0].var(-1, unbiased=False, keepdim=True) + module.eps).sqrt()
        held[module] = spread

    def still(module, _, output):
        plain = held[module].clone()
        if module is modules[0] and added is not None:
            plain[0, step] += added
        return plain

    def fixed(module, inputs, _):
        x = inputs[0]
        spreads.append(float(held[module][0, step]))
        return module.weight * (x - x.mean(-1, keepdim=True)) / held[module] + module.bias

    source = torch.tensor([[*translator.ids(run.source_text), translator.config.eos_id]])
    target = torch.tensor([[translator.config.bos_id, *run.target_ids[:-1]]])
    handles = [each.register_forward_hook(keep) for each in modules]
    handles += [each.register_forward_pre_hook(enter) for each in norms]
    with torch.no_grad():
        network(source, target)
    for each in handles:
        each.remove()
    handles = [each.register_forward_hook(still) for each in modules]
    handles += [each.register_forward_hook(fixed) for each in norms]
    with torch.no_grad():
        found = network(source, target)[0, step]
    for each in handles:
        each.remove()
    return found, torch.tensor(spreads).prod()


@pytest.mark.parametrize("layer", [0, 2])
def test_a_key_raises_what_it_adds_with_all_else_held_still(model: Translator, layer: int) -> None:
    run = model.force("one two three four", "eins zwei drei", capture=Capture(residual=True))
    output = model.model.projection[0].detach().float()
    found = raises(model.model, run, layer, output)
    attention = model.model.attention(CROSS, layer)
    size = model.config.d_head
    head, key, step = 1, 2, 1
    own = slice(head * size, (head + 1) * size)
    memory = model.model.encode(torch.tensor([[*model.ids(run.source_text), model.config.eos_id]]))[0, key]
    value = attention.v_proj.weight[own] @ memory
    added = attention.out_proj.weight[:, own] @ value
    before, spread = logits(model, run, layer, step, None)
    after, _ = logits(model, run, layer, step, added * spread)  # linear: so much that float32 sees it
    torch.testing.assert_close(found[head, key], after - before, rtol=1e-3, atol=2e-3)
    behind = 1 if model.config.norm == "pre" else 2 + 3 * (2 - layer)
    assert len(norms_behind(model.model, layer)) == behind


@pytest.fixture(scope="module")
def translator(tokenizer):
    return random_translator(tokenizer)


@pytest.fixture(scope="module")
def runs(translator):
    return [translator.force(*pair) for pair in PAIRS]


def test_words_that_are_read_most_and_what_they_raise(translator, runs):
    model, size = translator.model, translator.config.d_head
    attention, norm = model.attention(CROSS, 2), model.decoder.final_norm
    own = slice(size, 2 * size)
    read, raised, seen = {}, {}, {}
    for run in runs:
        memory = model.encode(torch.tensor([[*translator.ids(run.source_text), translator.config.eos_id]]))[0]
        for key, (word, weight) in enumerate(
            zip(run.source_text.split(), run.head(CROSS, 2, 1).weights.sum(0), strict=False)
        ):
            x = attention.out_proj.weight[:, own] @ (attention.v_proj.weight[own] @ memory[key])
            logits = model.projection[0] @ (norm.weight * (x - x.mean()))
            read[word] = read.get(word, 0) + weight
            raised[word] = raised.get(word, 0) + logits
            seen.setdefault(word, []).append(run)
    found = written_by(translator, runs, 2, 1)
    assert [each.word for each in found] == sorted(read, key=lambda word: -read[word])
    for each in found:
        best = raised[each.word].topk(3).indices.tolist()
        assert each.raised == tuple(map(readable, translator.pieces(best)))
        hits = [best[0] in run.target_ids for run in seen[each.word]]
        assert (each.written, each.seen) == (np.mean(hits), len(hits))


def test_rows_ask_for_the_words_with_the_largest_products(runs):
    head = next(head for head in range(4) if asked_for(runs, 2, head))
    views = [run.head(CROSS, 2, head) for run in runs]
    keys = [
        (key, word)
        for run, view in zip(runs, views, strict=True)
        for key, word in zip(view.key, run.source_tokens, strict=True)
    ]
    for each in asked_for(runs, 2, head):
        rows = [
            (float(view.weights[row].max()), view.query[row])
            for run, view in zip(runs, views, strict=True)
            for row, token in enumerate(run.target_tokens)
            if readable(token) == each.token and int(view.weights[row].argmax()) < len(run.source_tokens) - 1
        ]
        _, query = max(rows, key=lambda row: row[0])
        order = sorted(keys, key=lambda pair: -float(pair[0] @ query))
        assert each.words == (*dict.fromkeys(readable(word) for _, word in order),)[:3]
