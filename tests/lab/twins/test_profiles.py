from __future__ import annotations

import numpy as np
import pytest
import torch
from closed_form import CASES, Line
from corpus import number_pairs
from random_models import random_model

from lab.twins.profiles import (
    REACH,
    attention_profiles,
    by_distance,
    costs,
    learned_tables,
    peak_bytes,
    position_probes,
)
from transformer import Translator, load_translator
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer


def test_sums_along_diagonals_keep_all_mass():
    weights = np.random.default_rng(0).random((2, 30, 30))
    sums = by_distance(weights)
    assert sums.shape == (2, 2 * REACH + 1)
    np.testing.assert_allclose(sums.sum(-1), weights.sum((-2, -1)))
    assert sums[1, REACH + 3] == pytest.approx(sum(weights[1, i, i + 3] for i in range(27)))
    assert sums[0, 0] == pytest.approx(
        sum(weights[0, i, j] for i in range(30) for j in range(30) if j - i <= -20)
    )


def test_known_heads_have_known_profiles(closed_form_models):
    """Every closed-form head looks at one distance: a line of slope 1 has all its mass there."""
    case = CASES["shift"]
    twin = load_translator(closed_form_models["shift"])
    pairs = [SentencePair(case.sentence, case.translation)] * 2
    found = attention_profiles({"shift": twin}, pairs)["models"]["shift"]
    rows = len(case.source_tokens)
    for head, line in enumerate(case.encoder):
        mass = np.array(found["encoder"]["mass"][0][head])
        keys = [line.key(row, rows) - row for row in range(rows)]
        expected = [keys.count(distance) / rows for distance in range(-REACH, REACH + 1)]
        np.testing.assert_allclose(mass, expected, atol=0.02)


def test_a_head_that_looks_back_is_found(closed_form_models):
    back = [(name, case) for name, case in CASES.items() if Line(1, -1) in case.encoder]
    assert back
    for name, case in back:
        pairs = [SentencePair(case.sentence, case.translation)] * 4
        twin = load_translator(closed_form_models[name])
        previous = attention_profiles({name: twin}, pairs)["models"][name]["encoder"]["previous"]
        assert previous["accuracy"]["value"] == 1
        assert case.encoder[previous["head"]].offset == -1


def test_uniform_attention_under_a_causal_mask_is_the_known_sum(closed_form_models):
    case = CASES["copy"]
    pairs = [SentencePair(case.sentence, case.translation)]
    twin = load_translator(closed_form_models["copy"])
    uniform = attention_profiles({"copy": twin}, pairs)["models"]["copy"]["decoder"]["uniform"]
    rows = len(case.target_tokens)
    expected = [sum(1 / (row + 1) for row in range(back, rows)) / rows for back in range(rows)]
    np.testing.assert_allclose(uniform[REACH : REACH - rows : -1], expected, atol=1e-3)
    assert sum(uniform[REACH + 1 :]) == 0


def test_norms_stand_beside_the_sentences_that_reach_a_position(tokenizer):
    model = random_model(vocab_size=tokenizer.vocab_size, positions="learned", max_positions=12)
    twins = {
        "learned": Translator(model, tokenizer),
        "none": Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer),
    }
    found = learned_tables(twins, [2, 3, 3, 5], [1, 1, 1, 4])
    assert found["seen"] == {"encoder": [4, 4, 3, 1, 1], "decoder": [4, 1, 1, 1]}
    assert set(found["models"]) == {"learned"}
    norms = model.encoder.positions.table.norm(dim=1).tolist()
    assert found["models"]["learned"]["encoder"] == pytest.approx(norms, abs=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_memory_of_a_bias_grows_with_the_square_and_without_one_with_the_length():
    def growth(positions):
        model = random_model(positions=positions)
        return peak_bytes(model, 512) / peak_bytes(model, 256)

    assert growth("rotary") == pytest.approx(2, rel=0.1)
    assert growth("alibi") > 3


@pytest.mark.filterwarnings("ignore")
def test_costs_stop_where_a_table_ends(tokenizer, monkeypatch):
    monkeypatch.setattr("lab.twins.profiles.COST_LENGTHS", (8, 32))
    model = random_model(vocab_size=tokenizer.vocab_size, positions="learned", max_positions=16)
    measured = costs({"learned": Translator(model, tokenizer)})
    found = measured["models"]["learned"]
    assert measured["threads"] == torch.get_num_threads()
    low, high = found["quartiles"][0]
    assert 0 < low <= found["milliseconds"][0] <= high
    assert found["megabytes"][0] > 0
    assert found["milliseconds"][1] is found["megabytes"][1] is None


def test_a_probe_reads_positions_that_were_added_and_few_that_were_not(tokenizer: Tokenizer):
    def twin(positions: str) -> Translator:
        model = random_model(vocab_size=tokenizer.vocab_size, positions=positions, norm="pre", scale=0.02)
        return Translator(model, tokenizer, name=positions)

    twins = {name: twin(name) for name in ("sinusoidal", "none")}
    found = position_probes(twins, [SentencePair(*pair) for pair in number_pairs(60, seed=3)])
    assert found["sentences"] == 60
    assert found["models"]["sinusoidal"]["value"] > 0.9
    assert found["models"]["none"]["value"] < 0.5
    for each in found["models"].values():
        assert each["low"] <= each["value"] <= each["high"] <= 1
