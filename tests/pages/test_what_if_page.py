"""The page What if: adding a change, and what it says that the change did."""

from __future__ import annotations

import json

import pytest
from app_pages import run, said, words
from streamlit.testing.v1 import AppTest

from transformer import compare_runs
from transformer import interventions as do
from ui.server import catalogue

PAGE = "pages/what_if.py"
TEXT = "one two three four"
CHANGES = {
    "head": do.ablate("cross", 0, 0, "zero"),
    "hidden word": do.hide(1),
    "no positions": do.no_positions("encoder"),
    "sub-layer": do.drop_sublayer("decoder", 0, "feed_forward"),
    "token": do.choose(0, "▁drei"),
}


def opened(change: do.Intervention | None = None) -> AppTest:
    more = {} if change is None else {"changes": do.write_text([change])}
    return run(PAGE, model="random", text=TEXT, **more)


def bars(at: AppTest) -> list[float]:
    charts = [json.loads(each.proto.spec) for each in at.get("plotly_chart")]
    (found,) = (trace for chart in charts for trace in chart["data"] if trace["type"] == "bar")
    return list(found["x"])


def test_without_a_change_the_page_asks_for_one():
    at = opened()
    assert not at.exception
    assert "Add a change" in said(at)


@pytest.mark.parametrize("name", CHANGES)
def test_the_bars_are_the_differences_of_two_forced_runs(name: str):
    change = CHANGES[name]
    at = opened(change)
    assert not at.exception
    translator = catalogue.translator("random")
    base = translator.translate(TEXT)
    if isinstance(change, do.Choose):
        expected = compare_runs(base, translator.translate(TEXT, interventions=[change])).delta_log_p
    else:
        forced = translator.force(TEXT, base.target_ids, interventions=[change])
        expected = [b - a for a, b in zip(base.log_probs, forced.log_probs, strict=True)]
    assert bars(at) == pytest.approx(list(expected), abs=1e-5)


def test_both_translations_stand_there_and_the_step_at_which_they_part():
    change = CHANGES["token"]
    at = opened(change)
    translator = catalogue.translator("random")
    found = compare_runs(translator.translate(TEXT), translator.translate(TEXT, interventions=[change]))
    assert found.parting == 0
    assert "The translations part at step 1." in words(at)


def test_the_button_adds_what_the_controls_say():
    at = opened()
    at.button("what-if.add").click().run()
    assert not at.exception
    assert at.query_params["changes"] == do.write_text([do.ablate("cross", 0, 0, "zero")])


@pytest.mark.parametrize("sort", ["layer", "hide", "forbid", "positions", "sublayer"])
def test_every_sort_of_change_can_be_added(sort: str):
    at = opened()
    next(box for box in at.selectbox if box.label == "Change").set_value(sort).run()
    at.button("what-if.add").click().run()
    assert not at.exception
    assert not at.error
    assert len(do.read_text(at.query_params["changes"])) == 1
    assert "Add a change" not in said(at)
