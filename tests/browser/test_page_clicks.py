"""Pages of single subjects in Chromium: clicks on pictures and controls write addresses; Back
undoes it."""

import re
from pathlib import Path
from typing import Any

import pytest
from closed_form import CASES

from transformer import load_translator

from .conftest import PATIENCE, Visitor, box_of, case_link, playwright_api
from .test_export import download

COUNT = "told => document.querySelector('.lv-count')?.textContent === told"
SAYS = "text => document.querySelector('.stMain').innerText.includes(text)"
DRAWN = "document.querySelector('.stMain .main-svg')"


# --- the three kinds -----------------------------------------------------------------------------


def test_every_control_is_reached_by_tab_and_the_row_of_the_cursor_follows_the_step(
    visitor: Visitor,
) -> None:
    visitor.open("cross_attention", **case_link("copy", step="1"))
    visitor.press(*["Tab"] * 4)
    visitor.page.keyboard.press("Shift+Tab")
    reached = []
    visitor.page.focus(".lv")
    for _ in range(4):
        visitor.page.keyboard.press("Tab")
        reached.append(visitor.page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert reached == ["One back", "Cursor", "One forward", "Play"]
    assert visitor.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    visitor.press("ArrowRight")
    row = "document.querySelector('[data-plot=row] .gtitle')?.textContent"
    visitor.until(f"{row}.includes('predicts zwei: Σ = 1.00')")
    click_on_a_tile_opens_its_head(visitor, "cross")


def test_decoding_fades_later_rows_and_training_does_not(visitor: Visitor) -> None:
    visitor.open("decoder_self_attention", **case_link("copy", step="2"))
    assert visitor.page.locator("[data-plot=decoder] .lv-fade").is_visible()
    visitor.page.get_by_role("radio", name="as trained").click()
    visitor.until("document.querySelector('[data-plot=decoder] .lv-fade')?.hidden")
    visitor.has(view="trained")
    assert "teacher forcing" in visitor.told()
    visitor.ready()
    click_on_a_tile_opens_its_head(visitor, "decoder")


def click_on_a_tile_opens_its_head(visitor: Visitor, kind: str) -> None:
    """Clicks the second of two heads among the tiles."""
    box = box_of(visitor.page.locator("[data-plot=overview] .nsewdrag"))
    visitor.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"])
    visitor.until(
        f"document.querySelector('[data-plot={kind}] .lv-title')?.textContent.includes('L1 H2')"
    )
    visitor.has(**{kind: "1.2"})
    visitor.ready()


# --- a control, and Back -------------------------------------------------------------------------

CHOICES = {
    "recurrent": ({}, "dot product", {"score": "dot"}, "recurrent/dot", "recurrent/additive"),
    "positions": (
        {"base": "100"},
        "ALiBi",
        {"encoding": "alibi"},
        "Bias by distance in every layer of the encoder",
        "base 100",
    ),
}
"""Pages: their address, the choice that is clicked, what it adds to the address, words after and
before."""


def test_a_choice_is_in_the_address_and_back_undoes_it(visitor: Visitor) -> None:
    for page, (params, label, added, after, before) in CHOICES.items():
        visitor.go(page, DRAWN, **params)
        visitor.until(SAYS, before)
        visitor.page.get_by_role("radio", name=label).click()
        visitor.has(**added)
        visitor.until(SAYS, after)
        visitor.page.go_back()
        visitor.until(SAYS, before)
        assert not added.keys() & visitor.params().keys()


def test_local_attention_marks_its_centres_on_the_map(visitor: Visitor) -> None:
    points = "document.querySelectorAll('.stMain .js-plotly-plot .scatterlayer .point').length > 2"
    visitor.go("recurrent", points, score="local")
    visitor.until(SAYS, "its centre is position")


# --- alignment -----------------------------------------------------------------------------------

LINKS = "document.querySelectorAll('.js-plotly-plot .shapelayer path').length"


def click_cell(visitor: Visitor, row: int, column: int, shape: tuple[int, int], name: str) -> None:
    """Clicks a cell of the only map (rows, columns), once the pointer is told which one it is
    on."""
    area = visitor.page.locator(".js-plotly-plot .nsewdrag").first
    hover = visitor.page.locator(".hoverlayer .hovertext").filter(has_text=name)
    for _ in range(100):
        box = box_of(area)
        x = (column + 0.5) / shape[1] * box["width"]
        y = (row + 0.5) / shape[0] * box["height"]
        visitor.page.mouse.move(box["x"] + x - 3, box["y"] + y)
        visitor.page.mouse.move(box["x"] + x, box["y"] + y)
        try:
            hover.wait_for(timeout=1_000)
        except playwright_api.TimeoutError:
            continue
        visitor.page.mouse.click(box["x"] + x, box["y"] + y)
        return
    raise AssertionError(f"The pointer never was on {name}.")


def test_a_click_draws_a_link_and_a_second_one_takes_it_back(visitor: Visitor) -> None:
    text = "one two three four stop"
    visitor.go("cross_attention", DRAWN, view="alignment", model="copy", text=text)
    for row, column, name, pairs in (
        (1, 2, "zwei – three", "3-2"),
        (0, 0, "eins – one", "1-1,3-2"),
        (1, 2, "zwei – three", "1-1"),
    ):
        click_cell(visitor, row, column, (4, 5), name)
        visitor.has(pairs=pairs)
        visitor.until(f"{LINKS} === {len(pairs.split(','))}")
    visitor.page.go_back()
    visitor.until(f"{LINKS} === 2")


# --- the whole model, heads, training ------------------------------------------------------------


def test_a_step_moves_the_logit_lens_and_a_click_on_a_box_opens_the_part(visitor: Visitor) -> None:
    visitor.open("whole_model", **case_link("copy", step="1", part="output"))
    visitor.until(SAYS, "Written at this step: “eins”")
    visitor.press("ArrowRight")
    visitor.until(SAYS, "Written at this step: “zwei”")
    visitor.phone()
    visitor.rested()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    visitor.desk()
    visitor.rested()
    visitor.until("document.querySelector('.st-key-anatomy-lens .js-plotly-plot')")
    first = visitor.page.locator(".js-plotly-plot .nsewdrag").first
    first.scroll_into_view_if_needed()
    box = box_of(first)
    slot = box["height"] / (11 + 0.65)
    x = box["x"] + box["width"] * (2.0 + 1.0) / 4.2
    visitor.page.mouse.click(x, box["y"] + box["height"] - slot * (0.75 + 1))
    visitor.has(part="decoder-attention")
    visitor.until(SAYS, "masked self-attention, layer 1")
    visitor.page.go_back()
    visitor.has(part="output")


def test_a_click_chooses_a_head_and_an_example_opens_its_view(visitor: Visitor) -> None:
    link = {"model": "copy", "kind": "encoder", "encoder": "1.1", "facet": "sentences"}
    ask = visitor.page.get_by_role("button", name="sentences here")
    roles = visitor.page.get_by_text("The roles").first
    visitor.page.goto(f"{visitor.base}/heads?" + "&".join(map("=".join, link.items())))
    ask.or_(roles).first.wait_for(timeout=PATIENCE)
    if ask.is_visible():
        ask.click()
    roles.wait_for(timeout=PATIENCE)
    visitor.until("document.querySelectorAll('.stPlotlyChart .nsewdrag').length === 1")
    visitor.phone()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    visitor.desk()
    assert visitor.page.locator("h5", has_text="L1 H1 · next token").count() == 1
    visitor.rested()
    box = box_of(visitor.page.locator(".stPlotlyChart .nsewdrag"))
    visitor.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    chosen = visitor.page.locator("h5", has_text="L1 H2 · previous token")
    chosen.wait_for(timeout=PATIENCE)
    visitor.has(encoder="1.2")
    # The heading is drawn before the links below it have heard of the choice.
    visitor.page.locator(".stMain [data-testid=stPageLink] a[href*='encoder=1.2']").first.click()
    visitor.ready()
    assert "encoder_self_attention" in visitor.page.url
    visitor.has(encoder="1.2")
    visitor.page.go_back()
    chosen.wait_for(timeout=PATIENCE)


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


def test_a_click_on_a_bar_chooses_its_position_everywhere(visitor: Visitor) -> None:
    link = {"model": "random", "text": "one two three", "target": "eins drei zwei"}
    visitor.go("training", DRAWN, **link, step="1")
    visitor.until(MARKED, 0)
    visitor.page.mouse.click(*visitor.read(BAR, 2))
    visitor.has(step="3")
    visitor.until(MARKED, 2)
    visitor.until(CLEAR)
    visitor.page.get_by_role("radio", name="loss").click()
    visitor.until(SAYS, "At position 3")


# --- search --------------------------------------------------------------------------------------

SPOT = """place => {
  const chart = document.querySelector(".st-key-search-tree .js-plotly-plot");
  const trace = chart._fullData.find((each) => each.customdata);
  const at = [...trace.customdata].indexOf(place), layout = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.left + layout._size.l + layout.xaxis.l2p(trace.x[at]),
    box.top + layout._size.t + layout.yaxis.l2p(trace.y[at])];
}"""
"""Where a token of the tree is, in px of the page."""


def test_a_token_of_the_tree_shows_its_map_and_the_search_continues_from_it(
    visitor: Visitor, models: Path
) -> None:
    text = "one two three"
    tree: Any = load_translator(models / "random").translate(text, beam_size=4, tree=True).tree
    node = next(
        i for i, each in enumerate(tree.nodes) if each.step == 1 and not each.won and not each.ended
    )
    visitor.open("beam_search", model="random", text=text, decode="beam-4")
    visitor.page.wait_for_selector(".stPlotlyChart .main-svg", timeout=PATIENCE)
    visitor.page.mouse.click(*visitor.read(SPOT, node))
    visitor.until(COUNT, "step 2 of 2")
    visitor.ready()
    visitor.has(node=str(node + 1))
    visitor.proved()
    badges = visitor.page.locator(".lv-badge").all_inner_texts()
    assert badges
    assert all("✓" in badge for badge in badges)
    visitor.page.get_by_role("button", name="Continue from here").click()
    visitor.until(
        "location.search.includes('changes=prefix') && !location.search.includes('node=')"
    )
    visitor.until("Number(document.querySelector('.lv-count')?.textContent.split(' of ')[1]) > 2")
    visitor.ready()
    assert "node" not in visitor.params()
    visitor.page.go_back()
    visitor.until(COUNT, "step 2 of 2")
    visitor.has(node=str(node + 1))
    assert "changes" not in visitor.params()


# --- inside a head -------------------------------------------------------------------------------

FILLED = "document.querySelector('.pic[data-drawn]')"
TIMES = """Object.fromEntries([...document.querySelectorAll('.pic')].map(
  (each) => [each.dataset.picture, Number(each.dataset.drawn)]))"""


def test_a_step_draws_what_depends_on_it(visitor: Visitor) -> None:
    visitor.open("inside_a_head", **case_link("copy", step="1", section="heads"))
    visitor.until("document.querySelectorAll('.pic[data-drawn]').length === 4")
    before = visitor.read(TIMES)
    visitor.press("ArrowRight")
    visitor.until(f"({TIMES}).stream > {before['stream']}")
    after = visitor.read(TIMES)
    assert {name for name in before if after[name] == before[name]} == {"output matrix"}
    visitor.has(step="2")


def test_steps_back_show_the_same_step_above_and_below_the_cursor(visitor: Visitor) -> None:
    visitor.open(
        "inside_a_head", **case_link("copy", step="4", section="products", kind="decoder", key="1")
    )
    visitor.until(FILLED)
    for step in (3, 2, 1):
        visitor.page.click(".lv-button[aria-label='One back']")
        visitor.until(f"document.querySelector('.lv-count').innerText.includes('step {step} of')")
        visitor.until(SAYS, f"step {step} ·")
        assert visitor.page.locator(".stException, .stAlert").count() == 0


def test_under_the_pointer_are_products(visitor: Visitor) -> None:
    visitor.open("inside_a_head", **case_link("copy", step="2", section="products"))
    visitor.until(FILLED)
    plot = visitor.page.locator("[data-picture=keys] .pic-plot")
    plot.scroll_into_view_if_needed()
    box = box_of(plot)
    down = 1.5 / (len(CASES["copy"].source_tokens) + 1.5)
    visitor.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + down * box["height"])
    tip = visitor.page.wait_for_selector("[data-picture=keys] .pic-tip:not([hidden])")
    text = tip.inner_text().replace("−", "-")
    assert "two, dimension " in text
    found = re.search(r"(-?[\d.]+) × .*?(-?[\d.]+) = (-?[\d.]+)", text)
    assert found is not None, text
    q, k, product = map(float, found.groups())
    assert q * k == pytest.approx(product, abs=0.1)


def test_the_formula_of_a_step_is_exported(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open("inside_a_head", **case_link("copy", step="1", section="weights"))
    visitor.until(FILLED)
    visitor.press("ArrowRight")
    visitor.until(
        "document.querySelector('[data-slot=\"weights.scores\"]').innerText.includes('step 2 ·')"
    )
    visitor.page.locator(".st-key-inside-section-weights").get_by_role(
        "button", name="export"
    ).click()
    visitor.page.wait_for_selector(".export-row button", timeout=PATIENCE)
    saved = download(visitor, visitor.page.locator(".export-row"), "SVG", tmp_path).read_text()
    for part in ("softmax", "step 2", "amber negative", "verified"):
        assert part in saved, part
