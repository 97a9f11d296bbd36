"""The types of fields that changes and places declare: how each is checked, written and read.

In the compact text, numbers count from 1 and use characters that an address holds unchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from transformer.interventions.base import PARTS, SITES, InterventionError, Setting, Token
from transformer.interventions.written import Field, Json
from transformer.model.sites import AttentionKind, Side, Sublayer

Value = TypeVar("Value")
Plain = Field[Value, Value]
"""A field that holds what it is given."""
Several = int | Iterable[int]
"""One number, or several."""
SHORT = {"self": "self_attention", "unit": "recurrence", "cross": "cross_attention", "feed": "feed_forward"}
LONG = {long: short for short, long in SHORT.items()}


class Whole(Field[Any, Any]):
    """A whole number from 0."""

    def __init__(self, what: str, default: Any = ..., none: str | None = None) -> None:
        super().__init__(default, none)
        self.what = what

    def made(self, value: Any) -> int:
        return whole(value, self.what)

    def write(self, value: int) -> str:
        return count_up(value)

    def read(self, text: str) -> int:
        return count_down(text)


class Step(Whole):
    """A step of the output."""

    def __init__(self, default: Any = ...) -> None:
        super().__init__("The step", default)

    def check(self, value: int, of: Any, setting: Setting) -> None:
        check_step(value, setting)


class Typed(Whole):
    """A position of the source as typed."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        if value >= setting.typed:
            raise InterventionError(
                f"There is no source token {value + 1}: the text has {setting.typed:,}, counted from 1."
            )


class Layer(Whole):
    """A layer of the attention whose ``kind`` is declared before it."""

    def __init__(self, default: Any = ..., none: str | None = None) -> None:
        super().__init__("The layer", default, none)

    def check(self, value: int, of: Any, setting: Setting) -> None:
        setting.site(of.kind, value)


class LayerOfHeads(Layer):
    """A layer that ``Heads`` follow, in the compact text after a dot: ``2.6-8``, or ``2`` for all of them."""

    def take(self, parts: list[str]) -> int:
        return count_down(parts[0].partition(".")[0])


class Heads(Field[Any, Any]):
    """Heads of the layer before them; None for all."""

    optional = True

    def made(self, value: Any) -> tuple[int, ...]:
        return several(value, "The head")

    def check(self, value: tuple[int, ...], of: Any, setting: Setting) -> None:
        check_head(of.kind, value[-1], setting)

    def put(self, value: tuple[int, ...] | None, parts: list[str]) -> None:
        if value is not None:
            parts[-1] += "." + write_many(value)

    def take(self, parts: list[str]) -> list[int] | None:
        _, dot, heads = parts.pop(0).partition(".")
        return read_many(heads) if dot else None


class Head(Whole):
    """One head of the layer before it."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        check_head(of.kind, value, setting)


class Rows(Field[Any, Any]):
    """Queries; None for all."""

    def made(self, value: Any) -> tuple[int, ...]:
        return several(value, "The row")

    def check(self, value: tuple[int, ...], of: Any, setting: Setting) -> None:
        check_query(of.kind, value[-1], setting)

    def write(self, value: tuple[int, ...]) -> str:
        return write_many(value)

    def read(self, text: str) -> list[int]:
        return read_many(text)


class Query(Whole):
    """One query."""

    def check(self, value: int, of: Any, setting: Setting) -> None:
        check_query(of.kind, value, setting)


class Number(Field[Any, Any]):
    """A number within limits."""

    def __init__(self, what: str, low: float = -1e6, high: float = 1e6) -> None:
        super().__init__()
        self.what, self.low, self.high = what, low, high

    def made(self, value: Any) -> float:
        return finite(value, self.what, self.low, self.high)

    def write(self, value: float) -> str:
        return repr(value)

    def read(self, text: str) -> float:
        return float(text)


class TokenField(Field[Any, Any]):
    """A token by id or by piece; a piece follows a dot if it could be taken for an id."""

    def made(self, value: Any) -> Token:
        return token_of(value)

    def write(self, value: Token) -> str:
        return f".{value}" if isinstance(value, str) and re.fullmatch(r"[0-9]+|\..*", value) else str(value)

    def read(self, text: str) -> Token:
        if re.fullmatch("[0-9]{1,9}", text):
            return int(text)
        return text[1:] if text.startswith(".") else text


class Kind(Field[Any, Any]):
    """A kind of attention."""

    def made(self, value: Any) -> AttentionKind:
        try:
            return AttentionKind(str(value))
        except ValueError:
            raise InterventionError(
                f"The kind is {value!r:.40}; it must be encoder, decoder or cross."
            ) from None

    def check(self, value: AttentionKind, of: Any, setting: Setting) -> None:
        setting.site(value, 0)


class SideField(Field[Any, Any]):
    """A side."""

    def made(self, value: Any) -> Side:
        return side_of(value)

    def check(self, value: Side, of: Any, setting: Setting) -> None:
        check_side(value, setting)


class SublayerField(Field[Any, Any]):
    """A sub-layer, in the compact text ``decoder.2.cross``, and always the last field there."""

    def made(self, value: Any) -> Sublayer:
        return value if isinstance(value, Sublayer) else sublayer_of(**value)

    def check(self, value: Sublayer, of: Any, setting: Setting) -> None:
        setting.check_sublayer(value)

    def write(self, value: Sublayer) -> str:
        return f"{value.side}.{count_up(value.layer)}.{LONG[value.name]}"

    def take(self, parts: list[str]) -> Json:
        side, layer, name = ".".join(parts).split(".")
        parts.clear()
        return {"side": side, "layer": count_down(layer), "sublayer": SHORT[name]}

    def to_json(self, value: Sublayer) -> Json:
        return {"side": value.side, "layer": value.layer, "sublayer": value.name}


def check_side(side: Side, setting: Setting) -> None:
    """Raises InterventionError if the model has no such side."""
    if side not in setting.config.stacks:
        raise InterventionError(f"This model has no {side}.")


def check_step(step: int, setting: Setting) -> None:
    """Raises InterventionError if the output has no such step."""
    if step >= setting.target:
        what = "has" if setting.forced else "is limited to"
        raise InterventionError(
            f"There is no step {step + 1}: the output {what} {setting.target:,} tokens, counted from 1."
        )


def check_head(kind: AttentionKind, head: int, setting: Setting) -> None:
    """Raises InterventionError if a layer has no such head."""
    if head >= (count := setting.config.n_heads):
        raise InterventionError(
            f"There is no head {head + 1} of {SITES[kind]}: a layer has {count}, counted from 1."
        )


def check_query(kind: AttentionKind, query: int, setting: Setting) -> None:
    """Raises InterventionError if an attention cannot have such a query."""
    if query >= (count := setting.lengths(kind)[0]):
        raise InterventionError(
            f"There is no query {query + 1} in {SITES[kind]}: there are at most {count:,}, counted from 1."
        )


def whole(value: object, what: str) -> int:
    """A whole number from 0.

    Raises:
        InterventionError: It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise InterventionError(f"{what} is {value!r:.40}; it must be a whole number from 0.")
    return value


def finite(value: object, what: str, low: float, high: float) -> float:
    """A number from ``low`` to ``high``.

    Raises:
        InterventionError: It is something else.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:  # type: ignore[operator, arg-type]
        raise InterventionError(f"{what} is {value!r:.40}; it must be a number from {low:g} to {high:g}.")
    return float(value)  # type: ignore[arg-type]


def side_of(value: object) -> Side:
    """A side.

    Raises:
        InterventionError: It is something else.
    """
    if value not in ("encoder", "decoder"):
        raise InterventionError(f"The side is {value!r:.40}; it must be encoder or decoder.")
    return "encoder" if value == "encoder" else "decoder"


def sublayer_of(side: object, layer: object, sublayer: object) -> Sublayer:
    """A sub-layer.

    Raises:
        InterventionError: It is something else.
    """
    for known in PARTS:
        if sublayer == known:
            return Sublayer(side_of(side), whole(layer, "The layer"), known)
    raise InterventionError(f"The sub-layer is {sublayer!r:.40}; it must be one of {', '.join(PARTS)}.")


def token_of(value: object) -> Token:
    """A token by id or by piece.

    Raises:
        InterventionError: It is something else.
    """
    if isinstance(value, str):
        if 1 <= len(value) <= 200:
            return value
        raise InterventionError("A token is a piece such as '▁ist', or its id.")
    return whole(value, "The token's id")


def several(value: object, what: str, most: int = 4096) -> tuple[int, ...]:
    """One whole number or several, in order and without repetition.

    Raises:
        InterventionError: It is something else, or nothing.
    """
    values = [value] if isinstance(value, int) else value
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InterventionError(f"{what} is {value!r:.40}; it must be a whole number or several.")
    numbers = tuple(sorted({whole(each, what) for each in values}))
    if not 1 <= len(numbers) <= most:
        raise InterventionError(f"{what} must be from 1 to {most:,} numbers.")
    return numbers


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


def counted(numbers: Sequence[int]) -> str:
    """Numbers as people read them, from 1: "s 3 and 5"; the "s" only if there are several."""
    *before, last = [str(number + 1) for number in numbers]
    return f"s {', '.join(before)} and {last}" if before else f" {last}"


def in_rows(rows: Sequence[int] | None) -> str:
    """The rows of a change as people read them."""
    return "" if rows is None else f" in row{counted(rows)}"


def shown(token: Token) -> str:
    """A token as people read it."""
    return f"“{token}”" if isinstance(token, str) else f"token {token}"


def named(sublayer: Sublayer) -> str:
    """A sub-layer as people read it."""
    return f"{sublayer.side} layer {sublayer.layer + 1}, {PARTS[sublayer.name]}"
