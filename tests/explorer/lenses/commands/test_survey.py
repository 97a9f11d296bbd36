"""`survey` writes what the app reads of a model, for exactly its weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from closed_form import CASES
from corpus import write_pairs
from programs import main

from explorer.lenses.heads.survey import Line, survey_of
from explorer.lenses.words import samples
from explorer.lenses.words.links import read_gold
from transformer.exports.maps import load_maps
from transformer.storage.description import measured, model_digests
from transformer.storage.files import read_json
from transformer.translator import load_translator

CASE = CASES["copy"]


@pytest.fixture
def model(closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a solved model, with one example and a small sample."""
    directory = shutil.copytree(closed_form_models["copy"], tmp_path / "copy")
    source, target = CASE.source_tokens[1].removeprefix("▁"), CASE.target_tokens[1].removeprefix("▁")
    claim = {"text": "…", "target": target, "source": source, "least": 0.5}
    claim |= {"layer": 9, "head": 9, "weight": 0}
    example = {"label": "a", "text": CASE.sentence, "claim": claim}
    example["gloss"] = dict.fromkeys(CASE.translation.split(), "number")
    (directory / "examples.json").write_text(json.dumps({"digests": {}, "examples": [example]}))
    write_pairs(tmp_path / samples.USUAL.data, [(CASE.sentence, CASE.translation)])
    (tmp_path / samples.USUAL.alignments).write_text("one two\teins zwei\t0-0 1-1\n", encoding="utf-8")
    monkeypatch.setattr(samples, "FOLDER", tmp_path)
    return directory


def test_every_file_belongs_to_the_weights_and_says_what_the_model_does(model, tmp_path, capsys):
    assert main(["survey", "--model", str(model)]) == 0
    assert "All examples" in capsys.readouterr().out
    assert all(measured(model, name) for name in ("heads.json", "survey.npz", "examples.json"))
    heads = read_json(model / "heads.json")
    assert list(heads) == ["model", "command", "date", "digests", "data", "default", "heads", "aligner"]
    assert heads["command"] == f"python -m explorer survey --model {model}"
    files = f"patterns: 1 pairs of {samples.USUAL.data}, given targets forced; aer: 1 pairs of alignments.tsv"
    assert heads["data"] == files
    gold = read_gold(tmp_path / samples.USUAL.alignments)
    assert survey_of(model, [Line(CASE.sentence, CASE.translation)], gold).roles("cross")[0, 0] == "alignment"
    assert load_translator(model).means.about["data"].startswith("1 pairs of ")
    first = load_maps(model / "first.npz")
    assert (first.text, first.digests) == (CASE.translation, model_digests(model))
    assert read_json(model / "examples.json")["examples"][0]["claim"]["weight"] > 0.9


def test_an_example_that_no_head_shows_or_without_a_gloss_is_named(model, capsys):
    values = read_json(model / "examples.json")
    values["examples"][0]["claim"]["source"] = "zebra"
    values["examples"][0]["gloss"] = {}
    (model / "examples.json").write_text(json.dumps(values))
    assert main(["survey", "--model", str(model), "--brief"]) == 1
    said = capsys.readouterr().out
    assert "No head shows that" in said
    assert f"has no gloss for {', '.join(CASE.translation.split())}" in said
