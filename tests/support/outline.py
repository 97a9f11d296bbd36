"""What a page says and draws, as lines to be compared: words exactly, numbers nearly, figures in
brief."""

import difflib
import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from app_pages import array
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

HEAD = 12
"""So many characters of a text stand in its line; the others are a hash."""
FEW = 4
"""More numbers than this are their count, their sum, and their sum by place, which tells their
order."""
NUMBER = re.compile(
    r"#[0-9A-Fa-f]{6}\b|[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
)
"""A number, or a colour, which is none."""
EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
PASSING = {
    *(
        "id",
        "uid",
        "template",
        "trace",
        "ack",
        "badge",
        "formId",
        "allowHtml",
        "pageScriptHash",
        "url",
    ),
    "deferredFileId",
}
"""Of a widget, a figure or a feed: what is another at every visit, or on every machine."""
KINDS = {
    "arrow_data_frame": "table",
    "button_group": "choice",
    "markdown": "text",
    "page_link": "link",
    "selectbox": "box",
    "text_input": "field",
}
"""Short names of what stands on a page."""
LISTED = ("link", "caption", "button")
MANY = 5
"""Neighbours of these kinds are one line if they are many."""


def split(text: str) -> tuple[str, list[float]]:
    """The words of a text, with a sign for every number, and the numbers."""
    text = text.replace("\\", "").replace("\u2060", "").replace("\n", " ")
    found = [each for each in NUMBER.findall(text) if each[0] != "#"]
    numbers = []
    for each in found:
        mantissa, _, exponent = each.replace("−", "-").replace(",", "").partition(" × 10")
        numbers.append(float(mantissa) * 10.0 ** int(exponent.translate(EXPONENT) or 0))
    return NUMBER.sub(lambda each: each[0] if each[0][0] == "#" else "#", text), numbers


def leaves(value: Any) -> Iterator[Any]:
    """All texts and numbers of a value, in order; arrays whole."""
    if isinstance(value, dict) and "bdata" in value:
        yield array(value)
    elif isinstance(value, dict):
        for name in sorted(value.keys() - PASSING):
            yield name
            yield from leaves(value[name])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, str) and value.startswith(('{"', "[{")):
        yield from leaves(json.loads(value))
    else:
        yield value


def letters(text: str, more: int = 0) -> str:
    """Three letters that stand for a text."""
    hashed = zlib.crc32(text.encode()) + more
    return "".join(chr(97 + hashed // 26**i % 26) for i in range(3))


def brief(value: Any, named: str | None = None) -> str:
    """The beginning of a text, or a name; a hash of all words; and the numbers."""
    words: list[str] = []
    numbers: list[float] = []
    for leaf in leaves(value):
        if isinstance(leaf, np.ndarray):
            words.append(f"array {leaf.shape}")
            numbers += leaf.astype(float).ravel().tolist()
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            words.append("#")
            numbers.append(float(leaf))
        else:
            text, found = split(str(leaf))
            words.append(text)
            numbers += found
    said = " ".join(words)
    head = said if named is None else split(named)[0]
    shown = " ".join(f"{number:.4g}" for number in numbers)
    if len(numbers) > FEW:
        known = np.nan_to_num(np.arcsinh(50 * np.array(numbers)), posinf=0, neginf=0)
        shown = f"{len(numbers)}:{known.sum():.4g}:{known @ np.arange(len(known)) / len(known):.4g}"
    return " ".join(
        filter(None, (head[:HEAD].strip(), letters(said) * (said != head[:HEAD]), shown))
    )


def outline(at: AppTest, menu: bool = False) -> list[str]:
    """The lines of a page from its top, the address first; the menu only if it is asked for."""
    address = {
        name: value for name, value in at.query_params.items() if name not in ("model", "text")
    }
    blocks = (at.main, at.sidebar) if menu else (at.main,)
    lines = [f"address {brief(address, ' '.join(address))}"]
    found = (pair for block in blocks for pair in _elements(block))
    for listed, group in groupby(found, lambda pair: pair[0] in LISTED):
        each = [*group]
        if listed and len(each) >= MANY:
            lines.append(
                f"list {brief([value for _, value, _ in each], str(each[0][2] or each[0][1]))}"
            )
        else:
            lines += [f"{kind} {brief(value, name)}" for kind, value, name in each]
    return lines


def _elements(block: Any) -> Iterator[tuple[str, Any, str | None]]:
    """What stands in a block, from its top: its kind, all that it says, and what its line begins
    with."""
    for node in block.children.values():
        proto = getattr(node, "proto", None)
        value = getattr(node, "value", None)
        kind = node.type
        named = KINDS.get(kind, kind)
        if hasattr(node, "children"):
            if kind in ("popover", "expander", "expandable", "tab"):
                told = MessageToDict(proto)
                yield named, told, _name(told.get(kind, told))
            yield from _elements(node)
        elif kind == "plotly_chart":
            yield "figure", [proto.spec, proto.alt], proto.id.split("-", 2)[2]
        elif kind == "bidi_component":
            yield from _component(json.loads(proto.json or "{}"))
        elif hasattr(value, "columns"):
            rows = value.to_numpy().tolist()
            yield "table", [*map(str, value.columns)], None
            yield "rows", [len(rows), *rows[:1], *rows[-1:]], None
        elif kind in ("markdown", "caption", "info", "error", "warning", "latex", "html"):
            text = str(value or getattr(proto, "body", ""))
            if not text.startswith("<style"):
                yield named, text, None
        elif proto is not None and kind not in ("empty", "divider"):
            told = MessageToDict(proto)
            chosen = "" if value in (None, False) or kind == "page_link" else f"={value}"
            yield named, [told, chosen], _name(told) + chosen


def _name(told: dict[str, Any]) -> str:
    return str(told.get("label") or told.get("title") or "")


def _component(told: Any) -> Iterator[tuple[str, Any, str | None]]:
    """What a component was told: the linked view, a feed, the texts and pictures of slots, other
    data."""
    if isinstance(told, list):
        yield "feed", told, str(told[0].get("name", told[0].get("layout", "")))
    elif "slots" in told:
        for name, slot in told["slots"].items():
            yield "slot", [name, slot.get("text", "")], name
            yield from (("picture", each, each["name"]) for each in slot.get("pictures", ()))
    elif told:
        yield "component", told, " ".join(told)


def alike(here: str, there: str) -> bool:
    """Whether two lines have the same words and nearly the same numbers; sums are compared more
    exactly."""
    (words, numbers) = split(here)
    (others, known) = split(there)
    near = 0.002 if ":" in here else 0.01
    return words == others and all(
        math.isclose(one, other, rel_tol=near, abs_tol=0.02)
        for one, other in zip(numbers, known, strict=True)
    )


def read(file: Path) -> dict[str, list[str]]:
    """The agreed lines of every address; a line that several have is written once, at the top."""
    shared: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("@"):
            found[line[1:]] = lines = []
        elif not found:
            shared[line[:3]] = line[4:]
        else:
            lines += [shared[each] for each in line[1:].split()] if line.startswith("=") else [line]
    return found


def write(file: Path, pages: dict[str, list[str]]) -> None:
    """Writes the agreed lines of all addresses."""
    often = Counter(line for lines in pages.values() for line in {*lines})
    shared: dict[str, str] = {}
    for line in sorted(line for line, times in often.items() if times > 1):
        key = next(key for i in range(26**3) if (key := letters(line, i)) not in shared)
        shared[key] = line
    keys = {line: key for key, line in shared.items()}
    text = [f"{key} {line}" for key, line in shared.items()]
    for name, lines in pages.items():
        text.append(f"@{name}")
        for several, group in groupby(lines, lambda line: line in keys):
            own = [*group]
            text += [f"={' '.join(map(keys.get, own))}"] if several else own  # type: ignore[arg-type]
    file.write_text("\n".join(text) + "\n", encoding="utf-8")


def agrees(file: Path, name: str, drawn: list[str]) -> None:
    """Compares a page with what was agreed; UPDATE_GOLDEN=1 with one worker writes it again."""
    agreed = read(file)
    if os.environ.get("UPDATE_GOLDEN"):
        write(file, agreed | {name: drawn})
        return
    known = [
        next((each for each in agreed.get(name, ()) if alike(each, line)), line) for line in drawn
    ]
    wrong = difflib.unified_diff(agreed.get(name, []), known, "agreed", "drawn", lineterm="", n=1)
    assert known == agreed.get(name), "\n".join(wrong)
