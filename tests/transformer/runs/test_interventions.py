from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from changes import EVERY, INSIDE, TEXT, TOKENS, changeable
from closed_form import CASES
from torch.nn import functional as F

from transformer import Sampling, load_translator
from transformer import interventions as do
from transformer.config import Sublayer
from transformer.encodings import REGISTRY
from transformer.translator import retrace

LENGTH = 7


@pytest.fixture(scope="module", params=["pre", "post"])
def ready(request, tokenizer):
    return changeable(tokenizer, norm=request.param)


@pytest.mark.parametrize("name", EVERY)
def test_every_change_acts_and_its_trace_passes_the_audit(ready, name):
    plain = ready.translate(TEXT, max_length=LENGTH)
    changed = ready.translate(TEXT, max_length=LENGTH, interventions=[EVERY[name]])
    assert changed.interventions == (EVERY[name],)
    assert (
        changed.log_probs != plain.log_probs
        or changed.target_tokens != plain.target_tokens
        or name == "forbid"
    )
    report = changed.attention.audit()
    assert report.passed, report
    assert report.changes == (str(EVERY[name]),)
    assert changed.head("cross", 1, 2).audit.changes == report.changes


def test_a_model_s_own_run_is_not_touched_by_the_changes_of_others(ready):
    before = ready.translate(TEXT, max_length=LENGTH)
    for change in EVERY.values():
        ready.translate(TEXT, max_length=LENGTH, interventions=[change])
    after = ready.translate(TEXT, max_length=LENGTH)
    assert after.log_probs == before.log_probs
    assert after.interventions == after.attention.audit().changes == ()


@pytest.mark.parametrize("positions", REGISTRY)
def test_every_change_is_the_same_with_and_without_a_cache_for_every_encoding(tokenizer, positions):
    translator = changeable(tokenizer, positions=positions)
    for name, change in INSIDE.items():
        if positions == "none" and isinstance(change, do.NoPositions):
            continue
        decoded = translator.translate(TEXT, max_length=LENGTH, interventions=[change])
        forced = translator.force(TEXT, decoded.target_tokens, interventions=[change])
        np.testing.assert_allclose(decoded.log_probs, forced.log_probs, atol=2e-5, err_msg=name)
        for kind, layer in decoded.attention.places:
            found, expected = (run.attention.weights(kind, layer) for run in (decoded, forced))
            np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=name)
        assert decoded.attention.audit().passed, name
        assert forced.attention.audit().passed, name


@pytest.mark.parametrize("positions", REGISTRY)
def test_a_beam_scores_by_the_changed_model_for_every_encoding(tokenizer, positions):
    translator = changeable(tokenizer, positions=positions)
    for name, change in EVERY.items():
        if positions == "none" and isinstance(change, do.NoPositions):
            continue
        wide = translator.translate(TEXT, beam_size=3, max_length=LENGTH, interventions=[change])
        forced = translator.force(TEXT, wide.target_ids, interventions=[change])
        np.testing.assert_allclose(wide.log_probs, forced.log_probs, atol=2e-5, err_msg=name)
        assert wide.attention.audit().passed, name


@pytest.mark.parametrize("name", EVERY)
def test_beams_and_samples_take_every_change(ready, name):
    change = EVERY[name]
    alone = ready.translate(TEXT, max_length=LENGTH, interventions=[change])
    one = ready.translate(TEXT, beam_size=2, max_length=LENGTH, interventions=[change])
    assert one.attention.audit().passed
    assert one.interventions == alone.interventions
    sampled = ready.translate(TEXT, max_length=LENGTH, interventions=[change], sample=Sampling(seed=3))
    forced = ready.force(TEXT, sampled.target_ids, interventions=[change])
    np.testing.assert_allclose(sampled.log_probs, forced.log_probs, atol=2e-5)
    assert sampled.attention.audit().passed


def test_a_beam_of_one_equals_greedy_search_under_changes(ready):
    changes = [INSIDE["ablate by zero"], INSIDE["hide"], TOKENS["choose"], TOKENS["forbid"]]
    greedy = ready.translate(TEXT, max_length=LENGTH, interventions=changes)
    wide = ready.translate(TEXT, beam_size=3, max_length=LENGTH, interventions=changes)
    forced = ready.force(TEXT, wide.target_ids, interventions=changes)
    np.testing.assert_allclose(wide.log_probs, forced.log_probs, atol=2e-5)
    assert greedy.steps[2].token_id == wide.steps[2].token_id == 50


def test_without_capture_a_change_acts_the_same(ready):
    for change in EVERY.values():
        on, off = (
            ready.translate(TEXT, max_length=4, interventions=[change], capture=capture)
            for capture in (True, False)
        )
        assert on.log_probs == off.log_probs
        assert off.attention is None


def test_a_changed_run_can_be_traced_again(ready):
    for change in EVERY.values():
        decoded = ready.translate(TEXT, max_length=LENGTH, interventions=[change])
        again = retrace(ready, decoded)
        assert again.attention.audit().passed, change
        assert again.attention.residuals
        assert again.interventions == (change,)


def test_only_the_layers_touched_leave_the_fused_path(ready, monkeypatch):
    fused, calls = F.scaled_dot_product_attention, []

    def counted(*args, **kwargs):
        calls.append(1)
        return fused(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)

    def count(*changes):
        calls.clear()
        ready.translate(TEXT, max_length=5, interventions=changes)
        return len(calls)

    plain = count()
    assert plain == 2 + 5 * 6
    assert count(do.ablate("cross", 1, 0, by="uniform")) == plain - 5
    assert count(do.set_row("encoder", 0, 1, 0, {1: 1.0})) == plain - 1
    assert count(do.hide(0)) == plain - 5 * 3
    assert count(do.scale("cross", 1, 0, 2.0), do.ablate("encoder", 0)) == plain


def test_a_change_to_what_is_so_already_has_no_effect(ready):
    """A factor of 1, weights that a head has already, or a mask that hides nothing new."""
    plain = ready.force(TEXT, tuple(range(40, 46)))
    for nothing in (
        do.scale("cross", 1, None, 1.0),
        do.temperature("decoder", 1, None, 1.0),
        do.mask("decoder", forbid="future"),
        do.ablate("decoder", 0, None, by="uniform", rows=0),
    ):
        found = ready.force(TEXT, tuple(range(40, 46)), interventions=[nothing])
        np.testing.assert_allclose(found.log_probs, plain.log_probs, atol=1e-5)


def test_changes_of_one_head_act_in_their_order(ready):
    zero, half = do.ablate("cross", 0, 1), do.scale("cross", 0, 1, 0.5)
    row = do.set_row("cross", 0, 1, 0, {0: 1.0})
    ids = tuple(range(40, 44))
    for changes in itertools.permutations([zero, half]):
        output = ready.force(TEXT, ids, interventions=changes).attention.layer("cross", 0).output
        assert (output[1] == 0).all()
    later = ready.force(TEXT, ids, interventions=[row, do.ablate("cross", 0, 1, by="uniform")])
    earlier = ready.force(TEXT, ids, interventions=[do.ablate("cross", 0, 1, by="uniform"), row])
    assert later.attention.weights("cross", 0, 1)[0, 0] == pytest.approx(0.2)
    assert earlier.attention.weights("cross", 0, 1)[0, 0] == 1.0


# --- closed form --------------------------------------------------------------------------------------------


def test_ablating_the_copying_head_destroys_the_copy_and_the_other_head_does_nothing(solved):
    case = CASES[solved.name]
    for by in ("zero", "uniform", "first"):
        without = solved.translate(
            case.sentence, max_length=9, interventions=[do.ablate("cross", 0, 0, by=by)]
        )
        assert without.text != case.translation
        other = solved.translate(case.sentence, interventions=[do.ablate("cross", 0, 1, by=by)])
        assert other.text == case.translation
        plain = solved.translate(case.sentence)
        np.testing.assert_allclose(other.log_probs, plain.log_probs, atol=1e-5)
    silent = solved.translate(case.sentence, max_length=3, interventions=[do.ablate("cross", 0, 0)])
    assert (silent.attention.layer("cross", 0).output[0] == 0).all()
    assert (silent.attention.weights("cross", 0, 0).argmax(-1) == case.keys("cross", 0)[:3]).all()


def test_hiding_the_word_that_is_copied_moves_the_weight_to_the_nearest_in_scores(solved):
    case = CASES[solved.name]
    at = case.keys("cross", 0)[0]
    plain = solved.force(case.sentence, case.target_tokens)
    hidden = solved.force(case.sentence, case.target_tokens, interventions=[do.hide(at)])
    assert (hidden.attention.weights("cross", 0)[:, :, at] == 0).all()
    scores = plain.attention.scores("cross", 0)
    scores[:, :, at] = -np.inf
    by_hand = np.exp(scores - scores.max(-1, keepdims=True))
    by_hand /= by_hand.sum(-1, keepdims=True)
    np.testing.assert_allclose(hidden.attention.weights("cross", 0), by_hand, atol=1e-6)


def test_hiding_the_only_source_word_leaves_the_end_of_the_sentence_alone(translator):
    hidden = translator.translate("one", max_length=3, interventions=[do.hide(0)])
    plain = translator.translate("one", max_length=3)
    np.testing.assert_array_equal(hidden.attention.weights("cross", 2)[:, :, 1], 1.0)
    memory = plain.attention.layer("cross", 0).value[:, 1]
    np.testing.assert_allclose(hidden.attention.layer("cross", 0).output[:, 0], memory, atol=1e-6)


def test_hiding_the_only_source_word_gives_the_distribution_of_a_memory_without_it(ready, solved):
    """By hand: the encoder still reads the word, and the decoder is given the row of `</s>` alone."""
    hidden = ready.force("one", (40, 41, 42), interventions=[do.hide(0)])
    source = torch.tensor([[*ready.ids("one"), ready.config.eos_id]])
    read = torch.tensor([[ready.config.bos_id, 40, 41]])
    features = ready.model.decode(read, ready.model.encode(source)[:, 1:])
    by_hand = ready.model.logits(features)[0].log_softmax(-1)
    torch.testing.assert_close(hidden.distributions(), by_hand, atol=1e-5, rtol=0)
    word = CASES[solved.name].sentence.split()[0]
    ends = solved.translate(word, interventions=[do.hide(0)])
    assert ends.target_tokens == ("</s>",)
    assert ends.log_probs[0] > -0.01


def test_hiding_every_source_token_gives_zeros(translator):
    nothing = translator.translate("one", max_length=2, interventions=[do.hide(0), do.hide(1)])
    assert (nothing.attention.weights("cross", 0) == 0).all()
    assert (nothing.attention.layer("cross", 0).output == 0).all()
    assert nothing.attention.audit().passed


def test_lifting_the_causal_mask_leaks_exactly_the_next_token(ready):
    ids = list(range(40, 46))
    other = [*ids[:4], 90, ids[5]]
    lifted = do.mask("decoder", allow="next", layer=2)

    def weights(target, *changes):
        return ready.force(TEXT, target, interventions=changes).attention.weights("decoder", 2)

    mask = ready.force(TEXT, ids, interventions=[lifted]).attention.mask("decoder", 2, 0)
    assert (mask == np.tri(6, k=1, dtype=bool)).all()
    changed = np.abs(weights(ids, lifted) - weights(other, lifted)).max((0, 2)) > 1e-6
    own = np.abs(weights(ids) - weights(other)).max((0, 2)) > 1e-6
    assert own.tolist() == [False] * 5 + [True]
    assert changed.tolist() == [False] * 4 + [True, True]


def test_patching_everything_gives_the_other_run_exactly_and_patching_nothing_changes_nothing(ready):
    ids = tuple(range(40, 46))
    own, other = ready.force(TEXT, ids), ready.force("five six eight nine", ids)
    for place in (do.embeddings("encoder"), do.stream("encoder", 1, "feed_forward"), do.encoder_output()):
        patched = ready.force(TEXT, ids, interventions=[do.patch(place, other)])
        assert patched.log_probs == other.log_probs
        same = ready.force(TEXT, ids, interventions=[do.patch(place, own)])
        assert same.log_probs == own.log_probs
    last = do.stream("decoder", 2, "feed_forward")
    assert ready.force(TEXT, ids, interventions=[do.patch(last, other)]).log_probs == other.log_probs
    decoded = ready.translate(TEXT, max_length=LENGTH, interventions=[do.patch(do.encoder_output(), other)])
    assert decoded.text == ready.translate("five six eight nine", max_length=LENGTH).text


def test_a_patch_says_where_everything_goes(ready):
    ids, where = tuple(range(40, 46)), do.stream("encoder", 0, "self_attention")
    other = ready.force("five six", ids, interventions=[do.no_positions("encoder")])
    patched = ready.force(TEXT, ids, interventions=[do.patch(where, other, {3: 0, 0: 2})])
    stream = patched.stream(Sublayer("encoder", 0, "self_attention"))
    held = other.stream(Sublayer("encoder", 0, "self_attention")).stream
    assert torch.equal(stream.stream[[0, 3]], held[[2, 0]])
    assert torch.equal(stream.stream[[1, 2, 4]], stream.own_stream[[1, 2, 4]])
    with pytest.raises(do.InterventionError, match="has 3 positions in the encoder and this one 5"):
        ready.force(TEXT, ids, interventions=[do.patch(where, other)])


# --- tokens -------------------------------------------------------------------------------------------------


def test_choosing_a_token_equals_a_forced_pass_over_that_prefix(ready):
    chosen = ready.translate(TEXT, max_length=LENGTH, interventions=[do.choose(2, 50)])
    forced = ready.force(TEXT, chosen.target_ids)
    np.testing.assert_allclose(chosen.log_probs, forced.log_probs, atol=2e-5)
    plain = ready.translate(TEXT, max_length=LENGTH)
    assert chosen.target_ids[:2] == plain.target_ids[:2]
    assert chosen.steps[2].token_id == 50
    assert chosen.steps[2].forced
    assert chosen.steps[2].alternatives == plain.steps[2].alternatives
    begun = ready.translate(TEXT, max_length=LENGTH, interventions=[do.prefix(chosen.target_ids[:3])])
    assert begun.steps == chosen.steps or begun.log_probs == chosen.log_probs


def test_source_edits_are_read_instead_of_the_typed_words(ready):
    ids = ready.ids(TEXT)
    edited = ready.translate(TEXT, max_length=4, interventions=[do.edit_source(1, ids[3]), do.drop_source(0)])
    assert edited.source_tokens == ready.pieces([ids[3], ids[2], ids[3], 2], "source")
    assert edited.source_text == TEXT
    assert edited.attention.audit().passed
    with pytest.raises(do.InterventionError, match="No source token is left"):
        ready.translate("one", interventions=[do.drop_source(0), do.drop_source(1)])


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 2, "tree": True}])
def test_a_source_whose_end_became_padding_is_translated_and_verified(ready, options):
    """A beam of three rows ended in a RuntimeError: its padding had three rows, its memory one."""
    end = do.edit_source(len(ready.ids(TEXT)), "<pad>")
    found = ready.translate(TEXT, max_length=5, interventions=[end], **options)
    assert found.source_tokens[-1] == "<pad>"
    assert not found.attention.weights("cross", 0)[..., -1].any()
    assert found.attention.audit().passed
    np.testing.assert_allclose(
        found.log_probs, ready.force(TEXT, found.target_ids, interventions=[end]).log_probs, atol=2e-5
    )


def test_a_target_may_be_given_as_the_tokens_of_a_run(ready):
    base = ready.translate(TEXT, max_length=LENGTH)
    assert ready.force(TEXT, base.target_tokens).target_ids == base.target_ids
    with pytest.raises(do.InterventionError, match="no token"):
        ready.force(TEXT, ["nowhere to be found"])


def test_a_change_of_a_row_that_the_output_never_reached_is_said(ready):
    late = do.set_row("cross", 0, 0, 5, {0: 1.0})
    done = ready.translate(TEXT, interventions=[do.choose(1, 2), late], max_length=LENGTH)
    assert len(done.target_tokens) == 2
    assert any(str(late) in note for note in done.notes)
    assert retrace(ready, done).attention.audit().passed


def test_what_a_model_does_not_have_is_refused_with_a_sentence(translator, tokenizer):
    with pytest.raises(do.InterventionError, match="has no mean outputs"):
        translator.translate("one", interventions=[do.ablate("cross", 0, 0, by="mean")])
    bare = changeable(tokenizer, positions="none", norm="post")
    with pytest.raises(do.InterventionError, match="no positions"):
        bare.translate("one", interventions=[do.no_positions("encoder")])
    with pytest.raises(do.InterventionError, match="post-norm"):
        bare.translate("one", interventions=[do.drop_norm("encoder")])


def test_a_forced_pass_refuses_tokens_that_contradict_its_output(ready):
    ids = tuple(range(40, 46))
    assert ready.force(TEXT, ids, interventions=[do.choose(1, 41), do.forbid(7)]).attention.audit().passed
    for change in (do.choose(1, 50), do.forbid(42), do.prefix([40, 42])):
        with pytest.raises(do.InterventionError, match="contradicts a change"):
            ready.force(TEXT, ids, interventions=[change])


def test_the_last_layer_norms_can_be_left_out(tokenizer):
    translator = changeable(tokenizer, norm="pre")
    for side in ("encoder", "decoder"):
        changed = translator.translate(TEXT, max_length=4, interventions=[do.drop_norm(side)])
        assert changed.attention.audit().passed
        assert changed.log_probs != translator.translate(TEXT, max_length=4).log_probs


def test_a_closed_form_model_from_a_file_takes_changes(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    case = CASES["copy"]
    row = do.set_row("cross", 0, 0, 0, {2: 1.0})
    assert translator.translate(case.sentence, interventions=[row]).text.startswith("drei zwei")


def test_the_division_is_taken_away_once_however_often_that_is_asked(ready):
    """Two values may name one head: by itself, and as one of its layer."""
    once, twice = (
        ready.translate(TEXT, max_length=LENGTH, interventions=[do.unscaled("cross", 1, 2), *more])
        for more in ([], [do.unscaled("cross", 1)])
    )
    own = ready.translate(TEXT, max_length=LENGTH)
    scores = [run.attention.scores("cross", 1)[2][0] for run in (own, once, twice)]
    np.testing.assert_allclose(scores[1], scores[0] * ready.config.d_head**0.5, rtol=1e-4)
    np.testing.assert_allclose(scores[2], scores[1], rtol=1e-4)
    assert twice.attention.audit().passed


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_cell_that_is_allowed_and_forbidden_is_hidden(ready, kind):
    cell = [(2, 1)]
    both = do.mask(kind, allow=cell, forbid=cell)
    run = ready.force(TEXT, tuple(range(40, 46)), interventions=[both])
    mask = run.attention.mask(kind, 0)
    assert not mask[..., 2, 1].any()
    assert not do.allows(both, 2, 1)
    assert (run.attention.weights(kind, 0)[:, 2, 1] == 0).all()
    assert run.attention.audit().passed
