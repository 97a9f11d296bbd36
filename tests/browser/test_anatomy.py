"""The page Anatomy in Chromium."""

from __future__ import annotations

from .conftest import Visitor, box_of, case_link


def test_a_click_on_a_box_opens_the_part_and_back_returns(visitor: Visitor) -> None:
    visitor.open("whole_model", **case_link("copy", step="2"))
    visitor.until("document.querySelector('.st-key-anatomy-norms .js-plotly-plot')")
    first = visitor.page.locator(".js-plotly-plot .nsewdrag").first
    first.scroll_into_view_if_needed()
    box = box_of(first)
    rows = 11
    slot = box["height"] / (rows + 0.65)
    x = box["x"] + box["width"] * (2.0 + 1.0) / 4.2
    visitor.page.mouse.click(x, box["y"] + box["height"] - slot * (0.75 + 1))
    visitor.until("location.search.includes('part=decoder-attention')")
    visitor.until("document.querySelector('.stMain').innerText.includes('masked self-attention, layer 1')")
    visitor.page.go_back()
    visitor.until("!location.search.includes('part=')")


def test_a_step_moves_the_logit_lens_and_a_phone_does_not_scroll_sideways(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.open("whole_model", **case_link("copy", step="1", part="output"))
    visitor.until("document.querySelector('.stMain').innerText.includes('Written at this step: “eins”')")
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("document.querySelector('.stMain').innerText.includes('Written at this step: “zwei”')")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
