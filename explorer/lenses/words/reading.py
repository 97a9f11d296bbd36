"""Reads a head in words: merges sub-words, hides special tokens and punctuation, renormalises
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Literal

import numpy as np

from explorer.lenses.words.groups import reading_groups
from transformer.config import AttentionKind
from transformer.text.words import SPACE, Group, in_bytes, is_punctuation, piece_groups, spelled
from transformer.view import (
    NUMBERS,
    Array,
    AuditReport,
    BoolArray,
    Check,
    HeadMap,
    difference,
    difference_as_given,
    worst,
)

Rows = Literal["read", "predicted"]
_ALL = (Group(0, 1, ""),)
"""One column as a group."""
LIMIT = 1e-5
"""Largest difference of a drawn number from the sum of those that it stands for."""


@dataclass(frozen=True)
class Reading:
    """Settings for reading maps."""

    words: bool = False  # whether the pieces of a word are merged into one row and one column
    hide_special: bool = False  # whether `<s>`, `</s>` and other special tokens are left out
    hide_punctuation: bool = False  # whether punctuation is left out
    # Whether decoder rows are named, merged and hidden by the token they read or by the token they
    # predict. None: the predicted token in cross-attention, the token read elsewhere.
    rows: Rows | None = None


@dataclass(frozen=True, repr=False)
class ReadView(HeadMap):
    """A map after reading: weights are summed over the pieces of a key, averaged over those of a
    query."""

    merged: bool = field(kw_only=True)  # whether pieces were merged: words have no score
    hidden: Array = field(
        kw_only=True
    )  # (rows,) float32, the weight on hidden columns of this window
    # the pieces that each row and column stand for; positions count from the start of the text
    rows: tuple[Group, ...] = field(kw_only=True)
    columns: tuple[Group, ...] = field(kw_only=True)
    named: Rows = field(
        kw_only=True
    )  # whether decoder rows are named by the token read or predicted
    derived: bool = field(
        kw_only=True
    )  # whether these arrays are not the model's own, but derived from them
    # whether its audit is made only after it was drawn
    awaits_proof: bool = field(default=False, kw_only=True)


def read_view(view: HeadMap, reading: Reading) -> ReadView:
    """Reads a head or a window of it; a window should not cut through words
    (``reading_window``)."""
    usual: Rows = "predicted" if view.kind == AttentionKind.CROSS else "read"
    named: Rows = "read"
    naming = view.query_tokens
    if view.predicted_tokens is not None:
        named = reading.rows or usual
        if named == "predicted":
            naming = view.predicted_tokens
    rows = drawn_groups(naming, reading)
    columns = drawn_groups(view.key_tokens, reading)
    weights, mask, hidden = read_map(view.weights, view.mask, rows, columns)
    cells = np.ix_([row.start for row in rows], [column.start for column in columns])
    read = {entry.name: getattr(view, entry.name) for entry in fields(HeadMap)} | {
        "query_tokens": read_tokens(view.query_tokens, rows),
        "predicted_tokens": view.predicted_tokens and read_tokens(view.predicted_tokens, rows),
        "key_tokens": read_tokens(view.key_tokens, columns),
        "scores": None if reading.words or view.scores is None else view.scores[cells],
        "measured": None if reading.words or view.measured is None else view.measured[cells],
        "mask": mask,
        "weights": weights,
        "sums": _merged(view.sums, rows),
        "centres": None,  # of pieces, not of what is drawn
        "report": partial(audit_read, view),
    }
    rows, columns = (
        tuple(
            replace(group, start=group.start + first, stop=group.stop + first) for group in groups
        )
        for groups, first in ((rows, view.window.query_start), (columns, view.window.key_start))
    )
    derived = view.measure != "weight" or reading.words or mask.shape != view.mask.shape
    return ReadView(
        **read,
        merged=reading.words,
        hidden=hidden,
        rows=rows,
        columns=columns,
        named=named,
        derived=derived,
    )


def _merged(sums: Array | None, rows: Sequence[Group]) -> Array | None:
    """(rows,) means over the pieces of each row; None of nothing."""
    if sums is None:
        return None
    return merge_words(sums[:, None], rows, _ALL)[:, 0]


def audit_read(view: HeadMap, drawn: ReadView) -> AuditReport:
    """The audit of a map, and whether what was read of it is its own: what a figure receives.

    Every weight is the sum over the pieces of its key, the mean over those of its query; every
    other number that of its piece; every label its piece, or spelled by its pieces. Kind, layer and
    head are the map's.
    """
    rows = _members(drawn.rows, view.window.query_start, view.weights.shape[0])
    columns = _members(drawn.columns, view.window.key_start, view.weights.shape[1])
    means = rows / np.maximum(1, rows.sum(1, keepdims=True))
    aside = ~columns.any(0)
    known = np.isfinite(view.weights)
    numbers = np.where(known, view.weights, 0)
    expected = {
        "weights": _unless(means @ numbers @ columns.T, rows @ ~known @ columns.T),
        "mask": rows @ view.mask @ columns.T > 0,
        "hidden": _unless(means @ numbers @ aside, rows @ ~known @ aside),
    }
    compared = difference
    if view.audit.unchecked:
        compared = difference_as_given
    differences = [compared(getattr(drawn, name), array, 1.0) for name, array in expected.items()]
    for name in set(NUMBERS) - expected.keys():
        array = getattr(drawn, name)
        recorded = getattr(view, name)
        if array is not None:  # words have no score
            cells = recorded[np.ix_(rows.argmax(1), columns.argmax(1))]
            differences.append(0.0 if np.array_equal(array, cells, equal_nan=True) else np.inf)
    labels = (
        _named(drawn.query_tokens, view.query_tokens, rows),
        _named(drawn.key_tokens, view.key_tokens, columns),
        drawn.predicted_tokens == view.predicted_tokens
        or _named(drawn.predicted_tokens or (), view.predicted_tokens or (), rows),
        (drawn.kind, drawn.layer, drawn.head, drawn.measure)
        == (view.kind, view.layer, view.head, view.measure),
    )
    arrays = Check("arrays drawn", worst(*differences), LIMIT)
    return view.audit.joined(AuditReport((arrays, Check("labels", float(not all(labels)), 0.0))))


def _unless(numbers: Array, missing: Array) -> Array:
    """Numbers, but none where one that they stand for is missing."""
    return np.where(missing > 0, np.float32(np.nan), numbers)


def _members(groups: Sequence[Group], first: int, length: int) -> Array:
    """(groups, pieces) 1 where a piece belongs to a group; positions of groups count from
    ``first``."""
    places = np.arange(first, first + length)
    bounds = np.array([(group.start, group.stop) for group in groups]).reshape(-1, 2)
    inside = (places >= bounds[:, :1]) & (places < bounds[:, 1:])
    return inside.astype(np.float32)


def _named(names: Sequence[str], pieces: Sequence[str], members: Array) -> bool:
    """Whether each name is its one piece, or has the letters of its pieces."""
    if len(names) != len(members):
        return False
    for name, places in zip(names, members.astype(bool), strict=True):
        spelling = [pieces[place] for place in np.flatnonzero(places).tolist()]
        if len(spelling) == 1:
            right = name == spelling[0]
        elif any(map(in_bytes, spelling)):  # parts of characters have a name only together
            right = (name,) == read_tokens(spelling, [Group(0, len(spelling), "")])
        else:
            right = _letters(name) == _letters(spelled(spelling))
        if not right:
            return False
    return True


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def drawn_groups(tokens: Sequence[str], reading: Reading) -> tuple[Group, ...]:
    """The rows or columns of tokens that are drawn; if the settings would hide all of them, all."""
    groups = reading_groups(tokens) if reading.words else piece_groups(tokens)
    drawn = tuple(
        group
        for group in groups
        if not (reading.hide_special and group.special)
        and not (reading.hide_punctuation and is_punctuation(group.text))
    )
    return drawn or groups


def merge_words(weights: Array, queries: Sequence[Group], keys: Sequence[Group]) -> Array:
    """(…, queries, keys) of (…, rows, columns): sums over key pieces, means over query pieces."""
    # every other segment between two edges is a group, the others are what is between groups
    edges = [
        [edge for group in groups for edge in (group.start, group.stop)]
        for groups in (queries, keys)
    ]
    down, across = (
        [e for e in ends if e < n] for ends, n in zip(edges, weights.shape[-2:], strict=True)
    )
    sums: Array = np.add.reduceat(
        np.add.reduceat(weights, across, axis=-1)[..., ::2], down, axis=-2
    )[..., ::2, :]
    sums /= np.array([[query.stop - query.start] for query in queries], np.float32)
    return sums


def read_map(
    weights: Array, mask: BoolArray, rows: Sequence[Group], columns: Sequence[Group]
) -> tuple[Array, BoolArray, Array]:
    """(rows, columns) weights and mask of a head, merged and hidden, and (rows,) the hidden
    weight."""
    aside = np.ones(weights.shape[1], bool)
    for column in columns:
        aside[column.start : column.stop] = False
    hidden = merge_words(weights[:, aside].sum(1, keepdims=True), rows, _ALL)[:, 0]
    seen = merge_words(mask.astype(np.float32), rows, columns) > 0
    return merge_words(weights, rows, columns), seen, hidden


def read_tokens(pieces: Sequence[str], groups: Sequence[Group]) -> tuple[str, ...]:
    """Names of the rows or columns that are drawn; of several pieces, a word with its `▁`."""
    return tuple(
        parts[0]
        if len(parts) == 1
        else SPACE + " ".join(word.text for word in reading_groups(parts))
        for parts in (pieces[group.start : group.stop] for group in groups)
    )


def reading_window(
    tokens: Sequence[str], reading: Reading, position: int, size: int
) -> tuple[int, int]:
    """First piece, and one past the last, of ``size`` rows or columns around a piece, moving by
    half."""
    drawn = drawn_groups(tokens, reading) if len(tokens) > size else ()
    if len(drawn) <= size:
        return 0, len(tokens)
    place = sum(group.stop <= position for group in drawn)
    half = max(1, size // 2)
    start = min(max(place // half * half - half // 2, 0), len(drawn) - size)
    first = 0 if start == 0 else drawn[start].start
    last = len(tokens) if start + size == len(drawn) else drawn[start + size].start
    return first, last
