"""Interventions on masks: cells that a query may attend to, or may not, decided before the softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from transformer.config import AttentionKind
from transformer.interventions.base import SITES, InterventionError, Setting, within
from transformer.interventions.fields import Kind, Layer, Plain, Whole
from transformer.interventions.heads import positions
from transformer.interventions.written import Field, Intervention

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Hide", "Mask", "hide", "mask"]

Cell = tuple[int | None, int | None]
"""A query and a key, from 0; None stands for every one."""
Cells = str | tuple[Cell, ...]
"""The name of a region, or cells one by one."""

REGIONS: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda queries, keys: (queries >= 0) & (keys >= 0),
    "future": lambda queries, keys: keys > queries,
    "next": lambda queries, keys: keys == queries + 1,
    "self": lambda queries, keys: keys == queries,
    "past": lambda queries, keys: keys < queries,
}
"""Regions of a map by name, from positions of queries and keys: numbers, or arrays that fit each other."""
MOST_CELLS = 4096


class Masking(Intervention):
    """A change of a mask."""

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        """True if it acts on this attention of this layer."""
        raise NotImplementedError

    @property
    def cells(self) -> tuple[Cells, Cells]:
        """The cells that it allows, and those that it forbids, which win."""
        raise NotImplementedError

    def masked(self, own: Tensor, first: int) -> Tensor:
        """A mask (…, queries, keys), True = may attend, after the change; ``first`` is the first query."""
        rows, columns = positions(first, own.shape[-2], own)[:, None], positions(0, own.shape[-1], own)
        allowed, forbidden = (covers(cells, rows, columns) for cells in self.cells)
        return (own | allowed) & ~forbidden


class Hide(Masking):
    """A source token that no cross-attention may attend to."""

    name: ClassVar[str] = "hide"
    source_token: Plain[int] = Whole("The source token")  # from 0, as the model reads it

    def check(self, setting: Setting) -> None:
        there = f"the model reads {setting.source:,}"
        within(self.source_token, setting.source, "source token", "", there)

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        return kind is AttentionKind.CROSS

    @property
    def cells(self) -> tuple[Cells, Cells]:
        return (), ((None, self.source_token),)

    def __str__(self) -> str:
        return f"source token {self.source_token + 1} is hidden from cross-attention"


_POSITION = Whole("A masked position")


class _CellsField(Field[Any, Any]):
    """A region by its name; or cells, in the compact text ``2.3-x.4``; x stands for every position."""

    def validate(self, value: Any) -> Cells:
        if isinstance(value, str):
            if value in REGIONS:
                return value
            raise InterventionError(f"A region of a map is {', '.join(REGIONS)}, not {value!r:.40}.")
        if not isinstance(value, Iterable):
            raise InterventionError("Cells are pairs of a query and a key.")
        found = []
        for cell in value:
            if not isinstance(cell, tuple | list) or len(cell) != 2:
                raise InterventionError("Cells are pairs of a query and a key.")
            query, key = (None if at is None else _POSITION.validate(at) for at in cell)
            found.append((query, key))
        if len(found) > MOST_CELLS:
            raise InterventionError(f"A mask is changed by at most {MOST_CELLS:,} cells.")
        return tuple(found)

    def check(self, value: Cells, of: Mask, setting: Setting) -> None:
        site, lengths = setting.config.sites[of.kind], setting.lengths(of.kind)
        if isinstance(value, str) and value != "all" and not site.own_keys:
            raise InterventionError(
                f"Queries and keys of {SITES[of.kind]} belong to two sentences, "
                f"so “{value}” names none of its cells."
            )
        for cell in () if isinstance(value, str) else value:
            if any(at is not None and at >= n for at, n in zip(cell, lengths, strict=True)):
                raise InterventionError(
                    f"A masked cell lies outside {SITES[of.kind]}, which has at most "
                    f"{lengths[0]:,} queries and {lengths[1]:,} keys here."
                )

    def write(self, value: Cells) -> str:
        if isinstance(value, str):
            return value
        cells = (".".join("x" if at is None else _POSITION.write(at) for at in cell) for cell in value)
        return "-".join(cells) or "none"

    def read(self, text: str) -> Any:
        if text == "none" or text in REGIONS:
            return () if text == "none" else text
        pairs = [cell.split(".") for cell in text.split("-")]
        return [tuple(None if at == "x" else _POSITION.read(at) for at in pair) for pair in pairs]


class Mask(Masking):
    """Cells of a kind's masks that are allowed, and cells that are forbidden, in every head.

    Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not exist.
    """

    name: ClassVar[str] = "mask"
    order: ClassVar[tuple[str, ...]] = ("kind", "layer", "allow", "forbid")
    kind: Field[AttentionKind, AttentionKind | str] = Kind()  # "encoder", "decoder" or "cross"
    # cells (query, key), from 0, with None for every one, that may be attended to although the model's mask
    # hides them; or the name of a region: "all", "future" (every later key), "next" (the key after the
    # query), "self", "past"
    allow: Field[Cells, str | Iterable[Cell]] = _CellsField(())
    forbid: Field[Cells, str | Iterable[Cell]] = _CellsField(())  # cells to hide; they win over ``allow``
    layer: Plain[int | None] = Layer("The layer", None, "all")  # from 0; None for every layer

    def __post_init__(self) -> None:
        if self.cells == ((), ()):
            raise InterventionError("A mask is changed by cells to allow or to forbid; name some.")

    def check(self, setting: Setting) -> None:
        setting.site(self.kind, self.layer or 0)
        super().check(setting)
        if not setting.forced and setting.config.sites[self.kind].causal and self.lifts:
            raise InterventionError(
                "While decoding, later tokens do not exist yet; "
                "lift the causal mask in a forced pass, over a given translation."
            )

    @property
    def lifts(self) -> bool:
        """True if it allows keys after their query."""
        if isinstance(self.allow, str):
            return self.allow in ("all", "future", "next")
        return any(key is None or key > (query or 0) for query, key in self.allow)

    def allows(self, query: int, key: int) -> bool:
        """True if it allows a cell that is hidden without it."""
        return bool(covers(self.allow, query, key) and not covers(self.forbid, query, key))

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        return kind is self.kind and self.layer in (None, layer)

    @property
    def cells(self) -> tuple[Cells, Cells]:
        return self.allow, self.forbid

    def __str__(self) -> str:
        where = SITES[self.kind] + ("" if self.layer is None else f", layer {self.layer + 1}")
        parts = [("allowed", self.allow), ("hidden", self.forbid)]
        return "; ".join([where, *(f"{what}: {_named(cells)}" for what, cells in parts if cells)])


hide, mask = Hide, Mask


def covers(cells: Cells, query: Any, key: Any) -> Any:
    """True if a query and a key, from 0, are among cells; both may be arrays that fit each other."""
    if isinstance(cells, str):
        return REGIONS[cells](query, key)
    found = (query < 0) & (key < 0)
    for row, column in cells:
        found = found | (_on(row, query) & _on(column, key))
    return found


def _on(at: int | None, positions: Any) -> Any:
    return positions >= 0 if at is None else positions == at


def _named(cells: Cells) -> str:
    if isinstance(cells, str):
        return {
            "all": "every key",
            "future": "later keys",
            "next": "the key after the query",
            "self": "the query's own key",
            "past": "earlier keys",
        }[cells]
    pairs = [" → ".join(_at(*part) for part in zip(("query", "key"), cell, strict=True)) for cell in cells]
    return ", ".join(pairs[:3]) + (f", … ({len(pairs)} cells)" if len(pairs) > 3 else "")


def _at(what: str, at: int | None) -> str:
    return f"every {what}" if at is None else f"{what} {at + 1}"
