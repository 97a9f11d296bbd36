"""Playing, presenting and the keys of the home page in Chromium."""

from collections.abc import Callable

import pytest
from closed_form import CASES

from .conftest import PATIENCE, Visitor, box_of, case_link

COUNT_ENTRIES = """() => {
  const push = history.pushState;
  window.entries = 0;
  history.pushState = (...entry) => { window.entries += 1; push.apply(history, entry); };
}"""
COUNT = "document.querySelector('.lv-count').textContent"
RUNNING = "document.querySelector('.lv').getAnimations({ subtree: true })"
TARGET = (
    "[...document.querySelectorAll('.lv-strip-target .lv-chip')].map(e => "
    "getComputedStyle(e).visibility)"
)


def play(visitor: Visitor) -> None:
    visitor.page.get_by_label("Play", exact=True).click()


def painted(visitor: Visitor, step: int) -> None:
    """Waits until a step, counted from 0, is on the screen."""
    visitor.until(f"document.querySelector('.lv').dataset.painted === '{step}'")


# --- playing -------------------------------------------------------------------------------------


def test_play_starts_at_step_one_and_writes_the_address_once(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="4"))
    visitor.page.evaluate(COUNT_ENTRIES)
    assert visitor.page.evaluate(TARGET) == ["visible"] * 5
    play(visitor)
    assert visitor.count() == "step 1 of 5"
    assert visitor.page.evaluate(TARGET) == ["visible", *["hidden"] * 4]
    visitor.until(f"{COUNT} === 'step 3 of 5'")
    assert visitor.page.evaluate(TARGET) == [*["visible"] * 3, *["hidden"] * 2]
    visitor.until(f"{COUNT} === 'step 5 of 5' && !document.querySelector('.lv-playing')")
    assert visitor.page.evaluate(TARGET) == ["visible"] * 5
    visitor.until("location.search.includes('step=5')")
    assert visitor.page.evaluate("window.entries") == 1
    goes_on_where_it_was_stopped(visitor)


def goes_on_where_it_was_stopped(visitor: Visitor) -> None:
    """Plays from the first step, stops, and plays on."""
    play(visitor)
    visitor.until(f"{COUNT} === 'step 2 of 5'")
    play(visitor)
    stopped = int(visitor.count().split()[1])
    play(visitor)
    assert int(visitor.count().split()[1]) == stopped + 1


def test_candidates_race_and_links_flow_unless_motion_is_unwanted(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="4"))
    for motion, moves in (("reduce", False), ("no-preference", True)):
        visitor.page.emulate_media(reduced_motion=motion)
        visitor.until(f"{RUNNING}.length === 0")
        clicked = "document.querySelector('[aria-label=Play]').click()"
        found = visitor.page.evaluate(f"{clicked}, {RUNNING}.map(e => e.effect.target.tagName)")
        assert ({"I", "path", "BUTTON"} <= set(found)) is moves is bool(found), motion
        play(visitor)


# --- presenting ----------------------------------------------------------------------------------


def test_presenting_shows_the_view_alone_and_is_in_the_address(
    newcomer: Callable[..., Visitor],
) -> None:
    visitor = newcomer()
    visitor.open(**case_link("copy", step="2"))
    size = "parseFloat(getComputedStyle(document.querySelector('.lv-word')).fontSize)"
    usual = visitor.read(size)
    visitor.press("PageDown")  # which is a key of the page unless it is presented
    assert visitor.count() == "step 2 of 5"
    visitor.page.keyboard.press("p")
    visitor.has(present="yes")
    assert visitor.read(size) >= 1.4 * usual
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
    other.page.focus(".lv")
    for key, step in (("PageDown", 3), ("PageUp", 2)):  # of a clicker
        other.page.keyboard.press(key)
        other.until(f"{COUNT} === 'step {step} of 5'")
    assert other.page.locator(".lv-cell:visible").count() == 1
    other.page.locator(".lv-choice button", has_text="Encoder").click()
    other.page.locator("[data-plot=encoder] .lv-sheet").wait_for(timeout=PATIENCE)
    assert other.page.locator(".lv-cell:visible").count() == 1


@pytest.mark.parametrize("page", ["", "cross_attention"])
def test_a_presented_map_fills_the_height_with_labels_twice_as_large(
    visitor: Visitor, page: str
) -> None:
    visitor.open(page, **case_link("copy", step="2"))
    for width, height in ((1280, 720), (1920, 1080)):
        visitor.page.set_viewport_size({"width": width, "height": height})
        visitor.until(f"document.querySelector('.lv').dataset.fitted === '{width}x{height}'")
        presented_map_fills(visitor, height)


def presented_map_fills(visitor: Visitor, height: int) -> None:
    """Presents the map, looks at its size, and leaves."""
    label = "document.querySelector('[data-plot=cross] .xtick text')"
    usual = visitor.read(f"parseFloat(getComputedStyle({label}).fontSize)")
    names = visitor.page.locator("[data-plot=cross] .xtick").count()
    visitor.page.get_by_role("button", name="Present").click()
    visitor.until(f"parseFloat(getComputedStyle({label}).fontSize) >= 1.95 * {usual}")
    box = box_of(visitor.page.locator("[data-plot=cross] .lv-plot"))
    assert box["height"] > 0.65 * height
    assert box["y"] + box["height"] <= height
    assert visitor.page.locator("[data-plot=cross] .xtick").count() == names
    visitor.page.get_by_role("button", name="Leave").click()
    visitor.until("!document.querySelector('.lv-present')")
    visitor.until(f"parseFloat(getComputedStyle({label}).fontSize) === {usual}")


# --- the keys ------------------------------------------------------------------------------------


def test_arrows_move_step_and_key_token_without_a_click_into_the_view(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="1", source="2"))
    assert visitor.page.evaluate("document.activeElement === document.body")
    visitor.page.keyboard.press("ArrowRight")
    painted(visitor, 1)
    assert visitor.count() == "step 2 of 5"
    visitor.until("location.search.includes('step=2')")
    assert "zwei" in visitor.page.inner_text("[data-plot=cross] .lv-about")
    assert "predicts zwei" in visitor.page.inner_text(".lv-live")
    visitor.page.keyboard.press("End")
    visitor.until(f"{COUNT} === 'step 5 of 5'")
    visitor.page.locator(".headline").click()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.until(f"{COUNT} === 'step 4 of 5'")
    visitor.page.keyboard.press("ArrowDown")
    visitor.until("location.search.includes('source=3')")
    assert "key three" in visitor.page.inner_text(".lv-live")


def test_a_question_mark_lists_the_keys_which_stay_with_what_is_typed_or_chosen(
    visitor: Visitor,
) -> None:
    visitor.open(**case_link("copy", step="2"))
    listed = visitor.page.locator(".lv-keys")
    visitor.page.keyboard.press("?")
    listed.wait_for(timeout=PATIENCE)
    told = listed.inner_text()
    for word in ("step", "key token", "play", "present"):
        assert word in told
    visitor.page.keyboard.press("Escape")
    assert listed.is_hidden()
    assert visitor.page.evaluate("document.activeElement.classList.contains('lv')")
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
    assert listed.is_hidden()


def test_keys_that_scroll_stay_with_a_page_that_scrolls(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1400, "height": 500})
    visitor.open("cross_attention", **case_link("copy", step="2"))
    for key in ("End", "ArrowDown", " "):
        visitor.page.keyboard.press(key)
    visitor.page.keyboard.press("ArrowRight")
    visitor.until("location.search.includes('step=3')")
    assert "source" not in visitor.params()
