"""A line says one thing: what reads badly may become rarer in a room, and not more frequent."""

import ast
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from clarity import counted, kinds_of

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).parent / "clarity.json"
"""By room, how often each kind occurs; `UPDATE_GOLDEN=1 pytest tests/test_clarity.py` writes it."""
ROOMS = (
    "transformer",
    "explorer/lenses",
    "explorer/figures",
    "explorer/linked",
    "explorer/commands",
    "explorer/app",
    "pages",
    "app.py",
)


def count_of(room: str) -> Counter[str]:
    """All that is counted in the files of a room."""
    path = ROOT / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return sum(map(counted, files), Counter())


def test_no_room_becomes_harder_to_read():
    counts = {room: dict(sorted(count_of(room).items())) for room in ROOMS}
    if os.environ.get("UPDATE_GOLDEN"):
        LIMITS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    limits = json.loads(LIMITS.read_text(encoding="utf-8"))
    risen = {
        f"{room}: {kind}": (limits[room].get(kind, 0), count)
        for room, kinds in counts.items()
        for kind, count in kinds.items()
        if count > limits[room].get(kind, 0)
    }
    assert risen == {}, "read what is new there: (allowed, found)"


SAMPLES = {
    "a, b = one(), 2": ["several values computed"],
    "a, b = one, 2": [],
    "a = 1 if b else 2": ["conditional expressions"],
    "f(1, 2, 3, 4, 5, 6)": ["six positional arguments"],
    "f(1, 2, 3, 4, 5, a=6)": [],
    "f(*[1, 2])": ["starred literals"],
    "f(*rest)": [],
    "a = 's' * (b > 1)": ["truth times text"],
    "a = 's' * b": [],
    "a: Any = 1": ["Any"],
    "told = 1": ["names that say nothing"],
    "for each in range(3): pass": ["names that say nothing"],
    "a = each": [],
}


@pytest.mark.parametrize(("line", "kinds"), SAMPLES.items(), ids=SAMPLES)
def test_each_kind_is_seen_where_it_is(line: str, kinds: list[str]):
    assert [kind for node in ast.walk(ast.parse(line)) for kind in kinds_of(node)] == kinds


def test_a_function_of_many_names_is_seen():
    lines = [f"    name{number} = {number}" for number in range(21)]
    tree = ast.parse("\n".join(["def f():", *lines]))
    assert [kind for node in ast.walk(tree) for kind in kinds_of(node)] == [
        "functions of many names"
    ]
