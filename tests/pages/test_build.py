"""A query of one's own on "Inside a head": what is drawn is computed, and what is drawn is graded."""

import re

import numpy as np
import pytest
from app_pages import array, named_charts, run, said, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import examples, models, runs
from explorer.app.server.lessons import files

PAGE = "pages/inside_a_head.py"
TEXT = examples.text_on(models.find("en-pt"), None)


def opened(**params: str) -> AppTest:
    return run(PAGE, model="en-pt", text=TEXT, section="build", **params)


def weights(at: AppTest) -> np.ndarray:
    return array(named_charts(at)["build row"]["data"][0]["y"])


def row(at: AppTest, kind: str = "cross") -> np.ndarray:
    """The softmax of the query that the address names, over the head's recorded keys."""
    now = at.session_state["state"]
    recorded = runs.traced(runs.request(now, models.find(now.model), TEXT))
    keys = recorded.head(kind, *getattr(now, kind)).key.astype(np.float64)
    first, second = (keys[key] / np.linalg.norm(keys[key]) for key in now.two)
    scores = keys @ (now.length * (now.a * first + now.b * second)) / np.sqrt(keys.shape[1])
    powers = np.exp(scores - scores.max())
    found: np.ndarray = powers / powers.sum()
    return found


def set_to(at: AppTest, name: str, value: float) -> AppTest:
    """Types a number."""
    return next(each for each in at.number_input if each.label.startswith(name)).set_value(value).run()


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_the_weights_that_are_drawn_are_those_of_the_query(kind: str):
    at = opened(kind=kind, two="1.5", a="6", b="-5", length="3")
    assert weights(at) == pytest.approx(row(at, kind), abs=1e-5)
    at = set_to(at, "l ·", 7.5)
    assert at.query_params["length"] == "7.5"
    assert weights(at) == pytest.approx(row(at, kind), abs=1e-5)
    assert weights(at).sum() == pytest.approx(1)


def test_a_query_that_reaches_the_goal_is_the_answer_of_the_step():
    steps = files.find("copy").steps
    step = next(i for i, each in enumerate(steps) if each.question and each.question.quantity == "build")
    at = opened(goal="copy", lesson=f"copy.{step + 1}", two="1.5", a="6", b="-5", length="1")
    assert weights(at)[0] < 0.95
    assert "Not yet." in words(at)
    assert at.session_state["silent"] is None
    assert at.session_state["lesson_notes"]["copy"][step] is None
    at = set_to(at, "l ·", 10.0)
    assert weights(at)[0] == pytest.approx(row(at)[0], abs=1e-5)
    assert weights(at)[0] >= 0.95
    assert "**Right.**" in words(at)
    note = at.session_state["lesson_notes"]["copy"][step]
    assert (note["right"], "**Reached.**" in words(at)) == (True, True)
    assert "a = 6, b = −5, l = 10" in note["chose"]
    at = opened(goal="average", lesson="copy.4", two="1.5", a="6", b="-5", length="10")
    assert at.session_state["lesson_notes"]["copy"][3] is None  # an answer to another goal


def test_where_the_keys_forbid_it_the_page_says_so_with_the_best():
    told = [words(opened(goal="average", two=two)) for two in ("1.2", "2.3", "3.4", "4.5")]
    best = r"The best query of this plane gives each at least (0\.\d\d), with (0\.\d\d) on"
    forbidden = [re.search(best, each) for each in told if "choose other keys" in each]
    assert forbidden
    assert all(float(each[1]) < 0.48 and float(each[2]) > 0 for each in forbidden)


def test_keys_that_the_row_does_not_see_are_replaced():
    at = run(PAGE, section="build", kind="decoder", step="3", two="1.9")
    assert not at.error
    assert "build row" in named_charts(at)
    assert "only one key" in said(run(PAGE, section="build", kind="decoder", step="1"))
