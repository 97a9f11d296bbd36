"""Surveys all heads over many sentences: statistics, roles, and how often a head keeps its role."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.heads.first_heads import kind_totals
from lab.heads.statistics import Floats, Totals
from lenses.heads import roles
from lenses.words.gold_links import CrossAlignments
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.text.links import GoldPair
from transformer.text.pairs import DataError
from transformer.trace.value_norms import output_projections

MOST_SENTENCES = 500
MOST_TOKENS = 64
MOST_BYTES = 256 * 1024
SHORTEST_EXAMPLE = 5
"""Fewest words of an example; in a sentence of two words every head looks sharp."""


@dataclass(frozen=True)
class Line:
    """A sentence to survey; `target` is forced, or the model translates greedily if it is None."""

    source: str
    target: str | None = None


def read_upload(content: bytes, translator: Translator) -> tuple[Line, ...]:
    """Reads a visitor's file: one sentence or `source<TAB>target` per line; empty lines are skipped.

    DataError if it is too large or not UTF-8 text, or a line cannot be used; the message says which.
    """
    if len(content) > MOST_BYTES:
        raise DataError(f"The file has {len(content):,} bytes; the limit is {MOST_BYTES:,} bytes.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("The file is not UTF-8 text; save it as plain text in UTF-8.") from error
    if "\0" in text:
        raise DataError("The file holds binary data; save it as plain text in UTF-8.")
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not numbered:
        raise DataError("The file is empty; each line needs a sentence, or sentence, tab, translation.")
    if len(numbered) > MOST_SENTENCES:
        raise DataError(f"The file has {len(numbered):,} sentences; the limit is {MOST_SENTENCES}.")
    return tuple(_line(number, line, translator) for number, line in numbered)


def _line(number: int, line: str, translator: Translator) -> Line:
    columns = line.rstrip("\r").split("\t")
    if len(columns) > 2:
        raise DataError(
            f"Line {number} has {len(columns)} columns; give a sentence, or sentence, tab, translation."
        )
    for text, ids in zip(columns, (translator.ids, translator.target_ids), strict=False):
        try:
            tokens = len(ids(text)) + 1
        except InputError as error:
            raise DataError(f"Line {number}: {error}") from error
        if tokens > MOST_TOKENS:
            raise DataError(f"Line {number} has {tokens} tokens on one side; the limit is {MOST_TOKENS}.")
    return Line(*columns)


def as_line(pair: GoldPair) -> Line:
    """A gold pair as a line to survey: its words, separated by spaces."""
    return Line(" ".join(pair.source), " ".join(pair.target))


@dataclass(frozen=True)
class Example:
    """A sentence of the survey, and how strongly it shows the role of a head: 1 at the threshold."""

    line: Line
    strength: float


@dataclass(frozen=True, eq=False)
class Survey:
    """Results of a survey so far; layers and heads count from 0."""

    model: str  # name of the model
    lines: tuple[Line, ...]  # the sentences read so far
    # per kind, maps each statistic to (layers, heads), over all rows of all sentences; in cross-attention
    # also `aer`, `aer_read` and `aer_diagonal` over the gold pairs, if there are any
    means: dict[AttentionKind, dict[str, Floats]]
    # the same per sentence, (sentences, layers, heads); NaN if a sentence has no value
    by_line: dict[AttentionKind, dict[str, Floats]]
    gold: tuple[GoldPair, ...]  # the gold pairs
    gold_errors: Floats  # (pairs, layers, heads) alignment error of each pair
    skipped: int = 0  # number of sentences too long for the model

    @property
    def sentences(self) -> int:
        """Number of sentences read."""
        return len(self.lines)

    @property
    def forced(self) -> int:
        """Number of sentences whose translation was given."""
        return sum(line.target is not None for line in self.lines)

    @property
    def pairs(self) -> int:
        """Number of gold pairs."""
        return len(self.gold)

    def roles(self, kind: AttentionKind) -> NDArray[np.str_]:
        """The role of every head (layers, heads)."""
        return roles.assign(self.means[kind], kind)

    def stability(self, kind: AttentionKind, layer: int, head: int) -> float:
        """Share of the sentences (of the gold pairs, for the role alignment) that show the role of a head."""
        role, shown = self._shown(kind, layer, head)
        return float(roles.keeps(role, shown[~np.isnan(shown)]).mean())

    def examples(
        self, kind: AttentionKind, layer: int, head: int, count: int = 3
    ) -> tuple[list[Example], list[Example]]:
        """The sentences that show the role of a head most and least; each list has the clearest first."""
        role, shown = self._shown(kind, layer, head)
        lines = self.lines
        if role == roles.ALIGNMENT:
            lines = tuple(map(as_line, self.gold))
        usable = [i for i, line in enumerate(lines) if len(line.source.split()) >= SHORTEST_EXAMPLE]
        order = sorted((i for i in usable if not np.isnan(shown[i])), key=lambda i: -shown[i])
        found = [Example(lines[i], float(shown[i])) for i in order]
        return found[:count], found[count:][::-1][:count]

    def _shown(self, kind: AttentionKind, layer: int, head: int) -> tuple[str, Floats]:
        """The role of a head, and how strongly each sentence shows it; NaN if a sentence has no value."""
        role = str(self.roles(kind)[layer, head])
        if role == roles.ALIGNMENT:
            diagonal_error = self.means[kind]["aer_diagonal"][layer, head]
            means = {"aer": self.gold_errors[:, layer, head]}
            means["aer_diagonal"] = np.full_like(means["aer"], diagonal_error)
            return role, roles.shows(role, means, kind)
        means = {name: values[:, layer, head] for name, values in self.by_line[kind].items()}
        shown = roles.shows(role, means, kind)
        return role, np.where(np.isnan(means["entropy"]), np.float32(np.nan), shown)


class Surveyor:
    """Runs sentences through a model one by one; results so far are available at any time.

    One thread may run the survey while others read results: `survey` takes a consistent copy. Gold pairs are
    for the alignment errors of cross-attention.
    """

    def __init__(self, translator: Translator, lines: Sequence[Line], gold: Sequence[GoldPair] = ()) -> None:
        self._translator, self._lines, self._gold = translator, tuple(lines), tuple(gold)
        self._projections = output_projections(translator.model)
        self._lock = threading.Lock()
        self._totals = dict.fromkeys(translator.config.sites, Totals({}, {}))
        self._found: list[tuple[Line, dict[AttentionKind, Totals]]] = []
        self._skipped = 0
        self._alignments = CrossAlignments(translator.config)
        self._aligned: list[GoldPair] = []

    @property
    def total(self) -> int:
        """Number of sentences, including the gold pairs."""
        return len(self._lines) + len(self._gold)

    def run(self) -> Iterator[int]:
        """Reads the sentences one by one, the gold pairs first; yields the number read so far.

        To stop, leave the loop.
        """
        todos: list[GoldPair | Line] = [*self._gold, *self._lines]
        for number, todo in enumerate(todos, start=1):
            try:
                self._take(todo)
            except (InputError, DataError):
                self._skipped += 1
            yield number

    def _take(self, todo: GoldPair | Line) -> None:
        if isinstance(todo, GoldPair):
            links = self._alignments.links(self._translator, todo)
            with self._lock:
                self._alignments.take(links, todo)
                self._aligned.append(todo)
            return
        line = todo
        if line.target is None:
            traced = self._translator.translate(line.source)
        else:
            traced = self._translator.force(line.source, line.target)
        found = kind_totals(traced, self._projections)
        with self._lock:
            self._found.append((line, found))
            self._totals = {kind: total + found[kind] for kind, total in self._totals.items()}

    def survey(self) -> Survey:
        """The results so far; ValueError if no sentence has been read yet."""
        with self._lock:
            found, totals = list(self._found), self._totals
            gold = tuple(self._aligned)
            errors, pairs = self._alignments.errors() if gold else {}, self._alignments.pair_errors()
        if not found:
            raise ValueError("No sentence has been read yet.")
        means = {kind: total.means() for kind, total in totals.items()}
        means[AttentionKind.CROSS] |= errors
        return Survey(
            self._translator.name,
            tuple(line for line, _ in found),
            means,
            {kind: _stacked([totals[kind].means() for _, totals in found]) for kind in means},
            gold,
            pairs,
            self._skipped,
        )


def _stacked(means: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    names = dict.fromkeys(name for each in means for name in each)
    missing = {
        name: np.full_like(next(each[name] for each in means if name in each), np.nan) for name in names
    }
    return {name: np.stack([each.get(name, missing[name]) for each in means]) for name in names}
