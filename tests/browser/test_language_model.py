"""The page Language model in Chromium: type, step, choose a head, go on with another token, links, Back."""

import pytest

from .conftest import Visitor, box_of, case_link

PAGE = "language_model"
LINK = {"model": "language/writer", "prompt": "one two three"}
OUTLINED = "[...document.querySelectorAll('.lv-strip-target .lv-chip')]"


def steps(visitor: Visitor) -> int:
    return int(visitor.count().split(" of ")[1])


def given(visitor: Visitor) -> int:
    return int(visitor.page.locator(".lv-given").count())


def test_a_prompt_is_typed_continued_and_walked_through(visitor: Visitor) -> None:
    visitor.open(PAGE)
    box = visitor.page.get_by_label("Text", exact=True)
    box.fill("four five six")
    box.press("Enter")
    visitor.has(prompt="four five six")
    visitor.until(f"{OUTLINED}.length && {OUTLINED}[0].textContent.startsWith('four')")
    visitor.ready()
    first = given(visitor)
    assert 0 < first < steps(visitor)
    assert visitor.count().startswith(f"step {first + 1} ")
    visitor.press("ArrowRight")
    visitor.has(step=str(first + 2))


def test_a_link_opens_text_step_and_head_and_a_click_on_a_tile_another_head(visitor: Visitor) -> None:
    visitor.open(PAGE, **LINK, step="4", decoder="2.3", decode="sample-3")
    assert visitor.count().startswith("step 4 ")
    assert visitor.page.get_by_label("Text", exact=True).input_value() == LINK["prompt"]
    head = "head => document.querySelector('.lv-decoder .lv-title').textContent.includes(head)"
    visitor.until(head, "L2 H3")
    tiles = visitor.page.locator("[data-plot=overview] .nsewdrag")
    box = box_of(tiles)
    tiles.click(position={"x": 0.875 * box["width"], "y": 0.75 * box["height"]})
    visitor.has(decoder="2.4")
    visitor.until(head, "L2 H4")
    visitor.page.go_back()
    visitor.has(decoder="2.3")
    visitor.until(head, "L2 H3")


def test_a_click_on_a_candidate_makes_it_the_end_of_the_prompt(visitor: Visitor) -> None:
    visitor.open(PAGE, **LINK)
    other, before = visitor.page.locator(".lv-runner:not(:disabled, .lv-rest)"), given(visitor)
    visitor.page.focus(".lv")
    while not other.count():
        now = visitor.count()
        visitor.page.keyboard.press("ArrowRight")
        visitor.until("now => document.querySelector('.lv-count').textContent !== now", now)
    other.first.click()
    visitor.until("one => new URLSearchParams(location.search).get('prompt') !== one", LINK["prompt"])
    visitor.until(f"document.querySelectorAll('.lv-given').length !== {before}")
    assert visitor.params()["prompt"].startswith(LINK["prompt"])
    visitor.page.go_back()
    visitor.has(prompt=LINK["prompt"])


def test_a_text_is_shaded_by_its_surprisal(visitor: Visitor) -> None:
    visitor.open(PAGE, **LINK, view="surprisal")
    shares = visitor.page.evaluate(f"{OUTLINED}.map(e => parseFloat(e.style.getPropertyValue('--share')))")
    bits = visitor.page.evaluate(f"{OUTLINED}.map(e => parseFloat(e.title))")
    assert len(shares) == steps(visitor)
    assert shares == [pytest.approx(min(100 * each / 16, 100), abs=0.6) for each in bits]
    visitor.page.locator(".lv-strip-target .lv-chip").first.click()
    visitor.has(step="1")


def test_a_link_of_the_menu_to_other_models_leaves_the_place_in_this_text_out(visitor: Visitor) -> None:
    def link(label: str) -> str:
        found = visitor.page.locator(".st-key-menu a").filter(has_text=label)
        found.hover()
        return str(found.get_attribute("href"))

    visitor.open(PAGE, **LINK, step="3", scale="log")
    assert link("Masks") == "masks?scale=log"
    visitor.open(**case_link("copy", step="2"))
    assert "step=2" in link("Masks")
    assert "step" not in link("Language model")
