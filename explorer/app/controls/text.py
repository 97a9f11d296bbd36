"""Words on a page: plain text escaped for Markdown, explanations, notices, vectors in words."""

import re

import streamlit as st

from explorer.figures.base import labels
from explorer.figures.base.strips import Strip

BREAK = "¶"


def plain(text: str) -> str:
    """Escapes Markdown and LaTeX, so that the visitor's text appears as typed, with a sign for a
    line break: a real one would end a sentence in bold."""
    line = re.sub(r"\s*\n\s*", f" {BREAK} ", text.strip("\n"))
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$:<>^&" else c for c in line)


def refusal(error: Exception | str) -> str:
    """What an error says, as plain text: a file with its folder, not where that lies on this
    machine.

    Pieces that it quotes stand without their `▁`.
    """
    placed = re.sub(r"(?<![\w:/.])(?:/[^/\s]+)+(?=(?:/[^/\s]+){2})/", "", str(error))
    return plain(labels.without_starts(placed))


def alt(rows: list[Strip]) -> str:
    """A text alternative for strips."""
    return "Strips: " + ", ".join(f"{row.name} ({len(row.values)} numbers)" for row in rows)


def command(text: str) -> str:
    """A command as visitors read it: files outside the project without the folders of whoever ran
    it."""
    return re.sub(r"(?<=\s)(?:\.\./|/)\S*?([^/\s]+)(?=\s|$)", r"\1", text)


def data(text: str) -> str:
    """Name of data as visitors read it: `tatoeba-en-de/valid.tsv.gz` is "tatoeba-en-de (valid)"."""
    return re.sub(r"([\w-]+)/([\w-]+)\.tsv(?:\.gz)?", r"\1 (\2)", text)


def word(token: str) -> str:
    """A piece inside a sentence, escaped for Markdown."""
    return f"“{plain(labels.piece(token))}”"


def power(value: float, digits: int = 1) -> str:
    """A number in LaTeX, with some digits after the point: `7.0 \\times 10^{-4}`."""
    if value == 0:
        return "0"
    factor, exponent = f"{value:.{digits}e}".split("e")
    return rf"{factor} \times 10^{{{int(exponent)}}}"


def seen(text: str, formula: str | None = None, title: str = "What am I seeing?") -> None:
    """An explanation of the picture, one click away."""
    with st.popover(title, type="tertiary", icon=":material/help:"):
        st.markdown(text)
        if formula:
            st.latex(formula)


def inform(text: str) -> None:
    """A sentence in a box: what is missing here, and what brings it."""
    st.info(text, icon=":material/info:")
