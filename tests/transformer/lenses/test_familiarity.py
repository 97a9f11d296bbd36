"""Whether a text is unlike the known texts: the regression, the threshold, the file, the bundled model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from transformer.lenses.familiarity import (
    ALLOWED,
    WEIGHTED,
    Measure,
    Traits,
    as_json,
    choose,
    read_measure,
    share_flagged,
    traits_of,
)
from transformer.storage.files import CheckpointError, read_json
from transformer.translate.translator import Translator, load_translator

MODELS = Path(__file__).resolve().parents[3] / "assets" / "models"
EN_DE = MODELS / "en-de"
OTHERS = {"language", "recurrent"}
"""Folders of models without a measure: they read no source, or stand only beside another."""
FOUND = (path.parent for path in MODELS.glob("**/model.safetensors"))
SHIPPED = sorted(path for path in FOUND if path.parent.name not in OTHERS)
needs_model = pytest.mark.skipif(not EN_DE.is_dir(), reason="the bundled model is not here")
NEWS = (
    "The committee's preliminary assessment of quarterly infrastructure expenditure was published.",
    "Prosecutors allege that the defendants laundered cryptocurrency through offshore subsidiaries.",
    "Researchers sequenced mitochondrial genomes from sediment cores of the late Pleistocene.",
)
OTHER = ("これは猫です。", "Это моя новая книга.", "qxz vbrt kjlw", "SELECT name FROM users WHERE id = 7;")
PLAIN = ("The dog is sleeping.", "I bought a new car yesterday.", "Where do you live?")


def sample(mean: tuple[float, float, float], count: int, seed: int) -> list[Traits]:
    """Traits around a mean of log-probability, tokens and tokens per word."""
    random = np.random.default_rng(seed)
    rows = random.normal(mean, (0.2, 2.0, 0.2), (count, 3))
    return [Traits(float(a), max(2, round(b)), float(c), 0) for a, b, c in rows]


KNOWN, NEWS_LIKE = sample((-0.4, 9, 1.4), 400, 1), sample((-1.3, 30, 1.9), 400, 2)


@pytest.fixture(scope="module")
def measure() -> Measure:
    return choose(KNOWN, NEWS_LIKE)


def test_the_threshold_lets_few_known_texts_pass_it_and_most_others(measure: Measure):
    assert share_flagged(measure, KNOWN) == pytest.approx(ALLOWED, abs=2 / len(KNOWN))
    assert share_flagged(measure, sample((-0.4, 9, 1.4), 400, 3)) < 0.08
    assert share_flagged(measure, sample((-1.3, 30, 1.9), 400, 4)) > 0.95


def test_the_weights_are_those_at_which_the_ridge_regression_has_no_slope(measure: Measure):
    rows = np.array([each.row for each in (*KNOWN, *NEWS_LIKE)])
    labels = np.repeat([0.0, 1.0], [len(KNOWN), len(NEWS_LIKE)])
    chance = 1 / (1 + np.exp(-(rows @ measure.weights + measure.bias)))
    slope = (rows - rows.mean(0)).T @ (chance - labels) / rows.std(0)
    np.testing.assert_allclose(slope + np.array(measure.weights) * rows.std(0), 0, atol=1e-5)
    assert (chance - labels).sum() == pytest.approx(0, abs=1e-5)


def test_a_trait_that_parts_nothing_gets_hardly_any_weight():
    known, other = sample((-0.4, 9, 1.4), 400, 5), sample((-1.3, 9, 1.4), 400, 6)
    weights = np.abs(choose(known, other).weights) * np.std([each.row for each in (*known, *other)], axis=0)
    assert weights[0] > 5 * weights[1:].max()


@pytest.mark.parametrize(("name", "value"), [("log_prob", -4.0), ("tokens", 300), ("tokens_per_word", 40.0)])
def test_the_reason_is_the_trait_that_speaks_most_against_a_text(measure: Measure, name: str, value: float):
    text = replace(Traits(-0.4, 9, 1.4, 0), **{name: value})
    assert measure.is_unlike(text)
    assert measure.reason(text) == name


def test_a_text_made_mostly_of_unknown_characters_is_unlike_any_other(measure: Measure):
    assert measure.is_unlike(Traits(-0.4, 9, 1.4, 5))
    assert measure.reason(Traits(-0.4, 9, 1.4, 5)) == "unknown"
    assert not measure.is_unlike(Traits(-0.4, 9, 1.4, 4))


def test_the_file_gives_back_the_same_measure(measure: Measure, tmp_path: Path):
    kept = replace(measure, flagged={"known": 0.04, "unknown": 0.9}, instead="a/b", instead_bytes=5)
    (tmp_path / "familiarity.json").write_text(json.dumps(as_json(kept)), encoding="utf-8")
    assert read_measure(tmp_path) == kept
    assert read_measure(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    "damage",
    [
        {"weights": [1.0]},
        {"bias": "many"},
        {"threshold": None},
        {"usual": {}},
        {"middle": [0, 0, float("nan")]},
    ],
    ids=str,
)
def test_a_damaged_file_is_refused_by_its_name(measure: Measure, tmp_path: Path, damage: dict[str, object]):
    text = json.dumps({**as_json(measure), **damage})
    (tmp_path / "familiarity.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"familiarity\.json is damaged"):
        read_measure(tmp_path)


def test_one_text_of_a_kind_is_too_few():
    with pytest.raises(ValueError, match="at least two"):
        choose(KNOWN, NEWS_LIKE[:1])


def test_traits_count_tokens_words_and_bytes(translator: Translator):
    pieces = translator.source_pieces(translator.ids("one two 猫"))
    traits = traits_of("one two 猫", pieces, (-1.0, -3.0))
    assert traits.log_prob == -2
    assert traits.tokens == len(pieces)
    assert traits.tokens_per_word == pytest.approx(traits.tokens / 3)
    assert traits.unknown == 3


@needs_model
@pytest.mark.parametrize("directory", SHIPPED, ids=lambda directory: directory.name)
def test_every_shipped_measure_flags_few_everyday_texts_and_most_news(directory: Path):
    found = read_measure(directory)
    assert found is not None
    assert tuple(read_json(directory / "familiarity.json")["traits"]) == WEIGHTED
    assert found.flagged["known"] <= 0.05
    # `en-de` has read documentation and games too, and `birth` finds everyday sentences hard as well.
    twin = directory.parent.name in ("positions", "recurrent")
    assert found.flagged["unknown"] >= (0.89 if twin else 0.85)


@needs_model
def test_the_bundled_model_tells_everyday_sentences_from_others():
    model, found = load_translator(EN_DE), read_measure(EN_DE)
    assert found is not None

    def unlike(text: str) -> bool:
        run = model.translate(text, capture=False)
        return found.is_unlike(traits_of(text, run.source_tokens[:-1], run.log_probs))

    assert [text for text in (*NEWS, *OTHER) if not unlike(text)] == []
    assert [text for text in PLAIN if unlike(text)] == []
