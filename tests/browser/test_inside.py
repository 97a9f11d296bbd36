"""The page "Inside a head" in Chromium."""

from __future__ import annotations

import pytest
from closed_form import CASES

from .conftest import Visitor, case_link

PAGE = "inside_a_head"
KEYS = ".st-key-inside-keys"


def hover(visitor: Visitor, chart: str, across: float, down: float) -> str:
    """The text under the pointer, at shares of a chart's width and height."""
    area = visitor.page.locator(f"{chart} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    visitor.page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
    visitor.until("document.querySelector('.hoverlayer .hovertext')")
    return str(visitor.page.locator(f"{chart} .hoverlayer").text_content())


def test_a_step_opens_the_next_query_and_hovering_shows_products(visitor: Visitor) -> None:
    visitor.open(PAGE, **case_link("copy", step="1"))
    visitor.until("document.querySelector('.stMain').innerText.includes('step 1 ·')")
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("document.querySelector('.stMain').innerText.includes('step 2 ·')")
    visitor.until("location.search.includes('step=2')")
    visitor.until(f"document.querySelector('{KEYS} .heatmaplayer image')")
    text = hover(visitor, KEYS, 0.01, 1.5 / len(CASES["copy"].source_tokens))
    assert "two, dimension 1" in text
    assert "×" in text
    assert "=" in text
    number = text.rsplit("=", 1)[1].replace("−", "-").split()[0]
    q, k = (part.split()[-1].replace("−", "-") for part in text.rsplit("=", 1)[0].split("×"))
    assert float(q) * float(k) == pytest.approx(float(number), abs=0.1)


def test_steps_back_show_the_same_step_above_and_below_the_cursor(visitor: Visitor) -> None:
    visitor.open(PAGE, **case_link("copy", step="4", kind="decoder", key="1"))
    for step in (3, 2, 1):
        visitor.page.click(".lv-button[aria-label='one back']")
        visitor.until(f"document.querySelector('.lv-count').innerText.includes('step {step} of')")
        visitor.until(f"document.querySelector('.stMain').innerText.includes('step {step} ·')")
        assert visitor.page.locator(".stException, .stAlert").count() == 0


def test_other_arithmetic_is_called_what_if_and_comes_back_from_its_link(visitor: Visitor) -> None:
    visitor.open(PAGE, **case_link("copy", step="2", kind="decoder", what_if="no-scale"))
    visitor.until("document.querySelector('.stMain').innerText.includes('what if: weight')")
    assert visitor.page.locator(".st-key-inside-saturation .scatterlayer .js-line").count() == 2
    text = visitor.page.inner_text(".stMain")
    assert "what if, not the model's computation" in text
    assert "softmax" in text
    assert "not verified" not in text


def test_the_page_does_not_scroll_sideways_on_a_phone(newcomer) -> None:
    visitor = newcomer()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.open(PAGE, **case_link("copy"))
    visitor.until("document.querySelectorAll('.js-plotly-plot').length > 8")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
