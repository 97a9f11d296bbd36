"""A text with masked words, in Chromium: the cursor over its tokens, a candidate put in the place of
a mask, a word masked by a button, Back."""

from .conftest import Visitor

LINK = {"model": "encoder/masked-en", "text": "Tom [MASK] Mary a question."}


def test_a_candidate_is_put_in_the_place_of_a_mask_and_another_word_is_masked(
    visitor: Visitor,
) -> None:
    visitor.open(**LINK)
    assert visitor.count() == "token 3 of 8"
    visitor.until("document.querySelector('.lv-runner .lv-name').textContent === 'asked'")
    page = visitor.page
    page.locator(".lv-runner:not(:disabled)").first.click()
    visitor.has(text="Tom asked Mary a question.")
    chips = "[...document.querySelectorAll('.lv-chip')].map(chip => chip.textContent)"
    visitor.until(f"{chips}.every(text => !text.includes('mask'))")
    assert visitor.count() == "token 3 of 8"
    page.get_by_role("button", name="Mask “asked”").click()
    visitor.has(text="Tom <mask> Mary a question.")
    page.go_back()
    visitor.has(text="Tom asked Mary a question.")


def test_the_candidates_follow_the_cursor(visitor: Visitor) -> None:
    visitor.open(**LINK, source="2")
    visitor.until("document.querySelector('.lv-runner.lv-chosen .lv-name').textContent === 'Tom'")
    visitor.page.locator(".lv-chip", has_text="question").click()
    visitor.has(source="6")
    visitor.until(
        "document.querySelector('.lv-runner.lv-chosen .lv-name').textContent === 'question'"
    )
    chosen = visitor.page.locator(".lv-runner.lv-chosen")
    assert chosen.is_disabled()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.has(source="5")
