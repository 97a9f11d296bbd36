"""Fields of the compact text of interventions: numbers count from 1 and use characters of an address."""

from __future__ import annotations

import re
from collections.abc import Iterable

import transformer.interventions.heads as heads
import transformer.interventions.masks as masks
import transformer.interventions.patching as patching
from transformer.interventions.base import InterventionError, Token
from transformer.model.sites import Sublayer

SHORT = {"self": "self_attention", "unit": "recurrence", "cross": "cross_attention", "feed": "feed_forward"}
LONG = {long: short for short, long in SHORT.items()}


def escaped(text: str) -> str:
    """A field with its separators escaped."""
    return re.sub("[%~_]", lambda found: f"%{ord(found[0]):02X}", text)


def unescaped(text: str) -> str:
    """The field that ``escaped`` was given."""
    return re.sub("%(25|7E|5F)", lambda found: chr(int(found[1], 16)), text)


def count_up(number: int) -> str:
    """A position from 0 as people count, from 1."""
    return str(number + 1)


def count_down(text: str) -> int:
    """A position from 0.

    Raises:
        InterventionError: The text is not a number counted from 1.
    """
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise InterventionError(f"{text!r:.40} is not a number counted from 1.")
    return int(text) - 1


def write_many(numbers: Iterable[int]) -> str:
    """Positions, separated by hyphens."""
    return "-".join(map(count_up, numbers))


def read_many(text: str) -> list[int]:
    """Positions that are separated by hyphens."""
    return [count_down(each) for each in text.split("-")]


def write_token(token: Token) -> str:
    """An id as a number; a piece as it is, after a dot if it could be taken for a number."""
    if isinstance(token, int):
        return str(token)
    return f".{token}" if re.fullmatch(r"[0-9]+|\..*", token) else token


def read_token(text: str) -> Token:
    """The token that ``write_token`` wrote."""
    if re.fullmatch("[0-9]{1,9}", text):
        return int(text)
    return text[1:] if text.startswith(".") else text


def write_heads(value: heads.InHeads) -> list[str]:
    """Two fields: the kind; and ``2.6-8``, the layer with its heads, or ``2`` for all of its heads."""
    chosen = "" if value.head is None else "." + write_many(value.head)
    return [str(value.kind), count_up(value.layer) + chosen]


def read_heads(text: str) -> tuple[int, list[int] | None]:
    """Layer and heads."""
    layer, dot, chosen = text.partition(".")
    return count_down(layer), read_many(chosen) if dot else None


def write_rows(rows: tuple[int, ...] | None) -> list[str]:
    """One field, or none for all rows."""
    return [] if rows is None else [write_many(rows)]


def read_rows(rows: tuple[str, ...]) -> list[int] | None:
    """Rows, or None for all."""
    return read_many(*rows) if rows else None


def write_cells(cells: masks.Cells) -> str:
    """A region by its name; or cells ``2.3-x.4``, in which x stands for every position."""
    if isinstance(cells, str):
        return cells
    return "-".join(".".join("x" if at is None else count_up(at) for at in cell) for cell in cells) or "none"


def read_cells(text: str) -> str | list[masks.Cell]:
    """The cells that ``write_cells`` wrote."""
    if text == "none" or text in masks.REGIONS:
        return [] if text == "none" else text
    pairs = [cell.split(".") for cell in text.split("-")]
    return [tuple(None if at == "x" else count_down(at) for at in pair) for pair in pairs]  # type: ignore[misc]


def write_sublayer(value: Sublayer) -> str:
    """``decoder.2.cross``."""
    return f"{value.side}.{count_up(value.layer)}.{LONG[value.name]}"


def read_sublayer(text: str) -> tuple[str, int, str]:
    """Side, layer and name."""
    side, layer, name = text.split(".")
    return side, count_down(layer), SHORT[name]


def write_place(place: patching.PatchPlace) -> str:
    """A place that can be patched: ``stream.decoder.2.cross``, ``head.cross.2.6``."""
    match place:
        case patching.Embeddings(side):
            return f"embeddings.{side}"
        case patching.Stream(sublayer):
            return f"stream.{write_sublayer(sublayer)}"
        case patching.HeadOutput(kind, layer, head):
            return f"head.{kind}.{count_up(layer)}.{count_up(head)}"
    return "output"


def read_place(text: str) -> patching.PatchPlace:
    """The place that ``write_place`` wrote.

    Raises:
        InterventionError: There is no such place.
    """
    what, _, rest = text.partition(".")
    if what == "embeddings":
        return patching.embeddings(rest)
    if what == "stream":
        return patching.stream(*read_sublayer(rest))
    if what == "head":
        kind, layer, head = rest.split(".")
        return patching.head_output(kind, count_down(layer), count_down(head))
    if text == "output":
        return patching.encoder_output()
    raise InterventionError(f"There is no place {text!r:.40} to patch.")
