"""Reads sentences with known relations: dependency trees (CoNLL-U) and pronoun antecedents (WinoMT)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.text.pairs import DataError, read_lines

PRONOUNS = frozenset(("he", "she", "they", "him", "her", "them", "his", "hers", "their", "theirs"))
CONTENT = frozenset(("NOUN", "PROPN", "VERB", "ADJ", "ADV"))
"""Tags of words whose lemma a tree keeps."""
_WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Arc:
    """A dependency between written words, counted from 0 (`zum` is one word, but two nodes of the tree)."""

    relation: str
    dependent: int
    head: int


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependencies."""

    text: str  # the sentence
    words: tuple[str, ...]  # its words and punctuation marks, as written
    arcs: tuple[Arc, ...]  # dependencies without the root, punctuation, and arcs inside one written word
    # the English sentence that it translates; None if the file does not say
    translation_of: str | None = None
    # the lemma of each word in lower case; None for words that are no content words
    lemmas: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class PronounCase:
    """A sentence with two people and a pronoun; word indices count from 0."""

    text: str  # the sentence
    words: tuple[str, ...]  # its words and punctuation marks
    pronoun: int  # index of the pronoun
    antecedent: int  # index of the last word of the person that the pronoun stands for
    other: int  # index of the last word of the other person
    # the two people in alphabetical order; sentences about the same two are much alike
    people: tuple[str, str]


def read_trees(path: str | Path) -> list[Tree]:
    """Reads a CoNLL-U file; relations lose their subtype (`nsubj:pass` becomes `nsubj`)."""
    trees: list[Tree] = []
    block: list[tuple[int, str]] = []
    for number, line in [*read_lines(path), (0, "")]:
        if line.strip():
            block.append((number, line))
        elif block:
            trees.append(_tree(path, block))
            block = []
    if not trees:
        raise DataError(f"{path}: the file holds no trees.")
    return trees


def _tree(path: str | Path, block: Sequence[tuple[int, str]]) -> Tree:
    comments = dict(line[1:].strip().partition(" = ")[::2] for _, line in block if line.startswith("#"))
    written: dict[int, int] = {}
    words: list[str] = []
    lemmas: list[str | None] = []
    text, until = "", 0
    dependencies: list[tuple[int, int, str]] = []
    for number, line in block:
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise DataError(
                f"{path}:{number}: a CoNLL-U line has 10 columns, but this one has {len(columns)}."
            )
        first, _, last = columns[0].partition("-")
        if "." in first:
            continue
        if not (first.isdigit() and (last or "1").isdigit() and (last or columns[6].isdigit())):
            raise DataError(
                f"{path}:{number}: {columns[0]!r} with head {columns[6]!r} is not a word of a tree."
            )
        if last or int(first) > until:
            until = int(last or first)
            words.append(columns[1])
            lemmas.append(columns[2].lower() if columns[3] in CONTENT else None)
            text += columns[1] + ("" if "SpaceAfter=No" in columns[9] else " ")
        if not last:
            written[int(first)] = len(words) - 1
            dependencies.append((int(first), int(columns[6]), columns[7].partition(":")[0]))
    arcs = tuple(_arcs(dependencies, written))
    return Tree(text.strip(), tuple(words), arcs, comments.get("text_en"), tuple(lemmas))


def _arcs(dependencies: Sequence[tuple[int, int, str]], written: dict[int, int]) -> Iterator[Arc]:
    for word, head, relation in dependencies:
        if relation not in {"root", "punct"} and head in written and written[word] != written[head]:
            yield Arc(relation, written[word], written[head])


def read_pronouns(path: str | Path) -> tuple[list[PronounCase], int]:
    """Reads WinoMT's `gender<TAB>index<TAB>sentence<TAB>occupation` lines.

    The cases, and how many sentences are left out: they lack two people and a pronoun after one of them.
    """
    rows = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) != 4 or not columns[1].isdigit():
            raise DataError(
                f"{path}:{number}: expected gender, index, sentence, occupation, separated by tabs."
            )
        rows.append((int(columns[1]), columns[2], columns[3]))
    known = sorted({tuple(occupation.lower().split()) for _, _, occupation in rows}, key=len, reverse=True)
    cases = [_case(index, text, known) for index, text, _ in rows]
    found = [case for case in cases if case is not None]
    return found, len(cases) - len(found)


def _case(index: int, text: str, known: Sequence[tuple[str, ...]]) -> PronounCase | None:
    words = split_words(text)
    lower = [word.lower() for word in words]
    people = _people(lower, known)
    start = _place_of(text, words, index)
    pronoun = next((i for i, word in enumerate(lower) if word in PRONOUNS), None)
    right = next((stop - 1 for first, stop in people if first <= start < stop), None)
    if len(people) != 2 or right is None or pronoun is None or pronoun < people[0][0]:
        return None
    other = next(stop - 1 for _, stop in people if stop - 1 != right)
    names = sorted(" ".join(lower[first:stop]) for first, stop in people)
    return PronounCase(text, words, pronoun, right, other, (names[0], names[1]))


def _people(words: Sequence[str], known: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    """First word and the word after the last, for every occupation in the sentence."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(words):
        name = next((each for each in known if tuple(words[start : start + len(each)]) == each), None)
        if name is not None:
            found.append((start, start + len(name)))
        start += len(name or " ")
    return found


def split_words(text: str) -> tuple[str, ...]:
    """Splits a text into words and punctuation marks; inner hyphens and apostrophes stay in the word."""
    return tuple(_WORD.findall(text))


def _place_of(text: str, words: Sequence[str], index: int) -> int:
    """The index of the word that starts together with the given space-separated part of the text."""
    before = sum(map(len, text.split()[:index]))
    length = 0
    for place, word in enumerate(words):
        if length >= before:
            return place
        length += len(word)
    return len(words)
