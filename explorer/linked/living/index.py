"""The page that lists the living pages of several texts. No PyTorch: a cold server offers it."""

import html
from collections.abc import Mapping


def index(pages: Mapping[int, tuple[str, str]]) -> str:
    """The page: a link to each of the pages beside it."""
    rows = (
        f'<li value="{number}"><a href="{number}.html">{html.escape(text)}</a><br>{html.escape(translation)}'
        for number, (text, translation) in pages.items()
    )
    return _INDEX.format(listed="\n".join(rows))


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
