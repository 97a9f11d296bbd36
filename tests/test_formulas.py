"""Every formula that a study, a lesson or a page shows: LaTeX with known commands, and whole."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transformer.storage.files import read_json

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("assets/studies/**/*.json")),
    *sorted(ROOT.glob("assets/lessons/*.json")),
]
SOURCES = [
    path
    for room in ("explorer/app", "explorer/figures", "transformer")
    for path in (ROOT / room).rglob("*.py")
    if path.name != "patterns.py"  # of regular expressions
]
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
COMMAND = re.compile(r"\\([a-zA-Z]+|.)", re.DOTALL)
DOUBLED = re.compile(r"\\\\[a-zA-Z]")
"""A new line of a formula is written before a blank: two backslashes before a letter are drawn as
text."""
KNOWN = frozenset(
    re.findall(
        r"\w+|[^\w\n]",
        r"""alpha approx arg beta cap cdot cos Delta dots epsilon exp frac gamma hat in infty ldots le log
        mathbb mathcal mathrm max mid min mu odot oplus partial pm prime prod qquad quad sigma sim sin sqrt
        sum tanh text tfrac tilde times to top underset varepsilon xi xrightarrow
        left right lVert rVert begin end \,;!{}|""",
    )
)


def texts(value: Any) -> Iterator[str]:
    """Every text in some data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def faults(formula: str) -> list[str]:
    """What would be drawn wrong."""
    bare = re.sub(r"\\[{}]", "", formula)
    counts = Counter(COMMAND.findall(formula))
    depths = [bare[: i + 1].count("{") - bare[: i + 1].count("}") for i in range(len(bare))]
    found = [f"\\{name} is not known" for name in counts if name not in KNOWN]
    found += ["a doubled backslash"] * bool(DOUBLED.search(formula))
    found += ["a brace is open"] * bool(depths and (depths[-1] or min(depths) < 0))
    pairs = ("left", "right"), ("begin", "end")
    return found + [f"\\{a} without \\{b}" for a, b in pairs if counts[a] != counts[b]]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_every_formula_of_a_document_can_be_drawn(path: Path):
    for text in texts(read_json(path)):
        assert not DOUBLED.search(text), text
        assert text.count("$") % 2 == 0, text
        for match in FORMULA.finditer(text):
            assert not faults(match[1] or match[2]), match[0]


def test_no_text_of_a_page_has_a_doubled_backslash_before_a_letter():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not DOUBLED.search(node.value), f"{path}, line {node.lineno}"


@pytest.mark.parametrize(
    "formula", [r"\\text{x}", r"\frac{a}{b", r"}{", r"\left( x", r"\begin{aligned} x", r"\nosuch x"]
)
def test_a_formula_that_would_be_drawn_wrong_is_seen(formula: str):
    assert faults(formula)
    assert not faults(r"\left\{\frac{a}{b}\right\} \\ \Delta w")
