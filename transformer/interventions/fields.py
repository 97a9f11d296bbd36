"""The types of fields that changes and places declare: how each is checked, written and read.

In the compact text, numbers count from 1 and use characters that an address holds unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from transformer.config import AttentionKind, Side, Sublayer
from transformer.interventions.base import PARTS, SITES, InterventionError, Setting, Token, within
from transformer.interventions.written import Field, Json
from transformer.text import kinds

Value = TypeVar("Value")
Plain = Field[Value, Value]
"""A field that holds what it is given."""
Some = Field[tuple[int, ...] | None, int | Iterable[int] | None]
"""A field of one number, several, or None for all."""
_PLACE = kinds.whole(0, most=2**31 - 1)
SHORT = {"self": "self_attention", "cross": "cross_attention", "feed": "feed_forward"}
LONG = {long: short for short, long in SHORT.items()}


class Whole(Field[Any, Any]):
    """A whole number from 0."""

    def __init__(self, what: str, default: Any = ..., none: str | None = None) -> None:
        super().__init__(default, none)
        self.what = what

    def validate(self, value: Any) -> int:
        return _PLACE.check(self.what, value, InterventionError)

    def write(self, value: int) -> str:
        return str(value + 1)

    def read(self, text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
            raise InterventionError(f"{text!r:.40} is not a number counted from 1.")
        return int(text) - 1


class Step(Whole):
    """A step of the output."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        setting.check_step(value)


class Typed(Whole):
    """A position of the source as typed."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        within(value, setting.typed, "source token", "", f"the text has {setting.typed:,}")


class Layer(Whole):
    """A layer of the attention whose ``kind`` is declared before it."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        setting.site(of.kind, value)


class LayerOfHeads(Layer):
    """A layer that ``Heads`` follow, in the compact text after a dot: ``2.6-8``, or ``2`` for all of them."""

    def from_text(self, parts: list[str]) -> int:
        return self.read(parts[0].partition(".")[0])


class Head(Whole):
    """One head of the layer before it."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        count = setting.config.n_heads
        within(value, count, "head", f" of {SITES[of.kind]}", f"a layer has {count}")


class Query(Whole):
    """One query."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        count = setting.lengths(of.kind)[0]
        within(value, count, "query", f" in {SITES[of.kind]}", f"there are at most {count:,}")


class Several(Field[Any, Any]):
    """One whole number or several, in order and without repetition; None for all."""

    def __init__(self, each: Whole, default: Any = ...) -> None:
        super().__init__(default)
        self.each, self.optional = each, True

    def validate(self, value: Any) -> tuple[int, ...]:
        values, what = [value] if isinstance(value, int) else value, self.each.what
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InterventionError(f"{what} is {value!r:.40}; it must be a whole number or several.")
        numbers = tuple(sorted(set(map(self.each.validate, values))))
        if not 1 <= len(numbers) <= 4096:
            raise InterventionError(f"{what} must be from 1 to 4,096 numbers.")
        return numbers

    def check(self, value: tuple[int, ...], of: Any, setting: Setting) -> None:
        self.each.check(value[-1], of, setting)

    def write(self, value: tuple[int, ...]) -> str:
        return "-".join(map(self.each.write, value))

    def read(self, text: str) -> list[int]:
        return [self.each.read(part) for part in text.split("-")]


class Heads(Several):
    """Heads of the layer before them."""

    def __init__(self, default: Any = ...) -> None:
        super().__init__(Head("The head"), default)

    def to_text(self, value: tuple[int, ...] | None, parts: list[str]) -> None:
        parts[-1] += "" if value is None else f".{self.write(value)}"

    def from_text(self, parts: list[str]) -> list[int] | None:
        _, dot, heads = parts.pop(0).partition(".")
        return self.read(heads) if dot else None


class Number(Field[Any, Any]):
    """A number within limits."""

    def __init__(self, what: str, low: float = -1e6, high: float = 1e6) -> None:
        super().__init__()
        self.what, self.low, self.high = what, low, high

    def validate(self, value: Any) -> float:
        return float(kinds.number(self.low, self.high).check(self.what, value, InterventionError))

    def write(self, value: float) -> str:
        return repr(value)

    def read(self, text: str) -> float:
        return float(text)


class TokenField(Field[Any, Any]):
    """A token by id or by piece; a piece follows a dot if it could be taken for an id."""

    def validate(self, value: Any) -> Token:
        if not isinstance(value, str):
            return Whole("The token's id").validate(value)
        if not 1 <= len(value) <= 200:
            raise InterventionError("A token is a piece such as '▁ist', or its id.")
        return value

    def write(self, value: Token) -> str:
        return f".{value}" if isinstance(value, str) and re.fullmatch(r"[0-9]+|\..*", value) else str(value)

    def read(self, text: str) -> Token:
        return int(text) if re.fullmatch("[0-9]{1,9}", text) else text.removeprefix(".")


class Kind(Field[Any, Any]):
    """A kind of attention."""

    def validate(self, value: Any) -> AttentionKind:
        return AttentionKind(kinds.one_of(*AttentionKind).check("The kind", value, InterventionError))


class SideField(Field[Any, Any]):
    """A side."""

    def validate(self, value: Any) -> Side:
        return side_of(value)

    def check(self, value: Side, of: Any, setting: Setting) -> None:
        setting.check_side(value)


class SublayerField(Field[Any, Any]):
    """A sub-layer, in the compact text ``decoder.2.cross``, and always the last field there."""

    def validate(self, value: Any) -> Sublayer:
        return value if isinstance(value, Sublayer) else sublayer_of(**value)

    def check(self, value: Sublayer, of: Any, setting: Setting) -> None:
        setting.check_sublayer(value)

    def write(self, value: Sublayer) -> str:
        return f"{value.side}.{value.layer + 1}.{LONG[value.name]}"

    def from_text(self, parts: list[str]) -> Json:
        side, layer, name = ".".join(parts).split(".")
        parts.clear()
        return {"side": side, "layer": Whole("The layer").read(layer), "sublayer": SHORT[name]}

    def to_json(self, value: Sublayer) -> Json:
        return {"side": value.side, "layer": value.layer, "sublayer": value.name}


def side_of(value: object) -> Side:
    """A side; InterventionError if it is something else."""
    side: Any = value
    return kinds.one_of("encoder", "decoder").check("The side", side, InterventionError)


def sublayer_of(side: object, layer: object, sublayer: object) -> Sublayer:
    """A sub-layer; InterventionError if it is something else."""
    known: Any = kinds.one_of(*PARTS).check("The sub-layer", sublayer, InterventionError)
    return Sublayer(side_of(side), Whole("The layer").validate(layer), known)


def counted(what: str, numbers: Sequence[int]) -> str:
    """Numbers as people read them, from 1: "heads 3 and 5"."""
    *before, last = [str(number + 1) for number in numbers]
    return f"{what}s {', '.join(before)} and {last}" if before else f"{what} {last}"


def in_rows(rows: Sequence[int] | None) -> str:
    """The rows of a change as people read them."""
    return "" if rows is None else f" in {counted('row', rows)}"


def shown(token: Token) -> str:
    """A token as people read it."""
    return f"“{token}”" if isinstance(token, str) else f"token {token}"


def named(sublayer: Sublayer) -> str:
    """A sub-layer as people read it."""
    return f"{sublayer.side} layer {sublayer.layer + 1}, {PARTS[sublayer.name]}"
