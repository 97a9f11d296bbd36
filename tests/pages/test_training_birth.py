"""The section "birth of a head": maps of the chosen snapshot, its loss, and the statistics of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from app_pages import array, charts, run, said, words
from fragments import listening
from snapshot_runs import STEPS, write_run
from streamlit.testing.v1 import AppTest

from figures.maps.heatmap import levels
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.text.vocabulary import Tokenizer
from transformer.training.runs.snapshots import load_snapshot
from ui.server import catalogue

PAGE = "pages/training.py"
TEXT, OWN = "one two three", "eins drei zwei"


@pytest.fixture(autouse=True)
def no_bundled_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the runs of these tests are there."""
    monkeypatch.setattr(catalogue, "BUNDLED", tmp_path / "none")


@pytest.fixture
def grown(own_models: Path, tokenizer: Tokenizer) -> Path:
    return write_run(own_models / "grown", tokenizer)


def opened(**params: str | None) -> AppTest:
    """The section at the last snapshot, if the address says nothing else."""
    usual = {"model": "random", "text": TEXT, "target": OWN, "view": "birth", "snapshot": str(STEPS[-1])}
    return run(PAGE, **{name: value for name, value in (usual | params).items() if value is not None})


def forced(directory: Path, step: int) -> Translation:
    found = load_snapshot(directory, step)
    return Translator(found.model, found.tokenizer).force(TEXT, OWN)


def drawn(at: AppTest) -> np.ndarray:
    """The colour levels of the large map."""
    return array(charts(at)[0]["data"][0]["z"])


def expected(directory: Path, step: int, kind: str, layer: int, head: int) -> np.ndarray:
    run = forced(directory, step)
    return levels(run.weights(kind, layer, head), run.mask(kind, layer, head))


def test_without_any_run_one_sentence_says_how_to_make_one(own_models: Path):
    at = opened()
    assert "--snapshots" in said(at)
    assert not charts(at)


def test_the_map_is_that_of_the_snapshot_and_head_of_the_address(grown: Path):
    at = opened(run="grown", snapshot="4", kind="decoder", born="2.3")
    np.testing.assert_array_equal(drawn(at), expected(grown, 4, "decoder", 1, 2))
    assert "After 4 steps" in words(at)


def test_a_birth_opens_at_its_start_and_plays(grown: Path):
    at = opened(born="1.1", snapshot=None)
    np.testing.assert_array_equal(drawn(at), expected(grown, STEPS[0], "cross", 0, 0))
    assert at.toggle[0].value
    at.run()
    np.testing.assert_array_equal(drawn(at), expected(grown, STEPS[1], "cross", 0, 0))


def test_the_slider_writes_the_address_and_shows_its_snapshot(grown: Path):
    at = opened(born="1.1")
    at.select_slider[0].set_value(8).run()
    assert not at.exception
    assert at.query_params["snapshot"] == "8"
    np.testing.assert_array_equal(drawn(at), expected(grown, 8, "cross", 0, 0))
    loss = -np.mean(forced(grown, 8).log_probs)
    assert f"**{loss:.2f} nats**" in words(at)


def test_the_losses_of_all_snapshots_are_drawn(grown: Path):
    line = charts(opened())[2]["data"][0]
    assert line["y"] == pytest.approx([-np.mean(forced(grown, step).log_probs) for step in STEPS], abs=1e-5)


def test_a_step_without_a_snapshot_opens_the_nearest_one(grown: Path):
    assert "After 8 steps" in words(opened(snapshot="9"))
    assert "Before training" in words(opened(snapshot="0"))


def test_a_head_that_the_run_lacks_moves_to_the_nearest(grown: Path):
    np.testing.assert_array_equal(drawn(opened(born="9.9")), expected(grown, 16, "cross", 2, 3))


def test_playing_goes_on_by_one_snapshot_and_stops_at_the_last(grown: Path):
    at = opened(snapshot="0")
    at.toggle[0].set_value(True).run()
    assert "After 4 steps" in words(at)
    assert at.select_slider[0].disabled
    at.run()
    assert "After 8 steps" in words(at)
    at.run()
    assert "After 16 steps" in words(at)
    assert not at.toggle[0].value
    assert not at.select_slider[0].disabled
    assert "play" not in at.query_params
    assert at.query_params["snapshot"] == "16"
    assert not at.exception


def test_while_it_plays_no_fragment_lies_inside_the_part_with_a_clock(grown: Path):
    with listening() as going:
        at = opened(snapshot="0", play="yes")
    assert going.timed
    assert not going.nested
    with listening() as ended:
        at.toggle[0].set_value(False).run()
    assert not ended.timed
    assert not going.timed & ended.places.keys()


def test_playing_from_the_last_snapshot_begins_at_the_first(grown: Path):
    assert "Before training" in words(opened(play="yes"))


def test_stopping_keeps_the_snapshot_in_the_address(grown: Path):
    at = opened(snapshot="0", play="yes")
    at.toggle[0].set_value(False).run()
    assert at.query_params["snapshot"] == "4"
    assert "After 4 steps" in words(at)


@pytest.mark.parametrize("name", ["nothing", "../grown", "/etc", "copy", "<b>x</b>", "x" * 3000])
def test_a_run_that_is_not_listed_is_named_and_never_opened(grown: Path, name: str):
    at = opened(run=name)
    assert "There is no run" in said(at)
    assert "grown after 16 steps" in words(at).replace("\\", "")


def test_the_chosen_model_s_own_snapshots_come_first(grown: Path, tokenizer: Tokenizer, own_models: Path):
    write_run(own_models / "another", tokenizer, seed=3)
    at = opened(model="grown")
    assert (
        at.selectbox(key=next(each.key for each in at.selectbox if each.label == "Training run")).value
        == "grown"
    )


def test_a_damaged_snapshot_is_said_in_one_sentence(grown: Path):
    (grown / "snapshots" / "step-0000008.safetensors").write_bytes(b"x")
    assert "damaged" in said(opened())


def test_a_sentence_too_long_for_a_map_is_refused_in_one_sentence(grown: Path):
    assert "at most 64" in said(opened(text=" ".join(["one"] * 70)))


def test_a_bad_snapshot_in_the_address_is_named(grown: Path):
    at = opened(snapshot="1e99")
    assert "snapshot" in said(at)
    assert charts(at)
