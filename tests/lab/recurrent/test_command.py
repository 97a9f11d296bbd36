"""`python -m lab recurrent`: a small comparison, and the file that ships with the app."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import main
from recurrent_twins import write_recurrent

from transformer.storage.description import WEIGHTS_FILE, model_digests
from transformer.storage.files import read_json

MODELS = Path(__file__).resolve().parents[3] / "assets" / "models"
SCORES = {"additive", "bilinear", "dot", "local"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    return write_recurrent(tmp_path_factory.mktemp("recurrent"), tokenizer)


def arguments(folder, *more):
    files = ["--data", str(folder / "pairs.tsv"), "--alignments", str(folder / "links.tsv")]
    models = ["--models", str(folder / "recurrent"), "--reference", str(folder / "positions" / "sinusoidal")]
    return ["recurrent", *models, *files, "--lengths", "4", "2", "--repeats", "1", *more]


def test_the_file_holds_every_model_with_hashes_sizes_and_all_measurements(folder):
    found = read_json(folder / "recurrent" / "results.json")
    assert set(found["models"]) == {*SCORES, "sinusoidal"}
    assert found["reference"] == "sinusoidal"
    facts = found["models"]["additive"]
    assert facts["digests"] == model_digests(folder / "recurrent" / "additive")
    assert facts["bytes"] == (folder / "recurrent" / "additive" / WEIGHTS_FILE).stat().st_size
    assert found["models"]["local"]["recurrent"]
    assert not found["models"]["sinusoidal"]["recurrent"]
    for group in found["lengths"]["groups"]:
        assert "difference" in group["models"]["dot"]["loss"]
    assert found["speed"]["lengths"] == [2, 4]
    (aligned,) = found["alignments"].values()
    assert set(aligned["read"]) == set(found["models"])
    assert found["date"].startswith("20")


def test_one_part_is_measured_again_and_the_rest_stays(folder, capsys):
    before = read_json(folder / "recurrent" / "results.json")
    output = folder / "again.json"
    output.write_bytes((folder / "recurrent" / "results.json").read_bytes())
    assert main(arguments(folder, "--only", "speed", "--output", str(output))) == 0
    after = read_json(output)
    assert after["scores"] == before["scores"]
    assert "speed" in after["again"]
    assert "tokens/s in training, dot, ratio" in capsys.readouterr().out


def test_a_folder_with_another_sort_of_model_is_refused(folder, capsys):
    asked = arguments(folder)
    asked[asked.index("--models") + 1] = str(folder / "positions")
    assert main(asked) == 2
    assert "is not recurrent" in capsys.readouterr().err


@pytest.mark.skipif(not (MODELS / "recurrent" / "results.json").exists(), reason="nothing ships")
def test_the_shipped_results_belong_to_the_shipped_models():
    found = read_json(MODELS / "recurrent" / "results.json")
    assert set(found["models"]) == {*SCORES, "sinusoidal"}
    for name, facts in found["models"].items():
        folder = MODELS / ("positions" if name == "sinusoidal" else "recurrent") / name
        assert facts["digests"] == model_digests(folder), name
        assert facts["bytes"] <= 2_300_000 or name == "sinusoidal"
        assert facts["parameters"] <= 1_100_000 or name == "sinusoidal"
