"""A server that has just started: the picture is there before PyTorch, and stays as it is when that
comes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import cold_app
import pytest
import waiting

from .conftest import PATIENCE, Visitor, serving

pytestmark = pytest.mark.nightly
OWN = "We like music."
STARTING = "PyTorch and the model are still loading"
SEEN = """() => [...document.querySelectorAll('.lv [data-plot], .lv-chip, .lv-word, .stTextInput, .stButton')]
  .map(e => [e.textContent.replace(/\\d\\.\\d × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, ''),
    ...Object.values(e.getBoundingClientRect().toJSON()).map(Math.round)])"""
"""Words and places; the rounding errors of a check are left out, since each processor has its
own."""
PAINTED = (
    "() => [...document.querySelectorAll('.lv .heatmaplayer image')].map(e => "
    "e.getAttribute('href'))"
)


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


def ended(visitor: Visitor) -> None:
    """Waits until the script has ended and the picture is drawn."""
    visitor.until("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")
    visitor.ready()


def move(visitor: Visitor, key: str, step: int) -> None:
    """Moves the cursor by a key and waits until the server has answered."""
    visitor.page.focus(".lv")
    visitor.page.keyboard.press(key)
    visitor.until(f"new URLSearchParams(location.search).get('step') === '{step}'")


def look(visitor: Visitor) -> tuple[str, object, list[str]]:
    """What is on the screen: the step, places and words, and the cells of the maps."""
    return visitor.count(), visitor.page.evaluate(SEEN), visitor.page.evaluate(PAINTED)


def test_the_picture_is_there_before_the_model_and_stays_as_it_is(
    cold: Callable[[], Visitor], door: Callable[[], None]
) -> None:
    visitor = cold()
    visitor.open()
    move(visitor, "Home", 1)
    move(visitor, "ArrowRight", 2)
    ended(visitor)
    before = look(visitor)
    assert len(before[-1]) >= 3
    move(visitor, "Home", 1)
    door()
    cold().open(text=OWN)  # needs the model
    visitor.page.get_by_role("button", name="Translate", exact=True).click()
    move(visitor, "ArrowRight", 2)  # answered after the click
    ended(visitor)
    assert look(visitor) == before


def test_whoever_wants_more_waits_with_a_word_and_gets_it(
    cold: Callable[[], Visitor], door: Callable[[], None]
) -> None:
    writer = cold()
    reader = cold()
    writer.open()
    box = writer.page.get_by_label("Sentence to translate")
    box.fill(OWN)
    box.press("Enter")
    reader.page.goto(f"{reader.base}/cross_attention")
    for visitor in (writer, reader):
        visitor.page.get_by_text(STARTING).wait_for(timeout=PATIENCE)
    assert box.input_value() == OWN
    door()
    writer.until("document.querySelector('.lv-strip-source .lv-word')?.textContent === 'We'")
    for visitor in (writer, reader):
        ended(visitor)
        assert visitor.page.get_by_text(STARTING).count() == 0
    writer.has(text=OWN)
    assert reader.page.get_by_role("heading", name="Cross-attention").first.is_visible()
