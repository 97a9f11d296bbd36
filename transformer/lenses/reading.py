"""A head read in words: sub-words merged, special tokens and punctuation put aside, nothing renormalised.

What comes out is derived from a trace, not recorded in it: whoever draws it says so (``ReadView.derived``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer.model.sites import AttentionKind
from transformer.text.vocabulary import SPACE
from transformer.text.words import Group, is_punctuation, is_special, reading_groups
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, BoolArray, HeadView, Window

Rows = Literal["read", "predicted"]


@dataclass(frozen=True)
class Reading:
    """How maps are read.

    Attributes:
        words: Whether the pieces of a word are one row and one column.
        hide_special: Whether `<s>`, `</s>` and the like are left out.
        hide_punctuation: Whether punctuation is left out.
        rows: Whether decoder rows are named, merged and hidden by the token they read or the one they
            predict; None: predicted in cross-attention, read elsewhere.
    """

    words: bool = False
    hide_special: bool = False
    hide_punctuation: bool = False
    rows: Rows | None = None

    @property
    def changes(self) -> bool:
        """Whether a view read so may differ from the model's own arrays."""
        return self.words or self.hide_special or self.hide_punctuation


@dataclass(frozen=True)
class Axis:
    """The rows or columns of a map as they are read.

    Attributes:
        groups: What each stands for, in the order of the text; positions count from the start of the text.
        shown: (groups,) bool, False where a group is hidden.
    """

    groups: tuple[Group, ...]
    shown: BoolArray

    @property
    def visible(self) -> tuple[Group, ...]:
        """The groups that are drawn."""
        return tuple(group for group, shown in zip(self.groups, self.shown, strict=True) if shown)

    def moved(self, by: int) -> Axis:
        """The same axis, with positions counted from elsewhere."""
        moved = tuple(Group(each.start + by, each.stop + by, each.text) for each in self.groups)
        return Axis(moved, self.shown)


@dataclass(frozen=True)
class ReadView:
    """A head as it is read; has the shape of a ``HeadView`` without queries, keys, values and outputs.

    Attributes:
        kind: Which attention.
        layer: Layer, from 0.
        head: Head, from 0.
        model: Name of the model.
        norm: "pre" or "post".
        query_tokens: The rows, by the token that is read.
        predicted_tokens: The rows, by the token that is predicted; None in the encoder.
        key_tokens: The columns.
        window: Which pieces of the whole map this covers.
        scores: (rows, columns) as in ``HeadView``; None where pieces were merged: words have no score.
        mask: (rows, columns) bool, True where any piece of the row may attend to any piece of the column.
        weights: (rows, columns) float32, summed over key pieces, averaged over query pieces.
        hidden: (rows,) float32, the weight that lies on hidden columns of this window.
        rows: The pieces that each row stands for; positions count from the start of the text.
        columns: The pieces that each column stands for.
        named: Whether decoder rows are named by the token they read or the one they predict.
        derived: Whether these are no longer the model's own arrays, but read from them.
        audit: Proof for the trace, and for the arrays before they were merged.
    """

    kind: AttentionKind
    layer: int
    head: int
    model: str
    norm: str
    query_tokens: tuple[str, ...]
    predicted_tokens: tuple[str, ...] | None
    key_tokens: tuple[str, ...]
    window: Window
    scores: Array | None
    mask: BoolArray
    weights: Array
    hidden: Array
    rows: tuple[Group, ...]
    columns: tuple[Group, ...]
    named: Rows
    derived: bool
    audit: AuditReport


def read_view(view: HeadView, reading: Reading) -> ReadView:
    """Reads a head, or a window of it; a window should not cut words (``reading_window``)."""
    named = named_rows(view.kind, reading)
    naming = view.predicted_tokens if named == "predicted" and view.predicted_tokens else view.query_tokens
    rows, columns = read_axis(naming, reading), read_axis(view.key_tokens, reading)
    weights, mask, hidden = read_map(view.weights, view.mask, rows, columns)
    return ReadView(
        kind=view.kind,
        layer=view.layer,
        head=view.head,
        model=view.model,
        norm=view.norm,
        query_tokens=_tokens(view.query_tokens, rows),
        predicted_tokens=None if view.predicted_tokens is None else _tokens(view.predicted_tokens, rows),
        key_tokens=_tokens(view.key_tokens, columns),
        window=view.window,
        scores=None if reading.words else view.scores[np.ix_(rows.shown, columns.shown)],
        mask=mask,
        weights=weights,
        hidden=hidden,
        rows=rows.moved(view.window.query_start).visible,
        columns=columns.moved(view.window.key_start).visible,
        named=named,
        derived=reading.words or not (rows.shown.all() and columns.shown.all()),
        audit=view.audit,
    )


def named_rows(kind: AttentionKind | str, reading: Reading) -> Rows:
    """Whether the rows of a kind are named by the token they read or the one they predict."""
    if kind == AttentionKind.ENCODER:
        return "read"
    return reading.rows or ("predicted" if kind == AttentionKind.CROSS else "read")


def read_axis(tokens: Sequence[str], reading: Reading) -> Axis:
    """The rows or columns that a reading makes of tokens; where it would hide all of them, it hides none."""
    groups = (
        reading_groups(tokens)
        if reading.words
        else tuple(Group(i, i + 1, token.removeprefix(SPACE)) for i, token in enumerate(tokens))
    )
    shown = np.array([not _hides(reading, tokens, group) for group in groups], dtype=bool)
    return Axis(groups, shown if shown.any() else np.ones_like(shown))


def _hides(reading: Reading, tokens: Sequence[str], group: Group) -> bool:
    if is_special(tokens[group.start]):
        return reading.hide_special
    return reading.hide_punctuation and is_punctuation(group.text)


def read_map(weights: Array, mask: BoolArray, rows: Axis, columns: Axis) -> tuple[Array, BoolArray, Array]:
    """Merges and hides the rows and columns of one head.

    Args:
        weights: (queries, keys).
        mask: (queries, keys), True = may attend.
        rows: Positions from the first query of the arrays.
        columns: Positions from the first key.

    Returns:
        (rows, columns) weights, (rows, columns) mask, and (rows,) the weight on hidden columns.
    """
    sizes = np.array([len(group.indices) for group in rows.groups], dtype=np.float32)
    merged = _sums(weights, rows, columns) / sizes[:, None]
    seen = _sums(mask.astype(np.float32), rows, columns) > 0
    cells = np.ix_(rows.shown, columns.shown)
    hidden: Array = merged[np.ix_(rows.shown, ~columns.shown)].sum(-1)
    return merged[cells], seen[cells], hidden


def _sums(values: Array, rows: Axis, columns: Axis) -> Array:
    starts = [[group.start for group in axis.groups] for axis in (rows, columns)]
    sums: Array = np.add.reduceat(np.add.reduceat(values, starts[1], axis=1), starts[0], axis=0)
    return sums


def _tokens(pieces: Sequence[str], axis: Axis) -> tuple[str, ...]:
    return tuple(_token(pieces[group.start : group.stop]) for group in axis.visible)


def _token(pieces: Sequence[str]) -> str:
    """Pieces as one token; where there are several, a `▁` keeps a typed `</s>` from passing for special."""
    if len(pieces) == 1:
        return pieces[0]
    return SPACE + " ".join(group.text for group in reading_groups(pieces))


def reading_window(tokens: Sequence[str], reading: Reading, position: int, size: int) -> tuple[int, int]:
    """The part of an axis to draw: all of it, or up to ``size`` rows or columns, moving in half steps.

    Args:
        tokens: The pieces of the whole axis.
        reading: How they are read; the window never cuts a word.
        position: The piece that must be inside, from 0.
        size: Rows or columns in a window.

    Returns:
        First piece and exclusive last, from 0.
    """
    visible = read_axis(tokens, reading).visible
    if len(visible) <= size:
        return 0, len(tokens)
    place = sum(group.stop <= position for group in visible)
    half = max(1, size // 2)
    start = min(max(place // half * half - half // 2, 0), len(visible) - size)
    first = 0 if start == 0 else visible[start].start
    last = len(tokens) if start + size == len(visible) else visible[start + size].start
    return first, last
