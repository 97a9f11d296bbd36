"""Files of sentence pairs, line by line: a line that is blank or cannot be used keeps its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transformer.commands.arguments import line_text, warn
from transformer.text.pairs import SentencePair, parse_pair, read_lines
from transformer.translator import Translator

AT_ONCE = 1000
"""Lines that are computed before any is written."""


@dataclass(frozen=True)
class PairLine:
    """One line of a file of pairs."""

    pair: SentencePair | None  # None for a blank line, or one that cannot be used
    error: str = ""  # why it cannot be used, with its place; empty if it can, or is blank


def pair_parts(
    path: str | Path,  # source<TAB>target lines, plain or .gz
    check: Callable[[SentencePair], object],  # raises ValueError for a pair that the model cannot read
    linked: bool = False,  # whether a third column may hold links, which are left out
) -> Iterator[list[PairLine]]:
    """The lines of a file, ``AT_ONCE`` at a time; DataError if the file is missing or damaged."""
    lines = (_read(path, each, check, linked) for each in read_lines(path, errors="surrogateescape"))
    while part := list(islice(lines, AT_ONCE)):
        yield part


def _read(
    path: str | Path, numbered: tuple[int, str], check: Callable[[SentencePair], object], linked: bool
) -> PairLine:
    number, line = numbered
    if not line.strip():
        return PairLine(None)
    place = f"{path}:{number}: "
    try:
        columns = line_text(line).split("\t")
        pair = parse_pair(path, number, "\t".join(columns[:2] if linked and len(columns) == 3 else columns))
        check(pair)
    except ValueError as error:
        return PairLine(None, place + str(error).removeprefix(place))
    return PairLine(pair)


def unread(translator: Translator, source: str, target: str) -> set[str]:
    """What the vocabulary has no piece for in a pair, in sentences."""
    return {*translator.cut(source).notes(), *translator.cut(target, "target").notes()}


def warn_unread(notes: Counter[str]) -> None:
    """Says each note on standard error, with the number of lines of which it holds."""
    warn(f"{count:,} line{'s' * (count > 1)}: {note}" for note, count in notes.items())
