"""Interventions on a stack's arithmetic: its positions, a sub-layer, a LayerNorm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from transformer.interventions.base import (
    PARTS,
    Intervention,
    InterventionError,
    Setting,
    side_of,
    sublayer_of,
)
from transformer.model.sites import Side, Sublayer


class InStack(Intervention):
    """A change that only the residual stream shows."""

    @property
    def needs_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class NoPositions(InStack):
    """A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""

    name: ClassVar[str] = "nopositions"
    side: Side

    def check(self, setting: Setting) -> None:
        if self.side not in setting.config.stacks:
            raise InterventionError(f"This model has no {self.side}.")
        if setting.config.positions == "none":
            raise InterventionError(f"This model has no positions in the {self.side} that could be left out.")

    def __str__(self) -> str:
        return f"no positions in the {self.side}"


@dataclass(frozen=True)
class DropSublayer(InStack):
    """A sub-layer that adds nothing to the stream; it is computed, and its update replaced by zero."""

    name: ClassVar[str] = "dropsublayer"
    sublayer: Sublayer

    def check(self, setting: Setting) -> None:
        setting.check_sublayer(self.sublayer)

    def __str__(self) -> str:
        return f"{named(self.sublayer)} adds nothing"


@dataclass(frozen=True)
class DropNorm(InStack):
    """A LayerNorm that passes its input on: that of a sub-layer, or the one at the end of a stack."""

    name: ClassVar[str] = "dropnorm"
    place: Sublayer | Side

    def check(self, setting: Setting) -> None:
        if isinstance(self.place, Sublayer):
            setting.check_sublayer(self.place)
        elif self.place not in setting.config.stacks or not setting.config.stacks[self.place].passed():
            raise InterventionError(f"This model has no LayerNorm in the {self.place}.")
        elif setting.config.norm != "pre":
            raise InterventionError(
                f"The {self.place} of this model ends without a LayerNorm of its own (post-norm)."
            )

    def __str__(self) -> str:
        if isinstance(self.place, Sublayer):
            return f"{named(self.place)} without its LayerNorm"
        return f"the {self.place} without its last LayerNorm"


def no_positions(side: str) -> NoPositions:
    """Leaves out the positional encoding of the "encoder" or the "decoder"."""
    return NoPositions(side_of(side))


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


def named(sublayer: Sublayer) -> str:
    """A sub-layer as people read it."""
    return f"{sublayer.side} layer {sublayer.layer + 1}, {PARTS[sublayer.name]}"
