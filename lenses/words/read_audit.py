"""Whether a map that was read by words is the words' map: cuts between pieces, names and sums, a second way.

A cut is asked for at every place between two pieces, by the characters on either side of it; sums are
products with tables of membership.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from lenses.words.reading import Reading, ReadView, named_rows, read_view
from transformer.text.words import BOS, EOS, PAD, SPACE, UNK, unknown_text, unspaced
from transformer.trace.report import AuditReport, Check
from transformer.trace.view import Array, BoolArray, HeadMap

LIMIT = 1e-5
_ALONE = {PAD, BOS, EOS}
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_TOLD = "Words were cut again, place by place, and every number was summed again from the model's."


def read_checked(view: HeadMap, reading: Reading) -> ReadView:
    """``read_view`` with its audit."""
    read = read_view(view, reading)
    return replace(read, audit=read.audit.joined(audit_read(view, reading, read)))


def audit_read(view: HeadMap, reading: Reading, read: ReadView) -> AuditReport:
    """Checks a view that was read against the map that it was read from."""
    named = named_rows(view.kind, reading) == "predicted" and view.predicted_tokens is not None
    rows = (view.predicted_tokens or ()) if named else view.query_tokens
    spans = [
        [(each.start - start, each.stop - start) for each in groups]
        for groups, start in ((read.rows, view.window.query_start), (read.columns, view.window.key_start))
    ]
    wrong = spans != [_shown(axis, reading) for axis in (rows, view.key_tokens)]
    names = (read.predicted_tokens or ()) if named else read.query_tokens, read.key_tokens
    whole, drawn = (view.weights, view.mask), (read.weights, read.mask)
    found = audit_merged(reading, (rows, view.key_tokens), whole, drawn, names)
    return found.joined(AuditReport((Check("places of words", float(wrong), 0.0),)))


def audit_merged(
    reading: Reading,
    pieces: tuple[Sequence[str], Sequence[str]],  # of the rows and of the columns
    whole: tuple[Array, BoolArray],  # (queries, keys) numbers and mask, by pieces
    drawn: tuple[Array, BoolArray],  # (rows, columns) the same as they are drawn
    names: tuple[Sequence[str], Sequence[str]] | None = None,  # of rows and columns as they are drawn
) -> AuditReport:
    """Whether numbers summed over key pieces and averaged over query pieces are those of the words."""
    tables = []
    for axis in pieces:
        shown = _shown(axis, reading)
        table = np.zeros((len(shown), len(axis)))
        for row, (start, stop) in enumerate(shown):
            table[row, start:stop] = 1.0
        tables.append(table)
    rows, columns = tables
    weights = rows / rows.sum(1, keepdims=True) @ whole[0] @ columns.T
    mask = rows @ whole[1].astype(float) @ columns.T > 0
    fits = drawn[0].shape == weights.shape and bool((drawn[1] == mask).all())
    worst = float(np.abs(drawn[0] - weights).max(initial=0.0)) if fits else float("inf")
    scale = max(1.0, float(np.abs(whole[0]).max(initial=0.0)))
    checks = [Check("sums of words", worst / scale, LIMIT)]
    if names is not None:
        wrong = any(_misnamed(axis, reading, each) for axis, each in zip(pieces, names, strict=True))
        checks.append(Check("names of words", float(wrong), 0.0))
    return AuditReport(tuple(checks), told=(_TOLD,) * reading.words)


def _shown(pieces: Sequence[str], reading: Reading) -> list[tuple[int, int]]:
    """First piece and one past the last of every row or column that is drawn; of all, if none would be."""
    cuts = word_cuts(pieces) if reading.words else [*range(len(pieces) + 1)]
    every = [*pairwise(cuts)]
    shown = [span for span in every if not _hidden(pieces[slice(*span)], reading)]
    return shown or every


def _hidden(pieces: Sequence[str], reading: Reading) -> bool:
    if reading.hide_special and pieces[0] in {*_ALONE, UNK}:
        return True
    text = _spelled(pieces) if reading.words else pieces[0].removeprefix(SPACE)
    return reading.hide_punctuation and bool(text) and _marks(text)


def _misnamed(pieces: Sequence[str], reading: Reading, names: Sequence[str]) -> bool:
    """Whether names do not spell the pieces that they stand for."""
    spelled = [_spelled(pieces[slice(*span)]) for span in _shown(pieces, reading)]
    return spelled != [_spelled([name]) for name in names]


def word_cuts(pieces: Sequence[str]) -> list[int]:
    """The places where words begin, and the end, by the characters on either side of each place."""
    inside = range(1, len(pieces))
    return [0, *(at for at in inside if _cut(pieces, at)), len(pieces)] if pieces else [0]


def _cut(pieces: Sequence[str], at: int) -> bool:
    """Whether a word begins at a place, which is not the first."""
    if pieces[at].startswith(SPACE) or {pieces[at - 1], pieces[at]} & _ALONE:
        return True
    borders = [i for i, piece in enumerate(pieces) if piece.startswith(SPACE) or piece in _ALONE]
    first = max((i + (pieces[i] in _ALONE) for i in borders if i < at), default=0)
    last = min((i for i in borders if i > at), default=len(pieces))
    bytes_before = b"".join(map(_raw, pieces[first:at]))
    pending = codecs.getincrementaldecoder("utf-8")("replace")
    pending.decode(bytes_before)
    if pending.getstate()[0] and 0x80 <= _raw(pieces[at])[0] < 0xC0:
        return False  # within a character
    before, after = _spelled(pieces[first:at]), _spelled(pieces[at:last])
    if not before or not after or _joins(before[-1], after[0]):
        return False
    return unspaced(before[-1]) or unspaced(after[0]) or _marks(before) or _marks(after)


def _joins(last: str, first: str) -> bool:
    """Whether a character belongs to the one before: marks, joined emoji, tones of skin."""
    tone = "\U0001f3fb" <= first <= "\U0001f3ff"
    return tone or "\u200d" in (last, first) or unicodedata.category(first)[0] == "M"


def _marks(text: str) -> bool:
    return all(unicodedata.category(letter)[0] == "P" for letter in text)


def _raw(piece: str) -> bytes:
    if unknown := unknown_text(piece):
        return (SPACE * piece.startswith(SPACE) + unknown).encode()
    shown = piece.encode()
    for code in _BYTE.findall(piece):
        shown = shown.replace(f"<0x{code}>".encode(), bytes.fromhex(code))
    return shown


def _spelled(pieces: Sequence[str]) -> str:
    """The text of some pieces, without `▁` and spaces."""
    text = b"".join(map(_raw, pieces)).decode("utf-8", "replace")
    return "".join(text.replace(SPACE, " ").split())
