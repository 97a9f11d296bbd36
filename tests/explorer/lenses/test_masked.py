"""What a masked word rests on: measured anew by interventions, by sums over heads, and by single
passes."""

import numpy as np
import pytest
import torch
from masked_words import TEXT, encoder

from explorer import lenses
from explorer.lenses.heads.statistics import first_heads
from explorer.lenses.heads.survey import Line
from explorer.lenses.heads.surveyor import Surveyor
from explorer.lenses.inside.parts import logit_lens
from explorer.lenses.measures.effect import effect_in, head_effects
from explorer.lenses.measures.stream import UnmeasuredError, value_zeroing
from explorer.lenses.what_if.controls import random_heads, untrained_twin
from explorer.lenses.what_if.two_runs import compare_runs
from explorer.lenses.words.masked import fills_of
from transformer import Capture, Translation, Translator
from transformer import interventions as do
from transformer.batches import run_batch
from transformer.text.words import is_special
from transformer.view import Window

Made = tuple[Translator, Translation]


@pytest.fixture(scope="module", params=["linear", "transformed"])
def made(request: pytest.FixtureRequest) -> Made:
    translator = encoder(output_transform=request.param == "transformed", n_segments=2)
    return translator, translator.fill(TEXT, capture=Capture(residual=True))


def again(made: Made, *changes: do.Intervention) -> np.ndarray:
    """(masks,) log-probabilities of what the run predicts at its masks, by a run of its own."""
    translator, run = made
    other = translator.fill(TEXT, interventions=changes)
    assert other.distributions is not None
    rows = other.distributions()
    ids = [fill.token_id for fill in run.fills.values()]
    return np.array([float(rows[i, number]) for i, number in enumerate(ids)])


def test_a_word_s_effect_is_that_of_hiding_its_pieces_from_every_token(made: Made) -> None:
    translator, run = made
    effects = lenses.word_effect(translator, run)
    words = lenses.key_words(run)
    assert effects.shape == (len(run.fills), len(words))
    before = again(made)
    for column, word in zip(effects.T, words, strict=True):
        hidden = do.mask("encoder", forbid=[(None, place) for place in word.indices])
        np.testing.assert_allclose(column, again(made, hidden) - before, atol=2e-4)


def test_a_cell_s_effect_is_summed_over_the_masks(made: Made) -> None:
    translator, run = made
    n_tokens = len(run.source_tokens)
    window = Window(2, 4, 0, n_tokens)
    effects = effect_in(translator, run, "encoder", 1, 3, window)
    before = again(made)
    weights = run.weights("encoder", 1, 3)
    for row, key in [(2, 0), (3, 5)]:
        left = np.delete(weights[row], key)
        given = {
            place: float(share)
            for place, share in zip(
                [at for at in range(n_tokens) if at != key], left / left.sum(), strict=True
            )
        }
        changed = again(made, do.set_row("encoder", 1, 3, row, {**given, key: 0.0}))
        moved = np.abs(changed - before).sum()
        assert effects[row - 2, key] == pytest.approx(moved, abs=3e-4)


def test_a_head_s_effect_is_that_of_switching_it_off(made: Made) -> None:
    translator, run = made
    place = list(run.fills)[1]
    effects = head_effects(translator, run, "encoder", place)
    before = again(made)
    for layer, head in np.ndindex(effects.shape):
        moved = again(made, do.ablate("encoder", layer, head)) - before
        assert effects[layer, head] == pytest.approx(moved[1], abs=2e-4)


def test_a_logit_is_what_wrote_it_only_where_nothing_transforms_the_output(made: Made) -> None:
    translator, run = made
    place, fill = next(iter(run.fills.items()))
    rival = fill.alternatives[1].token_id
    if not run.config.linear_output:
        with pytest.raises(UnmeasuredError, match="transforms its output"):
            lenses.attribution(translator.model, run, place, fill.token_id, rival)
        return
    parts = lenses.attribution(translator.model, run, place, fill.token_id, rival)
    gap = fill.log_prob - fill.alternatives[1].log_prob
    assert parts.total == pytest.approx(gap, abs=1e-4)
    assert parts.values.sum() == pytest.approx(gap, abs=1e-3)
    assert parts.audit.passed
    by_key = lenses.by_key(translator.model, run, place, fill.token_id, rival)
    assert by_key.shape == (len(run.source_tokens),)


def test_a_difference_falls_as_both_log_probabilities_do(made: Made) -> None:
    translator, run = made
    place = list(run.fills)[1]
    fill = run.fills[place]
    rival = fill.alternatives[2].token_id
    effects = lenses.on_difference(translator, run, place, rival)

    def gap(*changes: do.Intervention) -> float:
        other = translator.fill(TEXT, interventions=changes)
        assert other.distributions is not None
        row = other.distributions()[1]
        return float(row[fill.token_id] - row[rival])

    for key in (0, 4):
        moved = gap(do.mask("encoder", forbid=[(None, key)])) - gap()
        assert effects[key] == pytest.approx(moved, abs=3e-4)


def test_the_last_row_of_the_lens_is_what_the_model_predicts(made: Made) -> None:
    translator, run = made
    place, fill = next(iter(run.fills.items()))
    rows, checks = logit_lens(translator.model, run, place)
    assert len(rows) == 3
    assert rows[-1].best[0].token_id == fill.token_id
    assert rows[-1].chosen == pytest.approx(np.exp(fill.log_prob), rel=1e-4)
    assert all(check.passed for check in checks)
    with pytest.raises(IndexError):
        logit_lens(translator.model, run, place - 1)


def test_without_a_mask_nothing_is_asked(made: Made) -> None:
    translator, _ = made
    run = translator.fill("one two three", capture=Capture(residual=True))
    with pytest.raises(UnmeasuredError, match="No word is masked"):
        lenses.word_effect(translator, run)
    distances = value_zeroing(translator.model, run, "encoder", 1)
    assert distances.shape == (len(run.source_tokens), len(run.source_tokens))


def test_every_word_s_fill_is_that_of_the_text_with_it_masked(made: Made) -> None:
    _, run = made
    fills = fills_of(run)
    assert len(fills) == len(run.source_tokens)
    assert run.predict is not None
    for place, (piece, fill) in enumerate(zip(run.source_tokens, fills, strict=True)):
        if place in run.fills:
            assert fill == run.fills[place]
        elif is_special(piece):
            assert fill is None
        else:
            assert fill == run.predict([place])[place]
            assert fill is not None
            assert fill.token == piece


def test_a_changed_run_is_compared_mask_by_mask(made: Made) -> None:
    translator, run = made
    changed = translator.fill(TEXT, interventions=[do.ablate("encoder", 0, None)])
    both = compare_runs(run, changed)
    assert [step.base for step in both.steps] == [*run.fills.values()]
    assert both.parting is None
    moved = again(made, do.ablate("encoder", 0, None)) - again(made)
    np.testing.assert_allclose(both.delta_log_p, moved, atol=1e-4)
    assert run.distributions is not None
    assert changed.distributions is not None
    log_p, log_q = (one.distributions().double() for one in (run, changed))
    np.testing.assert_allclose(both.kl, (log_p.exp() * (log_p - log_q)).sum(-1), atol=1e-5)
    layers, heads = run.config.sizes["encoder"]
    largest = [
        [
            np.abs(changed.weights("encoder", i, j) - run.weights("encoder", i, j)).max()
            for j in range(heads)
        ]
        for i in range(layers)
    ]
    np.testing.assert_allclose(both.largest("encoder"), largest, atol=1e-6)


def test_the_same_change_at_other_heads_is_measured_at_the_masks(made: Made) -> None:
    translator, run = made
    ids = [fill.token_id for fill in run.fills.values()]
    change = do.ablate("encoder", 1, 2)
    beside = random_heads(translator, TEXT, ids, change)
    before = again(made).sum()
    assert beside.effect == pytest.approx(again(made, change).sum() - before, abs=2e-4)
    others = [again(made, do.ablate("encoder", 1, head)).sum() - before for head in (0, 1, 3)]
    np.testing.assert_allclose(sorted(beside.effects), sorted(others), atol=2e-4)


def test_texts_of_a_padded_batch_are_read_as_alone(made: Made) -> None:
    translator, _ = made
    texts = ["one <mask>", "four five six seven <mask>"]
    for text, entry in zip(texts, run_batch(translator, texts), strict=True):
        alone = translator.fill(text)
        n_tokens = len(alone.source_tokens)
        assert entry.source_tokens[:n_tokens] == alone.source_tokens
        assert [*entry.fills] == [*alone.fills]
        for place, fill in alone.fills.items():
            assert entry.fills[place].log_prob == pytest.approx(fill.log_prob, abs=1e-4)
        weights = entry.weights("encoder", 1, 2)
        expected = alone.weights("encoder", 1, 2)
        np.testing.assert_allclose(weights[:n_tokens, :n_tokens], expected, atol=1e-5)
        assert not weights[:, n_tokens:].any()
        assert entry.audit().passed


def test_the_first_heads_are_chosen_of_what_the_encoder_reads(made: Made) -> None:
    translator, _ = made
    (layer, head) = first_heads(translator, ["one two three", "four five"])["encoder"]
    assert torch.is_tensor(translator.model.attention("encoder", layer).q_proj.weight)
    assert 0 <= head < 4


@pytest.mark.parametrize(
    ("change", "pairs"),
    [
        (do.edit_source(2, 70), [(0, 0), (1, 1)]),
        (do.drop_source(2), [(0, 0), (1, 1)]),
        ("mask", [(0, 1), (1, 2)]),
        ("first", [(0, None), (1, 0)]),
    ],
)
def test_runs_are_compared_at_the_masks_that_both_texts_have(
    made: Made, change: do.Intervention | str, pairs: list[tuple[int, int | None]]
) -> None:
    translator, run = made
    first = next(iter(run.fills))
    text = f"<mask> {TEXT}" if change == "mask" else TEXT
    changes = [change] if isinstance(change, do.Intervention) else []
    if change == "first":
        changes = [do.edit_source(first, 70)]
    other = translator.fill(text, interventions=changes)
    both = compare_runs(run, other)
    assert [pair for pair in both.target if pair[0] is not None] == pairs
    assert both.parting is None
    kept = [(i, j) for i, j in pairs if j is not None]
    assert list(both.shared) == kept
    assert run.distributions is not None
    assert other.distributions is not None
    before, after = run.distributions(), other.distributions()
    for (i, j), step, kl in zip(kept, both.steps, both.kl, strict=True):
        number = list(run.fills.values())[i].token_id
        moved = float(after[j, number] - before[i, number])
        assert step.delta_log_p == pytest.approx(moved, abs=2e-4)
        own = float((before[i].exp() * (before[i] - after[j])).sum())
        assert kl == pytest.approx(own, abs=2e-4)


def test_a_twin_without_training_reads_the_same_tokens(made: Made) -> None:
    translator, run = made
    twin = untrained_twin(translator, 3)
    other = twin.fill(TEXT)
    assert other.source_tokens == run.source_tokens
    assert [*other.fills] == [*run.fills]
    assert other.audit().passed
    assert not np.allclose(other.weights("encoder", 0, 0), run.weights("encoder", 0, 0))


def test_a_survey_reads_sentences_with_an_encoder(made: Made) -> None:
    translator, _ = made
    surveyor = Surveyor(translator, [Line("one two three"), Line("four five <mask>")], [])
    for _ in surveyor.run():
        pass
    survey = surveyor.survey()
    assert survey.sentences == 2
    assert set(map(str, survey.profiles)) == {"encoder"}


@pytest.mark.parametrize("change", [do.forbid(5), do.choose(0, 5), do.prefix([5])])
def test_what_steers_an_output_is_refused(made: Made, change: do.Intervention) -> None:
    with pytest.raises(do.InterventionError, match="writes no output"):
        made[0].fill(TEXT, interventions=[change])
