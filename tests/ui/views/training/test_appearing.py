"""What is said of snapshots, on runs made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from lab.birth.appearing import Born
from ui.views.training import appearing, birth

STEPS = (0, 8, 16, 32)


def born(previous: tuple[float, ...], aer: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6)) -> Born:
    """A run of one head of each kind."""
    grid = np.array(previous).reshape(4, 1, 1)
    return Born(
        "run",
        "8 bits",
        STEPS,
        np.ones(4),
        {"encoder": grid, "decoder": grid},
        {"encoder": 0.5 * grid, "decoder": 0.5 * grid},
        {"encoder": 0.5, "decoder": 0.5},
        np.array(aer).reshape(4, 1, 1),
        0.65,
    )


def frame(step: int, loss: float, written: str = "Das ist *gut*.") -> SimpleNamespace:
    return SimpleNamespace(step=step, loss=loss, written=written)


def test_what_lasts_in_all_seeds_is_said_with_their_span():
    runs = [born((0.1, 0.6, 0.7, 0.8)), born((0.1, 0.2, 0.7, 0.8)), born((0.1, 0.2, 0.3, 0.8))]
    said = appearing.previous_sentence(runs, "encoder")
    assert "80\u00a0% of the rows at the end (10\u00a0% at first)" in said
    assert "**from step 8 on** (all 3 seeds, from step 8 to 32 on)" in said


def test_what_happens_in_some_seeds_only_is_said_so():
    said = appearing.previous_sentence([born((0.1, 0.1, 0.1, 0.2)), born((0.1, 0.6, 0.7, 0.8))], "decoder")
    assert "not after 32 steps (1 of 2 seeds, from step 8 on)" in said


def test_what_never_happens_is_said_so_and_one_run_proves_nothing_for_others():
    low = born((0.1, 0.1, 0.1, 0.2), (0.9, 0.9, 0.9, 0.9))
    assert "in none of the 2 seeds" in appearing.aligner_sentence([low, low])
    assert "(one run; other seeds may differ)" in appearing.aligner_sentence([low])


def test_an_aligner_is_one_that_beats_the_diagonal():
    assert (
        "the diagonal has 65\u00a0%. Better than the diagonal: **from step 32 on**"
        in appearing.aligner_sentence([born((1,) * 4)])
    )


def test_a_decoder_that_looks_back_from_the_start_is_said_to():
    assert "Under 50\u00a0% of even weight: **from the start**" in appearing.later_sentence(
        [born((0.1, 0.1, 0.1, 0.1))]
    )


def test_a_snapshot_is_told_with_its_loss_and_its_own_words_escaped():
    frames = [frame(0, 7.5), frame(1, 2.25)]
    said = birth.snapshot(frames, 1, "the translation of en-de")
    assert "**After 1 step**, the translation of en-de costs **2.25 nats**" in said
    assert "(before training: 7.50)" in said
    assert "\\*gut\\*" in said
    assert birth.snapshot(frames, 0, "your translation").startswith("**Before training**, your translation")


def test_a_model_that_writes_nothing_is_said_to():
    assert "writes nothing" in birth.snapshot([frame(0, 1.0, " ")], 0, "your translation")
