"""Changes of a stack's arithmetic: only the residual stream shows what they did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from transformer.config import ModelConfig, Side
from transformer.interventions import attentions, words
from transformer.interventions.base import (
    Bounds,
    Intervention,
    InterventionError,
    RunShape,
    exact,
)
from transformer.interventions.fields import Name, One, OrNone
from transformer.interventions.words import PARTS, SIDES

SideField = Annotated[Side, One(Name(SIDES))]


@dataclass(frozen=True)
class NoPositions(Intervention):
    name = "nopositions"
    changes = "stream"
    side: SideField

    def __str__(self) -> str:
        return f"no positions in the {self.side}"

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_stack(self.side)

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        if shape.config.positions == "none":
            raise InterventionError(
                f"This model has no positions in the {self.side} that could be left out."
            )

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        yield f"{self.side}.encoding"


def no_positions(side: str) -> NoPositions:
    """A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""
    return exact(NoPositions, side=side)


@dataclass(frozen=True)
class DropSublayer(Intervention):
    name = "dropsublayer"
    changes = "stream"
    side: SideField
    layer: attentions.Layer
    sublayer: Annotated[str, One(Name(PARTS))]

    def __str__(self) -> str:
        layer = words.number("layer", self.layer)
        return f"{self.side} {layer}, {PARTS[self.sublayer]} adds nothing"

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_stack(self.side, self.sublayer)

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        yield f"{self.side}.{self.layer}.{self.sublayer}.output"


def drop_sublayer(side: str, layer: int, sublayer: str) -> DropSublayer:
    """A sub-layer that adds nothing to the stream; it is computed, and its update replaced by
    zero."""
    return exact(DropSublayer, side=side, layer=layer, sublayer=sublayer)


@dataclass(frozen=True)
class DropNorm(Intervention):
    name = "dropnorm"
    changes = "stream"
    side: SideField
    layer: attentions.LayerOrAll = None
    sublayer: Annotated[str | None, OrNone(One(Name(PARTS)))] = None

    def __str__(self) -> str:
        where = ", at its end" if self.layer is None else f" {words.number('layer', self.layer)}"
        sublayer = "" if self.sublayer is None else f", {PARTS[self.sublayer]}"
        return f"no norm in {self.side}{where}{sublayer}"

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_stack(self.side, self.sublayer)

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        if (self.layer is None) != (self.sublayer is None):
            raise InterventionError(
                "A norm is that of a sub-layer of a layer, or the last of a side; name both, or "
                "none."
            )
        if self.layer is not None:
            return
        if not shape.config.stacks[self.side].passed():
            raise InterventionError(f"This model has no norm in the {self.side}.")
        if shape.config.norm != "pre":
            raise InterventionError(
                f"The {self.side} of this model ends without a norm of its own (post-norm)."
            )

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        if self.layer is None:
            yield f"{self.side}.norm"
        else:
            yield f"{self.side}.{self.layer}.{self.sublayer}.norm"


def drop_norm(side: str, layer: int | None = None, sublayer: str | None = None) -> DropNorm:
    """A LayerNorm that passes its input on: that of a sub-layer, or (None) that at the end of a
    stack."""
    return exact(DropNorm, side=side, layer=layer, sublayer=sublayer)
