"""Styles of a page that a browser computes fast: none of them looks for a view from outside of it."""

import re

from explorer.linked import served

SOUGHT = re.compile(r"[^{}]*:has\([^{}]*")
"""A selector, or several, with `:has`."""
ALLOWED = {".st-key-linked > :has(+ .stElementContainer .lv)"}
"""On phones alone, where no other sort of rule can put what stands over a view under it."""


def test_no_style_of_the_page_looks_for_what_a_view_draws() -> None:
    """A browser would style all of the page anew whenever such a thing comes or goes, as a letter
    of a map does."""
    scripts = served.scripts()
    sheets = [*(scripts / "app").glob("*.css"), scripts / "linked_view" / "view.css"]
    found = set[str]()
    for sheet in sheets:
        for several in SOUGHT.findall(sheet.read_text("utf-8")):
            for selector in several.split(",\n"):
                inside = selector.partition(":has(")[2]
                of_a_view = selector.strip().startswith(".lv")
                if ".lv" in inside and not of_a_view:
                    found.add(" ".join(selector.split()))
    assert found == ALLOWED
