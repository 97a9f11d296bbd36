"""Surveys all heads over many sentences: statistics, roles, and how often a head keeps its role."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.heads import roles
from explorer.lenses.heads.measures import LISTS, SENTENCES, SORTED, UNITS
from explorer.lenses.heads.profile import SHOWN, Profile, Profiler
from explorer.lenses.heads.statistics import Floats, HeadsOfKind, Totals
from explorer.lenses.heads.trials import Trials
from explorer.lenses.words.gold_links import CrossAlignments
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.hooks import Capture
from transformer.run import Translation
from transformer.text.pairs import DataError
from transformer.translator import InputError, Translator
from transformer.view import HeadLabels

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

    def run(self, translator: Translator, residual: bool) -> Translation:
        """Runs it, with the residual stream if asked for; InputError if it is too long for the model."""
        capture = Capture(residual=residual)
        if self.target is None:
            return translator.translate(self.source, capture=capture)
        return translator.force(self.source, self.target, capture=capture)


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
    for text, side in zip(columns, ("source", "target"), strict=False):
        try:
            tokens = len(translator.cut(text, side).ids) + 1
        except InputError as error:
            raise DataError(f"Line {number}: {error}") from error
        if tokens > MOST_TOKENS:
            raise DataError(f"Line {number} has {tokens} tokens on one side; the limit is {MOST_TOKENS}.")
    return Line(*columns)


def as_line(pair: GoldPair) -> Line:
    """A gold pair as a line to survey: its words, separated by spaces."""
    return Line(" ".join(pair.source), " ".join(pair.target))


class SurveyExample(NamedTuple):
    """A sentence of the survey, in an order of the sentences."""

    line: Line  # the sentence
    value: float  # by which the sentences are ordered; of a role, 1 at the threshold
    row: int | None  # the row of the head that counts, from 0; None if no row is marked


class Token(NamedTuple):
    """A word or piece in a list of a head."""

    text: str  # as people read it
    seen: int  # occurrences, as a key or as a query
    value: float  # share of the head's weight, or mean selectivity
    ratio: float  # of the value to what even weights give, or to the head's mean


@dataclass(frozen=True, eq=False)
class Survey:
    """Results of a survey so far, or of a file; layers and heads count from 0."""

    model: str  # name of the model
    lines: tuple[Line, ...]  # the sentences read so far, then the gold pairs
    profiles: dict[AttentionKind, Profile]  # the heads of each kind
    sentences: int  # number of sentences read
    forced: int  # number of those whose translation was given
    pairs: int  # number of gold pairs
    skipped: int = 0  # number of sentences too long for the model
    # share of the source (ALTI+) below which 5 %, 50 % and 95 % of the predictions stay; None if unknown
    usual: tuple[float, float, float] | None = None
    date: str = ""  # day of the measurement, of a file

    @property
    def brief(self) -> bool:
        """True if lists of tokens and sentences were left out."""
        return not all(profile.tokens.size for profile in self.profiles.values())

    @property
    def means(self) -> dict[AttentionKind, dict[str, Floats]]:
        """Per kind, maps each statistic to (layers, heads), over all rows of all sentences.

        In cross-attention also `aer`, `aer_read` and `aer_diagonal` over the gold pairs, if there are any.
        """
        return {kind: profile.means for kind, profile in self.profiles.items()}

    def roles(self, kind: AttentionKind) -> NDArray[np.str_]:
        """The role of every head (layers, heads)."""
        return roles.assign(self.profiles[kind].means, kind)

    def stability(self, kind: AttentionKind, layer: int, head: int) -> float:
        """Share of the sentences (of the gold pairs, for the role alignment) that show the role of a head."""
        return float(self.profiles[kind].kept[layer, head])

    def fifths(self, kind: AttentionKind, layer: int, head: int, order: str) -> list[list[SurveyExample]]:
        """Sentences of each fifth of an order (`SORTED`), from the largest values to the smallest."""
        found, place = self.profiles[kind], (SORTED.index(order), layer, head)
        columns = (values[place].tolist() for values in (found.sentences, found.values, found.marked))
        shown = [
            None if number < 0 else SurveyExample(self.lines[number], value, None if row < 0 else row)
            for number, value, row in zip(*columns, strict=True)
        ]
        size = SHOWN // 5
        return [list(filter(None, shown[start : start + size])) for start in range(0, SHOWN, size)]

    def tokens(self, kind: AttentionKind, layer: int, head: int, unit: str, by: str) -> list[Token]:
        """A list of a head: of `UNITS` and `LISTS`, the first token first."""
        found, place = self.profiles[kind], (UNITS.index(unit), LISTS.index(by), layer, head)
        counts = found.counts[unit][by == "selective"]
        return [
            Token(found.vocabulary[unit][number], counts[number], *values)
            for number, values in zip(found.tokens[place].tolist(), found.told[place].tolist(), strict=True)
            if number >= 0
        ]


class Surveyor:
    """Runs sentences through a model one by one; results so far are available at any time.

    One thread may run the survey while others read results: `survey` takes a consistent copy. Gold pairs are
    for the alignment errors of cross-attention.
    """

    def __init__(self, translator: Translator, lines: Sequence[Line], gold: Sequence[GoldPair] = ()) -> None:
        self._translator, self._lines, self._gold = translator, tuple(lines), tuple(gold)
        self._projections = translator.model.output_projection
        self._lock = threading.Lock()
        sites = translator.config.sites
        self._totals = dict.fromkeys(sites, Totals({}, {}))
        self._trials = Trials(translator)
        self._profilers = {
            kind: Profiler(site.n_layers, translator.config.n_heads) for kind, site in sites.items()
        }
        self._found: list[tuple[Line, dict[AttentionKind, Totals]]] = []
        self._skipped = 0
        self._alignments = CrossAlignments(translator.config)
        self._aligned: list[GoldPair] = []

    @property
    def total(self) -> int:
        """Number of sentences."""
        return len(self._lines)

    def run(self) -> Iterator[int]:
        """Reads the gold pairs, then the sentences one by one; yields the number of sentences read so far.

        To stop, leave the loop.
        """
        todos: list[GoldPair | Line] = [*self._gold, *self._lines]
        for number, todo in enumerate(todos, start=1 - len(self._gold)):
            try:
                self._take(todo)
            except (InputError, DataError):
                self._skipped += 1
            yield max(0, number)

    def _take(self, todo: GoldPair | Line) -> None:
        if isinstance(todo, GoldPair):
            links = self._alignments.links(self._translator, todo)
            with self._lock:
                self._alignments.take(links, todo)
                self._aligned.append(todo)
            return
        line = todo
        tries = len(self._found) < SENTENCES
        traced = line.run(self._translator, residual=tries)
        readings = {kind: HeadsOfKind.of(traced, kind, self._projections) for kind in self._totals}
        found = {kind: reading.totals() for kind, reading in readings.items()}
        tried = (self._trials.tried(traced, readings), self._trials.shares(traced)) if tries else ([], [])
        with self._lock:
            self._found.append((line, found))
            self._trials.take(*tried)
            self._totals = {kind: total + found[kind] for kind, total in self._totals.items()}
            for kind, reading in readings.items():
                labels = traced.labels(kind)
                self._profilers[kind].add(reading, rows_of(labels, kind), labels.keys)

    def survey(self) -> Survey:
        """The results so far; ValueError if no sentence with a choice for every kind has been read yet."""
        with self._lock:
            if not self._found:
                raise ValueError("No sentence has been read yet.")
            if any("entropy" not in self._totals[kind].means() for kind in self._totals):
                raise ValueError("No row of any sentence sees two tokens yet, so no head has a choice.")
            lines = [line for line, _ in self._found]
            errors = self._alignments.errors() if self._aligned else {}
            return Survey(
                self._translator.name,
                (*lines, *map(as_line, self._aligned)),
                {kind: self._profile(kind, errors) for kind in self._totals},
                len(lines),
                sum(line.target is not None for line in lines),
                len(self._aligned),
                self._skipped,
                self._trials.usual,
            )

    def _profile(self, kind: AttentionKind, errors: dict[str, Floats]) -> Profile:
        means = self._totals[kind].means() | self._profilers[kind].means() | self._trials.means(kind)
        means |= errors if kind is AttentionKind.CROSS else {}
        by_line = _stacked([totals[kind].means() for _, totals in self._found])
        lines = [line for line, _ in self._found] + [as_line(pair) for pair in self._aligned]
        short = np.array([len(line.source.split()) < SHORTEST_EXAMPLE for line in lines])
        shown, kept = self._shown(kind, means, by_line)
        orders = {name: values for name, values in by_line.items() if name in SORTED} | {"role": shown}
        for name, values in orders.items():
            orders[name] = np.where(short[: len(values), None, None], np.float32(np.nan), values)
        return self._profilers[kind].profile(means, kept, orders)

    def _shown(
        self, kind: AttentionKind, means: dict[str, Floats], by_line: dict[str, Floats]
    ) -> tuple[Floats, Floats]:
        """How strongly each sentence (of the role alignment, each gold pair) shows the role of each head,
        (sentences and pairs, layers, heads); and the share of them that show it, (layers, heads)."""
        names = roles.assign(means, kind)
        pair_errors, many = self._alignments.pair_errors() if self._aligned else None, len(self._found)
        shown = np.full((many + len(self._aligned), *names.shape), np.nan, np.float32)
        enough = np.zeros(shown.shape, bool)
        for name in np.unique(names):
            heads = names == name
            if name == roles.ALIGNMENT and pair_errors is not None:
                error = pair_errors[:, heads]
                own = {"aer": error, "aer_diagonal": np.full_like(error, means["aer_diagonal"].flat[0])}
                shown[many:, heads] = roles.shows(name, own, kind)
            else:
                own = {each: values[:, heads] for each, values in by_line.items()}
                found = roles.shows(name, own, kind)
                shown[:many, heads] = np.where(np.isnan(own["entropy"]), np.nan, found)
            enough[:, heads] = roles.keeps(name, shown[:, heads])
        return shown, (enough.sum(0) / np.maximum(1, (~np.isnan(shown)).sum(0))).astype(np.float32)


def rows_of(labels: HeadLabels, kind: AttentionKind) -> tuple[str, ...]:
    """The tokens that name the rows of a profile: those read, and in cross-attention those predicted."""
    predicted = labels.predicted if kind is AttentionKind.CROSS else None
    return labels.queries if predicted is None else predicted


def _stacked(means: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    names = dict.fromkeys(name for each in means for name in each)
    missing = {
        name: np.full_like(next(each[name] for each in means if name in each), np.nan) for name in names
    }
    return {name: np.stack([each.get(name, missing[name]) for each in means]) for name in names}
