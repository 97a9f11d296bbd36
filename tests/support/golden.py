"""What pictures were last agreed on: a JSON file with a line for every part, to be read as a
diff."""

import base64
import json
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

BRIEF = 20
"""A list with more numbers and texts is stored as their count, two sums (one tells the order) and a
hash."""


def plain(value: Any) -> Any:
    """Numbers to four digits, packed arrays as lists, and long lists in brief."""
    if isinstance(value, dict) and "bdata" in value:
        shape = [int(n) for n in str(value.get("shape", "-1")).split(",")]
        return plain(
            np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]).reshape(shape).tolist()
        )
    if isinstance(value, dict):
        return {name: plain(each) for name, each in sorted(value.items())}
    if isinstance(value, list | tuple):
        each = [*leaves(value)]
        numbers = [n for n in each if isinstance(n, int | float) and math.isfinite(n)]
        if len(each) > BRIEF:
            texts = zlib.crc32(" ".join(text for text in each if isinstance(text, str)).encode())
            return [
                "brief",
                len(each),
                *map(plain, (float(sum(numbers)), float(np.dot(numbers, range(len(numbers)))))),
                texts,
            ]
        return [plain(each) for each in value]
    return (
        (float(f"{value:.4g}") if math.isfinite(value) else None)
        if isinstance(value, float)
        else value
    )


def leaves(value: Any) -> Iterator[Any]:
    """All numbers, texts and names in a value, in order."""
    if isinstance(value, dict):
        value = (value.get("bdata") and plain(value)) or [
            each for pair in sorted(value.items()) for each in pair
        ]
    if isinstance(value, list | tuple):
        yield from (leaf for each in value for leaf in leaves(each))
    else:
        yield value


def near(one: Any, other: Any) -> bool:
    """Whether two values are equal, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            near(each, other[name]) for name, each in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=2e-3, abs_tol=2e-5)
    return bool(one == other)


def agrees(file: Path, name: str, parts: dict[str, Any]) -> None:
    """Compares the parts of a picture with their lines of a file; UPDATE_GOLDEN=1 writes them."""
    agreed = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    drawn = {f"{name}: {part}": plain(each) for part, each in parts.items()}
    before = {line: each for line, each in agreed.items() if line.startswith(f"{name}: ")}
    if os.environ.get("UPDATE_GOLDEN"):
        lines = {line: each for line, each in agreed.items() if line not in before} | drawn
        text = (
            f"{json.dumps(line)}: {json.dumps(lines[line], ensure_ascii=False)}"
            for line in sorted(lines)
        )
        file.write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8")
        return
    wrong = [
        line
        for line in drawn.keys() | before
        if not near(drawn.get(line, "none"), before.get(line))
    ]
    assert not wrong, {line: (before.get(line), drawn.get(line)) for line in sorted(wrong)[:2]}
