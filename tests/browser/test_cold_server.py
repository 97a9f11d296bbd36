"""A server that has just started: the picture is there before PyTorch, and stays as it is when that comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import cold_app
import pytest
import waiting

from .conftest import Visitor, serving

OWN = "We like music."
STARTING = "PyTorch and the model are still loading"
SEEN = """() => [...document.querySelectorAll('.lv [data-plot], .lv-chip, .lv-word, .stTextInput, .stButton')]
  .map(e => [e.textContent, ...Object.values(e.getBoundingClientRect().toJSON()).map(Math.round)])"""
PAINTED = "() => [...document.querySelectorAll('.lv .heatmaplayer image')].map(e => e.getAttribute('href'))"


@pytest.fixture
def door(tmp_path: Path) -> Callable[[], None]:
    """Waits until the loading has begun and stands at the gate, and lets it pass."""
    os.mkfifo(gate := tmp_path / "gate")

    def is_open() -> bool:
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False  # nobody reads at the gate yet
        return True

    return lambda: waiting.until(is_open)


@pytest.fixture
def cold(door: object, tmp_path: Path, chromium: object) -> Iterator[Callable[[], Visitor]]:
    """Makes visitors of a server that has loaded nothing."""
    contexts, visitors = [], []
    none = {"TRANSFORMER_MODELS": str(tmp_path / "none"), "HF_HUB_CACHE": str(tmp_path / "hub")}
    with serving((cold_app.__file__, str(tmp_path / "gate")), **none) as url:

        def make() -> Visitor:
            contexts.append(chromium.new_context(viewport={"width": 1400, "height": 900}))
            visitors.append(Visitor(contexts[-1].new_page(), url))
            return visitors[-1]

        yield make
        for context in contexts:
            context.close()
    assert [error for visitor in visitors for error in visitor.errors] == []


def wait_for_the_model(visitor: Visitor) -> None:
    visitor.open(text=OWN)
    visitor.until("document.querySelectorAll('.lv-strip-source .lv-word').length === 5")


def test_the_picture_is_there_before_the_model_and_stays_as_it_is(
    cold: Callable[[], Visitor], door: Callable[[], None]
) -> None:
    visitor = cold()
    visitor.open()
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("Home")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('step=2')")
    count, seen, painted = visitor.count(), visitor.page.evaluate(SEEN), visitor.page.evaluate(PAINTED)
    assert len(painted) >= 3
    door()
    wait_for_the_model(cold())
    visitor.page.get_by_role("button", name="Translate", exact=True).click()
    visitor.until("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")
    visitor.ready()
    assert (visitor.count(), visitor.page.evaluate(SEEN)) == (count, seen)
    assert visitor.page.evaluate(PAINTED) == painted


def test_a_sentence_typed_at_once_waits_with_a_word_and_is_translated(
    cold: Callable[[], Visitor], door: Callable[[], None]
) -> None:
    visitor = cold()
    visitor.open()
    box = visitor.page.get_by_label("Sentence to translate")
    box.fill(OWN)
    box.press("Enter")
    visitor.page.get_by_text(STARTING).wait_for()
    assert box.input_value() == OWN
    door()
    visitor.until("document.querySelector('.lv-strip-source .lv-word')?.textContent === 'We'")
    visitor.ready()
    assert visitor.page.get_by_text(STARTING).count() == 0
    assert visitor.params()["text"] == OWN


def test_another_page_waits_with_a_word_and_opens(
    cold: Callable[[], Visitor], door: Callable[[], None]
) -> None:
    visitor = cold()
    visitor.page.goto(f"{visitor.base}/cross_attention")
    visitor.page.get_by_text(STARTING).wait_for()
    door()
    visitor.ready()
    assert visitor.page.get_by_role("heading", name="Cross-attention").first.is_visible()
    assert visitor.page.get_by_text(STARTING).count() == 0
