"""Interventions on masks: cells that a query may attend to, or may not, decided before the softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from transformer.interventions.base import (
    SITES,
    Intervention,
    InterventionError,
    Setting,
    kind_of,
    whole,
)
from transformer.model.sites import AttentionKind

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
        """Whether it acts on this attention of this layer."""
        raise NotImplementedError

    @property
    def cells(self) -> tuple[Cells, Cells]:
        """The cells that it allows, and those that it forbids, which win."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mask(Masking):
    """Cells of a kind's masks that are allowed, and cells that are forbidden."""

    name: ClassVar[str] = "mask"
    kind: AttentionKind  # which attention
    allow: Cells = ()  # cells that may be attended to although the model's mask hides them
    forbid: Cells = ()  # cells that may not; they win over ``allow``
    layer: int | None = None  # the layer, from 0; None for every layer

    def check(self, setting: Setting) -> None:
        setting.site(self.kind, self.layer or 0)
        lengths = setting.lengths(self.kind)
        for cells in (self.allow, self.forbid):
            if isinstance(cells, str) and cells != "all" and not setting.config.sites[self.kind].own_keys:
                raise InterventionError(
                    f"Queries and keys of {SITES[self.kind]} belong to two sentences, "
                    f"so “{cells}” names none of its cells."
                )
            for cell in () if isinstance(cells, str) else cells:
                if any(at is not None and at >= n for at, n in zip(cell, lengths, strict=True)):
                    raise InterventionError(
                        f"A masked cell lies outside {SITES[self.kind]}, which has at most "
                        f"{lengths[0]:,} queries and {lengths[1]:,} keys here."
                    )
        if not setting.forced and setting.config.sites[self.kind].causal and self.lifts:
            raise InterventionError(
                "While decoding, later tokens do not exist yet; "
                "lift the causal mask in a forced pass, over a given translation."
            )

    @property
    def lifts(self) -> bool:
        """Whether it allows keys after their query."""
        if isinstance(self.allow, str):
            return self.allow in ("all", "future", "next")
        return any(key is None or key > (query or 0) for query, key in self.allow)

    def allows(self, query: int, key: int) -> bool:
        """Whether it allows a cell that is hidden without it."""
        return covers(self.allow, query, key) and not covers(self.forbid, query, key)

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        return kind is self.kind and self.layer in (None, layer)

    @property
    def cells(self) -> tuple[Cells, Cells]:
        return self.allow, self.forbid

    def __str__(self) -> str:
        where = SITES[self.kind] + ("" if self.layer is None else f", layer {self.layer + 1}")
        parts = [("allowed", self.allow), ("hidden", self.forbid)]
        return "; ".join([where, *(f"{what}: {_named(cells)}" for what, cells in parts if cells)])


@dataclass(frozen=True)
class Hide(Masking):
    """A source token that no cross-attention may attend to."""

    name: ClassVar[str] = "hide"
    source_token: int

    def check(self, setting: Setting) -> None:
        if self.source_token >= setting.source:
            raise InterventionError(
                f"There is no source token {self.source_token + 1}: the model reads {setting.source:,}, "
                "counted from 1."
            )

    def changes(self, kind: AttentionKind, layer: int) -> bool:
        return kind is AttentionKind.CROSS

    @property
    def cells(self) -> tuple[Cells, Cells]:
        return (), ((None, self.source_token),)

    def __str__(self) -> str:
        return f"source token {self.source_token + 1} is hidden from cross-attention"


def mask(
    kind: AttentionKind | str,  # "encoder", "decoder" or "cross"
    # cells (query, key), from 0, with None for every one; or the name of a region: "all", "future" (every
    # later key), "next" (the key after the query), "self", "past"
    allow: str | Iterable[Cell] = (),
    forbid: str | Iterable[Cell] = (),  # the same, for cells to hide; a cell of both is hidden
    layer: int | None = None,  # layer, from 0; None for every layer
) -> Mask:
    """Changes who may attend to whom, in every head of a kind, before the softmax.

    Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not exist.
    """
    if not (found := (_cells(allow), _cells(forbid))) != ((), ()):
        raise InterventionError("A mask is changed by cells to allow or to forbid; name some.")
    return Mask(kind_of(kind), *found, None if layer is None else whole(layer, "The layer"))


def hide(source_token: int) -> Hide:
    """Hides a token of the source, by its position from 0 as the model reads it, from all cross-attention."""
    return Hide(whole(source_token, "The source token"))


def _cells(cells: str | Iterable[Cell]) -> Cells:
    if isinstance(cells, str):
        if cells in REGIONS:
            return cells
        raise InterventionError(f"A region of a map is {', '.join(REGIONS)}, not {cells!r:.40}.")
    if not isinstance(cells, Iterable):
        raise InterventionError("Cells are pairs of a query and a key.")
    found = []
    for cell in cells:
        if not isinstance(cell, tuple | list) or len(cell) != 2:
            raise InterventionError("Cells are pairs of a query and a key.")
        query, key = (None if at is None else whole(at, "A masked position") for at in cell)
        found.append((query, key))
    if len(found) > MOST_CELLS:
        raise InterventionError(f"A mask is changed by at most {MOST_CELLS:,} cells.")
    return tuple(found)


def covers(cells: Cells, query: int, key: int) -> bool:
    """Whether a query and a key, from 0, are among cells."""
    if isinstance(cells, str):
        return bool(REGIONS[cells](query, key))
    return any(row in (None, query) and column in (None, key) for row, column in cells)


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
    return ", ".join(pairs[:3]) + f", … ({len(pairs)} cells)" * (len(pairs) > 3)


def _at(what: str, at: int | None) -> str:
    return f"every {what}" if at is None else f"{what} {at + 1}"
