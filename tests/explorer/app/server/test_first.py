"""The shipped run of the first example: it is what the bundled model computes, and no other model's."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from explorer.app.server import catalogue, examples, measured, models
from explorer.figures.maps.heatmap import levels
from explorer.linked import view as linked_view
from transformer import Translation, load_translator
from transformer.exports.maps import MappedRun

MODEL = catalogue.BUNDLED / catalogue.DEFAULT
CLOSE = 1e-5


@pytest.fixture(scope="module")
def shipped() -> MappedRun:
    run = measured.first(MODEL)
    assert run is not None, "The model or the example changed: run `python -m lab first`."
    return run


@pytest.fixture(scope="module")
def fresh() -> Translation:
    return load_translator(MODEL).translate(examples.examples(models.find(MODEL.name))[0].text)


def test_it_is_the_first_example_by_the_bundled_model(shipped: MappedRun, fresh: Translation):
    for name in ("source_text", "text", "source_tokens", "decoder_input_tokens", "target_tokens", "method"):
        assert getattr(shipped, name) == getattr(fresh, name)
    assert (shipped.model, shipped.config, shipped.notes) == (fresh.model, fresh.config, fresh.notes)


def test_a_fresh_computation_has_the_same_maps(shipped: MappedRun, fresh: Translation):
    for kind, site in fresh.config.sites.items():
        for layer in range(site.n_layers):
            for head in range(fresh.config.n_heads):
                here, there = shipped.map(kind, layer, head), fresh.map(kind, layer, head)
                assert np.array_equal(here.mask, there.mask)
                assert np.abs(here.weights - there.weights).max() <= CLOSE
                np.testing.assert_allclose(here.scores, there.scores, atol=10 * CLOSE, rtol=CLOSE)
                one, other = (levels(each.weights, each.mask).astype(int) for each in (here, there))
                assert np.abs(one - other).max() <= 1
                assert [check.name for check in here.audit.checks] == [
                    check.name for check in there.audit.checks
                ]
                assert here.audit.passed


def test_a_fresh_computation_has_the_same_candidates(shipped: MappedRun, fresh: Translation):
    for here, there in zip(shipped.steps, fresh.steps, strict=True):
        assert [each.token for each in here.alternatives] == [each.token for each in there.alternatives]
        for one, other in zip((here, *here.alternatives), (there, *there.alternatives), strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, abs=10 * CLOSE)


def test_the_texts_about_a_map_are_the_same(shipped: MappedRun, fresh: Translation):
    from explorer.lenses.words.reading import Reading, read_view

    for kind, head in (("encoder", (0, 0)), ("decoder", (1, 2)), ("cross", (1, 5))):
        one, other = (
            linked_view.map_feed("t", read_view(run.map(kind, *head), Reading())) for run in (shipped, fresh)
        )
        for feed in (one, other):
            del feed["figure"], feed["badge"]
        assert one == other


def test_a_model_that_was_changed_did_not_make_it(tmp_path: Path):
    shutil.copytree(MODEL, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text() + " ")
    assert measured.first(tmp_path / "model") is None


def test_without_the_file_there_is_no_run(tmp_path: Path):
    shutil.copytree(MODEL, tmp_path / "model", ignore=shutil.ignore_patterns("first.npz"))
    assert measured.first(tmp_path / "model") is None
