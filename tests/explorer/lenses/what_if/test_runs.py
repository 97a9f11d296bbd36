"""Changed runs beside others: controls, ready experiments, words moved, and two runs compared."""

import io
import math

import numpy as np
import pytest
import torch
from changes import INSIDE, OTHER, TEXT, TOKENS, changeable
from random_models import random_model

from explorer.lenses import compare_runs
from explorer.lenses.what_if import controls
from explorer.lenses.what_if.experiments import Bench, Experiment
from explorer.lenses.what_if.two_runs import Map, align_tokens, difference
from transformer import interventions as do
from transformer import load_trace, save_trace
from transformer.config import RELATIVE
from transformer.encodings import REGISTRY
from transformer.reader import InputError
from transformer.run import NotCapturedError
from transformer.text.words import EOS
from transformer.translator import Translator

IDS = tuple(range(40, 46))
SINGLE = do.ablate("cross", 0, 3)


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.mark.parametrize(
    ("made", "own"),
    [
        (lambda head: do.ablate("cross", 1, head, by="mean"), 2),
        (lambda head: do.set_row("decoder", 2, head, 3, {1: 0.5}), 0),
        (lambda head: do.patch(do.head_output("cross", 1, head), OTHER, [0, 3]), 0),
    ],
)
def test_every_number_is_that_of_a_forced_pass(ready, made, own):
    change = made(own)
    others = [made(head) for head in range(4) if head != own]
    beside = [INSIDE["hide"], INSIDE["scale"]]
    found = controls.random_heads(ready, TEXT, IDS, change, beside)

    def log_p(*changes):
        return sum(ready.force(TEXT, IDS, interventions=[*beside, *changes]).log_probs)

    assert (found.change, found.complete, list(found.controls)) == (change, True, others)
    assert found.effect == pytest.approx(log_p(change) - log_p())
    assert found.effects == pytest.approx([log_p(other) - log_p() for other in others])
    assert found.as_large == sum(abs(found.effects) >= abs(found.effect))
    assert found._replace(effect=1.5, effects=np.array([-1.5, 1.0, 2.0])).as_large == 2


def test_if_there_are_many_a_seed_draws_different_ones(ready):
    only, complete = controls.same_change_elsewhere(do.ablate("cross", 0, [0, 1]), ready.config)
    assert ([each.head for each in only], complete) == ([(2, 3)], True)
    drawn = [
        controls.same_change_elsewhere(SINGLE, ready.config, count=2, seed=seed)[0]
        for seed in (*range(8), 0)
    ]
    assert drawn[0] == drawn[-1]
    assert len(set(drawn)) > 1
    assert all(len(set(each)) == 2 and SINGLE not in each for each in drawn)
    assert not controls.same_change_elsewhere(SINGLE, ready.config, count=2)[1]


@pytest.mark.parametrize(
    ("change", "count", "words"),
    [
        (TOKENS["choose"], 20, "control for a change of heads"),
        (do.hide(0), 20, "control for a change of heads"),
        (do.patch(do.encoder_output(), OTHER, [0]), 20, "control for a change of heads"),
        (do.ablate("cross", 0), 20, "needs 4 other heads of the same layer, and there are 0"),
        (
            do.ablate("cross", 0, [0, 1, 2]),
            20,
            "needs 3 other heads of the same layer, and there are 1",
        ),
        (SINGLE, 0, "count is 0"),
    ],
)
def test_what_has_no_control_is_refused_with_a_sentence(ready, change, count, words):
    with pytest.raises(ValueError, match=words):
        controls.random_heads(ready, TEXT, IDS, change, count=count)


def test_an_untrained_twin_reads_the_same_tokens_and_a_seed_means_one(translator: Translator):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, same, other = (controls.untrained_twin(translator, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected), "the global generator is left alone"
    weights = [twin.model.embedding.weight for twin in (one, same, other, translator)]
    assert [torch.equal(weights[0], weight) for weight in weights] == [True, True, False, False]
    run = translator.translate("one two three", max_length=6)
    again = one.force(run.source_text, run.target_ids)
    assert one.config == translator.config
    assert (again.source_tokens, again.target_tokens) == (run.source_tokens, run.target_tokens)
    assert again.model == "random, untrained twin, seed 1"
    assert again.head("cross", 1, 2).audit.passed


def test_a_mean_is_over_all_rows_of_all_sentences_that_can_be_read(translator: Translator):
    pairs = [("one two", "eins zwei drei"), ("three", None), ("one " * 2000, "eins")]
    means, read = controls.mean_outputs(translator, pairs)
    runs = [translator.force("one two", "eins zwei drei"), translator.translate("three")]
    assert (read, list(means)) == (2, list(translator.config.sites))
    for kind, outputs in means.items():
        for layer, found in enumerate(outputs):
            rows = torch.cat([run.attention.layer(kind, layer).output for run in runs], dim=1)
            torch.testing.assert_close(found, rows.mean(1))
    with pytest.raises(ValueError, match="No sentence"):
        controls.mean_outputs(translator, pairs[2:])


HEADS = {"default": {"cross": [1, 2]}}


def test_places_are_measured_and_a_lifted_mask_is_asked_with_the_translation_given(tokenizer):
    ready = changeable(tokenizer)
    bench = Bench(ready, HEADS, TEXT)
    run = ready.translate(TEXT)
    assert bench.aligner == [(1, 2)]
    best = {"aligner": {"heads": [[0, 1], [2, 3]]}}
    assert Bench(ready, HEADS | best, TEXT).aligner == [(0, 1), (2, 3)]
    assert (bench.layers("encoder"), bench.layers("cross")) == (range(2), range(3))
    assert bench.word("two") == [run.source_tokens.index("▁two")]
    with pytest.raises(InputError, match="nowhere"):
        bench.word("nowhere")
    lifted = {"lifted": (do.mask("decoder", allow="future"),)}
    for forced, target in ((True, run.text), (False, None)):
        asked = Experiment("one", "Does it?", TEXT, lambda on: lifted, "All.", forced)
        assert asked.put(ready, HEADS) == (lifted, target)


FIVE = "one two three four five"


@pytest.fixture(scope="module", params=REGISTRY)
def encoded(request, tokenizer):
    model = random_model(
        vocab_size=tokenizer.vocab_size,
        norm="pre",
        positions=request.param,
        max_positions=64,
        scale=0.2,
    )
    return Translator(model, tokenizer, name=request.param)


def test_a_sentence_moved_by_nothing_is_itself_and_only_absolute_encodings_notice_more(encoded):
    own = encoded.translate(FIVE, max_length=2).attention
    here, there = (controls.encode_moved(encoded, FIVE, offset) for offset in (0, 20))
    moves = []
    for layer in range(2):
        weights = [each.weights("encoder", layer) for each in (own, here, there)]
        np.testing.assert_allclose(weights[1], weights[0], atol=1e-6)
        moves.append(np.abs(weights[2] - weights[1]).max())
    assert (max(moves) < 1e-4) == (encoded.name in RELATIVE)
    assert there.audit().passed
    if encoded.name in {"learned", "sinusoidal", "rotary"}:
        with pytest.raises(InputError, match="position 66 of 64 positions"):
            controls.encode_moved(encoded, FIVE, 60)


def test_only_a_model_without_encoding_does_not_notice_a_swap(encoded):
    run, change = controls.swap_words(encoded, FIVE, 0, 3)
    assert run.source_text == "four two three one five"
    assert (max(change) < 1e-4) == (encoded.name == "none")
    assert len(change) == 6
    assert run.attention.audit().passed


def test_the_order_says_where_each_token_stood():
    tokens = ("▁A", "▁b", "c", "▁d", ".", EOS)
    assert [word.text for word in controls.words_of(tokens)] == ["A", "bc", "d"]
    assert controls.swapped_order(tokens, 1, 0) == (1, 2, 0, 3, 4, 5)
    assert controls.swapped_order(tokens, 0, 2) == (3, 1, 2, 0, 4, 5)
    assert controls.swapped_order(tokens, 1, 1) == tuple(range(6))
    for one, other in ((0, 3), (-1, 0)):
        with pytest.raises(IndexError, match="3 words"):
            controls.swapped_order(tokens, one, other)


LENGTH = 7
KINDS = ("encoder", "decoder", "cross")


def edits(a: str, b: str) -> int:
    """The edit distance by its definition."""
    if not a or not b:
        return len(a) + len(b)
    rest = edits(a[1:], b[1:])
    return rest if a[0] == b[0] else 1 + min(rest, edits(a[1:], b), edits(a, b[1:]))


@pytest.mark.parametrize("seed", range(20))
def test_tokens_are_aligned_with_the_fewest_edits_and_in_order(seed: int):
    generator = np.random.default_rng(seed)
    a, b = ("".join(generator.choice(list("xyz"), generator.integers(0, 6))) for _ in range(2))
    pairs = align_tokens(a, b)
    assert sum(None in pair or a[pair[0]] != b[pair[1]] for pair in pairs) == edits(a, b)  # type: ignore[index]
    for side, text in enumerate((a, b)):
        assert [pair[side] for pair in pairs if pair[side] is not None] == list(range(len(text)))


def test_a_token_of_one_side_is_a_pair_of_its_own_and_a_replacement_is_one():
    assert align_tokens(["die", "Katze"], ["die", "alte", "Katze"]) == ((0, 0), (None, 1), (1, 2))
    assert align_tokens(["hat"], ["ist"]) == ((0, 0),)
    assert align_tokens([], ["a"]) == ((None, 0),)
    assert align_tokens("ab", "aab")[0] == (0, 0), "the common beginning"


def test_rows_and_columns_of_one_side_are_never_differenced():
    generator = np.random.default_rng(1)
    a, b = (generator.random(shape).astype(np.float32) for shape in ((3, 3), (2, 4)))
    first = Map("abc", "xyz", a, np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0]], bool))
    second = Map("ac", "xyzw", b, np.array([[1, 0, 0, 1], [1, 1, 0, 1]], bool))
    found = difference(first, second)
    assert found.rows == ((0, 0), (1, None), (2, 1))
    assert found.columns == ((0, 0), (1, 1), (2, 2), (None, 3))
    assert found.first == pytest.approx(np.pad(a, ((0, 0), (0, 1))))
    assert found.second == pytest.approx(np.insert(b, 1, 0, axis=0))
    compared = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]], bool)
    assert (found.compared == compared).all(), "a cell that one mask allows and both maps have"
    assert found.values == pytest.approx(np.where(compared, found.first - found.second, 0))
    apart = [(abs(a[i] - b[j, :3]).sum() + b[j, 3]) / 2 for i, j in ((0, 0), (2, 1))]
    assert found.distances == pytest.approx([apart[0], np.nan, apart[1]], nan_ok=True)


@pytest.fixture(scope="module")
def base(ready):
    return ready.translate(TEXT, max_length=LENGTH)


@pytest.mark.parametrize("name", INSIDE)
def test_in_a_forced_pair_every_step_compares(ready, base, name):
    plain, changed = (
        ready.force(TEXT, base.target_ids, interventions=each) for each in ([], [INSIDE[name]])
    )
    found = compare_runs(plain, changed)
    assert (found.parting, len(found.steps)) == (None, LENGTH)
    assert found.target == tuple((step, step) for step in range(LENGTH))
    rows = [run.distributions().double().numpy() for run in (plain, changed)]
    for kind, layer in plain.attention.places:
        weights = [run.attention.weights(kind, layer) for run in (plain, changed)]
        moved = weights[1] - weights[0]
        np.testing.assert_allclose(found.map(kind, layer, 1), moved[1], atol=1e-6)
        np.testing.assert_allclose(found.largest(kind)[layer], np.abs(moved).max((1, 2)), atol=1e-6)
    for at, step in enumerate(found.steps):
        ids = [candidate.token_id for candidate in step.candidates]
        known = {
            alternative.token_id
            for run in (plain, changed)
            for alternative in run.steps[at].alternatives
        }
        assert set(ids) == known | {step.base.token_id, step.changed.token_id}
        assert [each.token for each in step.candidates] == list(ready.pieces(ids))
        logs = np.array([[each.base, each.changed] for each in step.candidates])
        np.testing.assert_allclose(
            logs, np.stack([row[at, ids] for row in rows], axis=1), atol=2e-5
        )
        assert (np.diff(logs.max(1)) <= 0).all()


def test_after_the_parting_no_step_compares(ready, base):
    other = next(
        alternative
        for alternative in base.steps[2].alternatives
        if alternative.token_id != base.target_ids[2]
    )
    changed = ready.translate(TEXT, max_length=LENGTH, interventions=[do.choose(2, other.token_id)])
    found = compare_runs(base, changed)
    assert (found.parting, len(found.steps)) == (2, 3)
    np.testing.assert_allclose(found.delta_log_p, 0, atol=2e-5)
    np.testing.assert_allclose(found.kl, 0, atol=1e-6)
    assert (found.steps[2].base.token, found.steps[2].changed.token) == (
        base.target_tokens[2],
        other.token,
    )
    assert found.common("decoder") == (((0, 0), (1, 1), (2, 2)),) * 2
    assert found.map("cross", 0, 0).shape == (3, 5)


def test_source_tokens_that_both_runs_read_are_aligned(ready, base):
    dropped = ready.force(TEXT, base.target_ids, interventions=[do.drop_source(1)])
    found = compare_runs(base, dropped)
    assert found.source == ((0, 0), (1, None), (2, 1), (3, 2), (4, 3))
    assert found.common("encoder") == (((0, 0), (2, 1), (3, 2), (4, 3)),) * 2
    before = base.attention.weights("cross", 1, 0)[:, [0, 2, 3, 4]]
    np.testing.assert_allclose(
        found.map("cross", 1, 0), dropped.attention.weights("cross", 1, 0) - before, atol=1e-6
    )


def test_a_run_that_only_stops_earlier_parts_where_the_other_goes_on(ready, base):
    found = compare_runs(base, ready.translate(TEXT, max_length=LENGTH - 2))
    assert found.parting == len(found.steps) == LENGTH - 2
    assert found.target[-2:] == ((LENGTH - 2, None), (LENGTH - 1, None))


def test_runs_from_files_compare_as_far_as_they_keep_their_distributions(ready, base):
    def opened(run):
        file = io.BytesIO()
        save_trace(run, file)
        file.seek(0)
        return load_trace(file)

    changed = ready.force(TEXT, base.target_ids, interventions=[INSIDE["scale"]])
    whole = compare_runs(base, changed)
    kept = compare_runs(opened(base), opened(changed))
    np.testing.assert_allclose(kept.delta_log_p, whole.delta_log_p, atol=2e-5)
    assert np.isnan(kept.kl).all()
    for kind in KINDS:
        np.testing.assert_allclose(kept.largest(kind), whole.largest(kind), atol=1e-6)
    each = [one for step in kept.steps for one in step.candidates if math.isnan(one.base)]
    assert not any(math.isnan(one.changed) for one in each)


def test_what_cannot_be_compared_is_refused(ready, base, tokenizer):
    found = compare_runs(ready.translate(TEXT, max_length=LENGTH, capture=False), base)
    assert found.parting is None
    with pytest.raises(NotCapturedError):
        found.largest("cross")
    wider = changeable(tokenizer, n_decoder_layers=2)
    with pytest.raises(ValueError, match="different shapes"):
        compare_runs(base, wider.translate(TEXT, max_length=2))
