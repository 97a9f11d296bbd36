"""What is said of snapshots, on runs made by hand."""

from __future__ import annotations

from types import SimpleNamespace

from ui.views.training import birth


def frame(step: int, loss: float, written: str = "Das ist *gut*.") -> SimpleNamespace:
    return SimpleNamespace(step=step, loss=loss, written=written)


def test_a_snapshot_is_told_with_its_loss_and_its_own_words_escaped():
    frames = [frame(0, 7.5), frame(1, 2.25)]
    said = birth.snapshot(frames, 1, "the translation of en-de")
    assert "**After 1 step**, the translation of en-de costs **2.25 nats**" in said
    assert "(before training: 7.50)" in said
    assert "\\*gut\\*" in said
    assert birth.snapshot(frames, 0, "your translation").startswith("**Before training**, your translation")


def test_a_model_that_writes_nothing_is_said_to():
    assert "writes nothing" in birth.snapshot([frame(0, 1.0, " ")], 0, "your translation")
