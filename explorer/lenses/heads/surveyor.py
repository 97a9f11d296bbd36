"""Reads many sentences: what each head does in each of them, and over all.

*Lists* compare key weight with what even attention gives the same token. *Source share* is ALTI+,
but for the first step and `</s>`.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.lenses.heads import roles
from explorer.lenses.heads.roles import SENTENCES, SORTED, UNITS
from explorer.lenses.heads.statistics import NAMES, HeadsOfKind, Sums, added
from explorer.lenses.heads.survey import FAR, MOST, SHOWN, Ints, Line, Profile, Survey, as_line
from explorer.lenses.measures.attribution import alti
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.linking import CrossAlignments
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.reader import InputError
from transformer.text.pairs import DataError
from transformer.text.words import Group, is_end, readable
from transformer.translator import Translator
from transformer.view import Array, BoolArray, HeadLabels

LEAST = 3
"""Fewest occurrences of a token that is in a list."""
SHORTEST_EXAMPLE = 5
"""Fewest words of an example; in a sentence of two words every head looks sharp."""
ORDERED = [NAMES.index(name) for name in ("peak", *SORTED[1:])]
"""What orders sentences, among the statistics; the role has the rows of the largest weight."""
ENCODER, DECODER, CROSS = AttentionKind


def rows_of(labels: HeadLabels, kind: AttentionKind) -> tuple[str, ...]:
    """The tokens that name the rows: those read, and in cross-attention those predicted."""
    if kind is CROSS and labels.predicted is not None:
        return labels.predicted
    return labels.queries


# --- one kind over its sentences -----------------------------------------------------------------


@dataclass(eq=False)
class Profiler:
    """What the heads of one kind do in sentences; even attention is one more head of each layer."""

    kind: AttentionKind
    _sums: list[Sums] = field(default_factory=list)  # by sentence
    # by sentence, (SORTED, 2, layers, heads) the row with the largest value, and with the smallest
    _marked: list[Array] = field(default_factory=list)
    _ends: list[Array] = field(default_factory=list)
    # (layers, heads + 1, 2 FAR + 1) weight by distance
    _bars: Array = field(default_factory=lambda: np.zeros((), np.float32))
    # by unit and token, (2,) occurrences as key and as query, (2, layers, heads + 1) sums over them
    _tokens: dict[str, dict[str, tuple[Array, Array]]] = field(
        default_factory=lambda: {unit: {} for unit in UNITS}
    )

    def add(self, reading: HeadsOfKind, labels: HeadLabels) -> None:
        """Adds a sentence; rows that see one key say nothing."""
        choosing = (reading.mask.sum(-1) > 1).all(0)  # the rows that have a choice
        mask = reading.mask[:, choosing]
        even = mask / np.maximum(1, mask.sum(-1, keepdims=True))
        weights = np.concatenate(
            [reading.weights[:, :, choosing], even[:, None].astype(np.float32)], 1
        )
        self._add_distances(weights, np.flatnonzero(choosing))
        self._add_tokens(reading, labels, weights, choosing)
        self._add_ends(reading, labels)
        ordered = reading.rows[ORDERED]
        self._marked.append(np.nan_to_num(np.stack([ordered, -ordered], 1), nan=-np.inf).argmax(-1))
        self._sums.append(reading.sums)

    def _add_distances(self, weights: Array, rows: Ints) -> None:
        """The weights (layers, heads + 1, rows, keys) of some rows, by the distance to the key."""
        keys = np.arange(weights.shape[-1])
        distance = (rows[:, None] - keys).clip(-FAR, FAR) + FAR
        bars = np.eye(2 * FAR + 1, dtype=np.float32)[distance.ravel()]
        self._bars = self._bars + weights.reshape(*weights.shape[:2], -1) @ bars

    def _add_tokens(
        self, reading: HeadsOfKind, labels: HeadLabels, weights: Array, choosing: BoolArray
    ) -> None:
        """The weight of each token as a key, and how selective it is as a query."""
        selective = np.nan_to_num(1 - reading.rows[NAMES.index("entropy")]) * choosing
        selective = np.pad(selective, ((0, 0), (0, 1), (0, 0)))
        for unit in UNITS:
            for key in _units(unit, labels.keys):
                occurrences, sums = self._counted(unit, key.text, selective.shape[:2])
                cells = slice(key.start, key.stop)
                occurrences[0] += 1
                sums[0] += weights[..., cells].sum((2, 3))
            for query in _units(unit, rows_of(labels, self.kind)):
                occurrences, sums = self._counted(unit, query.text, selective.shape[:2])
                cells = slice(query.start, query.stop)
                occurrences[1] += choosing[cells].mean()
                sums[1] += selective[..., cells].mean(-1)

    def _counted(self, unit: str, token: str, heads: tuple[int, ...]) -> tuple[Array, Array]:
        """The occurrences and sums of a token, which begin at 0."""
        zeros = (np.zeros(2, np.float32), np.zeros((2, *heads), np.float32))
        return self._tokens[unit].setdefault(token, zeros)

    def _add_ends(self, reading: HeadsOfKind, labels: HeadLabels) -> None:
        """The length of the value of `</s>` over that of the other keys, where there are both."""
        ends = np.array(list(map(is_end, labels.keys)))
        if reading.lengths is not None and ends.any() and not ends.all():
            end = reading.lengths[..., ends].mean(-1)
            rest = reading.lengths[..., ~ends].mean(-1)
            self._ends.append(end / np.maximum(rest, 1e-9))

    def profile(self, lines: Sequence[Line], alignments: CrossAlignments | None = None) -> Profile:
        """The profile of the sentences so far.

        Lines beyond them are gold pairs, without a marked row.
        """
        means = added(self._sums).means()
        if "entropy" not in means:
            raise ValueError("No row of any sentence sees two tokens yet, so no head has a choice.")
        if self._ends:
            means["eos_value"] = np.mean(self._ends, axis=0, dtype=np.float32)
        if alignments is not None and alignments.counts:
            means |= alignments.errors()
        by_line = self._by_line()
        strength, keeping = self._role_strength(means, by_line, len(lines), alignments)
        sentences, values, marked = self._orders(lines, strength, by_line)
        bars = self._bars / np.maximum(self._bars.sum(-1, keepdims=True), 1e-9)
        lists = {unit: self._lists(unit) for unit in UNITS}
        return Profile(
            means=means,
            kept=keeping,
            distances=bars[:, :-1],
            chance=bars[:, -1],
            sentences=sentences,
            values=values,
            marked=marked,
            tokens=np.stack([unit.tokens for unit in lists.values()]),
            told=np.stack([unit.amounts for unit in lists.values()]),
            vocabulary={name: unit.vocabulary for name, unit in lists.items()},
            counts={name: unit.counts for name, unit in lists.items()},
        )

    def _by_line(self) -> Array:
        """(STATISTICS, sentences, layers, heads) means over the rows of each sentence."""
        totals = np.stack([sums.totals for sums in self._sums], 1, dtype=np.float32)
        rows = np.stack([sums.rows for sums in self._sums], 1, dtype=np.float32)
        with np.errstate(invalid="ignore"):
            means: Array = totals / rows[..., None, None]
        return means

    def _orders(
        self, lines: Sequence[Line], strength: Array, by_line: Array
    ) -> tuple[Ints, Array, Ints]:
        """Of every order, sentences, values and rows as `_ranked`; examples are no short lines."""
        n_words = np.array([len(line.source.split()) for line in lines])
        short = (n_words < SHORTEST_EXAMPLE)[:, None, None]
        marked = np.stack(self._marked, 2)
        ranked = [
            _ranked(np.where(short[: len(order)], np.float32(np.nan), order), rows)
            for order, rows in zip((strength, *by_line[ORDERED[1:]]), marked, strict=True)
        ]
        sentences, values, rows = (np.stack(orders) for orders in zip(*ranked, strict=True))
        return sentences, values, rows

    def _role_strength(
        self, means: roles.Means, by_line: Array, lines: int, alignments: CrossAlignments | None
    ) -> tuple[Array, Array]:
        """How strongly each sentence shows the role of each head, and the share that shows it.

        Of the role alignment, each gold pair in the place of each sentence: (sentences and pairs,
        layers, heads), and (layers, heads).
        """
        names = roles.assign(means, self.kind)
        n_sentences = len(self._sums)
        strengths = np.full((lines, *names.shape), np.nan, np.float32)
        enough: Array = np.zeros(strengths.shape, bool)
        for name in np.unique(names):
            heads = names == name
            if name == roles.ALIGNMENT and alignments is not None:
                error = alignments.pair_errors()[:, heads]
                diagonal = np.full_like(error, means["aer_diagonal"].flat[0])
                pairs = {"aer": error, "aer_diagonal": diagonal}
                strengths[n_sentences:, heads] = roles.shows(name, pairs, self.kind)
            else:
                statistics = dict(zip(NAMES, by_line[..., heads], strict=True))
                strength = roles.shows(name, statistics, self.kind)
                unknown = np.isnan(statistics["entropy"])
                strengths[:n_sentences, heads] = np.where(unknown, np.nan, strength)
            enough[:, heads] = roles.keeps(name, strengths[:, heads])
        known = (~np.isnan(strengths)).sum(0)
        return strengths, (enough.sum(0) / np.maximum(1, known)).astype(np.float32)

    def _lists(self, unit: str) -> "_Lists":
        """The lists of every head, of words or of pieces."""
        counted = self._tokens[unit]
        occurrences = np.stack([counts for counts, _ in counted.values()], -1)
        sums = np.stack([sums for _, sums in counted.values()], -1)
        totals = sums.sum(-1, keepdims=True)
        with_even = sums[0] / np.maximum(totals[0], 1e-9)
        share = with_even[:, :-1]
        lift = share / np.maximum(with_even[:, -1:], 1e-9)
        mean = sums[1, :, :-1] / np.maximum(occurrences[1], 1e-9)
        usual = totals[1, :, :-1] / max(occurrences[1].sum(), 1e-9)
        ratio = mean / np.maximum(usual, 1e-9)
        lists = (
            _top(share, occurrences[0], (share, lift)),
            _top(lift, occurrences[0], (share, lift)),
            _top(mean, occurrences[1], (mean, ratio)),
        )
        best = np.stack([tokens for tokens, _ in lists])
        listed = np.unique(best[best >= 0])
        names = [*counted]
        return _Lists(
            tokens=np.where(best < 0, -1, np.searchsorted(listed, best)),
            amounts=np.stack([amounts for _, amounts in lists]),
            vocabulary=[names[number] for number in listed],
            counts=np.rint(occurrences[:, listed]).astype(int).tolist(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lists:
    """The lists of tokens of every head, in one unit."""

    tokens: Ints  # (LISTS, layers, heads, MOST) places in the vocabulary; −1 for none
    amounts: Array  # (LISTS, layers, heads, MOST, 2) two values of each
    vocabulary: list[str]  # the tokens that are in a list
    counts: list[list[int]]  # their occurrences as a key and as a query


def _units(unit: str, tokens: Sequence[str]) -> list[Group]:
    """The words or the pieces of tokens, as people read them."""
    if unit == "words":
        return [*reading_groups(tokens)]
    return [Group(place, place + 1, readable(token)) for place, token in enumerate(tokens)]


def _ranked(values: Array, marked: Array) -> tuple[Ints, Array, Ints]:
    """Sentences, values and rows (layers, heads, SHOWN) of evenly spaced ranks of one order.

    Of values (sentences, layers, heads), not a number where left out, and rows (2, sentences,
    layers, heads).
    """
    order = np.argsort(-values, axis=0)
    count = (~np.isnan(values)).sum(0)
    last = marked.shape[1] - 1
    shares = np.linspace(0, 1, SHOWN)[:, None, None]
    ranks = np.rint(shares * (count - 1)).astype(int).clip(0)
    chosen = np.take_along_axis(order, ranks, 0)
    first = np.zeros((1, *count.shape), bool)
    repeated = np.concatenate([first, ranks[1:] == ranks[:-1]]) | (count == 0)
    largest, smallest = (np.take_along_axis(rows, chosen.clip(0, last), 0) for rows in marked)
    upper = np.arange(SHOWN)[:, None, None] <= SHOWN // 2
    rows = np.where(upper, largest, smallest)
    rows = np.where(repeated | (chosen > last), -1, rows)
    ranked = np.nan_to_num(np.take_along_axis(values, chosen, 0)).astype(np.float32)
    sentences = np.where(repeated, -1, chosen)
    return np.moveaxis(sentences, 0, -1), np.moveaxis(ranked, 0, -1), np.moveaxis(rows, 0, -1)


def _top(by: Array, occurrences: Array, values: tuple[Array, Array]) -> tuple[Ints, Array]:
    """Places of the largest (layers, heads, MOST), −1 where there are too few, and two values."""
    allowed = np.flatnonzero(occurrences >= LEAST - 0.5)
    order = np.argsort(-by[..., allowed], axis=-1, kind="stable")[..., :MOST]
    best = np.full((*by.shape[:2], MOST), -1)
    best[..., : order.shape[-1]] = allowed[order]
    amounts = np.stack([np.take_along_axis(value, best.clip(0), -1) for value in values], -1)
    return best, np.where(best[..., None] < 0, 0, amounts).astype(np.float32)


# --- all kinds -----------------------------------------------------------------------------------


class Surveyor:
    """Runs sentences through a model; other threads may read a `survey` of those so far."""

    def __init__(
        self, translator: Translator, lines: Sequence[Line], gold: Sequence[GoldPair] = ()
    ) -> None:
        self._translator = translator
        self._todo: tuple[GoldPair | Line, ...] = (*gold, *lines)
        self.total = len(lines)  # number of sentences
        self._lock = threading.Lock()
        self._profilers = {kind: Profiler(kind) for kind in translator.config.sites}
        self._lines = list[Line]()
        self._aligned = list[Line]()
        self._shares = list[float]()
        self._alignments = CrossAlignments(translator.config)
        self._skipped = 0

    def run(self) -> Iterator[int]:
        """Reads gold pairs, then sentences; yields the number of sentences read.

        To stop, leave the loop.
        """
        for number, todo in enumerate(self._todo, start=1 + self.total - len(self._todo)):
            try:
                if isinstance(todo, Line):
                    self._read(todo)
                else:
                    self._align(todo)
            except (InputError, DataError):
                self._skipped += 1
            yield max(0, number)

    def _read(self, line: Line) -> None:
        """Runs a sentence, and adds what the heads of every kind do in it."""
        model = self._translator
        among_first = len(self._lines) < SENTENCES
        run = line.run(model, residual=among_first)
        shares = []
        if among_first and {*self._profilers} == {*AttentionKind}:
            shares = alti(model.model, run).source.sum(1)[1:-1].tolist()
        w_o = model.model.output_projection
        readings = {kind: HeadsOfKind.of(run, kind, w_o) for kind in self._profilers}
        with self._lock:
            self._lines.append(line)
            self._shares += shares
            for kind, reading in readings.items():
                self._profilers[kind].add(reading, run.labels(kind))

    def _align(self, pair: GoldPair) -> None:
        """Counts the links of every head in a gold pair."""
        counts = self._alignments.count(self._translator, pair)
        with self._lock:
            self._alignments.counts.append(counts)
            self._aligned.append(as_line(pair))

    def survey(self) -> Survey:
        """The results so far.

        ValueError if no sentence with a choice for every kind has been read yet.
        """
        with self._lock:
            if not self._lines:
                raise ValueError("No sentence has been read yet.")
            lines = (*self._lines, *self._aligned)
            return Survey(
                model=self._translator.name,
                lines=lines,
                profiles={kind: self._profile(kind, lines) for kind in self._profilers},
                sentences=len(self._lines),
                forced=sum(line.target is not None for line in self._lines),
                pairs=len(self._aligned),
                skipped=self._skipped,
                usual=self._usual(),
            )

    def _profile(self, kind: AttentionKind, lines: Sequence[Line]) -> Profile:
        """The profile of a kind; gold pairs speak of cross-attention only."""
        alignments = self._alignments if kind is CROSS else None
        return self._profilers[kind].profile(lines, alignments)

    def _usual(self) -> tuple[float, ...] | None:
        """The source's share below which 5, 50 and 95 % of predictions stay; None if unknown."""
        if not self._shares:
            return None
        return tuple(np.percentile(self._shares, (5, 50, 95)).tolist())
