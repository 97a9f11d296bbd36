"""Deletion and insertion against interventions, the measures against what they stand for, and the file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from corpus import write_pairs

from lab.__main__ import main
from lab.faithfulness.measures import MEASURES
from lab.studies.faithfulness import DEPTHS, _curve, _summary
from lenses.measures.carried import carried, carried_together
from lenses.measures.effect import Effects
from transformer import Capture
from transformer import interventions as do
from transformer.storage.description import FAITHFULNESS_FILE, model_digests
from transformer.storage.files import read_json

TEXT, TARGET = "one two three nine four five", "two one four"


@pytest.fixture(scope="module")
def run(translator):
    return translator.force(TEXT, TARGET, capture=Capture(residual=True))


def hidden(translator, keys) -> np.ndarray:
    """Log-probabilities with source tokens hidden from all of cross-attention, by interventions."""
    changes = [do.hide(int(at)) for at in keys]
    return np.array(translator.force(TEXT, TARGET, interventions=changes, capture=False).log_probs)


@pytest.mark.parametrize("kept", [False, True])
def test_curves_are_those_of_runs_with_the_first_tokens_hidden_or_kept(translator, run, kept):
    values = np.random.default_rng(3).random((len(run.steps), len(run.source_tokens)))
    found = _curve(Effects(translator, run), values, kept)
    base = np.array(run.log_probs)
    for depth, total in zip(DEPTHS, found, strict=True):
        expected = 0.0
        for step, row in enumerate(values):
            order = np.argsort(-row)
            keys = sorted(order[depth:] if kept else order[:depth])
            expected += float(hidden(translator, keys)[step] - base[step])
        assert total == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_has_a_number_for_every_step_and_source_token(translator, run, name):
    found = MEASURES[name](translator, run)
    assert found.shape == (len(run.steps), len(run.source_tokens))
    assert np.isfinite(found).all()


def test_the_order_of_effects_deletes_at_least_as_much_with_one_token_as_any_other(translator, run):
    made = Effects(translator, run)
    best = _curve(made, MEASURES["effect"](translator, run), kept=False)[0]
    assert all(
        best <= _curve(made, measure(translator, run), kept=False)[0] + 1e-4 for measure in MEASURES.values()
    )


def test_heads_together_carry_the_length_of_their_sum(translator, run):
    found = carried_together(translator.model, run, "cross", 1)
    attention = translator.model.attention("cross", 1)
    rows = attention.out_proj.weight.detach().T.reshape(attention.n_heads, -1, translator.config.d_model)
    own = run.attention.layer("cross", 1).value - attention.v_proj.bias.detach().view(
        attention.n_heads, 1, -1
    )
    summed = sum(
        torch.tensor(run.weights("cross", 1, head))[:, :, None] * (own[head] @ rows[head])[None]
        for head in range(attention.n_heads)
    )
    np.testing.assert_allclose(found, summed.norm(dim=-1), atol=1e-5)
    alone = sum(carried(translator.model, run, "cross", 1, head).norms for head in range(attention.n_heads))
    assert (found <= alone + 1e-5).all()


def test_differences_are_from_random_and_correlations_are_means():
    row = [-1.0] * 8 + [0.5, 0.2, 2.0]
    tables = {"random": np.array([row, row]), "other": np.array([[-2.0] * 8 + [0.1, 0.9, 2.0]] * 2)}
    found = _summary(tables)["other"]
    assert found["deleted"][0]["value"]["value"] == -1
    assert found["deleted"][0]["difference"]["value"] == -0.5
    assert found["effect"]["value"] == pytest.approx(0.1)
    assert found["untrained"]["value"] == pytest.approx(0.9)


def test_the_command_writes_a_file_beside_the_model(tmp_path, closed_form_models, capsys):
    directory = tmp_path / "model"
    directory.mkdir()
    for path in closed_form_models["copy"].iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    pairs = [
        ("seven six five four three two", "one"),
        ("one two three four five six seven", "one"),
        ("one", "one"),
    ]
    data = write_pairs(tmp_path / "pairs.tsv", pairs)
    assert main(["faithfulness", "--model", str(directory), "--data", str(data), "--sentences", "2"]) == 0
    found = read_json(directory / FAITHFULNESS_FILE)
    assert found["digests"] == model_digests(directory)
    assert set(found["measures"]) == set(MEASURES)
    deleted = {name: each["deleted"][0]["value"]["value"] for name, each in found["measures"].items()}
    assert deleted["weights, last layer"] < deleted["random"]
    command = ["faithfulness", "--model", str(directory), "--data", str(data), "--sentences", "1"]
    assert main([*command, "--retrained", str(directory)]) == 0
    again = read_json(directory / FAITHFULNESS_FILE)["measures"]
    assert {round(each["retrained"]["value"], 6) for each in again.values()} == {1.0}
    other = next(path for name, path in closed_form_models.items() if name != "copy")
    assert main([*command, "--retrained", str(other)]) == 2
    assert "its sizes differ" in capsys.readouterr().err
