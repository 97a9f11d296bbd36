"""Weights against effects over sentences: the cells against interventions, sums by hand, and the file."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import write_pairs

from lab.__main__ import main
from lab.studies.weight_effect import ORDERS, REPLACED, SORTS, Row, _effects, _kind, _shares, _sorts
from lenses.measures.effect import Effects
from transformer import Capture
from transformer import interventions as do
from transformer.model.sites import AttentionKind
from transformer.storage.description import WEIGHT_EFFECT_FILE, model_digests
from transformer.storage.files import read_json

TEXT, TARGET = "one two three nine four", "two one four"


@pytest.fixture(scope="module")
def run(translator):
    return translator.force(TEXT, TARGET, capture=Capture(residual=True))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_effect_of_a_cell_is_a_run_without_it(translator, run, kind):
    place, rows = (1, 2), [3]
    mask = run.mask(kind, *place)
    size, loss = _effects(run, Effects(translator, run), AttentionKind(kind), place, rows, mask)
    for key in (0, 2):
        change = do.set_row(kind, *place, 3, {key: 0.0})
        changed = translator.force(TEXT, TARGET, interventions=[change])
        delta = np.subtract(changed.log_probs, run.log_probs)
        if kind == "encoder":
            assert size[3, key] == pytest.approx(np.abs(delta).sum(), abs=3e-4)
            assert np.isnan(loss).all()
        else:
            assert loss[3, key] == pytest.approx(-delta[3], abs=2e-4)
            assert size[3, key] == pytest.approx(abs(delta[3]), abs=2e-4)
    assert np.isnan(size[:3]).all()


def test_words_are_content_function_or_neither():
    found = _sorts(("▁the", "▁hou", "se", "▁is", "▁old", ".", "</s>"))
    assert [SORTS[sort] for sort in found] == [
        *("function", "content", "content", "function", "content"),
        *("other", "other"),
    ]


def test_shares_of_each_sort_sum_to_one_and_are_those_by_hand():
    weights = np.array([[0.5, 0.3, 0.2], [0, 0, 1]])
    size = np.array([[1.0, 3.0, 0.0], [np.nan] * 3])
    found = np.array(_shares(weights, size, [0], np.array([0, 1, 2]))).reshape(3, 3)
    np.testing.assert_allclose(found, [[1 / 3] * 3, [0.5, 0.3, 0.2], [0.25, 0.75, 0]])
    assert np.isnan(_shares(weights, size, [], np.array([0, 1, 2]))).all()


def test_a_sentence_without_a_number_is_left_out_of_the_mean():
    def row(value: float) -> Row:
        none = [np.nan] * len(ORDERS)
        return Row([value] * len(ORDERS), none, [np.nan] * 9, [np.nan] * 2, [value, 1, 2, 3], [0.0] * 4)

    found = _kind([[row(0.2), row(np.nan)], [row(0.6), row(0.8)]])
    assert found["layers"][0]["weight"]["value"] == pytest.approx(0.4)
    assert found["layers"][1]["weight"]["value"] == pytest.approx(0.8)
    assert found["size"]["weight"]["value"] == pytest.approx((0.2 + 0.7) / 2)
    assert found["loss"]["weight"] is None
    assert found["replaced"]["permuted"]["value"] == 1
    assert "share" not in found


def test_the_command_writes_a_file_beside_the_model(tmp_path, closed_form_models):
    directory = tmp_path / "model"
    directory.mkdir()
    for path in closed_form_models["copy"].iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    texts = ["seven six five four three two", "one two three four five six seven"]
    data = write_pairs(tmp_path / "pairs.tsv", [(text, "one") for text in texts])
    command = ["weight-effect", "--model", str(directory), "--data", str(data), "--sentences", "2"]
    assert main(command) == 0
    found = read_json(directory / WEIGHT_EFFECT_FILE)
    assert found["digests"] == model_digests(directory)
    for kind, each in found["kinds"].items():
        assert set(each["size"]) == set(ORDERS)
        assert set(each["replaced"]) == set(REPLACED)
        assert ("share" in each) == (kind != "decoder")
    cross = found["kinds"]["cross"]
    assert cross["replaced"]["uniform"]["value"] > 0.5
    assert cross["size"]["weight"]["value"] > 0.3
    first = (directory / WEIGHT_EFFECT_FILE).read_text()
    assert main(command) == 0
    assert (directory / WEIGHT_EFFECT_FILE).read_text() == first
