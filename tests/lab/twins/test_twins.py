from __future__ import annotations

import random

import pytest
import torch
from corpus import number_pairs
from firefox_files import random_model as random_firefox
from firefox_files import write_firefox
from random_models import random_model

from lab.twins.titles import title
from lab.twins.twins import (
    by_length,
    join_pairs,
    long_texts,
    score_pairs,
    sentence_losses,
    shuffle_words,
    shuffled_sources,
    source_lengths,
    summary,
    target_lengths,
)
from transformer import Translator, load_translator
from transformer.text.pairs import SentencePair

PAIRS = [SentencePair(*pair) for pair in number_pairs(14, seed=5)]


@pytest.fixture(scope="module")
def twins(tokenizer):
    def twin(positions):
        model = random_model(vocab_size=tokenizer.vocab_size, positions=positions, norm="pre", scale=0.2)
        return Translator(model, tokenizer, name=positions)

    return {name: twin(name) for name in ("sinusoidal", "none")}


@pytest.fixture(scope="module")
def scored(twins):
    return {name: score_pairs(twin, PAIRS) for name, twin in twins.items()}


def test_losses_per_sentence_are_those_of_the_forced_translation(twins):
    losses = sentence_losses(twins["none"], PAIRS)
    for (loss, tokens), pair in zip(losses, PAIRS, strict=True):
        forced = twins["none"].force(pair.source, pair.target)
        assert tokens == len(forced.target_tokens)
        assert loss == pytest.approx(-sum(forced.log_probs), rel=1e-4)


def test_a_model_without_a_start_piece_has_the_losses_of_its_forced_translation(tmp_path):
    translator = load_translator(write_firefox(tmp_path / "enpt", random_firefox()))
    pair = SentencePair("the old house", "the house")
    ((loss, tokens),) = sentence_losses(translator, [pair])
    forced = translator.force(pair.source, pair.target)
    assert tokens == len(forced.target_tokens)
    assert loss == pytest.approx(-sum(forced.log_probs), rel=1e-4)


def test_a_summary_has_both_measures_and_differences_from_the_baseline(scored):
    found = summary(scored)
    assert set(found) == {"sinusoidal", "none"}
    for measure in ("bleu", "loss"):
        assert set(found["none"][measure]) == {"value", "difference"}
        gap = found["none"][measure]["value"]["value"] - found["sinusoidal"][measure]["value"]["value"]
        assert found["none"][measure]["difference"]["value"] == pytest.approx(gap, abs=1e-3)


def test_every_sentence_belongs_to_one_group_of_its_length(twins, scored):
    lengths = source_lengths(twins["none"], PAIRS)
    groups = by_length(scored, lengths)["groups"]
    assert sum(group["sentences"] for group in groups) == len(PAIRS)
    for group in groups:
        assert group["sentences"] == sum(group["first"] <= n <= group["last"] for n in lengths)


def test_joined_texts_fill_the_limit_without_exceeding_it(twins):
    twin = twins["none"]
    lengths = source_lengths(twin, PAIRS)
    joined = join_pairs(PAIRS, lengths, 2 * max(lengths))
    assert joined
    assert all(length <= 2 * max(lengths) for length in source_lengths(twin, joined))
    assert " ".join(pair.source for pair in PAIRS).startswith(" ".join(pair.source for pair in joined))
    assert len(joined[0].source.split()) == len(joined[0].target.split())
    assert join_pairs(PAIRS, lengths, 2) == []


def test_long_texts_are_measured_at_one_two_and_four_times_the_trained_length(twins):
    levels = long_texts(twins, PAIRS, 7)["levels"]
    assert [level["factor"] for level in levels] == [1, 2, 4]
    assert [level["tokens"] <= 7 * level["factor"] for level in levels] == [True] * 3
    assert levels[2]["tokens"] > levels[1]["tokens"] > levels[0]["tokens"]
    assert {"bleu", "loss", "length_ratio"} == set(levels[0]["models"]["none"])


def test_shuffling_keeps_all_words_and_the_closing_mark():
    found = shuffle_words("We can not go home now?", random.Random(0))
    assert found != "We can not go home now?"
    assert found.endswith("?")
    assert sorted(found.rstrip("?").split()) == sorted(["We", "can", "not", "go", "home", "now"])


def test_an_encoder_without_positions_translates_shuffled_words_alike(twins, scored):
    """Its memory is the same set of vectors, so its own translation comes out again."""
    models = shuffled_sources(twins, scored, PAIRS)["models"]
    assert models["none"]["bleu"]["value"]["value"] == pytest.approx(100)
    assert models["none"]["unigram_precision"]["value"]["value"] == 1
    assert models["sinusoidal"]["unigram_precision"]["value"]["value"] < 1


def test_target_lengths_count_the_end_token(twins):
    assert target_lengths(twins["none"], [SentencePair("one", "eins zwei")]) == [3]


def test_scoring_leaves_the_model_and_the_random_stream_alone(twins):
    before = torch.get_rng_state()
    score_pairs(twins["none"], PAIRS[:3])
    assert torch.equal(torch.get_rng_state(), before)


def test_twins_are_called_what_people_read():
    assert title("shaw-seed2") == "relative keys, seed 2"
    assert title("rotary") == "rotary"
