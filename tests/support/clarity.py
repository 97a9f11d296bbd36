"""How much a line of the source says: what is counted in a file's syntax tree and text."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MOST_COLUMNS = 100
MOST_NAMES = 20
"""Most names that a function may have of its own."""
MOST_POSITIONAL = 5
SAY_NOTHING = {
    *("asked", "both", "each", "found", "given", "item", "kept", "made", "other", "others"),
    *("own", "part", "said", "shown", "taken", "thing", "told", "whole"),
}
SUPPRESSED = re.compile(r"# (?:noqa|type: ignore)")


def counted(path: Path) -> Counter[str]:
    """What a file has of each kind that a reader reads twice."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    counts = Counter(kind for node in ast.walk(tree) for kind in kinds_of(node))
    counts["lines over 100 columns"] = sum(len(line) > MOST_COLUMNS for line in source.splitlines())
    counts["suppressed checks"] = len(SUPPRESSED.findall(source))
    return counts


def kinds_of(node: ast.AST) -> Iterator[str]:
    """The kinds that a node of a syntax tree is of."""
    match node:
        case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple(elts=values)):
            if not all(map(_is_plain, values)):
                yield "several values computed"
        case ast.IfExp():
            yield "conditional expressions"
        case ast.Call():
            positional = [value for value in node.args if not isinstance(value, ast.Starred)]
            if len(positional) > MOST_POSITIONAL:
                yield "six positional arguments"
            if any(_is_starred_literal(value) for value in node.args):
                yield "starred literals"
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            if (_is_text(left) and _is_truth(right)) or (_is_text(right) and _is_truth(left)):
                yield "truth times text"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if len(_own_names(node)) > MOST_NAMES:
                yield "functions of many names"
        case ast.Name(id="Any", ctx=ast.Load()):
            yield "Any"
        case ast.Name(id=name, ctx=ast.Store()) if name in SAY_NOTHING:
            yield "names that say nothing"


def _is_plain(node: ast.expr) -> bool:
    """Whether nothing is computed."""
    is_empty = isinstance(node, ast.Tuple | ast.List) and not node.elts
    return is_empty or isinstance(node, ast.Constant | ast.Name | ast.Attribute)


def _is_starred_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List)


def _is_text(node: ast.expr) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr | ast.Tuple | ast.List)


def _is_truth(node: ast.expr) -> bool:
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare | ast.BoolOp)


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    nodes = ast.walk(function)
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
