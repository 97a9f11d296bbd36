from __future__ import annotations

import json

import pytest
from corpus import number_pairs, write_pairs
from random_models import random_config, random_model

from transformer.__main__ import main
from transformer.checkpoint import save_checkpoint
from transformer.positions import REGISTRY
from transformer.positions_command import RESULTS_FILE

NAMES = ("sinusoidal", "learned", "none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    root = tmp_path_factory.mktemp("twins")
    for name in NAMES:
        changes = {"vocab_size": tokenizer.vocab_size, "positions": name, "norm": "pre"}
        model = random_model(scale=0.2, **changes)
        save_checkpoint(root / "models" / name, random_config(**changes), model.state_dict(), tokenizer)
    write_pairs(root / "test.tsv", number_pairs(8, seed=1))
    write_pairs(root / "train.tsv", number_pairs(30))
    return root


def arguments(folder, *more):
    data = ["--data", str(folder / "test.tsv"), "--train", str(folder / "train.tsv")]
    return ["positions", "--models", str(folder / "models"), *data, *more]


@pytest.mark.filterwarnings("ignore")
def test_the_command_measures_every_twin_and_writes_one_file(folder, monkeypatch):
    monkeypatch.setattr("transformer.profiles.COST_LENGTHS", (8, 16))
    assert main(arguments(folder, "--seeds", str(folder / "models"), "--profiled", "3")) == 0
    values = json.loads((folder / "models" / RESULTS_FILE).read_text())
    assert set(values["models"]) == set(NAMES)
    assert values["date"].startswith("20")
    assert values["models"]["learned"]["position_parameters"] == 2 * 2048 * 32
    for experiment in ("scores", "shuffled", "attention", "cost"):
        found = values[experiment]
        assert set(found.get("models", found)) == set(NAMES), experiment
    assert (
        values["scores"]["none"]["bleu"]["difference"]["low"]
        <= values["scores"]["none"]["bleu"]["difference"]["high"]
    )
    assert values["long"]["trained_length"] >= 5


def test_wrong_folders_are_one_sentence(folder, tmp_path, capsys):
    wrong = ["positions", "--models", str(tmp_path), "--data", "x", "--train", "y"]
    assert main(wrong) == 2
    assert capsys.readouterr().err == f"There is no model directory in {tmp_path}.\n"


def test_the_registry_names_seven_encodings():
    assert list(REGISTRY) == ["none", "sinusoidal", "learned", "shaw", "t5", "rotary", "alibi"]
