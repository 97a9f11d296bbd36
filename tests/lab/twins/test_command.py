from __future__ import annotations

import json

import pytest
from corpus import number_pairs, write_pairs
from programs import main
from random_models import random_config, random_model

from lab.twins.loading import RESULTS_FILE
from transformer.storage.directory import save_checkpoint

NAMES = ("sinusoidal", "learned", "none")
SEED = "none-seed2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    root = tmp_path_factory.mktemp("twins")
    for name in (*NAMES, SEED):
        changes = {"vocab_size": tokenizer.vocab_size, "positions": name.partition("-")[0], "norm": "pre"}
        model = random_model(scale=0.2, **changes)
        place = root / ("seeds" if name == SEED else "models") / name
        save_checkpoint(place, random_config(**changes), model.state_dict(), tokenizer)
    write_pairs(root / "test.tsv", number_pairs(8, seed=1))
    write_pairs(root / "train.tsv", number_pairs(30))
    return root


def arguments(folder, *more):
    data = ["--data", str(folder / "test.tsv"), "--train", str(folder / "train.tsv")]
    return ["positions", "--models", str(folder / "models"), *data, *more]


@pytest.mark.filterwarnings("ignore")
def test_the_command_measures_every_twin_and_writes_one_file(folder, monkeypatch):
    monkeypatch.setattr("lab.twins.profiles.COST_LENGTHS", (8, 16))
    assert main(arguments(folder, "--seeds", str(folder / "seeds"), "--profiled", "3")) == 0
    values = json.loads((folder / "models" / RESULTS_FILE).read_text())
    assert {name: facts["other_seed"] for name, facts in values["models"].items()} == {
        **dict.fromkeys(NAMES, False),
        SEED: True,
    }
    assert values["date"].startswith("20")
    assert values["models"]["learned"]["position_parameters"] == 2 * 2048 * 32
    for experiment, seeds in (
        ("scores", {SEED}),
        ("shuffled", {SEED}),
        ("attention", set()),
        ("probe", set()),
        ("cost", set()),
    ):
        found = values[experiment]
        assert set(found.get("models", found)) == {*NAMES, *seeds}, experiment
    assert (
        values["scores"]["none"]["bleu"]["difference"]["low"]
        <= values["scores"]["none"]["bleu"]["difference"]["high"]
    )
    assert values["long"]["trained_length"] >= 5


@pytest.mark.filterwarnings("ignore")
def test_one_experiment_is_measured_alone(folder, tmp_path):
    output = ["--output", str(tmp_path / "results.json")]
    assert main(arguments(folder, "--only", "probe", "--sentences", "4", *output)) == 0
    values = json.loads((tmp_path / "results.json").read_text())
    assert values["probe"]["sentences"] == 4
    assert not {"scores", "attention"} & set(values)


def test_wrong_folders_are_one_sentence(folder, tmp_path, capsys):
    wrong = ["positions", "--models", str(tmp_path), "--data", "x", "--train", "y"]
    assert main(wrong) == 2
    assert capsys.readouterr().err == f"There is no model directory in {tmp_path}.\n"


def test_models_that_are_no_other_seed_of_a_twin_are_refused(folder, capsys):
    """Under a twin's own name they would take its place in the results."""
    assert main(arguments(folder, "--seeds", str(folder / "models"))) == 2
    assert "name its folder TWIN-seed2" in capsys.readouterr().err
