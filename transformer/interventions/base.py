"""What every intervention has: a place that is checked first, and one sentence for each mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from transformer.model.config import ModelConfig
from transformer.model.sites import AttentionKind, Side, Site, Sublayer, SublayerName

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""

SITES = {
    AttentionKind.ENCODER: "encoder self-attention",
    AttentionKind.DECODER: "decoder self-attention",
    AttentionKind.CROSS: "cross-attention",
}
PARTS: dict[SublayerName, str] = {
    "recurrence": "recurrent unit",
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward network",
}


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


@dataclass(frozen=True)
class Setting:
    """The request that a change is checked against."""

    config: ModelConfig  # the model's config
    typed: int  # number of source tokens as typed, ``</s>`` included
    source: int  # number of source tokens as the model reads them
    target: int  # most tokens of the output
    given: int | None = None  # number of tokens of the output in a forced pass; None while decoding
    # whether another change lifts a cell (query, key) of the decoder's causal mask
    lifted: Callable[[int, int], bool] = field(default=lambda query, key: False, repr=False)

    @property
    def forced(self) -> bool:
        """Whether the output is given, so that nothing is decoded."""
        return self.given is not None

    def whole(self, side: Side) -> int | None:
        """Number of positions of a side; None if it is not known before the output is."""
        return self.source if side == "encoder" else self.given

    def lengths(self, kind: AttentionKind) -> tuple[int, int]:
        """Most queries and keys of an attention."""
        site = self.config.sites[kind]
        return self.length(site.query_side), self.length(site.key_side)

    def length(self, side: Side) -> int:
        """Most tokens of a side."""
        return self.source if side == "encoder" else self.target

    def site(self, kind: AttentionKind, layer: int) -> Site:
        """An attention of the model.

        Raises:
            InterventionError: The model has no such attention or layer.
        """
        site = self.config.sites.get(kind)
        if site is None:
            raise InterventionError(f"This model has no {SITES[kind]}.")
        if layer >= site.n_layers:
            raise InterventionError(
                f"There is no layer {layer + 1} of {SITES[kind]}: this model has {site.n_layers}, "
                "counted from 1."
            )
        return site

    def check_sublayer(self, sublayer: Sublayer) -> None:
        """Raises InterventionError if the model has no such sub-layer."""
        stack = self.config.stacks.get(sublayer.side)
        if stack is None or sublayer.name not in stack.sublayers:
            raise InterventionError(f"A layer of the {sublayer.side} has no {PARTS[sublayer.name]}.")
        if sublayer.layer >= stack.n_layers:
            raise InterventionError(
                f"The {sublayer.side} has no layer {sublayer.layer + 1}: it has {stack.n_layers}, "
                "counted from 1."
            )


@dataclass(frozen=True)
class Intervention:
    """One change of a run: a value that can be printed, compared, kept as a key and written to a file."""

    name: ClassVar[str]
    """What JSON and the compact text call it."""

    @property
    def needs_stream(self) -> bool:
        """Whether only the residual stream shows what it did."""
        return False

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model or the request has no such place."""

    def __str__(self) -> str:
        """What people read: in captions, in the badge; counts from 1."""
        raise NotImplementedError


def whole(value: object, what: str) -> int:
    """A whole number from 0.

    Raises:
        InterventionError: It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise InterventionError(f"{what} is {value!r:.40}; it must be a whole number from 0.")
    return value


def finite(value: object, what: str, low: float = -1e6, high: float = 1e6) -> float:
    """A number from ``low`` to ``high``.

    Raises:
        InterventionError: It is something else.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:  # type: ignore[operator, arg-type]
        raise InterventionError(f"{what} is {value!r:.40}; it must be a number from {low:g} to {high:g}.")
    return float(value)  # type: ignore[arg-type]


def kind_of(value: object) -> AttentionKind:
    """A kind of attention.

    Raises:
        InterventionError: It is something else.
    """
    try:
        return AttentionKind(str(value))
    except ValueError:
        raise InterventionError(f"The kind is {value!r:.40}; it must be encoder, decoder or cross.") from None


def side_of(value: object) -> Side:
    """A side.

    Raises:
        InterventionError: It is something else.
    """
    if value not in ("encoder", "decoder"):
        raise InterventionError(f"The side is {value!r:.40}; it must be encoder or decoder.")
    return "encoder" if value == "encoder" else "decoder"


def sublayer_of(side: object, layer: object, name: object) -> Sublayer:
    """A sub-layer.

    Raises:
        InterventionError: It is something else.
    """
    for known in PARTS:
        if name == known:
            return Sublayer(side_of(side), whole(layer, "The layer"), known)
    raise InterventionError(f"The sub-layer is {name!r:.40}; it must be one of {', '.join(PARTS)}.")


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


def counted(numbers: Iterable[int]) -> str:
    """Numbers as people read them, from 1: "3 and 5"."""
    shown = [str(number + 1) for number in numbers]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
