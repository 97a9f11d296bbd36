"""The section Causal trace in Chromium: a click on a cell makes the patch a change with the same number."""

from __future__ import annotations

import re

import pytest

from .conftest import PATIENCE, Visitor, box_of

TEXT, OTHER = "one two three", "one two nine"
BARS = """() => {
  const drawn = [...document.querySelectorAll('.js-plotly-plot')].flatMap(each => each.data || []);
  const bars = drawn.filter(each => each.type === 'bar');
  return bars.length === 1 ? Array.from(bars[0].x) : null;
}"""


def open_trace(visitor: Visitor) -> None:
    visitor.page.goto(
        f"{visitor.base}/what_if?model=copy&view=causal&text={TEXT}&other={OTHER}".replace(" ", "+")
    )
    visitor.until("document.querySelectorAll('.stPlotlyChart .nsewdrag').length === 3")


def centre(visitor: Visitor, plot: int, row: float, column: float) -> tuple[float, float]:
    """A place of a map, given as shares of its height and width."""
    box = box_of(visitor.page.locator(".stPlotlyChart .nsewdrag").nth(plot))
    return box["x"] + column * box["width"], box["y"] + row * box["height"]


def test_a_click_on_a_cell_makes_its_patch_a_change_with_the_same_number(visitor: Visitor) -> None:
    open_trace(visitor)
    place = centre(visitor, 0, 0.99, 2.5 / 4)  # the last row of the encoder, at the third of four tokens
    visitor.page.mouse.move(*place)
    visitor.page.wait_for_selector(".hoverlayer .hovertext", timeout=PATIENCE)
    told = visitor.page.text_content(".hoverlayer .hovertext")
    assert "encoder output, at three" in told
    number = float(re.search(r"([+−][\d.]+) of", told)[1].replace("−", "-"))
    visitor.page.mouse.click(*place)
    visitor.page.wait_for_selector("text=The model reads a given translation", timeout=PATIENCE)
    visitor.until(f"() => ({BARS})() !== null")
    assert sum(visitor.page.evaluate(BARS)) == pytest.approx(number, abs=0.006)
    assert number > 1
    address = visitor.params()
    assert address["changes"].startswith("patch_output_")
    assert (address["text"], address.get("view")) == (OTHER, None)
    assert visitor.page.input_value("input[aria-label='Sentence to translate']") == OTHER
    visitor.page.go_back()
    visitor.until("document.querySelectorAll('.stPlotlyChart .nsewdrag').length === 3")
    visitor.has(view="causal")
    assert not visitor.errors


def test_a_phone_scrolls_no_wider_than_its_screen(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    open_trace(visitor)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
