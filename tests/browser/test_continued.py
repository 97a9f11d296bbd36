"""A text that a model continues, in Chromium: Enter and Shift+Enter in its field, another token at
the end of the prompt, a head of the wall, Back."""

from .conftest import Visitor, box_of

LINK = {"model": "language/writer", "text": "one two three", "write": "6"}
FIELD = ".st-key-top textarea"


def given(visitor: Visitor) -> int:
    return int(visitor.page.locator(".lv-given").count())


def test_enter_runs_the_model_and_shift_enter_begins_a_line(visitor: Visitor) -> None:
    visitor.open(**LINK)
    field = visitor.page.locator(FIELD)
    field.click()
    visitor.page.keyboard.press("End")
    visitor.page.keyboard.press("Shift+Enter")
    visitor.page.keyboard.type("two two")
    visitor.page.keyboard.press("Enter")
    visitor.has(text="one two three\ntwo two")
    visitor.until("document.querySelectorAll('.lv-given').length === 5")
    assert field.input_value() == "one two three\ntwo two"
    lines = box_of(field)["height"]
    visitor.page.go_back()
    visitor.has(text=LINK["text"])
    visitor.until("document.querySelectorAll('.lv-given').length === 3")
    assert box_of(field)["height"] < lines


def test_a_link_opens_text_step_and_head_and_a_click_on_a_tile_another_head(
    visitor: Visitor,
) -> None:
    visitor.open(**LINK, step="4", decoder="2.3", decode="sample-3")
    assert visitor.count().startswith("step 4 ")
    visitor.page.locator('.lv-tile[data-head="1.3"]').click()
    visitor.has(decoder="2.4")
    visitor.until("document.querySelector('.lv-chosen-tile').dataset.head === '1.3'")
    visitor.page.go_back()
    visitor.has(decoder="2.3")
    visitor.until("document.querySelector('.lv-chosen-tile').dataset.head === '1.2'")


def test_a_click_on_a_candidate_in_the_prompt_makes_it_the_end_of_the_prompt(
    visitor: Visitor,
) -> None:
    visitor.open(**LINK, step="2")
    before = given(visitor)
    other = visitor.page.locator(".lv-runner:not(:disabled, .lv-rest)")
    other.first.click()
    visitor.until("one => new URLSearchParams(location.search).get('text') !== one", LINK["text"])
    visitor.until(f"document.querySelectorAll('.lv-given').length !== {before}")
    assert visitor.params()["text"].startswith("one")
    visitor.page.go_back()
    visitor.has(text=LINK["text"])
