"""All heads over many sentences: statistics of each sentence, roles, how often a head keeps its role."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer.lenses.alignment import GoldPair
from transformer.model.sites import AttentionKind
from transformer.study import roles
from transformer.study.facts import CrossAlignments
from transformer.study.statistics import Floats, Totals, sentence_totals
from transformer.text.pairs import DataError
from transformer.trace.value_norms import output_projections
from transformer.translate.translator import InputError, Translator

MOST_SENTENCES = 500
MOST_TOKENS = 64
MOST_BYTES = 256 * 1024
SHORTEST_EXAMPLE = 5
"""Examples have at least this many words: in a sentence of two words every head looks sharp."""


@dataclass(frozen=True)
class Line:
    """A sentence to survey; `target` is forced, or where it is None the model translates greedily."""

    source: str
    target: str | None = None


def read_upload(content: bytes, translator: Translator) -> tuple[Line, ...]:
    """Reads a visitor's file: one sentence a line, or `source<TAB>target`; empty lines are left out.

    Raises:
        DataError: The file is too large, not UTF-8 text, or a line cannot be used; one sentence says which.
    """
    if len(content) > MOST_BYTES:
        raise DataError(f"The file has {len(content):,} bytes; at most {MOST_BYTES:,} are read.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("The file is not UTF-8 text; save it as plain text in UTF-8.") from error
    if "\0" in text:
        raise DataError("The file holds binary data; save it as plain text in UTF-8.")
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not numbered:
        raise DataError("The file is empty; it needs one sentence a line, or sentence, tab, translation.")
    if len(numbered) > MOST_SENTENCES:
        raise DataError(f"The file has {len(numbered):,} sentences; at most {MOST_SENTENCES} are read.")
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
            raise DataError(f"Line {number} has {tokens} tokens; at most {MOST_TOKENS} a side are read.")
    return Line(*columns)


def as_line(pair: GoldPair) -> Line:
    """A gold pair as it is run: its words, parted by spaces."""
    return Line(" ".join(pair.source), " ".join(pair.target))


@dataclass(frozen=True)
class Example:
    """A sentence as it was run, and how strongly it shows a head's role: 1 at the threshold."""

    line: Line
    strength: float


@dataclass(frozen=True, eq=False)
class Survey:
    """What was found so far; layers and heads count from 0.

    Attributes:
        model: Name of the model.
        lines: The sentences read so far.
        means: Kind to statistic to (layers, heads), over all rows of all sentences; in cross-attention also
            `aer`, `aer_read` and `aer_diagonal` over the gold pairs, where there are some.
        by_line: The same per sentence, (sentences, layers, heads); NaN where a sentence has no value.
        gold: The gold pairs.
        gold_errors: (pairs, layers, heads) alignment error of each pair.
        skipped: Number of sentences that the model cannot read: too long for it.
    """

    model: str
    lines: tuple[Line, ...]
    means: dict[AttentionKind, dict[str, Floats]]
    by_line: dict[AttentionKind, dict[str, Floats]]
    gold: tuple[GoldPair, ...]
    gold_errors: Floats
    skipped: int = 0

    def roles(self, kind: AttentionKind) -> NDArray[np.str_]:
        """(layers, heads) role of every head."""
        return roles.assign(self.means[kind], kind)

    def stability(self, kind: AttentionKind, layer: int, head: int) -> float:
        """Share of the sentences (for the role alignment: of the gold pairs) that show a head's role."""
        role, shown = self._shown(kind, layer, head)
        return float(roles.keeps(role, shown[~np.isnan(shown)]).mean())

    def examples(
        self, kind: AttentionKind, layer: int, head: int, count: int = 3
    ) -> tuple[list[Example], list[Example]]:
        """Sentences that show a head's role most, and others that show it least, each the clearest first."""
        role, shown = self._shown(kind, layer, head)
        lines = self.lines
        if role == roles.ALIGNMENT:
            lines = tuple(map(as_line, self.gold))
        usable = [i for i, line in enumerate(lines) if len(line.source.split()) >= SHORTEST_EXAMPLE]
        order = sorted((i for i in usable if not np.isnan(shown[i])), key=lambda i: -shown[i])
        found = [Example(lines[i], float(shown[i])) for i in order]
        return found[:count], found[count:][::-1][:count]

    def _shown(self, kind: AttentionKind, layer: int, head: int) -> tuple[str, Floats]:
        """The role of a head, and how strongly each sentence shows it; NaN where it cannot be read."""
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
    """Runs sentences through a model one by one, and tells at any time what was found so far.

    One thread may run while others ask: `survey` takes a consistent copy.

    Args:
        translator: The model.
        lines: The sentences.
        gold: Pairs with word alignments, for the errors of cross-attention; may be empty.
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
        """Number of sentences, the gold pairs among them."""
        return len(self._lines) + len(self._gold)

    def run(self) -> Iterator[int]:
        """Reads one sentence after the other, the gold pairs first; yields how many are read.

        To stop, do not ask for the next.
        """
        todos: list[GoldPair | Line] = [*self._gold, *self._lines]
        for number, todo in enumerate(todos, start=1):
            try:
                self._take(todo)
            except InputError:
                self._skipped += 1
            yield number

    def _take(self, todo: GoldPair | Line) -> None:
        line = as_line(todo) if isinstance(todo, GoldPair) else todo
        if line.target is None:
            traced = self._translator.translate(line.source)
        else:
            traced = self._translator.force(line.source, line.target)
        if isinstance(todo, GoldPair):
            with self._lock:
                self._alignments.add(traced, todo)
                self._aligned.append(todo)
            return
        found = {kind: sentence_totals(traced, kind, self._projections) for kind in self._totals}
        with self._lock:
            self._found.append((line, found))
            self._totals = {kind: total + found[kind] for kind, total in self._totals.items()}

    def survey(self) -> Survey:
        """What was found so far.

        Raises:
            ValueError: No sentence was read yet.
        """
        with self._lock:
            found, totals = list(self._found), self._totals
            gold = tuple(self._aligned)
            errors, pairs = self._alignments.errors() if gold else {}, self._alignments.pair_errors()
        if not found:
            raise ValueError("No sentence was read yet.")
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
