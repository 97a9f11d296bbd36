"""Every page at every step of three sentences, in one visit: no error, one step, and steady options."""

import re
from dataclasses import dataclass

import pytest
from app_pages import LINKED, PAGES, run, view
from inside_page import told
from nightly import thinned
from streamlit.testing.v1 import AppTest


@dataclass(frozen=True)
class Visited:
    """A sentence of the visit; its translation is given, so that the number of its steps is known."""

    model: str
    text: str
    target: str
    steps: int


VISIT = (
    Visited("random", "three two", "drei zwei", 3),
    Visited("random", "two.", "zwei", 2),
    Visited("copy", "one two", "eins", 2),
)
"""A visit of three sentences, with two models."""


def choices(at: AppTest) -> dict[str, tuple[str, ...]]:
    """The texts of the options of every choice on a page, by the widget as the browser knows it."""
    drawn = (*at.selectbox, *at.multiselect, *at.get("button_group"), *at.select_slider)
    return {
        each.proto.id: tuple(getattr(text, "content", text) for text in each.proto.options) for each in drawn
    }


def changed(known: dict[str, tuple[str, ...]], now: dict[str, tuple[str, ...]]) -> list[str]:
    """The widgets that the browser keeps although their options have other texts than before."""
    return [name for name, texts in now.items() if known.setdefault(name, texts) != texts]


@pytest.mark.parametrize("page", thinned(PAGES, 3))
def test_a_page_follows_every_step_and_no_option_changes_under_a_widget(page: str):
    known: dict[str, tuple[str, ...]] = {}
    at: AppTest | None = None
    for each in VISIT:
        for step in range(each.steps):
            address = {"model": each.model, "text": each.text, "target": each.target, "step": str(step + 1)}
            if at is None:
                at = run(page, **address)
            else:
                at.query_params.update(address)
                at.run()
            assert not at.exception, (each, step)
            assert changed(known, choices(at)) == []
            if page in LINKED:
                assert view(at)["step"] == step
            if page == "pages/inside_a_head.py":
                assert set(re.findall(r"· step (\d+) ·", told(at))) == {str(step + 1)}
