"""The page Training in Chromium: clicks choose a position, a phone scrolls only pictures, snapshots play."""

from __future__ import annotations

from .conftest import Visitor

TEXT = "one two three"
OWN = "eins drei zwei"
BAR = """place => {
  const chart = document.querySelector(".st-key-shifted .js-plotly-plot");
  const trace = chart._fullData.find((each) => each.type === "bar"), layout = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.left + layout._size.l + layout.xaxis.l2p(place),
    box.top + layout.yaxis._offset + layout.yaxis.l2p(trace.y[place] / 2)];
}"""
"""The middle of a bar, in px of the page."""
MARKED = """place => {
  const chart = document.querySelector(".st-key-shifted .js-plotly-plot");
  const colors = chart?._fullData?.find((each) => each.type === "bar")?.marker.color ?? [];
  return colors.length > 1 && colors.every((each, i) => (each === colors[place]) === (i === place));
}"""
CLEAR = """[...document.querySelectorAll(".st-key-shifted .textpoint text")]
  .every((each) => getComputedStyle(each).opacity === "1" && each.style.fillOpacity !== "0.2")"""


def opened(visitor: Visitor, **params: str) -> None:
    visitor.painted("training", **{"model": "random", "text": TEXT, "target": OWN, **params})


def test_a_click_on_a_bar_chooses_its_position_everywhere(visitor: Visitor) -> None:
    opened(visitor, step="1")
    visitor.until(MARKED, 0)
    visitor.page.mouse.click(*visitor.read(BAR, 2))
    visitor.until("location.search.includes('step=3')")
    visitor.until(MARKED, 2)
    visitor.until(CLEAR)
    visitor.page.get_by_role("radio", name="loss").click()
    visitor.until("document.querySelector('.stMain').innerText.includes('At position 3')")


def test_on_a_phone_the_picture_scrolls_in_its_own_frame(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    opened(visitor)
    frame = "document.querySelector('.st-key-frame-shifted')"
    visitor.until(f"{frame}.scrollWidth > {frame}.clientWidth")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
