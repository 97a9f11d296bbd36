"""Changes of masks: cells that a query may attend to, or may not, in every head, before the
softmax."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from transformer.config import AttentionKind
from transformer.interventions import attentions, words
from transformer.interventions.base import (
    Bounds,
    Intervention,
    InterventionError,
    RunShape,
    exact,
)
from transformer.interventions.fields import Cells, Index, One
from transformer.interventions.words import LATER, REGIONS, SITES

Cell = str | tuple[int | str | None, int | None]
"""A query and a key, from 0, None for every one, ``LATER`` for every query after the key; or the
name of a region."""
CellsField = Annotated[tuple[Cell, ...], Cells()]
_ACROSS_SENTENCES = frozenset({"all"})
"""Regions that mean something where queries and keys belong to two sentences."""


class OfMask(Intervention):
    """A change of the masks of a kind of attention."""

    changes = "mask"

    @property
    @abstractmethod
    def allowed(self) -> tuple[Cell, ...]:
        """Cells to be seen although the model's mask hides them."""

    @property
    @abstractmethod
    def hidden(self) -> tuple[Cell, ...]:
        """Cells to be hidden; they win over those that are allowed."""


@dataclass(frozen=True)
class Hide(OfMask):
    name = "hide"
    source_token: Annotated[int, One(Index("source token"))]

    def __str__(self) -> str:
        return f"{words.number('source token', self.source_token)} is hidden from cross-attention"

    @property
    def allowed(self) -> tuple[Cell, ...]:
        return ()

    @property
    def hidden(self) -> tuple[Cell, ...]:
        return ((None, self.source_token),)

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_attention(AttentionKind.CROSS)

    def acts_in(self, kind: AttentionKind, layer: int) -> bool:
        return kind == AttentionKind.CROSS


def hide(source_token: int) -> Hide:
    """A source token, as the model reads it, that no cross-attention may attend to."""
    return exact(Hide, source_token=source_token)


@dataclass(frozen=True)
class Mask(OfMask):
    name = "mask"
    kind: attentions.Kind
    allow: CellsField = ()
    forbid: CellsField = ()
    layer: attentions.LayerOrAll = None

    def __str__(self) -> str:
        where = "" if self.layer is None else f", {words.number('layer', self.layer)}"
        allowed = f"; allowed: {words.few(map(words.cell, self.allow))}" if self.allow else ""
        hidden = f"; hidden: {words.few(map(words.cell, self.forbid))}" if self.forbid else ""
        return f"{SITES[self.kind]}{where}{allowed}{hidden}"

    @property
    def allowed(self) -> tuple[Cell, ...]:
        return self.allow

    @property
    def hidden(self) -> tuple[Cell, ...]:
        return self.forbid

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_attention(self.kind)

    def acts_in(self, kind: AttentionKind, layer: int) -> bool:
        return kind == self.kind and self.layer in (None, layer)

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        super().check(shape, changes)
        cells = self.allow + self.forbid
        site = shape.config.sites[self.kind]
        if not cells:
            raise InterventionError("A mask is changed by cells to allow or to forbid; name some.")
        relative = {*REGIONS} - _ACROSS_SENTENCES
        later = any(isinstance(cell, tuple) and cell[0] == LATER for cell in cells)
        if not site.own_keys and (later or relative.intersection(cells)):
            raise InterventionError(
                f"Queries and keys of {SITES[self.kind]} belong to two sentences: name cells, or "
                "all."
            )
        if shape.decoding and site.causal and lifts(self):
            raise InterventionError(
                "While decoding, later tokens do not exist yet; lift the mask over a given "
                "translation."
            )


def mask(
    kind: str,
    allow: Cell | Iterable[Cell] = (),
    forbid: Cell | Iterable[Cell] = (),
    layer: int | None = None,
) -> Mask:
    """Cells of a kind's masks that are allowed, and cells that are forbidden, in one layer or in
    all.

    Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not
    exist.
    """
    return exact(Mask, kind=kind, allow=allow, forbid=forbid, layer=layer)


def lifts(change: OfMask) -> bool:
    """True if a mask allows keys after their query."""
    return any(_lies_ahead(cell) for cell in change.allowed)


def _lies_ahead(cell: Cell) -> bool:
    if isinstance(cell, str):
        return cell in ("all", "future", "next")
    query, key = cell
    if isinstance(query, str):
        return False
    return key is None or key > (query or 0)


# `Any` below: a number, a truth, or an array of these of NumPy or PyTorch, whose operators are
# alike.


def allows(change: OfMask, query: Any, key: Any, visible: Any = False) -> Any:
    """True if a mask lets a query see a key, which it sees without it if that is ``visible``.

    Query and key are positions from 0, or arrays of these that fit each other.
    """
    for cell in change.allowed:
        visible = visible | _covers(cell, query, key)
    for cell in change.hidden:
        visible = visible & (_covers(cell, query, key) ^ True)
    return visible


def _covers(cell: Cell, query: Any, key: Any) -> Any:
    if isinstance(cell, str):
        distance = key - query
        match cell:
            case "future":
                return distance > 0
            case "next":
                return distance == 1
            case "self":
                return distance == 0
            case "past":
                return distance < 0
            case _:
                return distance == distance
    row, column = cell
    if row == LATER:
        return (key == column) & (query > key)
    in_row = query >= 0 if row is None else query == row
    in_column = key >= 0 if column is None else key == column
    return in_row & in_column
