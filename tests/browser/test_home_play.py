"""Playing, presenting and the keys of the home page in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from closed_form import CASES

from .conftest import PATIENCE, Visitor, case_link

COUNT_ENTRIES = """() => {
  const push = history.pushState;
  window.entries = 0;
  history.pushState = (...entry) => { window.entries += 1; push.apply(history, entry); };
}"""
COUNT = "document.querySelector('.lv-count').textContent"
RUNNING = "document.querySelector('.lv').getAnimations({ subtree: true })"
TARGET = (
    "[...document.querySelectorAll('.lv-strip-target .lv-chip')].map(e => getComputedStyle(e).visibility)"
)
LINKS = """() => [...document.querySelectorAll(".lv-flow path")].map((path) => {
  const box = path.ownerSVGElement.getBoundingClientRect();
  const word = ({ x, y }, by) => document.elementsFromPoint(box.left + x, box.top + y + by)
    .find((node) => node.classList.contains("lv-word"))?.firstChild.textContent;
  return [word(path.getPointAtLength(0), -4), word(path.getPointAtLength(path.getTotalLength()), 4)];
})"""


def play(visitor: Visitor) -> None:
    visitor.page.get_by_label("Play", exact=True).click()


def painted(visitor: Visitor, step: int) -> None:
    """Waits until a step, counted from 0, is on the screen."""
    visitor.until(f"document.querySelector('.lv').dataset.painted === '{step}'")


# --- playing ------------------------------------------------------------------------------------------------


def test_play_starts_at_step_one_and_writes_the_address_once(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="3"))
    visitor.page.evaluate(COUNT_ENTRIES)
    play(visitor)
    assert visitor.count() == "step 1 of 5"
    visitor.until(f"{COUNT} === 'step 5 of 5'")
    visitor.until("location.search.includes('step=5')")
    assert visitor.page.evaluate("window.entries") == 1


def test_play_goes_on_where_it_was_stopped(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="4"))
    play(visitor)
    visitor.until(f"{COUNT} === 'step 2 of 5'")
    play(visitor)
    stopped = int(visitor.count().split()[1])
    play(visitor)
    assert int(visitor.count().split()[1]) == stopped + 1


def test_while_playing_the_target_appears_token_by_token(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="4"))
    assert visitor.page.evaluate(TARGET) == ["visible"] * 5
    play(visitor)
    assert visitor.page.evaluate(TARGET) == ["visible", *["hidden"] * 4]
    visitor.until(f"{COUNT} === 'step 3 of 5'")
    assert visitor.page.evaluate(TARGET) == [*["visible"] * 3, *["hidden"] * 2]
    visitor.until(f"{COUNT} === 'step 5 of 5' && !document.querySelector('.lv-playing')")
    assert visitor.page.evaluate(TARGET) == ["visible"] * 5


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_candidates_race_and_links_flow_unless_motion_is_unwanted(
    visitor: Visitor, motion: str, moves: bool
) -> None:
    visitor.page.emulate_media(reduced_motion=motion)
    visitor.open(**case_link("copy", step="4"))
    visitor.until(f"{RUNNING}.length === 0")
    clicked = "document.querySelector('[aria-label=Play]').click()"
    found = visitor.page.evaluate(f"{clicked}, {RUNNING}.map(e => e.effect.target.tagName)")
    assert ({"I", "path", "BUTTON"} <= set(found)) is moves
    assert bool(found) is moves


# --- what moves with the cursor -----------------------------------------------------------------------------


def test_the_bars_show_the_candidates_of_the_cursor_s_step(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="1"))
    for step, token in enumerate(CASES["copy"].target_tokens):
        painted(visitor, step)
        chosen = visitor.page.locator("[data-plot=next] .lv-chosen")
        assert chosen.locator(".lv-name").inner_text() == token.removeprefix("▁")
        share = float(chosen.get_attribute("title").split("probability ")[1].split(",")[0])
        scale = chosen.locator("i").evaluate("node => new DOMMatrix(node.style.transform).a")
        assert abs(scale - share) < 1e-3
        visitor.page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("name", CASES)
def test_links_run_from_the_token_that_is_read_to_the_one_that_is_written(
    visitor: Visitor, name: str
) -> None:
    case = CASES[name]
    visitor.open(**case_link(name, step="1"), cross="1.2")
    for step, written in enumerate(case.target_tokens):
        painted(visitor, step)
        read = case.source_tokens[case.keys("cross", 1)[step]]
        link = [[read.removeprefix("▁"), written.removeprefix("▁")]]
        visitor.until(f"link => JSON.stringify(({LINKS})()) === JSON.stringify(link)", link)
        visitor.page.keyboard.press("ArrowRight")


# --- presenting ---------------------------------------------------------------------------------------------


def test_presenting_shows_the_view_alone_and_is_in_the_address(newcomer: Callable[..., Visitor]) -> None:
    visitor = newcomer()
    visitor.open(**case_link("copy", step="2"))
    size = "parseFloat(getComputedStyle(document.querySelector('.lv-word')).fontSize)"
    usual = visitor.page.evaluate(size)
    visitor.page.get_by_role("button", name="Present").click()
    visitor.until("location.search.includes('present=yes')")
    assert visitor.page.evaluate(size) >= 1.4 * usual
    assert not visitor.page.get_by_label("Sentence to translate").is_visible()
    assert not visitor.page.get_by_test_id("stSidebar").is_visible()
    link = visitor.page.url
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('step=3')")
    visitor.page.keyboard.press("Escape")
    visitor.until("!location.search.includes('present')")
    visitor.page.get_by_label("Sentence to translate").wait_for(timeout=PATIENCE)
    other = newcomer()
    other.page.goto(link)
    other.ready()
    assert other.page.locator(".lv-present").count() == 1
    assert other.count() == "step 2 of 5"


def test_search_presents_as_its_address_says(visitor: Visitor) -> None:
    visitor.open("beam_search", **case_link("copy"), present="yes")
    visitor.page.locator(".lv-present").wait_for(timeout=PATIENCE)
    assert visitor.page.get_by_role("button", name="Leave").is_visible()


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
@pytest.mark.parametrize("page", ["", "cross_attention"])
def test_a_presented_map_fills_the_height_with_labels_twice_as_large(
    visitor: Visitor, page: str, size: tuple[int, int]
) -> None:
    visitor.page.set_viewport_size({"width": size[0], "height": size[1]})
    visitor.open(page, **case_link("copy", step="2"))
    label = "document.querySelector('[data-plot=cross] .xtick text')"
    usual = visitor.page.evaluate(f"parseFloat(getComputedStyle({label}).fontSize)")
    names = visitor.page.locator("[data-plot=cross] .xtick").count()
    visitor.page.get_by_role("button", name="Present").click()
    visitor.until(f"parseFloat(getComputedStyle({label}).fontSize) >= 1.95 * {usual}")
    box = visitor.page.locator("[data-plot=cross] .lv-plot").bounding_box()
    assert box["height"] > 0.65 * size[1]
    assert box["y"] + box["height"] <= size[1]
    assert visitor.page.locator("[data-plot=cross] .xtick").count() == names
    visitor.page.get_by_role("button", name="Leave").click()
    visitor.until("!document.querySelector('.lv-present')")
    visitor.until(f"parseFloat(getComputedStyle({label}).fontSize) === {usual}")


def test_a_clicker_steps_only_while_somebody_presents(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="2"))
    visitor.page.focus(".lv")
    visitor.page.keyboard.press("PageDown")
    visitor.page.keyboard.press("p")
    visitor.page.locator(".lv-present").wait_for(timeout=PATIENCE)
    assert visitor.count() == "step 2 of 5"
    visitor.page.keyboard.press("PageDown")
    visitor.until(f"{COUNT} === 'step 3 of 5'")
    visitor.page.keyboard.press("PageUp")
    visitor.until(f"{COUNT} === 'step 2 of 5'")
    visitor.page.keyboard.press("Escape")


def test_presenting_offers_every_map_and_draws_one(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="2"), present="yes")
    assert visitor.page.locator(".lv-cell:visible").count() == 1
    visitor.page.locator(".lv-choice button", has_text="Encoder").click()
    visitor.page.locator("[data-plot=encoder] .lv-sheet").wait_for(timeout=PATIENCE)
    assert visitor.page.locator(".lv-cell:visible").count() == 1


def test_a_page_without_a_map_of_its_own_does_not_present(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/inside_a_head?{urlencode(case_link('copy'))}&present=yes")
    visitor.page.locator(".lv-count").wait_for(timeout=PATIENCE)
    assert visitor.page.locator(".lv-present").count() == 0
    assert visitor.page.get_by_role("button", name="Present").count() == 0


# --- the keys -----------------------------------------------------------------------------------------------


def test_keys_work_without_a_click_into_the_view(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="1"))
    assert visitor.page.evaluate("document.activeElement === document.body")
    visitor.page.keyboard.press("ArrowRight")
    visitor.until(f"{COUNT} === 'step 2 of 5'")
    visitor.page.keyboard.press("End")
    visitor.until(f"{COUNT} === 'step 5 of 5'")
    visitor.page.locator(".headline").click()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.until(f"{COUNT} === 'step 4 of 5'")
    visitor.page.keyboard.press("ArrowDown")
    visitor.until("location.search.includes('source=')")


def test_keys_stay_with_what_is_typed_or_chosen(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="2"))
    visitor.page.get_by_label("Head of encoder self-attention").focus()
    for key in ("p", "?"):
        visitor.page.keyboard.press(key)
    # The box comes last: whoever leaves it gets a translation of what was typed.
    box = visitor.page.get_by_label("Sentence to translate")
    box.focus()
    for key in ("ArrowLeft", "Home", "?", "p", " "):
        box.press(key)
    assert box.input_value() == f"?p {CASES['copy'].sentence}"
    assert visitor.count() == "step 2 of 5"
    assert visitor.page.locator(".lv-present").count() == 0
    assert visitor.page.locator(".lv-keys").is_hidden()


def test_keys_that_scroll_stay_with_a_page_that_scrolls(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1400, "height": 500})
    visitor.open("cross_attention", **case_link("copy", step="2"))
    for key in ("End", "ArrowDown", " "):
        visitor.page.keyboard.press(key)
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('step=3')")
    assert "source" not in visitor.params()


def test_a_question_mark_lists_the_keys_and_escape_closes_the_list(visitor: Visitor) -> None:
    visitor.open(**case_link("copy"))
    listed = visitor.page.locator(".lv-keys")
    visitor.page.keyboard.press("?")
    listed.wait_for(timeout=PATIENCE)
    told = listed.inner_text()
    for word in ("step", "key token", "play", "present"):
        assert word in told
    visitor.page.keyboard.press("Escape")
    assert listed.is_hidden()
    assert visitor.page.evaluate("document.activeElement.classList.contains('lv')")
