"""No test waits for a time: a sleep is too short on a busy machine and too long on every other."""

import ast
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parent.rglob("*.py"))
SLEEPS = {"sleep", "wait_for_timeout"}


def sleeps(source: str) -> list[int]:
    """Lines that call a function which does nothing but wait."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = {call: getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
    return [call.lineno for call, name in names.items() if name in SLEEPS]


@pytest.mark.parametrize(
    "call", ["time.sleep(1)", "sleep(1)", "page.wait_for_timeout(5)", "await a.sleep(0)"]
)
def test_a_sleep_is_found(call: str) -> None:
    assert sleeps(f"async def test():\n    {call}") == [2]


def test_no_test_sleeps() -> None:
    found = {path.name: sleeps(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}
