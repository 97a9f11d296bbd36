"""Pages that are opened from a file, and what is done with them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting

from .conftest import PATIENCE, VIEWPORT, Visitor, patient
from .test_accessibility import AXE, RULES

Open = Callable[..., Visitor]
HOSTILE = "<script>hacked=1</script><img src=x onerror=hacked=1> </script><!-- \u202e &amp;"
READY = "document.querySelector('#digest').textContent.startsWith('Its numbers and texts fit')"


class Reader(Visitor):
    """A visitor of such a page: its policy refuses to evaluate texts, and so the browser's own
    polling."""

    def until(self, condition: str, argument: object = None) -> None:
        waiting.until(lambda: bool(self.page.evaluate(patient(condition), argument)))

    def read(self, script: str, argument: object = None) -> Any:
        self.until(f"given => ({patient(script)})(given) != null", argument)
        return self.page.evaluate(script, argument)


@pytest.fixture(name="opened")
def open_from_disk(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from its text or address; nothing may go wrong in it, and nothing else be asked
    for.

    From a text, it is opened as a file, which may ask for nothing at all. It is waited for unless
    the condition is None.
    """
    made: list[tuple[Visitor, list[str], str]] = []

    def open_page(
        page: str, place: str = "", ready: str | None = READY, init: str = "", **options: Any
    ) -> Visitor:
        own = ""
        if re.match("(file|http)://", page):
            address = page
            own = page.partition("#")[0].rpartition("/")[0]
        else:
            path = tmp_path / f"{len(made)}.html"
            path.write_text(page, encoding="utf-8")
            address = path.as_uri()
        tab = chromium.new_page(**{"viewport": VIEWPORT, **options})
        if init:
            tab.add_init_script(init)
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        visitor = Reader(tab, "")
        tab.on(
            "console",
            lambda told: visitor.errors.append(told.text) if told.type == "error" else None,
        )
        made.append((visitor, asked, own))
        tab.goto(f"{address}{place}")
        if ready:
            if ready == READY:
                visitor.ready()
            visitor.until(ready)
        return visitor

    yield open_page
    for visitor, asked, own in made:
        visitor.page.close()
        assert visitor.errors == []
        assert [
            url
            for url in asked[1:]
            if not own or not url.startswith((own, "about:", "blob:", "data:"))
        ] == []


def said(visitor: Visitor) -> str:
    """What stands under the pointer."""
    return str(
        visitor.page.wait_for_selector(".pic-tip:not([hidden])", timeout=PATIENCE).inner_text()
    )


def over(visitor: Visitor, kind: str, row: int, column: int) -> None:
    """Moves the pointer over a cell of a map."""
    visitor.page.locator(f"[data-plot={kind}] canvas").scroll_into_view_if_needed()
    visitor.page.mouse.move(5, 5)
    visitor.page.mouse.move(*visitor.centre(kind, row, column))


def choose(visitor: Visitor, kind: str, layer: int, head: int) -> None:
    """Chooses a head of a map, counted from 0."""
    visitor.page.select_option(f"[data-plot={kind}] .lv-head", f"{layer}.{head}")
    visitor.until(
        (
            "([kind, head]) => document.querySelector(`[data-plot=${kind}] "
            ".lv-body`).ariaLabel.includes(head)"
        ),
        [kind, f"head {head + 1} of layer {layer + 1}"],
    )


def accessible(tab: Any) -> None:
    """Holds a page against the rules of axe-core."""
    tab.evaluate(AXE.axe_script)
    found = tab.evaluate("given => axe.run(document, given)", RULES)
    assert [
        (each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]
    ] == []
