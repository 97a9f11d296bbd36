"""The page Search in Chromium: choose a token of the tree, see its map, continue from there, and go back."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer import load_translator

from .conftest import PATIENCE, Visitor

TEXT = "one two three"
SPOT = """place => {
  const chart = document.querySelector(".st-key-search-tree .js-plotly-plot");
  const trace = chart._fullData.find((each) => each.customdata);
  const at = [...trace.customdata].indexOf(place), layout = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.left + layout._size.l + layout.xaxis.l2p(trace.x[at]),
    box.top + layout._size.t + layout.yaxis.l2p(trace.y[at])];
}"""
"""Where a token of the tree is, in px of the page."""


COUNT = "told => document.querySelector('.lv-count')?.textContent === told"
LONGER = "Number(document.querySelector('.lv-count')?.textContent.split(' of ')[1]) > 2"


def opened(visitor: Visitor, **params: str) -> None:
    visitor.open("beam_search", model="random", text=TEXT, **params)
    visitor.page.wait_for_selector(".stPlotlyChart .main-svg", timeout=PATIENCE)


def test_a_token_of_the_tree_shows_its_map_and_the_search_continues_from_it(
    visitor: Visitor, models: Path
) -> None:
    tree = load_translator(models / "random").translate(TEXT, beam_size=4, tree=True).tree
    assert tree is not None
    node = next(i for i, each in enumerate(tree.nodes) if each.step == 1 and not each.won and not each.ended)
    opened(visitor, decode="beam-4")
    visitor.page.mouse.click(*visitor.read(SPOT, node))
    visitor.until(COUNT, "step 2 of 2")
    visitor.ready()
    visitor.has(node=str(node + 1))
    badges = visitor.page.locator(".lv-badge").all_inner_texts()
    assert badges
    assert all("✓" in each for each in badges)
    visitor.page.get_by_role("button", name="Continue from here").click()
    visitor.until("location.search.includes('changes=prefix')")
    visitor.until("!location.search.includes('node=')")
    visitor.until(LONGER)
    visitor.ready()
    assert "node" not in visitor.params()
    visitor.page.go_back()
    visitor.until(COUNT, "step 2 of 2")
    visitor.has(node=str(node + 1))
    assert "changes" not in visitor.params()


def test_a_deep_link_opens_the_samples_with_their_settings(visitor: Visitor) -> None:
    opened(visitor, view="sampling", draws="3", temperature="1.2", top_k="5", seed="4")
    line = "3 samples, temperature 1.2, top-k 5, seeds 4 to 6"
    assert line in visitor.page.inner_text(".stMain")


@pytest.mark.nightly
def test_on_a_phone_a_wide_tree_scrolls_in_its_own_frame(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    opened(visitor, decode="beam-8")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    frame = "document.querySelector('.st-key-frame-search-tree')"
    assert visitor.read(f"{frame}.scrollWidth > {frame}.clientWidth")
