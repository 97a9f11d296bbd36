"""The home page in windows of several sizes: what is on the screen, how large, and that nothing is
cut."""

from typing import Any

import pytest
from nightly import thinned

from .conftest import Visitor, case_link

WINDOWS = {"short": (1280, 720), "usual": (1400, 900), "large": (1920, 1080)}
SENTENCES = {
    "6 tokens": "I love my old dog.",
    "13 tokens": "The cat that chased the mice was tired.",
    "21 tokens": "When the train finally arrived at the small station, the passengers were tired and cold.",
    "40 tokens": "The young woman who lives next door told me yesterday that her brother wants to travel to "
    "Spain next summer, because he would like to visit his old friends, whom he misses.",
}
"""Sentences for the bundled model, by about how many tokens they have."""

SCROLLS = {("40 tokens", "short")}
LEAST = 160
"""Where the strips leave so little that the page scrolls, and the height that maps keep there, in
px."""

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
OVERLAYS = """() => [...document.querySelectorAll(".lv-overlay")].map(overlay => {
  const plot = overlay.closest(".lv-plot").querySelector(".nsewdrag").getBoundingClientRect();
  const box = overlay.getBoundingClientRect();
  return ["left", "top", "width", "height"].map(name => Math.abs(box[name] - plot[name]));
})"""
"""How far the edges of each overlay lie from those of what plotly.js draws under it."""
FITS = """() => {
  const main = document.querySelector(".stMain");
  return main.scrollHeight <= main.clientHeight;
}"""
"""The page does not scroll."""


def places(visitor: Visitor, window: str) -> dict[str, Any]:
    """Where everything is once the window has its size."""
    width, height = WINDOWS[window]
    visitor.page.set_viewport_size({"width": width, "height": height})
    visitor.until(
        "size => document.querySelector('.lv').dataset.fitted === size && "
        "`${innerWidth}x${innerHeight}` === size",
        f"{width}x{height}",
    )
    found: dict[str, Any] = visitor.read(PLACES)
    return found


def higher(drawn: dict[str, Any]) -> float:
    """The height of a map's figure, in px."""
    height: float = drawn["figure"]["bottom"] - drawn["figure"]["top"]
    return height


def area(box: dict[str, float]) -> float:
    return (box["right"] - box["left"]) * (box["bottom"] - box["top"])


def test_the_maps_make_room_for_what_appears_above_them(visitor: Visitor) -> None:
    height = "document.querySelector('[data-plot=cross] .main-svg').getBoundingClientRect().height"
    visitor.open(**case_link("copy"))
    visitor.until(FITS)
    before = visitor.read(height)
    visitor.page.add_style_tag(content=".headline { padding-bottom: 180px; }")
    visitor.until(f"before => {height} < before - 60", before)
    visitor.until(FITS)
    visitor.page.add_style_tag(content=".headline { padding-bottom: 0 !important; }")
    visitor.until(f"before => Math.abs({height} - before) < 2", before)


@pytest.mark.parametrize("length", thinned(SENTENCES, 3))
def test_everything_is_seen_whole_and_the_large_map_is_the_largest(
    visitor: Visitor, length: str
) -> None:
    visitor.open(text=SENTENCES[length])
    visitor.rested()
    wrong = []
    for window, (width, height) in WINDOWS.items():
        found = places(visitor, window)
        if (length, window) in SCROLLS:
            held = labelled(found) | {"maps of some size": min(map(higher, found["maps"])) > LEAST}
            wrong += [f"{window}: not {name}" for name, holds in held.items() if not holds]
            continue
        visitor.until(FITS)
        held = seen(found, width, height) | labelled(found) | full(found, height) | covered(visitor)
        wrong += [f"{window}: not {name}" for name, holds in held.items() if not holds]
    assert wrong == []


def seen(found: dict[str, Any], width: int, height: int) -> dict[str, bool]:
    """Whether sentence, cursor, maps and bars are seen without scrolling."""
    boxes = (*found["cells"], *found["strips"])
    return {
        "a page within the window": found["width"] <= width,
        "maps that do not scroll": found["scrolling"] == 0,
        "right of the left edge": all(box["left"] >= 0 for box in boxes),
        "left of the right edge": all(each["right"] <= width for each in boxes),
        "above the lower edge": all(each["bottom"] <= height for each in boxes),
        "buttons above the lower edge": max(found["under"]) <= height,
    }


def labelled(found: dict[str, Any]) -> dict[str, bool]:
    """Whether each map has labels, and none of them and no axis title is cut."""
    return {
        "labels on each map": all(drawn["written"] for drawn in found["maps"]),
        "whole labels": all(
            text["left"] >= drawn["figure"]["left"] - 1
            and text["top"] >= drawn["figure"]["top"] - 1
            and text["right"] <= drawn["figure"]["right"] + 1
            and text["bottom"] <= drawn["figure"]["bottom"] + 1
            for drawn in found["maps"]
            for text in drawn["written"]
        ),
    }


def full(found: dict[str, Any], height: int) -> dict[str, bool]:
    """Whether the large map is the largest and the window is full."""
    cross, *others = found["maps"]
    grid = found["grid"]
    cells = found["cells"]
    room = (grid["right"] - grid["left"]) * (height - 60 - grid["top"])
    return {
        "the largest figure": area(cross["figure"])
        >= max(area(other["figure"]) for other in others),
        "the largest cells": cross["cell"] >= 0.9 * max(each["cell"] for each in others),
        "filled to the right": max(cell["right"] for cell in cells) >= grid["right"] - 2,
        "filled to the bottom": max(each["bottom"] for each in cells) >= height - 80,
        "most of the room": sum(map(area, cells)) >= 0.75 * room,
    }


def covered(visitor: Visitor) -> dict[str, bool]:
    """Whether the three overlays lie where plotly.js draws."""
    offsets = visitor.read(OVERLAYS)
    return {
        "three overlays": len(offsets) == 3,
        "overlays on their maps": max(map(max, offsets)) < 1,
    }


def test_lines_of_changes_lie_over_nothing_and_one_line_moves_nothing(visitor: Visitor) -> None:
    """One line takes room that was empty; what several need is added."""
    edges = """() => ['.st-key-changed', '.lv-strips'].map((name) => {
      const box = document.querySelector(name)?.getBoundingClientRect();
      return box ? [box.top, box.bottom] : null;
    })"""

    def drawn(*changes: str) -> Any:
        visitor.open(model="en-de", text="I love my old dog.", changes="~".join(changes))
        visitor.rested()
        return visitor.read(edges)

    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    heads = [f"ablate_cross_{layer}_{head}" for layer in (1, 2) for head in (1, 2)]
    nothing, before = drawn()
    one, same = drawn(heads[0])
    several, moved = drawn(*heads)
    assert (nothing, same) == (None, before)
    assert one[1] <= before[0] < several[1] <= moved[0]


def test_a_window_that_is_made_narrow_has_its_maps_one_below_the_other(visitor: Visitor) -> None:
    """From every layout of a wide window, of which nothing may stay."""
    visitor.open(**case_link("copy"))
    edges = "[...document.querySelectorAll('.lv-cell')].map((e) => e.getBoundingClientRect().left)"
    over = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.stMain'))"
    for width, height, layout in ((1920, 1080, "lv-over"), (920, 1000, "lv-square")):
        for size in ((width, height), (800, 600)):
            visitor.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
            visitor.until(
                "size => document.querySelector('.lv').dataset.fitted === size",
                "x".join(map(str, size)),
            )
            if size == (width, height):
                assert visitor.page.locator(f".lv-grid.{layout}").count() == 1
        assert len(set(visitor.read(edges))) == 1
        assert visitor.read(over) <= 0


def test_on_a_phone_every_line_under_a_picture_is_read_whole(visitor: Visitor) -> None:
    visitor.phone()
    cut = """[...document.querySelectorAll(".lv-cell .lv-foot .lv-words")]
      .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)"""
    for model, text in (("copy", "one two three"), ("language/writer", "one two three")):
        visitor.open(model=model, text=text)
        visitor.rested()
        assert visitor.page.locator(".lv-foot .lv-words").count() > 0
        assert visitor.read(cut) == []


def test_at_150_percent_the_menu_is_its_icons_and_no_word_of_it_is_cut(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 853, "height": 700})
    visitor.open(**case_link("copy"))
    visitor.rested()
    words = visitor.page.locator(".glossary-list")
    words.wait_for(state="attached")
    visitor.page.mouse.move(800, 600)
    shown = "() => getComputedStyle(document.querySelector('.glossary-list')).opacity"
    assert visitor.read(shown) == "0"  # nobody points at the menu
    visitor.page.locator(".stSidebar").hover()
    visitor.until(
        "() => getComputedStyle(document.querySelector('.glossary-list')).opacity === '1'"
    )
