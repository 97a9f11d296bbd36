"""Scores of a model beside another one's: the paired bootstrap by hand, and what the command stores."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from corpus import write_pairs
from sacrebleu.metrics.bleu import BLEU

from lab.__main__ import main
from lab.models import scores
from lab.models.remake import parts
from lab.models.scores import compared
from transformer.runs.bootstrap import SAMPLES, SEED
from transformer.storage.description import SCORES_FILE
from transformer.storage.files import read_json
from transformer.text.pairs import SentencePair, read_pairs

REFERENCES = ["the old house is small", "a cat sleeps on the roof", "we read a book", "it rains in the town"]
OWN = ["the old house is small", "a cat sleeps on the roof", "we read the books", "it rains in town today"]
OTHER = ["the old houses are small", "a cat sleeps on a roof", "we read a book", "rain is in the town"]


def test_the_difference_is_that_of_shared_resamples():
    pairs = [SentencePair("x", reference) for reference in REFERENCES]
    found = compared(OWN, OTHER, pairs)
    metric, random = BLEU(), np.random.default_rng(SEED)
    gaps = []
    for rows in random.integers(0, len(pairs), (SAMPLES, len(pairs))):
        drawn = [REFERENCES[row] for row in rows]
        both = [metric.corpus_score([each[row] for row in rows], [drawn]).score for each in (OWN, OTHER)]
        gaps.append(both[0] - both[1])
    whole = [metric.corpus_score(each, [REFERENCES]).score for each in (OWN, OTHER)]
    assert found["own"]["value"] == pytest.approx(whole[0], abs=1e-3)
    assert found["other"]["value"] == pytest.approx(whole[1], abs=1e-3)
    assert found["difference"]["value"] == pytest.approx(whole[0] - whole[1], abs=1e-3)
    low, high = np.percentile(gaps, [2.5, 97.5])
    assert found["difference"]["low"] == pytest.approx(low, rel=1e-3)
    assert found["difference"]["high"] == pytest.approx(high, rel=1e-3)


def test_a_model_against_itself_differs_by_nothing():
    pairs = [SentencePair("x", reference) for reference in REFERENCES]
    assert compared(OWN, OWN, pairs)["difference"] == {"value": 0, "low": 0, "high": 0}


def test_the_command_prints_and_stores_the_comparison(
    tmp_path: Path, closed_form_models, monkeypatch, capsys
):
    for name in ("own", "other"):
        shutil.copytree(closed_form_models["copy"], tmp_path / name)
    data = scores.data_of(tmp_path / "own")
    texts = ["one two three four five", "five four three two one", "two one four three seven"]
    (test, *_) = data.tests
    file = tmp_path / "corpora" / test.data
    file.parent.mkdir(parents=True)
    plain = write_pairs(tmp_path / "pairs.tsv", [(text, text) for text in texts])
    monkeypatch.setattr(scores, "read_pairs", lambda _: read_pairs(plain))
    file.write_text("there", "utf-8")
    folders = ["--corpora", str(tmp_path / "corpora"), "--sample", str(tmp_path)]
    command = ["scores", "--model", str(tmp_path / "own"), *folders]
    assert main([*command, "--against", str(tmp_path / "other")]) == 0
    stored = read_json(tmp_path / "own" / SCORES_FILE)
    (found,) = stored["translation"]
    assert found["against"]["model"] == "other"
    assert found["against"]["difference"] == {"value": 0, "low": 0, "high": 0}
    assert found["against"]["own"]["value"] == pytest.approx(found["greedy"]["bleu"], abs=0.01)
    assert f"{test.name}: BLEU against other: 0.0, 0.0, 0.0" in capsys.readouterr().err
    again = next(
        part
        for part in parts(tmp_path / "own", tmp_path, tmp_path, tmp_path)
        if part.command.name == "scores"
    )
    assert again.options[-2:] == ["--against", tmp_path / "other"]
    assert main(command) == 0
    assert "against" not in read_json(tmp_path / "own" / SCORES_FILE)["translation"][0]
