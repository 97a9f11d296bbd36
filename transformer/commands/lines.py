"""Texts and files of pairs, line by line: a line that is blank or cannot be used keeps its
place."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from transformer.commands.models import Json
from transformer.text.pairs import DataError, SentencePair, parse_pair, read_lines
from transformer.translator import Translator

AT_ONCE = 1000
"""Lines that are computed before any is written."""
MOST_NAMED = 20
"""Bad lines that are named one by one."""
Answer = tuple[Json, str, Iterable[str]]
"""What a text is answered, as JSON and as a line, and notes about it."""
_ESCAPED = re.compile("[\udc80-\udcff]")


def line_text(words: str | bytes) -> str:
    """A text of the command line, or a line of standard input; DataError if it is not UTF-8."""
    try:
        if isinstance(words, bytes):
            return words.decode("utf-8").rstrip("\r\n")
        # In a locale without UTF-8, bytes of an argument arrive as lone surrogates.
        if _ESCAPED.search(words):
            return os.fsencode(words).decode("utf-8")
        return words
    except UnicodeError as error:
        raise DataError("This is not UTF-8 text.") from error


def answer_lines(
    texts: Sequence[str],  # without any, the lines of standard input
    answer: Callable[[str], Answer],  # ValueError for a bad text
    write: Callable[[Json, str], None],
    # the message of a DataError if there is no text; without one, that is no error
    nothing: str = "",
) -> int:
    """Writes an answer for each text in its place, an empty one for a bad text; the exit status."""
    bad = list[str]()
    place = 0
    # None if it was closed
    lines: Iterable[str | bytes] = () if sys.stdin is None else sys.stdin.buffer
    for place, words in enumerate(texts or lines, start=1):
        try:
            values, line, notes = answer(line_text(words))
        except ValueError as error:
            bad.append(f"Text {place}: {error}")
            values = {"text": "", "error": str(error)}
            line = ""
            notes = ()
        write(values, line)
        warn(notes, f"Text {place}: ")
    if nothing and not place:
        raise DataError(nothing)
    return name_bad(bad)


def answer_pairs(
    path: str | Path,  # source<TAB>target lines, plain or .gz
    # raises ValueError for a pair that the model cannot read
    check: Callable[[SentencePair], object],
    # what pairs are answered, as JSON and as a line
    answer: Callable[[list[SentencePair]], Iterable[tuple[Json, str]]],
    empty: Json,  # the answer to a line that is blank or cannot be used
    write: Callable[[Json, str], None],
    linked: bool = False,  # whether a third column may hold links, which are left out
    first: bool = True,  # whether this process writes
) -> int:
    """Writes an answer for each line of a file, ``AT_ONCE`` at a time; the exit status.

    DataError if the file is missing or damaged.
    """
    bad = list[str]()
    lines = read_lines(path, errors="surrogateescape")
    while several := list(islice(lines, AT_ONCE)):
        pairs = dict[int, SentencePair]()
        errors = dict[int, str]()
        for number, line in several:
            place = f"{path}:{number}: "
            try:
                columns = line_text(line).split("\t")
                if linked and len(columns) == 3:
                    columns = columns[:2]
                if line.strip():
                    pair = parse_pair(path, number, "\t".join(columns))
                    check(pair)
                    pairs[number] = pair
            except ValueError as error:
                errors[number] = place + str(error).removeprefix(place)
        answers = dict(zip(pairs, list(answer(list(pairs.values()))), strict=True))
        bad += errors.values()
        if not first:
            continue
        for number, _ in several:
            (values, text) = answers.get(number, (empty, ""))
            if number in errors:
                values = values | {"error": errors[number]}
            write(values, text)
    return name_bad(bad) if first else 0


def warn(notes: Iterable[str], where: str = "") -> None:
    """Writes notes for the reader on standard error."""
    for note in notes:
        print(f"{where}{note}", file=sys.stderr)


def name_bad(bad: Sequence[str]) -> int:
    """Names what was left out, on standard error; the exit status, 1 if there is any."""
    warn(bad[:MOST_NAMED])
    if len(bad) > MOST_NAMED:
        print(f"So are {len(bad) - MOST_NAMED:,} more.", file=sys.stderr)
    return int(bool(bad))


def unread(translator: Translator, source: str, target: str) -> set[str]:
    """What the vocabulary has no piece for in a pair, in sentences."""
    return {*translator.cut(source).notes(), *translator.cut(target, "target").notes()}


def warn_unread(notes: Counter[str]) -> None:
    """Says each note on standard error, with the number of lines of which it holds."""
    for note, count in notes.items():
        lines = "1 line" if count == 1 else f"{count:,} lines"
        warn([f"{lines}: {note}"])
