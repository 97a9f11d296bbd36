"""What switching heads off costs, beside random other heads of the same layers."""

from __future__ import annotations

import numpy as np
import pytest

from lab.language.ablation import controls, costs, on_copies, on_text, switched_off
from lab.language.inducing import all_weights, measure_induction
from lab.language.induction import Repeated
from tests.support.random_models import random_language_model
from transformer.runs.language.corpus import log_probs, piece_log_probs
from transformer.runs.language.generator import TextGenerator
from transformer.text.pairs import read_pairs
from transformer.text.vocabulary import Tokenizer

LINES = ["one two three four five six", "two one two one", "six five four three two one", "three three one"]


@pytest.fixture(scope="module")
def generator() -> TextGenerator:
    tokenizer = Tokenizer.train(LINES * 5, 300, at_most=True)
    return TextGenerator(random_language_model(vocab_size=tokenizer.vocab_size), tokenizer)


@pytest.fixture
def sequences(generator: TextGenerator) -> Repeated:
    return Repeated.drawn(range(4, 200), generator.config.bos_id, length=6, count=4)


def test_log_probabilities_with_heads_off_are_those_of_a_forced_text_with_them_off(
    generator: TextGenerator,
) -> None:
    changes = switched_off([(1, 0), (0, 2), (1, 3)])
    assert [(each.layer, each.head) for each in changes] == [(0, (2,)), (1, (0, 3))]
    found = log_probs(generator, LINES, changes)
    expected = [sum(generator.force(line, interventions=changes).log_probs) for line in LINES]
    assert found == pytest.approx(expected, abs=1e-3)
    assert found != pytest.approx(log_probs(generator, LINES), abs=1e-3)


def test_log_probabilities_of_ids_are_those_of_the_forced_tokens(
    generator: TextGenerator, sequences: Repeated
) -> None:
    found = piece_log_probs(generator, sequences.ids)
    forced = generator.force(generator.pieces(sequences.ids[0, 1:].tolist()))
    assert found.shape == (4, 12)
    assert found[0] == pytest.approx(forced.log_probs, abs=1e-4)


def test_controls_are_as_many_other_heads_of_the_same_layers(generator: TextGenerator) -> None:
    drawn = controls([(0, 1), (1, 0), (1, 2)], generator)
    assert len(drawn) == 3
    for first, second in drawn:
        assert (first.layer, second.layer) == (0, 1)
        assert len(first.head) == 1
        assert 1 not in first.head
        assert second.head == (1, 3)


def test_a_layer_without_enough_other_heads_has_no_control(generator: TextGenerator) -> None:
    assert controls([(0, 0), (0, 1), (0, 2)], generator) == []


def test_the_cost_is_the_rise_of_the_loss_and_every_draw_is_counted(
    generator: TextGenerator, sequences: Repeated
) -> None:
    heads = [(1, 0)]
    others = controls(heads, generator)
    found = costs(on_copies(generator, sequences), heads, others)
    whole = -piece_log_probs(generator, sequences.ids)[:, -5:].mean()
    without = -piece_log_probs(generator, sequences.ids, switched_off(heads))[:, -5:].mean()
    assert found["whole"]["value"] == pytest.approx(whole, rel=1e-4)
    assert found["cost"]["value"] == pytest.approx(without - whole, abs=1e-4)
    assert found["cost"]["low"] <= found["cost"]["value"] <= found["cost"]["high"]
    assert len(found["controls"]) == 3
    assert found["control"]["value"] == pytest.approx(np.mean(found["controls"]), abs=1e-3)
    assert found["as_large"] == sum(each >= found["cost"]["value"] for each in found["controls"])


def test_the_loss_on_text_is_per_piece_with_its_end(generator: TextGenerator) -> None:
    table = on_text(generator, LINES)(())
    assert table[:, 0] == pytest.approx(-log_probs(generator, LINES))
    assert table[:, 1].tolist() == [len(generator.ids(line)) + 1 for line in LINES]


def test_all_weights_are_those_of_every_head_and_rows_sum_to_one(
    generator: TextGenerator, sequences: Repeated
) -> None:
    weights = all_weights(generator, sequences.ids[0].tolist())
    assert weights.shape == (2, 4, 13, 13)
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
    assert np.triu(weights, 1).max() == 0


@pytest.fixture(scope="module")
def whole() -> TextGenerator:
    """A model with enough ordinary pieces for a whole study."""
    sample = [pair.source for pair in read_pairs("assets/sample/tatoeba-en-de.tsv.gz")]
    tokenizer = Tokenizer.train(sample, 400)
    return TextGenerator(random_language_model(vocab_size=tokenizer.vocab_size), tokenizer)


def test_a_whole_study_of_a_model_ranks_heads_and_switches_off_the_best(whole: TextGenerator) -> None:
    found = measure_induction(whole, LINES)
    scores = np.array(found["scores"]["induction"])
    best = divmod(int(scores.argmax()), scores.shape[1])
    assert found["ablations"][0]["heads"] == [best]
    assert [len(each["heads"]) for each in found["ablations"]] == [1, 2, 4]
    assert set(found["copying"]) == {"first", "last", "gain"}
