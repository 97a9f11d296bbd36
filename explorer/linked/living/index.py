"""The page that lists the living pages of several texts. No PyTorch: a cold server offers it."""

import html
from collections.abc import Mapping

from explorer.linked.served import scripts


def index(pages: Mapping[int, tuple[str, str]]) -> str:
    """The page: a link to each of the pages beside it."""
    rows = [
        f'<li value="{number}"><a href="{number}.html">{html.escape(text)}</a>'
        f"<br>{html.escape(translation)}"
        for number, (text, translation) in pages.items()
    ]
    style = (scripts() / "living" / "index.css").read_text("utf-8").strip()
    return _INDEX.format(style=style, listed="\n".join(rows))


_INDEX = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runs</title>
<style>
{style}
</style>
</head>
<body>
<h1>Runs</h1>
<ol>
{listed}
</ol>
</body>
</html>
"""
