"""Whether a text is unlike the known texts: the regression, the threshold, the file, the bundled model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, as_file, damaged, or_refused

from lenses.words.familiarity import (
    JUDGED,
    WEIGHTED,
    DoubtHits,
    DoubtMeasure,
    Traits,
    as_json,
    choose,
    findings,
    read_measure,
    traits_of,
)
from transformer.runs.corpus import greedy
from transformer.runs.translator import Translator, load_translator
from transformer.storage.files import CheckpointError, read_json

MODELS = Path(__file__).resolve().parents[3] / "assets" / "models"
EN_DE = MODELS / "en-de"
OTHERS = {"language", "recurrent"}
"""Folders of models without a measure: they read no source, or stand only beside another."""
FOUND = (path.parent for path in MODELS.glob("**/model.safetensors"))
SHIPPED = sorted(path for path in FOUND if path.parent.name not in OTHERS)
BLIND = MODELS.parents[1] / "tests" / "blind"
_PT = ["judged-en-pt", "pasted-en-pt"]
JUDGED_LISTS = {"en-de": ["judged"], "en-pt": _PT, "firefox-en-pt": _PT}
needs_model = pytest.mark.skipif(not EN_DE.is_dir(), reason="the bundled model is not here")


def sample(mean: tuple[float, float, float], count: int, seed: int) -> list[Traits]:
    """Traits around a mean of log-probability, tokens and tokens per word."""
    random = np.random.default_rng(seed)
    rows = random.normal(mean, (0.2, 2.0, 0.2), (count, 3))
    return [Traits(float(a), max(2, round(b)), float(c), 0) for a, b, c in rows]


def chosen(good: list[Traits], bad: list[Traits]) -> DoubtMeasure:
    return choose([*good, *bad], [False] * len(good) + [True] * len(bad))


KNOWN, NEWS_LIKE = sample((-0.4, 9, 1.4), 400, 1), sample((-1.3, 30, 1.9), 400, 2)


@pytest.fixture(scope="module")
def measure() -> DoubtMeasure:
    return chosen(KNOWN, NEWS_LIKE)


def test_the_threshold_is_where_precision_and_recall_are_best_together():
    good, bad = sample((-0.4, 9, 1.4), 300, 1), sample((-0.6, 9, 1.4), 200, 2)
    measure, texts = chosen(good, bad), [*good, *bad]
    labels = [False] * len(good) + [True] * len(bad)

    def f1(threshold: float) -> float:
        found = findings(replace(measure, threshold=threshold), texts, labels)
        return 2 * found.caught / (found.flagged + found.bad)

    assert f1(measure.threshold) == pytest.approx(max(f1(measure.doubt(each) - 1e-9) for each in texts))


def test_findings_count_what_is_doubted_and_what_is_bad(measure: DoubtMeasure):
    clear, doubted = Traits(-0.1, 9, 1.4, 0), Traits(-3.0, 9, 1.4, 0)
    found = findings(measure, [clear, doubted, doubted, clear], [False, True, False, True])
    assert found == DoubtHits(4, 2, 2, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)


def test_the_weights_are_those_at_which_the_ridge_regression_has_no_slope(measure: DoubtMeasure):
    rows = np.array([each.row for each in (*KNOWN, *NEWS_LIKE)])
    labels = np.repeat([0.0, 1.0], [len(KNOWN), len(NEWS_LIKE)])
    chance = 1 / (1 + np.exp(-(rows @ measure.weights + measure.bias)))
    slope = (rows - rows.mean(0)).T @ (chance - labels) / rows.std(0)
    np.testing.assert_allclose(slope + np.array(measure.weights) * rows.std(0), 0, atol=1e-5)
    assert (chance - labels).sum() == pytest.approx(0, abs=1e-5)


def test_a_trait_that_parts_nothing_gets_hardly_any_weight():
    known, other = sample((-0.4, 9, 1.4), 400, 5), sample((-1.3, 9, 1.4), 400, 6)
    weights = np.abs(chosen(known, other).weights) * np.std([each.row for each in (*known, *other)], axis=0)
    assert weights[0] > 5 * weights[1:].max()


@pytest.mark.parametrize(("name", "value"), [("log_prob", -4.0), ("tokens", 300), ("tokens_per_word", 40.0)])
def test_the_reason_is_the_trait_that_speaks_most_against_a_text(
    measure: DoubtMeasure, name: str, value: float
):
    text = replace(Traits(-0.4, 9, 1.4, 0), **{name: value})
    assert measure.doubts(text)
    assert measure.reason(text) == name


def test_a_text_with_an_unknown_character_is_doubted(measure: DoubtMeasure):
    assert measure.reason(Traits(-0.4, 9, 1.4, 1)) == "unknown"
    assert measure.doubts(Traits(-0.4, 9, 1.4, 1))
    assert not measure.doubts(Traits(-0.4, 9, 1.4, 0))


def test_the_file_gives_back_the_same_measure(measure: DoubtMeasure, tmp_path: Path):
    kept = replace(measure, found={JUDGED: DoubtHits(4, 2, 2, 1)}, instead="a/b", instead_bytes=5)
    (tmp_path / "familiarity.json").write_text(json.dumps(as_json(kept)), encoding="utf-8")
    assert read_measure(tmp_path) == kept
    assert read_measure(tmp_path / "nothing") is None


@PROPERTY
@given(st.deferred(lambda: damaged(as_file(as_json(chosen(KNOWN, NEWS_LIKE))))))
def test_a_damaged_file_is_refused_in_one_sentence_or_survives(tmp_path: Path, values: object):
    file = tmp_path / "familiarity.json"
    with or_refused(CheckpointError):
        file.write_text(json.dumps(values), encoding="utf-8")
        found = read_measure(tmp_path)
        assert found is not None
        file.write_text(json.dumps(as_json(found)), encoding="utf-8")
        assert read_measure(tmp_path) == found


@pytest.mark.parametrize(
    "damage",
    [
        {"weights": [1.0]},
        {"middle": [0, 0, float("nan")]},
    ],
    ids=str,
)
def test_a_damaged_file_is_refused_by_its_name(
    measure: DoubtMeasure, tmp_path: Path, damage: dict[str, object]
):
    text = json.dumps({**as_json(measure), **damage})
    (tmp_path / "familiarity.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"familiarity\.json is damaged"):
        read_measure(tmp_path)


def test_one_bad_translation_is_too_few():
    with pytest.raises(ValueError, match="at least two"):
        chosen(KNOWN, NEWS_LIKE[:1])


def test_traits_count_tokens_words_and_bytes(translator: Translator):
    pieces = translator.source_pieces(translator.ids("one two 猫"))
    traits = traits_of("one two 猫", pieces, (-1.0, -3.0))
    assert traits.log_prob == -2
    assert traits.tokens == len(pieces)
    assert traits.tokens_per_word == pytest.approx(traits.tokens / 3)
    assert traits.unknown == 3


@needs_model
@pytest.mark.parametrize("directory", SHIPPED, ids=lambda directory: directory.name)
def test_every_shipped_measure_doubts_bad_translations_more_often_than_good_ones(directory: Path):
    measure = read_measure(directory)
    assert measure is not None
    assert tuple(read_json(directory / "familiarity.json")["traits"]) == WEIGHTED
    # Nearly all of the twins' news is bad.
    found = measure.found.get("tatoeba-en-de/test.tsv.gz") or measure.found[JUDGED]
    assert found.recall > (found.flagged - found.caught) / (found.texts - found.bad)


@needs_model
@pytest.mark.parametrize("name", JUDGED_LISTS)
def test_the_findings_on_the_judged_list_are_those_of_the_file(name: str):
    model, measure = load_translator(MODELS / name), read_measure(MODELS / name)
    assert measure is not None
    lines = [
        line
        for each in JUDGED_LISTS[name]
        for line in (BLIND / f"{each}.tsv").read_text("utf-8").splitlines()
    ]
    rows = [line.split("\t") for line in lines]
    traits, bad = [], []
    for (_, text, *judged), (written, log_probs) in zip(
        rows, greedy(model, [row[1] for row in rows]), strict=True
    ):
        verdict = dict(zip(judged[::2], judged[1::2], strict=True)).get(written)
        if verdict is not None:
            traits.append(traits_of(text, model.source_pieces(model.ids(text)), log_probs))
            bad.append(verdict == "no")
    found = findings(measure, traits, bad)
    assert found == measure.found[JUDGED]
    assert found.precision > 0.7
    assert found.recall > 0.6
