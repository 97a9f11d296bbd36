"""Every sign that the app writes is in the font that ships with the framework: no page needs
another."""

import ast
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
FONTS = (Path(streamlit.__file__).parent / "static").rglob("SourceSansVF-*.woff2")
ROOMS = ("explorer", "pages", "transformer")
CODE = [
    path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    if path.name not in {"typed.py", "sentences.py", "cells.py", "progress.py"}
]
"""But for those whose signs are only read, and a bar for a terminal."""
DATA = [
    path
    for pattern in (
        "assets/lessons/**/*.json",
        "assets/**/studies/*.json",
        "static/scripts-*/page/glossary.json",
    )
    for path in sorted(ROOT.glob(pattern))
]
SCRIPTS = [
    path
    for path in sorted((ROOT / "static").rglob("*.js"))
    if "plotly" not in path.name
    and path.name not in {"paragraph.js", "numbers.js"}  # signs that are read
]
NOT_WRITTEN = {"▁", "🏻", "🏿"}
"""The word mark of pieces, which becomes a gap, and the ends of a range of emoji."""
NO_PICTURE = {"Zs", "Cf", "Cs", "Cc"}
"""Categories of characters without a picture: spaces, marks of format, halves of pairs,
controls."""


@pytest.fixture(scope="module")
def drawn() -> set[str]:
    """The characters that the font draws, upright and italic."""
    upright, italic = ({chr(code) for code in TTFont(path).getBestCmap()} for path in FONTS)
    return upright & italic


def written(code: str) -> Iterator[str]:
    """The texts of a module: its strings, without docstrings and comments."""
    tree = ast.parse(code)
    told = {
        id(each.value)
        for node in ast.walk(tree)
        if isinstance(getattr(node, "body", None), list)
        for each in node.body
        if isinstance(each, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def missing(text: str, drawn: set[str]) -> set[str]:
    signs = set(text) - drawn - NOT_WRITTEN
    return {sign for sign in signs if unicodedata.category(sign) not in NO_PICTURE}


def test_every_sign_of_the_code_is_in_the_font(drawn: set[str]):
    found = {path: missing("".join(written(path.read_text("utf-8"))), drawn) for path in CODE}
    assert not {path.name: signs for path, signs in found.items() if signs}


def test_every_sign_of_scripts_lessons_and_studies_is_in_the_font(drawn: set[str]):
    texts = {
        path: json.dumps(json.loads(path.read_text("utf-8")), ensure_ascii=False) for path in DATA
    }
    texts |= {path: path.read_text("utf-8") for path in SCRIPTS}
    found = {path: missing(text, drawn) for path, text in texts.items()}
    assert not {path.name: signs for path, signs in found.items() if signs}


def test_a_sign_that_the_font_lacks_is_seen(drawn: set[str]):
    assert missing("✓ Σ → 7", drawn) == set()
    assert missing("".join(written('"""⏻"""\nsaid = "⏻"')), drawn) == {"⏻"}
