"""The section Backup heads: the measurement that came with the model, and one made here."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from app_pages import array, charts, run, said, taken, words
from fragments import listening
from streamlit.testing.v1 import AppTest
from waiting import until

from lab.backups.backup_heads import backup_heads
from lab.backups.pair_effects import PairEffects, pair_effects, to_json
from lab.heads.survey import Line
from transformer.storage.description import model_digests
from transformer.storage.files import write_json
from ui.server import catalogue
from ui.server.background import backups, surveys
from ui.views.what_if.backup import drawn, sentence, table

PAGE = "pages/what_if.py"
TEXTS = ("one two three", "four five six")


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "sample", lambda _: tuple(Line(text) for text in TEXTS))


opened = partial(run, PAGE, model="random", view="backup", kind="cross")


def expected(kind: str = "cross") -> PairEffects:
    *_, found = backup_heads(catalogue.translator("random"), TEXTS, kind, by="zero")
    return pair_effects(found)


def cells(at: AppTest) -> np.ndarray:
    (chart,) = charts(at)
    return array(chart["data"][0]["z"])


def test_a_model_without_a_measurement_asks_before_it_measures():
    at = opened(kind="decoder")
    assert "No measurement came with this model" in said(at)
    assert not at.get("plotly_chart")


def test_a_measurement_made_here_draws_its_triangle_and_says_who_takes_over():
    at = opened()
    at.button("backup.ask").click().run()
    done = backups.run_of("random", "cross", None)
    until(lambda: not done.wait("anyone"))
    at.run()
    assert not at.exception
    found = expected()
    lower = np.tri(len(found.heads), dtype=bool)
    assert cells(at)[lower] == pytest.approx(drawn(found).values[lower], abs=1e-5)
    assert sentence(found, found.take_overs()) in words(at)


def test_while_it_measures_no_fragment_lies_inside_the_part_with_a_clock(monkeypatch: pytest.MonkeyPatch):
    at = opened(kind="decoder")
    at.button("backup.ask").click().run()
    done = backups.run_of("random", "decoder", None)
    until(lambda: not done.wait("anyone"))
    monkeypatch.setattr(type(done), "wait", lambda *_: True)
    with listening() as going:
        at.run()
    assert at.get("plotly_chart")
    assert going.timed
    assert not going.nested
    monkeypatch.undo()
    with listening() as ended:
        at.run()
    assert not ended.timed
    assert not going.timed & ended.places.keys()


def test_who_stops_keeps_the_sentences_so_far_and_can_go_on():
    with taken():
        at = opened(kind="encoder")
        at.button("backup.ask").click().run()
        assert "backup.stop" in [each.key for each in at.button]
        at.button("backup.stop").click().run()
        assert "Stopped after 0 of 2 sentences." in words(at)
        assert "backup.on" in [each.key for each in at.button]


def test_the_shipped_measurement_is_shown_if_it_is_of_this_model(tmp_path, monkeypatch: pytest.MonkeyPatch):
    found = expected()
    source = catalogue.directory("random")
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    values = {"kinds": {"cross": to_json(found)}}
    write_json(tmp_path / "backups.json", values | {"digests": model_digests(source)})
    monkeypatch.setattr(backups.catalogue, "directory", lambda name: tmp_path)
    read = backups.shipped("random", "cross")
    assert read is not None
    np.testing.assert_allclose(read.joint, found.joint, atol=1e-6)
    assert backups.shipped("random", "decoder") is None
    write_json(tmp_path / "backups.json", values | {"digests": {}, "more": 1})
    assert backups.shipped("random", "cross") is None


def test_the_table_has_every_pair_once():
    found = expected()
    head, *rows = table(found)
    count = len(found.heads)
    assert len(rows) == count * (count - 1) // 2
    assert rows[0][:2] == ("L1 H1", "L1 H2")
    assert rows[0][4] == pytest.approx(found.joint[1, 0])
    assert len(head) == len(rows[0])
