"""Words of the glossary in Chromium: underlined once, listed, explained by a click, closed by a
key."""

import pytest

from .conftest import PATIENCE, Visitor, case_link

pytestmark = pytest.mark.nightly
MIDDLE = """() => {
  const [range] = [...CSS.highlights.get("glossary")].filter((each) => each.toString() === "weight");
  const box = range.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def test_every_word_is_underlined_once_listed_and_explained_by_a_click(visitor: Visitor) -> None:
    visitor.open("cross_attention", **case_link("copy", step="2"))
    # a part of the page that is drawn again leaves empty ranges until the page is read again
    visitor.until(
        "(all => all.length && all.every(String))([...(CSS.highlights.get('glossary') ?? [])])"
    )
    found = visitor.page.evaluate(
        "[...CSS.highlights.get('glossary')].map((range) => range.toString().toLowerCase())"
    )
    assert len(found) == len(set(found))
    assert visitor.page.locator(".glossary-word").count() == len(found)
    visitor.page.mouse.click(*visitor.read(MIDDLE))
    told = visitor.page.locator(".glossary:visible")
    told.wait_for(timeout=PATIENCE)
    assert "share in one head's sum" in told.inner_text()
    visitor.page.keyboard.press("Escape")
    assert told.count() == 0
