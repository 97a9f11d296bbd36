"""The page Language model in Chromium: links, a head, another token, Back."""

from .conftest import Visitor, box_of, case_link

PAGE = "language_model"
LINK = {"model": "language/writer", "prompt": "one two three"}


def given(visitor: Visitor) -> int:
    return int(visitor.page.locator(".lv-given").count())


def test_a_link_opens_text_step_and_head_and_a_click_on_a_tile_another_head(
    visitor: Visitor,
) -> None:
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
    other = visitor.page.locator(".lv-runner:not(:disabled, .lv-rest)")
    before = given(visitor)
    visitor.page.focus(".lv")
    while not other.count():
        now = visitor.count()
        visitor.page.keyboard.press("ArrowRight")
        visitor.until("now => document.querySelector('.lv-count').textContent !== now", now)
    other.first.click()
    visitor.until(
        "one => new URLSearchParams(location.search).get('prompt') !== one", LINK["prompt"]
    )
    visitor.until(f"document.querySelectorAll('.lv-given').length !== {before}")
    assert visitor.params()["prompt"].startswith(LINK["prompt"])
    visitor.page.go_back()
    visitor.has(prompt=LINK["prompt"])


def test_a_link_of_the_menu_to_other_models_leaves_the_place_in_this_text_out(
    visitor: Visitor,
) -> None:
    def link(label: str) -> str:
        found = visitor.page.locator(".st-key-menu a").filter(has_text=label)
        found.hover()
        return str(found.get_attribute("href"))

    visitor.open(PAGE, **LINK, step="3", scale="log")
    assert link("Masks") == "masks?scale=log"
    visitor.open(**case_link("copy", step="2"))
    assert "step=2" in link("Masks")
    assert "step" not in link("Language model")
