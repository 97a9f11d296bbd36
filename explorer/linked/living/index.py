"""The page that lists the living pages of several texts."""

from __future__ import annotations

import html
from collections.abc import Mapping


def index(
    pages: Mapping[int, tuple[str, str]],  # text and translation by the number of its page
) -> str:
    """The page: a link to each of the pages beside it."""
    return _INDEX.format(listed="\n".join(_row(number, *texts) for number, texts in pages.items()))


def _row(number: int, text: str, translation: str) -> str:
    link = f'<a href="{number}.html">{html.escape(text)}</a>'
    return f'<li value="{number}">{link}<br>{html.escape(translation)}'


_INDEX = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runs</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
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
