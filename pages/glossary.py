"""Glossary: the words of this field, and where to see what they mean."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from explorer.app.address import sitemap
from explorer.app.controls import inform, plain
from explorer.app.shell.page import open_plain_page
from explorer.linked.served import scripts

FILE = scripts() / "page" / "glossary.json"
"""Read by the browser too, which underlines the first use of each word (`words.js` beside it)."""
_CODE = re.compile("`(.+?)`")


def show() -> None:
    open_plain_page("glossary")
    st.caption(
        "On every page, dots underline the first use of each word; a click says what it means."
    )
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    query = st.text_input(
        "Find a word", placeholder="Find a word", label_visibility="collapsed", width=320
    )
    matching = {word: entry for word, entry in entries.items() if matches(query, word, entry)}
    if matching:
        listed = "".join(_entry(word, **entry) for word, entry in matching.items())
        st.html(f'<dl class="glossary-page">{listed}</dl>')
    else:
        inform(plain(f"No word of the glossary, and no explanation, has “{query}”."))


def matches(query: str, word: str, entry: Mapping[str, Any]) -> bool:
    """Whether a word, one of its forms or its explanation has what is looked for, however it is
    joined."""
    forms = [word, *entry["written"], *entry.get("also", ()), entry["told"]]
    return (
        _letters(query) in _letters(" ".join(forms))
        if _letters(query)
        else query.strip() in " ".join(forms)
    )


def _letters(text: str) -> str:
    """Letters and digits in small letters: "layer norm" is looked for in "LayerNorm"."""
    return "".join(filter(str.isalnum, text.lower()))


def _entry(
    word: str,
    told: str,
    see: str,
    written: list[str],
    on: Sequence[str] = (),  # the pages that mean it so (`words.js`)
    also: Sequence[str] = (),  # other names, under which it is found
) -> str:
    page, _, view = see.partition("/")
    path = "./" if page == sitemap.HOME else page
    query = f"?view={view}" if view else ""
    synonyms = [name for name in (*written, *also) if name.lower() != word.lower()]
    forms = f"<br><small>{escape(', '.join(synonyms))}</small>" if synonyms else ""
    explained = _CODE.sub(r"<code>\1</code>", escape(told))
    return (
        f"<dt>{escape(word)}{forms}</dt><dd>{explained} "
        f'<a data-see="{see}" href="{path}{query}">{escape(sitemap.PLACES[see].title)}</a></dd>'
    )


show()
