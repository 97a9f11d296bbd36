"""The study sections of the page Language model in Chromium: clicks choose."""

from __future__ import annotations

from .conftest import Visitor

CELL = """([layer, head]) => {
  const chart = document.querySelector(".st-key-induction-scores .js-plotly-plot");
  const layout = chart._fullLayout, box = chart.getBoundingClientRect();
  return [box.left + layout._size.l + layout.xaxis.l2p(head),
    box.top + layout._size.t + layout.yaxis.l2p(layer)];
}"""
"""The middle of a head's cell, in px of the page."""
DOT = """word => {
  const chart = document.querySelector(".st-key-words-in-space .js-plotly-plot"), layout = chart._fullLayout;
  chart.scrollIntoView({ block: "center" });
  const traces = chart._fullData.filter((each) => each.mode === "markers+text");
  const trace = traces.find((each) => Array.from(each.customdata).includes(word));
  const at = Array.from(trace.customdata).indexOf(word), box = chart.getBoundingClientRect();
  return [box.left + layout._size.l + layout.xaxis.l2p(trace.x[at]),
    box.top + layout._size.t + layout.yaxis.l2p(trace.y[at])];
}"""
"""The dot of a word, in px of the page."""
SAID = "told => document.querySelector('.stMain').innerText.includes(told)"


def opened(visitor: Visitor, view: str, **params: str) -> None:
    visitor.painted("language_model", model="language/lm-en", view=view, **params)


def test_a_click_on_a_tile_chooses_its_head_and_back_returns(visitor: Visitor) -> None:
    opened(visitor, "induction", decoder="1.1")
    visitor.until(SAID, "head 1 of layer 1 on 8 random pieces")
    visitor.page.mouse.click(*visitor.page.evaluate(CELL, [3, 6]))
    visitor.until("location.search.includes('decoder=4.7')")
    visitor.until(SAID, "head 7 of layer 4 on 8 random pieces")
    visitor.page.go_back()
    visitor.until(SAID, "head 1 of layer 1 on 8 random pieces")


def test_a_click_on_a_dot_chooses_its_word(visitor: Visitor) -> None:
    opened(visitor, "space")
    visitor.page.mouse.click(*visitor.page.evaluate(DOT, 11))
    visitor.until("location.search.includes('word=')")


def test_on_a_phone_no_section_is_wider_than_the_page(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    for view in ("induction", "space"):
        opened(visitor, view)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
