"""Whatever is typed is shown as text: nothing runs, nothing breaks, and a sentence says what is
wrong."""

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Visitor

HOSTILE = {
    "script": "<script>window.hacked = 1</script> one",
    "image": '<img src=x onerror="window.hacked = 1"> two',
    "svg": "<svg/onload=window.hacked=1>",
    "attribute": "\"><b onmouseover='window.hacked=1'>three",
    "markdown": "**bold** [link](javascript:window.hacked=1) `code` # title",
    "latex": "$\\frac{1}{0}$ \\href{javascript:window.hacked=1}{x}",
    "template": "%{x} %{customdata[0]} {step} {predicts} {{}}",
    "control": "one\x00\x07\x1b[31m two\ttab",
    "bidi": "one \u202etwo\u202c \u2066three\u2069",
    "emoji": "😀 👨‍👩‍👧 🇩🇪",
    "alphabets": "שלום عالم 日本語 हिन्दी",
    "colours": "#000001 #000036 &lt;b&gt; &amp;",
    "links": "<a href='http://example.invalid'>one</a> <s> </s> <pad>",
}


TYPED = [" ".join([*HOSTILE.values()][i : i + 4]) for i in range(0, len(HOSTILE), 4)]
"""The texts as they are typed, four at a time."""
SOURCE = (
    "[...document.querySelectorAll('.lv-strip-source .lv-word')].map(e => e.textContent).join(' ')"
)


@pytest.fixture
def requests(visitor: Visitor) -> Iterator[list[str]]:
    """The addresses that the page of the visitor asks for; what the view complains of is
    printed."""
    asked: list[str] = []

    def note(request: Any) -> None:
        asked.append(request.url)

    def complain(message: Any) -> None:
        if message.type == "error":
            print(message.text)

    visitor.page.on("request", note)
    visitor.page.on("console", complain)
    yield asked
    visitor.page.remove_listener("request", note)
    visitor.page.remove_listener("console", complain)


def harmless(visitor: Visitor, requests: list[str]) -> None:
    """Looks under the pointer too: nothing ran, nothing was fetched, and every token is shown."""
    assert visitor.hover_text("cross", 0, 0)
    assert visitor.page.evaluate("window.hacked") is None
    assert visitor.page.locator(".lv script, .lv img, .lv a, .lv svg a").count() == 0
    assert visitor.page.locator(".stException, .lv-problem:not([hidden])").count() == 0
    assert not [
        url for url in requests if url.startswith("http://example.invalid") or url.endswith("/x")
    ]
    assert all(chip.strip() for chip in visitor.chips("source"))


def test_hostile_text_that_is_typed_is_shown_and_never_runs(
    visitor: Visitor, requests: list[str]
) -> None:
    visitor.open(model="random", text="one", step="1", source="1")
    box = visitor.page.get_by_label("Sentence to translate")
    for text in TYPED:
        before = visitor.page.evaluate(SOURCE)
        box.fill(text)
        box.press("Enter")
        visitor.until(f"before => {SOURCE} !== before", before)
        visitor.ready()
        harmless(visitor, requests)
