"""The home page in windows of several sizes: what is on the screen, how large, and that nothing is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Visitor, case_link, shared_page

WINDOWS = {"short": (1280, 720), "usual": (1400, 900), "large": (1920, 1080)}
SENTENCES = {
    "6 tokens": "I love my old dog.",
    "13 tokens": "The cat that chased the mice was tired.",
    "21 tokens": "When the train finally arrived at the small station, the passengers were tired and cold.",
    "40 tokens": "The young woman who lives next door told me yesterday that her brother wants to travel to "
    "Spain next summer, because he would like to visit his old friends, whom he misses.",
}
"""Sentences for the bundled model, by about how many tokens they have."""

PLACES = """() => {
  const box = (node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return { left, top, right, bottom };
  };
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.offsetParent).map(box);
  const cells = [...document.querySelectorAll(".lv-cell")].map(box);
  const maps = ["cross", "encoder", "decoder"].map((name) => {
    const cell = document.querySelector(`[data-plot=${name}]`);
    const sheet = cell.querySelector(".lv-sheet");
    const written = [...cell.querySelectorAll(".annotation-text, .xtick text, .ytick text")]
      .filter((e) => e.textContent.trim()).map(box);
    const columns = Number(getComputedStyle(sheet).getPropertyValue("--columns"));
    return { figure: box(cell.querySelector(".main-svg")), written, cell: sheet.offsetWidth / columns };
  });
  return {
    cells, maps, grid: box(document.querySelector(".lv-grid")),
    strips: seen(".lv-strip, .lv-controls, .lv-sentence"),
    under: seen(".st-key-linked button").map((each) => each.bottom),
    scrolling: document.querySelectorAll(".lv-scrolls").length,
    width: document.documentElement.scrollWidth,
  };
}"""


FITS = """() => {
  const main = document.querySelector(".stMain");
  return main.scrollHeight <= main.clientHeight;
}"""
"""The page does not scroll."""


@pytest.fixture(scope="module", params=SENTENCES)
def page(request: pytest.FixtureRequest, app: str, profile: Any) -> Iterator[Visitor]:
    """A page with a sentence, for one window after the other."""
    visitor = Visitor(shared_page(profile), app)
    visitor.open(text=SENTENCES[request.param])
    visitor.until("document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'")
    yield visitor
    visitor.leave()
    assert visitor.errors == []


def places(visitor: Visitor, window: str) -> dict[str, Any]:
    """Where everything is once the window has its size."""
    width, height = WINDOWS[window]
    visitor.page.set_viewport_size({"width": width, "height": height})  # type: ignore[attr-defined]
    visitor.until(
        "size => document.querySelector('.lv').dataset.fitted === size"
        " && `${innerWidth}x${innerHeight}` === size",
        f"{width}x{height}",
    )
    visitor.until(FITS)
    found: dict[str, Any] = visitor.page.evaluate(PLACES)  # type: ignore[attr-defined]
    return found


def area(box: dict[str, float]) -> float:
    return (box["right"] - box["left"]) * (box["bottom"] - box["top"])


def test_the_maps_make_room_for_what_appears_above_them(visitor: Visitor) -> None:
    height = "document.querySelector('[data-plot=cross] .main-svg').getBoundingClientRect().height"
    visitor.open(**case_link("copy"))
    visitor.until(FITS)
    before = visitor.page.evaluate(height)
    visitor.page.add_style_tag(content=".headline { padding-bottom: 180px; }")
    visitor.until(f"before => {height} < before - 60", before)
    visitor.until(FITS)
    visitor.page.add_style_tag(content=".headline { padding-bottom: 0 !important; }")
    visitor.until(f"before => Math.abs({height} - before) < 2", before)


@pytest.mark.parametrize("window", WINDOWS)
def test_sentence_cursor_maps_and_bars_are_seen_without_scrolling(page: Visitor, window: str) -> None:
    width, height = WINDOWS[window]
    found = places(page, window)
    assert found["width"] <= width
    assert found["scrolling"] == 0
    for each in (*found["cells"], *found["strips"]):
        assert each["left"] >= 0
        assert each["right"] <= width
        assert each["bottom"] <= height
    assert max(found["under"]) <= height


@pytest.mark.parametrize("window", WINDOWS)
def test_no_label_and_no_axis_title_is_cut(page: Visitor, window: str) -> None:
    for drawn in places(page, window)["maps"]:
        figure = drawn["figure"]
        assert drawn["written"]
        for text in drawn["written"]:
            assert text["left"] >= figure["left"] - 1
            assert text["top"] >= figure["top"] - 1
            assert text["right"] <= figure["right"] + 1
            assert text["bottom"] <= figure["bottom"] + 1


@pytest.mark.parametrize("window", WINDOWS)
def test_the_large_map_is_the_largest_and_the_window_is_full(page: Visitor, window: str) -> None:
    height = WINDOWS[window][1]
    found = places(page, window)
    cross, *others = found["maps"]
    assert area(cross["figure"]) >= max(area(each["figure"]) for each in others)
    assert cross["cell"] >= 0.9 * max(each["cell"] for each in others)
    grid, cells = found["grid"], found["cells"]
    assert max(each["right"] for each in cells) >= grid["right"] - 2
    assert max(each["bottom"] for each in cells) >= height - 80
    assert sum(map(area, cells)) >= 0.75 * (grid["right"] - grid["left"]) * (height - 60 - grid["top"])
