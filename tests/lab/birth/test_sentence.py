"""A sentence through the snapshots of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from snapshot_runs import STEPS, write_run

from lab.birth.sentence import LONGEST, frames
from transformer.runs.translator import Translator, load_translator
from transformer.runs.wording import InputError
from transformer.storage.directory import load_checkpoint
from transformer.text.vocabulary import Tokenizer
from transformer.training.runs.snapshots import load_snapshot


@pytest.fixture(scope="module")
def run(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "grown", tokenizer)


def test_every_snapshot_reads_the_same_target_and_its_maps_are_those_of_its_weights(run: Path) -> None:
    found = list(frames(run, "one two", "eins drei"))
    assert [each.step for each in found] == list(STEPS)
    assert {each.forced.target_tokens for each in found} == {found[0].forced.target_tokens}
    for each in found:
        checkpoint = load_snapshot(run, each.step)
        alone = Translator(checkpoint.model, checkpoint.tokenizer)
        again = alone.force("one two", "eins drei")
        assert each.loss == pytest.approx(-np.mean(again.log_probs), abs=1e-6)
        assert each.written == alone.translate("one two", beam_size=1).text
        np.testing.assert_allclose(
            each.forced.weights("cross", 1, 2), again.weights("cross", 1, 2), atol=1e-6
        )
        assert each.forced.attention is not None
        assert each.forced.attention.audit().passed


def test_the_last_snapshot_is_the_model_and_each_is_named_after_its_step(run: Path) -> None:
    *_, last = frames(run, "one two", "eins drei")
    whole = load_translator(run).force("one two", "eins drei")
    np.testing.assert_allclose(
        last.forced.weights("encoder", 0, 0), whole.weights("encoder", 0, 0), atol=1e-6
    )
    assert last.forced.model == "grown after 16 steps"
    assert load_checkpoint(run).config == last.forced.config


def test_a_sentence_too_long_for_a_map_is_refused_before_the_model_writes(run: Path) -> None:
    with pytest.raises(InputError, match=f"at most {LONGEST}"):
        list(frames(run, " ".join(["one"] * (LONGEST + 1)), "eins"))


def test_a_directory_without_snapshots_has_no_frames(closed_form_models: dict[str, Path]) -> None:
    assert list(frames(closed_form_models["copy"], "one", "eins")) == []
