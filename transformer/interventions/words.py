"""What changes are about, in the words of sentences, which count from 1."""

import re
from collections.abc import Iterable, Sequence

from transformer.config import AttentionKind

FEW = 4
"""Most values that a sentence lists."""
REGIONS = {
    "all": "every key",
    "future": "later keys",
    "next": "the key after the query",
    "self": "the query's own key",
    "past": "earlier keys",
}
"""Regions of a mask by their names."""
SITES = {
    kind: "cross-attention" if kind == "cross" else f"{kind} self-attention"
    for kind in AttentionKind
}
SIDES = {"encoder": "encoder", "decoder": "decoder"}
PARTS: dict[str, str] = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward network",
}
"""Sub-layers by their names in a model."""
BY = {
    "zero": "gives no output",
    "mean": "gives its mean output",  # over a sample of sentences
    "uniform": "looks at all keys alike",  # at all that are visible
    "previous": "looks at the key before the query",
    "first": "looks at the first key",
}
"""What takes the place of what a head computes."""


def few(words: Iterable[str]) -> str:
    """The first of several words, and how many there are if not all are listed."""
    every = list(words)
    rest = f" … ({len(every)} in all)" if len(every) > FEW else ""
    return ", ".join(every[:FEW]) + rest


def number(noun: str, index: int | None) -> str:
    """A thing by its number, such as ``layer 2`` for 1; every one for None."""
    if index is None:
        return f"every {noun}"
    return f"{noun} {index + 1}"


def numbers(noun: str, indices: Iterable[int] | None) -> str:
    """Several things by their numbers; every one for None."""
    if indices is None:
        return f"every {noun}"
    return few(number(noun, index) for index in indices)


def in_rows(rows: Sequence[int] | None) -> str:
    """The end of a sentence about some rows; empty for all."""
    return f" in {numbers('row', rows)}" if rows else ""


def quoted(token: int | str) -> str:
    """A token by its piece in quotation marks, or by its id."""
    if isinstance(token, str):
        return f"“{token}”"
    return f"token {token}"


LATER = "later"
"""In place of a query: every one after the key."""


def cell(cell: str | tuple[int | str | None, int | None]) -> str:
    """A query and a key, or a region of a mask."""
    if isinstance(cell, str):
        return REGIONS[cell]
    query, key = cell
    if isinstance(query, str):
        return f"every later query → {number('key', key)}"
    return f"{number('query', query)} → {number('key', key)}"


def place(name: str) -> str:
    """A place of a model: ``decoder layer 2 cross-attention head 6``."""
    layered = re.sub(r"\.([0-9]+\..)", r".layer.\1", name)
    singular = re.sub(r"heads\.", "head.", layered)
    return " ".join(
        str(int(name) + 1) if name.isdigit() else PARTS.get(name, name)
        for name in singular.split(".")
    )
