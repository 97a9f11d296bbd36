"""Styles of a page that a browser computes fast: none looks for a view from outside of it."""

import re
from pathlib import Path

from explorer.linked import served

OUTER = re.compile(
    r"(?:body|\.stApp|\.stMain|\.stMainBlockContainer)(?:\.[\w-]+)?:has\(\s*([^)>\s]+)"
)
"""What a style of the whole page looks for at any depth. A browser then computes the styles of all
of the page again whenever something of that sort comes or goes, such as a letter of a map."""


def test_no_style_of_the_whole_page_looks_for_what_a_view_draws() -> None:
    found = dict[Path, list[str]]()
    for path in served.scripts().rglob("*.css"):
        sought = OUTER.findall(path.read_text("utf-8"))
        if drawn := [each for each in sought if not each.startswith(".st-key-")]:
            found[path] = drawn
    assert found == {}
