"""How large the tree is: a report to read when one chooses what can go, without limits."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

PARTS = 2
"""Folders of a room's path: `transformer/model`."""


def lines(tree: Path) -> None:
    """Prints the lines, files and functions per 1,000 lines of every room."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=tree, capture_output=True, text=True, check=True)
    found: dict[str, Counter[str]] = {}
    for path in map(Path, listed.stdout.split()):
        source = (tree / path).read_text(encoding="utf-8")
        functions = sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(ast.parse(source))
        )
        counted = Counter(lines=source.count("\n"), files=1, functions=functions)
        top, room = path.parts[0], "/".join(path.parts[:-1][:PARTS]) or path.name
        for name in {top, room, "all"}:
            found.setdefault(name, Counter()).update(counted)
    print(f"{'room':32} {'lines':>8} {'files':>6} {'functions per 1,000':>20}")
    for name in sorted(found):
        each = found[name]
        density = 1000 * each["functions"] / max(1, each["lines"])
        print(f"{name:32} {each['lines']:8,} {each['files']:6} {density:20.0f}")


if __name__ == "__main__":
    lines(Path(sys.argv[1] if sys.argv[1:] else "."))
