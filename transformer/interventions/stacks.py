"""Interventions on a stack's arithmetic: its positions, a sub-layer, a LayerNorm."""

from __future__ import annotations

from typing import Any, ClassVar

from transformer.config import Side, Sublayer
from transformer.interventions.base import InterventionError, Setting
from transformer.interventions.fields import Plain, SideField, SublayerField, named, side_of, sublayer_of
from transformer.interventions.written import Intervention

__all__ = ["DropNorm", "DropSublayer", "NoPositions", "drop_norm", "drop_sublayer", "no_positions"]


class InStack(Intervention):
    """A change that only the residual stream shows."""

    needs_stream: ClassVar[bool] = True


class NormPlace(SublayerField):
    """A sub-layer; or a side, for the LayerNorm at the end of its stack."""

    def validate(self, value: Any) -> Any:
        return side_of(value) if isinstance(value, str) else super().validate(value)

    def check(self, value: Sublayer | Side, of: Any, setting: Setting) -> None:
        if isinstance(value, Sublayer):
            setting.check_sublayer(value)
        elif value not in setting.config.stacks or not setting.config.stacks[value].passed():
            raise InterventionError(f"This model has no norm in the {value}.")
        elif setting.config.norm != "pre":
            raise InterventionError(f"The {value} of this model ends without a norm of its own (post-norm).")

    def write(self, value: Sublayer | Side) -> str:
        return value if isinstance(value, str) else super().write(value)

    def from_text(self, parts: list[str]) -> Any:
        return super().from_text(parts) if "." in parts[0] else parts.pop(0)

    def to_json(self, value: Sublayer | Side) -> Any:
        return value if isinstance(value, str) else super().to_json(value)


class NoPositions(InStack):
    """A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""

    name: ClassVar[str] = "nopositions"
    side: Plain[Side] = SideField()  # "encoder" or "decoder"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if setting.config.positions == "none":
            raise InterventionError(f"This model has no positions in the {self.side} that could be left out.")

    def __str__(self) -> str:
        return f"no positions in the {self.side}"


class DropSublayer(InStack):
    """A sub-layer that adds nothing to the stream; it is computed, and its update replaced by zero."""

    name: ClassVar[str] = "dropsublayer"
    sublayer: Plain[Sublayer] = SublayerField()

    def __str__(self) -> str:
        return f"{named(self.sublayer)} adds nothing"


class DropNorm(InStack):
    """A LayerNorm that passes its input on: that of a sub-layer, or the one at the end of a stack."""

    name: ClassVar[str] = "dropnorm"
    place: Plain[Sublayer | Side] = NormPlace()

    def __str__(self) -> str:
        if isinstance(self.place, Sublayer):
            return f"{named(self.place)} without its norm"
        return f"the {self.place} without its last norm"


no_positions = NoPositions


def drop_sublayer(
    side: str,  # "encoder" or "decoder"
    layer: int,  # layer, from 0
    sublayer: str,  # "self_attention", "cross_attention" or "feed_forward"
) -> DropSublayer:
    """Leaves out a sub-layer: its update is zero."""
    return DropSublayer(sublayer_of(side, layer, sublayer))


def drop_norm(side: str, layer: int | None = None, sublayer: str | None = None) -> DropNorm:
    """Leaves out a LayerNorm: that of a sub-layer, or without a layer the one at the end of a stack.

    Arguments as ``drop_sublayer``.
    """
    if layer is None and sublayer is None:
        return DropNorm(side_of(side))
    return DropNorm(sublayer_of(side, layer, sublayer))
