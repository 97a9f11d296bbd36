from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from changes import changeable
from closed_form import CASES
from marian_models import write_marian

from lenses.what_if.causal_trace import causal_trace, changed_positions
from transformer import interventions as do
from transformer import load_translator
from transformer.runs import batched
from transformer.runs.wording import InputError

BASE, CHANGED = "one two three four", "one five three four"
IDS = tuple(range(40, 46))


@pytest.fixture(scope="module", params=[{"norm": "pre"}, {"norm": "post"}, {"positions": "rotary"}], ids=str)
def ready(request, tokenizer):
    return changeable(tokenizer, **request.param)


def test_every_cell_is_that_of_a_single_patch(ready):
    found = causal_trace(ready, BASE, CHANGED, IDS)
    base = ready.force(BASE, IDS)

    def single(place, position):
        change = do.patch(place, base, [position])
        return ready.force(CHANGED, IDS, interventions=[change], capture=False).log_probs

    def same(cell, place, position):
        np.testing.assert_allclose(cell, single(place, position), atol=1e-5)

    assert found.encoder_stream.shape == (3, 5, 6)
    assert found.cross_heads.shape == (3, 4, 6, 6)
    assert found.decoder_stream.shape == (3, 6, 6)
    for position in range(5):
        same(found.encoder_stream[0, position], do.embeddings("encoder"), position)
        same(found.encoder_output[position], do.encoder_output(), position)
        for layer in range(2):
            place = do.stream("encoder", layer, "feed_forward")
            same(found.encoder_stream[layer + 1, position], place, position)
    for layer, position in np.ndindex(3, 6):
        place = do.stream("decoder", layer, "feed_forward")
        same(found.decoder_stream[layer, position], place, position)
        for head in range(4):
            place = do.head_output("cross", layer, head)
            same(found.cross_heads[layer, head, position], place, position)


def test_long_sentences_take_several_passes_with_the_same_result(ready, monkeypatch):
    whole = causal_trace(ready, BASE, CHANGED, IDS)
    monkeypatch.setattr(batched, "MOST_TOKENS", 20)
    monkeypatch.setattr(batched, "MOST_LOGITS", 2000)
    parts = causal_trace(ready, BASE, CHANGED, IDS)
    for name in ("encoder_stream", "encoder_output", "cross_heads", "decoder_stream"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-5)


def test_the_changed_word_s_embedding_brings_all_back_and_the_others_nothing(ready):
    found = causal_trace(ready, BASE, CHANGED)
    assert found.differing == (1,)
    assert found.target_tokens == ready.translate(BASE).target_tokens
    back = found.returned(found.encoder_stream)[0]
    np.testing.assert_allclose(back, [0, 1, 0, 0, 0], atol=1e-3)
    np.testing.assert_allclose(found.encoder_output, found.encoder_stream[-1], atol=1e-5)
    for step in range(len(found.target_tokens)):
        np.testing.assert_allclose(found.encoder_stream[0, 1, step], found.base[step], atol=1e-5)


def test_a_patch_in_the_decoder_acts_on_no_earlier_step(ready):
    found = causal_trace(ready, BASE, CHANGED, IDS)
    earlier = np.tri(6, k=-1, dtype=bool)
    for cells in (*found.decoder_stream, *found.cross_heads.reshape(-1, 6, 6)):
        np.testing.assert_allclose(cells[earlier], np.broadcast_to(found.changed, (6, 6))[earlier], atol=1e-5)
    last = found.decoder_stream[-1]
    np.testing.assert_allclose(np.diag(last), found.base, atol=1e-5)


def test_the_copied_word_passes_through_the_head_that_copies_it(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    words = CASES["copy"].sentence.split()
    other = next(word for word in ("eight", "nine", "ten", "six") if word not in words)
    found = causal_trace(translator, " ".join(words), " ".join([words[0], other, *words[2:]]))
    assert found.gap(1) > 5
    heads = found.returned(found.cross_heads, step=1)[0]
    assert heads[0, 1] == pytest.approx(1, abs=0.02)
    rest = np.delete(heads.ravel(), 1)
    np.testing.assert_allclose(rest, 0, atol=0.02)


def test_a_marian_model_with_two_vocabularies_is_traced_too(tmp_path):
    translator = load_translator(write_marian(tmp_path, separate=True))
    base, changed = "two red dogs", "two two dogs"
    ids = translator.translate(base, max_length=5, beam_size=1).target_ids
    found = causal_trace(translator, base, changed, ids)
    run = translator.force(base, ids)
    assert found.differing == (3, 4, 5)
    at = 3
    for place, cell in (
        (do.encoder_output(), found.encoder_output[at]),
        (do.head_output("cross", 0, 1), found.cross_heads[0, 1, at]),
    ):
        single = translator.force(changed, ids, interventions=[do.patch(place, run, [at])])
        np.testing.assert_allclose(cell, single.log_probs, atol=1e-5)


def test_sentences_that_hardly_differ_give_no_share(ready):
    found = causal_trace(ready, BASE, CHANGED, IDS)
    equal = type(found)(**{**vars(found), "base": found.changed})
    assert np.isnan(equal.returned(found.encoder_output)).all()


def test_sentences_that_cannot_be_aligned_are_refused_with_the_reason(translator):
    assert changed_positions(translator, BASE, CHANGED) == (1,)
    with pytest.raises(InputError, match="are the same"):
        changed_positions(translator, BASE, BASE)
    with pytest.raises(InputError, match="have 4 and 5 tokens"):
        changed_positions(translator, BASE, "one two three four five")
    with pytest.raises(InputError, match="differ in 2 words"):
        changed_positions(translator, BASE, "two one three four")


def test_a_change_that_makes_the_target_likelier_has_a_share_too(ready):
    found = causal_trace(ready, BASE, CHANGED, IDS)
    turned = replace(found, base=found.changed, changed=found.base)
    assert found.gap() * turned.gap() < 0
    for each in (found, turned):
        gap = each.base.sum() - each.changed.sum()
        expected = (each.encoder_output.sum(-1) - each.changed.sum()) / gap
        np.testing.assert_allclose(each.returned(each.encoder_output), expected)
