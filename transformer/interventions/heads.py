"""Changes of one head of a layer, of several, or (None) of all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from transformer.config import AttentionKind
from transformer.interventions import attentions, words
from transformer.interventions.attentions import Indices
from transformer.interventions.base import (
    Bounds,
    Intervention,
    InterventionError,
    Part,
    RunShape,
    exact,
)
from transformer.interventions.fields import Index, Name, Number, One, Pairs
from transformer.interventions.masks import Mask, allows
from transformer.interventions.words import BY, SITES

SUM_LIMIT = 1e-6
"""Excess above 1 that the sum of given weights may have."""
By = Literal["zero", "mean", "uniform", "previous", "first"]


@dataclass(frozen=True)
class OfHeads(Intervention):
    """A change of heads of one layer."""

    kind: attentions.Kind
    layer: attentions.Layer
    head: attentions.Heads

    @property
    def place(self) -> str:
        """The heads, in words."""
        layer = words.number("layer", self.layer)
        return f"{SITES[self.kind]}, {layer}, {words.numbers('head', self.head)}"

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_attention(self.kind)

    def heads(self, n_heads: int) -> tuple[int, ...]:
        if self.head is None:
            return tuple(range(n_heads))
        return self.head

    def acts_in(self, kind: AttentionKind, layer: int) -> bool:
        return kind == self.kind and layer == self.layer

    def elsewhere(self, heads: tuple[int, ...]) -> Self:
        return replace(self, head=heads)


@dataclass(frozen=True)
class Ablate(OfHeads):
    name = "ablate"
    changes = "weights"
    head: attentions.Heads = None
    by: Annotated[By, One(Name(BY))] = "zero"
    rows: attentions.Rows = None

    def __str__(self) -> str:
        return f"{self.place} {BY[self.by]}{words.in_rows(self.rows)}"

    @property
    def part(self) -> Part:
        return "heads" if self.by in ("zero", "mean") else "weights"

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        if self.by != "previous":
            return
        if self.kind == AttentionKind.CROSS:
            raise InterventionError(
                "A query of cross-attention has no previous key: its keys belong to another "
                "sentence."
            )
        if self.rows is not None and 0 in self.rows:
            raise InterventionError("Query 1 has no previous key, so it cannot look there.")


def ablate(
    kind: str, layer: int, head: Indices = None, by: str = "zero", rows: Indices = None
) -> Ablate:
    """A head without what it computes: "zero" and "mean" replace its output, others its weights.

    A row whose key is hidden or does not exist stays as it is.

    "zero" and "mean" answer different questions: without any output, the layers above get a sum
    that they never met in training; with the mean, they lose only what is special to this sentence.
    """
    return exact(Ablate, kind=kind, layer=layer, head=head, by=by, rows=rows)


@dataclass(frozen=True)
class Scale(OfHeads):
    name = "scale"
    changes = "heads"
    factor: Annotated[float, One(Number(-1e6, 1e6))]
    rows: attentions.Rows = None

    def __str__(self) -> str:
        return f"{self.place} times {self.factor:g}{words.in_rows(self.rows)}"


def scale(kind: str, layer: int, head: Indices, factor: float, rows: Indices = None) -> Scale:
    """A head whose output is multiplied by a factor."""
    return exact(Scale, kind=kind, layer=layer, head=head, factor=factor, rows=rows)


@dataclass(frozen=True)
class SetRow(OfHeads):
    name = "row"
    changes = "weights"
    query: attentions.Query
    given: Annotated[tuple[tuple[int, float], ...], Pairs(Index("key"), Number(0, 1))]

    def __str__(self) -> str:
        weights = words.few(
            f"{words.number('key', key)} → {weight:g}" for key, weight in self.given
        )
        return f"{self.place}, {words.number('query', self.query)}: {weights}"

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        if sum(weight for _, weight in self.given) > 1 + SUM_LIMIT:
            raise InterventionError("The weights of a row sum to more than 1.")
        if not shape.config.sites[self.kind].causal:
            return
        masks = [
            change for change in changes if isinstance(change, Mask) and change.kind == self.kind
        ]
        for key, weight in self.given:
            ahead = weight > 0 and key > self.query
            if ahead and not any(allows(mask, self.query, key) for mask in masks):
                raise InterventionError(
                    f"Query {self.query + 1} cannot attend to key {key + 1}, which comes after it."
                )


def set_row(
    kind: str,
    layer: int,
    head: Indices,
    query: int,
    given: Mapping[int, float] | Iterable[tuple[int, float]] | Iterable[float],
) -> SetRow:
    """Given weights in one row of a head; the other visible keys share what is left, as before."""
    return exact(SetRow, kind=kind, layer=layer, head=head, query=query, given=given)


@dataclass(frozen=True)
class Temperature(OfHeads):
    name = "temperature"
    changes = "scores"
    temperature: Annotated[float, One(Number(0.001, 1000))]

    def __str__(self) -> str:
        return f"{self.place} with temperature {self.temperature:g}"


def temperature(kind: str, layer: int, head: Indices, temperature: float) -> Temperature:
    """A head whose scores are divided by a number before the softmax: below 1 sharper, above
    flatter."""
    return exact(Temperature, kind=kind, layer=layer, head=head, temperature=temperature)


@dataclass(frozen=True)
class Unscaled(OfHeads):
    name = "unscaled"
    changes = "scores"
    head: attentions.Heads = None

    def __str__(self) -> str:
        return f"{self.place} without ÷ √d_k"

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        if shape.config.sites[self.kind].score != "scaled_dot":
            raise InterventionError(
                f"The scores of this model's {SITES[self.kind]} are not divided by √d_k."
            )


def unscaled(kind: str, layer: int, head: Indices = None) -> Unscaled:
    """A head without the division by √d_k (section 3.2.1): its scores are q·k, plus what positions
    add."""
    return exact(Unscaled, kind=kind, layer=layer, head=head)
