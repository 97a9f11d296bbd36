"""Reads a head in words: merges sub-words, hides special tokens and punctuation, renormalises nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from explorer.lenses.words.groups import reading_groups
from transformer.config import AttentionKind
from transformer.text.words import SPACE, Group, is_punctuation, is_special
from transformer.view import Array, BoolArray, HeadMap

Rows = Literal["read", "predicted"]


@dataclass(frozen=True)
class Reading:
    """Settings for reading maps."""

    words: bool = False  # whether the pieces of a word are merged into one row and one column
    hide_special: bool = False  # whether `<s>`, `</s>` and other special tokens are left out
    hide_punctuation: bool = False  # whether punctuation is left out
    # Whether decoder rows are named, merged and hidden by the token they read or by the token they predict.
    # None: the predicted token in cross-attention, the token read elsewhere.
    rows: Rows | None = None

    @property
    def changes(self) -> bool:
        """True if a view with these settings may differ from the model's own arrays."""
        return self.words or self.hide_special or self.hide_punctuation


@dataclass(frozen=True)
class Axis:
    """The rows or columns of a map after reading."""

    # the pieces of each row or column, in the order of the text; positions count from the start of the text
    groups: tuple[Group, ...]
    in_view: BoolArray  # (groups,) bool, False for hidden groups

    @property
    def visible(self) -> tuple[Group, ...]:
        """The groups that are drawn."""
        return tuple(group for group, shown in zip(self.groups, self.in_view, strict=True) if shown)

    def moved(self, by: int) -> Axis:
        """The same axis with all positions shifted by ``by``."""
        moved = tuple(Group(each.start + by, each.stop + by, each.text) for each in self.groups)
        return Axis(moved, self.in_view)


@dataclass(frozen=True, repr=False)
class ReadView(HeadMap):
    """A map after reading: weights are summed over the pieces of a key, averaged over those of a query."""

    scores: Array | None  # type: ignore[assignment]  # None if pieces were merged: words have no score
    hidden: Array = field(kw_only=True)  # (rows,) float32, the weight on hidden columns of this window
    # the pieces that each row and column stand for; positions count from the start of the text
    rows: tuple[Group, ...] = field(kw_only=True)
    columns: tuple[Group, ...] = field(kw_only=True)
    named: Rows = field(kw_only=True)  # whether decoder rows are named by the token read or predicted
    derived: bool = field(kw_only=True)  # whether these arrays are not the model's own, but derived from them


def read_view(view: HeadMap, reading: Reading) -> ReadView:
    """Reads a head or a window of it; a window should not cut through words (``reading_window``)."""
    named = named_rows(view.kind, reading)
    naming = view.predicted_tokens if named == "predicted" and view.predicted_tokens else view.query_tokens
    rows, columns = read_axis(naming, reading), read_axis(view.key_tokens, reading)
    weights, mask, hidden = read_map(view.weights, view.mask, rows, columns)

    def cells(numbers: Array | None) -> Array | None:
        return None if reading.words or numbers is None else numbers[np.ix_(rows.in_view, columns.in_view)]

    own = {each.name: getattr(view, each.name) for each in fields(HeadMap)}
    read = {
        "query_tokens": read_tokens(view.query_tokens, rows),
        "predicted_tokens": view.predicted_tokens and read_tokens(view.predicted_tokens, rows),
        "key_tokens": read_tokens(view.key_tokens, columns),
        "scores": cells(view.scores),
        "measured": cells(view.measured),
        "mask": mask,
        "weights": weights,
        "centres": None,  # of pieces, not of what is drawn
    }
    return ReadView(
        **{**own, **read},
        hidden=hidden,
        rows=rows.moved(view.window.query_start).visible,
        columns=columns.moved(view.window.key_start).visible,
        named=named,
        derived=view.measure != "weight"
        or reading.words
        or not (rows.in_view.all() and columns.in_view.all()),
    )


def named_rows(kind: AttentionKind | str, reading: Reading) -> Rows:
    """The names of the rows of a kind: by the tokens they read, or by those they predict."""
    if kind == AttentionKind.ENCODER:
        return "read"
    return reading.rows or ("predicted" if kind == AttentionKind.CROSS else "read")


def read_axis(tokens: Sequence[str], reading: Reading) -> Axis:
    """Reads tokens as rows or columns; if the settings would hide all of them, none is hidden."""
    groups = (
        reading_groups(tokens)
        if reading.words
        else tuple(Group(i, i + 1, token.removeprefix(SPACE)) for i, token in enumerate(tokens))
    )
    special = [reading.hide_special and is_special(tokens[group.start]) for group in groups]
    points = [reading.hide_punctuation and is_punctuation(group.text) for group in groups]
    shown = ~(np.array(special, bool) | np.array(points, bool))
    return Axis(groups, shown if shown.any() else np.ones_like(shown))


def read_map(weights: Array, mask: BoolArray, rows: Axis, columns: Axis) -> tuple[Array, BoolArray, Array]:
    """(rows, columns) weights and mask of a head, merged and hidden, and (rows,) the hidden weight."""
    sizes = np.array([len(group.indices) for group in rows.groups], dtype=np.float32)
    merged = _sums(weights, rows, columns) / sizes[:, None]
    seen = _sums(mask.astype(np.float32), rows, columns) > 0
    cells = np.ix_(rows.in_view, columns.in_view)
    hidden: Array = merged[np.ix_(rows.in_view, ~columns.in_view)].sum(-1)
    return merged[cells], seen[cells], hidden


def _sums(values: Array, rows: Axis, columns: Axis) -> Array:
    starts = [[group.start for group in axis.groups] for axis in (rows, columns)]
    sums: Array = np.add.reduceat(np.add.reduceat(values, starts[1], axis=1), starts[0], axis=0)
    return sums


def read_tokens(pieces: Sequence[str], axis: Axis) -> tuple[str, ...]:
    """Names of the rows or columns that are drawn."""
    return tuple(_token(pieces[group.start : group.stop]) for group in axis.visible)


def _token(pieces: Sequence[str]) -> str:
    """Joins pieces into one token; with several pieces, a `▁` keeps a typed `</s>` from looking special."""
    return pieces[0] if len(pieces) == 1 else SPACE + " ".join(word.text for word in reading_groups(pieces))


def reading_window(tokens: Sequence[str], reading: Reading, position: int, size: int) -> tuple[int, int]:
    """First piece, and one past the last, of ``size`` rows or columns around a piece, moving by half."""
    visible = read_axis(tokens, reading).visible if len(tokens) > size else ()
    if len(visible) <= size:
        return 0, len(tokens)
    place = sum(group.stop <= position for group in visible)
    half = max(1, size // 2)
    start = min(max(place // half * half - half // 2, 0), len(visible) - size)
    first = 0 if start == 0 else visible[start].start
    last = len(tokens) if start + size == len(visible) else visible[start + size].start
    return first, last
