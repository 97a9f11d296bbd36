"""The page "Inside a head" in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from closed_form import CASES

from .conftest import PATIENCE, Visitor, box_of, case_link

PAGE = "inside_a_head"
KEYS = "[data-picture=keys]"
FILLED = "document.querySelector('.pic[data-drawn]')"


def opened(visitor: Visitor, section: str, **params: str) -> None:
    """Opens a step and waits for a figure."""
    visitor.open(PAGE, section=section, **params)
    visitor.until(FILLED)


def hover(visitor: Visitor, picture: str, across: float, down: float) -> str:
    """The text under the pointer, at shares of a drawing's width and height."""
    plot = visitor.page.locator(f"{picture} .pic-plot")
    plot.scroll_into_view_if_needed()
    box = box_of(plot)
    visitor.page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
    visitor.page.wait_for_selector(f"{picture} .pic-tip:not([hidden])")
    return str(visitor.page.inner_text(f"{picture} .pic-tip"))


def test_a_step_draws_what_depends_on_it_and_hovering_shows_products(
    visitor: Visitor, tmp_path: Path
) -> None:
    opened(visitor, "heads", **case_link("copy", step="1"))
    visitor.until("document.querySelectorAll('.pic[data-drawn]').length === 4")
    times = "[...document.querySelectorAll('.pic')].map((e) => [e.dataset.picture, Number(e.dataset.drawn)])"
    before = dict(visitor.page.evaluate(times))
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until(
        f"Number(document.querySelector('[data-picture=stream]').dataset.drawn) > {before['stream']}"
    )
    after = dict(visitor.page.evaluate(times))
    assert {name for name in before if after[name] == before[name]} == {"output matrix"}
    visitor.until("location.search.includes('step=2')")
    opened(visitor, "products", **case_link("copy", step="2"))
    text = hover(visitor, KEYS, 0.2, 1.5 / (len(CASES["copy"].source_tokens) + 1.5))
    assert "two, dimension " in text
    number = text.rsplit("=", 1)[1].replace("−", "-").split()[0]
    q, k = (part.split()[-1].replace("−", "-") for part in text.rsplit("=", 1)[0].split("×"))
    assert float(q) * float(k) == pytest.approx(float(number), abs=0.1)
    opened(visitor, "weights", **case_link("copy", step="1"))
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("document.querySelector('[data-slot=\"weights.scores\"]').innerText.includes('step 2 ·')")
    visitor.page.locator(".st-key-inside-section-weights").get_by_role("button", name="export").click()
    visitor.page.wait_for_selector(".export-row button", timeout=PATIENCE)
    with visitor.page.expect_download(timeout=PATIENCE) as waiting:
        visitor.page.locator(".export-row").get_by_role("button", name="SVG", exact=True).click()
    waiting.value.save_as(tmp_path / "scores.svg")
    saved = (tmp_path / "scores.svg").read_text()
    for part in ("softmax", "step 2", "amber negative", "verified"):
        assert part in saved, part


def test_steps_back_show_the_same_step_above_and_below_the_cursor(visitor: Visitor) -> None:
    opened(visitor, "products", **case_link("copy", step="4", kind="decoder", key="1"))
    for step in (3, 2, 1):
        visitor.page.click(".lv-button[aria-label='One back']")
        visitor.until(f"document.querySelector('.lv-count').innerText.includes('step {step} of')")
        visitor.until(f"document.querySelector('.stMain').innerText.includes('step {step} ·')")
        assert visitor.page.locator(".stException, .stAlert").count() == 0


def test_other_arithmetic_is_called_what_if_and_does_not_scroll_sideways_on_a_phone(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    opened(visitor, "weights", **case_link("copy", step="2", kind="decoder", what_if="no-scale"))
    visitor.until("document.querySelector('.stMain').innerText.includes('what if: weight')")
    visitor.until(
        "document.querySelectorAll('[data-picture=saturation] .scatterlayer .js-line').length === 2"
    )
    text = visitor.page.inner_text(".stMain")
    assert "what if, not the model's computation" in text
    assert "softmax" in text
    assert "not verified" not in text
    for box in ("document.documentElement", "document.querySelector('.stMain')"):
        assert visitor.read(f"{box}.scrollWidth") <= 390
