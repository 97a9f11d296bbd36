"""Reads many sentences: what each head does in them, sentence by sentence, and what it does over
all.

*Lists* compare key weight with what even attention gives the same token. *Source share* is ALTI+,
but for the first step and `</s>`.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.lenses.heads import roles
from explorer.lenses.heads.roles import SENTENCES, SORTED, UNITS
from explorer.lenses.heads.statistics import NAMES, HeadsOfKind, Sums, added
from explorer.lenses.heads.survey import FAR, MOST, SHOWN, Line, Profile, Survey, as_line
from explorer.lenses.measures.attribution import alti
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.linking import CrossAlignments
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.reader import InputError
from transformer.text.pairs import DataError
from transformer.text.words import Group, is_end, readable
from transformer.translator import Translator
from transformer.view import Array, HeadLabels

LEAST = 3
"""Fewest occurrences of a token that is in a list."""
SHORTEST_EXAMPLE = 5
"""Fewest words of an example; in a sentence of two words every head looks sharp."""
ORDERED = [NAMES.index(name) for name in ("peak", *SORTED[1:])]
"""What orders sentences, among the statistics; the role has the rows of the largest weight."""
ENCODER, DECODER, CROSS = AttentionKind


def rows_of(labels: HeadLabels, kind: AttentionKind) -> tuple[str, ...]:
    """The tokens that name the rows of a profile: those read, and in cross-attention those
    predicted."""
    predicted = labels.predicted if kind is CROSS else None
    return labels.queries if predicted is None else predicted


# --- one kind over its sentences -----------------------------------------------------------------


@dataclass(eq=False)
class Profiler:
    """Collects what the heads of one kind do in sentences; even attention is one more head of each
    layer."""

    kind: AttentionKind
    _sums: list[Sums] = field(default_factory=list)  # by sentence
    # by sentence, (SORTED, 2, layers, heads) the row with the largest value, and with the smallest
    _marked: list[Array] = field(default_factory=list)
    _ends: list[Array] = field(default_factory=list)
    # (layers, heads + 1, 2 FAR + 1) weight by distance
    _bars: Array = field(default_factory=lambda: np.zeros((), np.float32))
    # by unit and token, (2,) occurrences as key and as query, (2, layers, heads + 1) sums over them
    _tokens: dict[str, dict[str, tuple[Array, Array]]] = field(
        default_factory=lambda: {x: {} for x in UNITS}
    )

    def add(self, reading: HeadsOfKind, labels: HeadLabels) -> None:
        """Adds a sentence; rows that see one key say nothing."""
        sees = (reading.mask.sum(-1) > 1).all(0)
        seen = np.flatnonzero(sees)
        mask = reading.mask[:, sees]
        even = mask / np.maximum(1, mask.sum(-1, keepdims=True))
        weights = np.concatenate([reading.weights[:, :, sees], even[:, None].astype(np.float32)], 1)
        distance = (seen[:, None] - np.arange(len(labels.keys))).clip(-FAR, FAR) + FAR
        bars = np.eye(2 * FAR + 1, dtype=np.float32)[distance.ravel()]
        self._bars = self._bars + weights.reshape(*weights.shape[:2], -1) @ bars
        selective = np.nan_to_num(1 - reading.rows[NAMES.index("entropy")]) * sees
        selective = np.pad(selective, ((0, 0), (0, 1), (0, 0)))
        for unit, tokens in self._tokens.items():
            for side, names in enumerate((labels.keys, rows_of(labels, self.kind))):
                pieces = (Group(i, i + 1, readable(each)) for i, each in enumerate(names))
                for group in reading_groups(names) if unit == "words" else pieces:
                    part = slice(group.start, group.stop)
                    new = np.zeros(2, np.float32), np.zeros((2, *selective.shape[:2]), np.float32)
                    often, sums = tokens.setdefault(group.text, new)
                    often[side] += sees[part].mean() if side else 1
                    sums[side] += (
                        selective[..., part].mean(-1) if side else weights[..., part].sum((2, 3))
                    )
        ends = np.array(list(map(is_end, labels.keys)))
        if reading.lengths is not None and ends.any() and not ends.all():
            end, others = (reading.lengths[..., of].mean(-1) for of in (ends, ~ends))
            self._ends.append(end / np.maximum(others, 1e-9))
        ordered = reading.rows[ORDERED]
        self._marked.append(np.nan_to_num(np.stack([ordered, -ordered], 1), nan=-np.inf).argmax(-1))
        self._sums.append(reading.sums)

    def profile(self, lines: Sequence[Line], alignments: CrossAlignments | None = None) -> Profile:
        """The profile of the sentences so far; lines beyond them are gold pairs, without a marked
        row."""
        means = added(self._sums).means()
        if "entropy" not in means:
            raise ValueError("No row of any sentence sees two tokens yet, so no head has a choice.")
        if self._ends:
            means["eos_value"] = np.mean(self._ends, axis=0, dtype=np.float32)
        if alignments is not None and alignments.counts:
            means |= alignments.errors()
        totals, rows = (
            np.stack(each, 1, dtype=np.float32) for each in zip(*self._sums, strict=True)
        )
        with np.errstate(invalid="ignore"):  # (STATISTICS, sentences, layers, heads)
            by_line: Array = totals / rows[..., None, None]
        strength, kept = self._role_strength(means, by_line, len(lines), alignments)
        short = np.array([len(line.source.split()) < SHORTEST_EXAMPLE for line in lines])[
            :, None, None
        ]
        orders = [
            np.where(short[: len(x)], np.float32(np.nan), x)
            for x in (strength, *by_line[ORDERED[1:]])
        ]
        ranked = map(_ranked, orders, np.stack(self._marked, 2))
        sentences, values, marked = (np.stack(each) for each in zip(*ranked, strict=True))
        bars = self._bars / np.maximum(self._bars.sum(-1, keepdims=True), 1e-9)
        vocabulary = {}
        counts = {}
        places = []
        told = []
        for unit in UNITS:
            seen, listed, said = self._lists(unit)
            used = np.unique(listed[listed >= 0])
            names = [*self._tokens[unit]]
            places.append(np.where(listed < 0, -1, np.searchsorted(used, listed)))
            told.append(said)
            vocabulary[unit] = [names[i] for i in used]
            counts[unit] = np.rint(seen[:, used]).astype(int).tolist()
        orders_and_lists = sentences, values, marked, np.stack(places), np.stack(told)
        return Profile(
            means, kept, bars[:, :-1], bars[:, -1], *orders_and_lists, vocabulary, counts
        )

    def _role_strength(
        self, means: roles.Means, by_line: Array, lines: int, alignments: CrossAlignments | None
    ) -> tuple[Array, Array]:
        """How strongly each sentence (of the role alignment, each gold pair) shows the role of each
        head, (sentences and pairs, layers, heads); and the share of them that show it, (layers,
        heads)."""
        names = roles.assign(means, self.kind)
        many = len(self._sums)
        shown = np.full((lines, *names.shape), np.nan, np.float32)
        enough: Array = np.zeros(shown.shape, bool)
        for name in np.unique(names):
            heads = names == name
            if name == roles.ALIGNMENT and alignments is not None:
                error = alignments.pair_errors()[:, heads]
                pairs = {
                    "aer": error,
                    "aer_diagonal": np.full_like(error, means["aer_diagonal"].flat[0]),
                }
                shown[many:, heads] = roles.shows(name, pairs, self.kind)
            else:
                own = dict(zip(NAMES, by_line[..., heads], strict=True))
                strength = roles.shows(name, own, self.kind)
                shown[:many, heads] = np.where(np.isnan(own["entropy"]), np.nan, strength)
            enough[:, heads] = roles.keeps(name, shown[:, heads])
        return shown, (enough.sum(0) / np.maximum(1, (~np.isnan(shown)).sum(0))).astype(np.float32)

    def _lists(self, unit: str) -> tuple[Array, Array, Array]:
        """(2, tokens) occurrences, (LISTS, layers, heads, MOST) places of tokens, and two values of
        each."""
        seen, sums = (np.stack(each, -1) for each in zip(*self._tokens[unit].values(), strict=True))
        whole = sums.sum(-1, keepdims=True)
        share = sums[0] / np.maximum(whole[0], 1e-9)
        share, lift = share[:, :-1], share[:, :-1] / np.maximum(share[:, -1:], 1e-9)
        mean = sums[1, :, :-1] / np.maximum(seen[1], 1e-9)
        ratio = mean / np.maximum(whole[1, :, :-1] / max(seen[1].sum(), 1e-9), 1e-9)
        lists = [_top(share, seen[0], (share, lift)), _top(lift, seen[0], (share, lift))]
        lists.append(_top(mean, seen[1], (mean, ratio)))
        best, told = (np.stack(each) for each in zip(*lists, strict=True))
        return seen, best, told


def _ranked(values: Array, marked: Array) -> tuple[Array, Array, Array]:
    """Sentences, values and rows (layers, heads, SHOWN) of evenly spaced ranks of one order.

    Of values (sentences, layers, heads), not a number where left out, and rows (2, sentences,
    layers, heads).
    """
    order = np.argsort(-values, axis=0)
    many = (~np.isnan(values)).sum(0)
    last = marked.shape[1] - 1
    ranks = np.rint(np.linspace(0, 1, SHOWN)[:, None, None] * (many - 1)).astype(int).clip(0)
    chosen = np.take_along_axis(order, ranks, 0)
    again = np.concatenate([np.zeros((1, *many.shape), bool), ranks[1:] == ranks[:-1]]) | (
        many == 0
    )
    largest, smallest = (np.take_along_axis(each, chosen.clip(0, last), 0) for each in marked)
    rows = np.where(np.arange(SHOWN)[:, None, None] <= SHOWN // 2, largest, smallest)
    rows = np.where(again | (chosen > last), -1, rows)
    shown = np.nan_to_num(np.take_along_axis(values, chosen, 0)).astype(np.float32)
    sentences, shown, rows = (
        np.moveaxis(x, 0, -1) for x in (np.where(again, -1, chosen), shown, rows)
    )
    return sentences, shown, rows


def _top(by: Any, seen: Array, values: tuple[Any, Any]) -> tuple[Array, Array]:
    """(layers, heads, MOST) places of the largest, −1 where there are too few, and both values of
    each."""
    allowed = np.flatnonzero(seen >= LEAST - 0.5)
    order = np.argsort(-by[..., allowed], axis=-1, kind="stable")[..., :MOST]
    best = np.full((*by.shape[:2], MOST), -1)
    best[..., : order.shape[-1]] = allowed[order]
    told = np.stack([np.take_along_axis(value, best.clip(0), -1) for value in values], -1)
    return best, np.where(best[..., None] < 0, 0, told).astype(np.float32)


# --- all kinds -----------------------------------------------------------------------------------


class Surveyor:
    """Runs sentences through a model one by one; other threads may read a `survey` of those so
    far."""

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
        """Reads gold pairs, then sentences; yields the number of sentences read. To stop, leave the
        loop."""
        model = self._translator
        for number, todo in enumerate(self._todo, start=1 + self.total - len(self._todo)):
            try:
                if isinstance(todo, Line):
                    first = len(self._lines) < SENTENCES
                    whole = {*self._profilers} == {*AttentionKind}
                    run = todo.run(model, residual=first)
                    shares = (
                        alti(model.model, run).source.sum(1)[1:-1].tolist()
                        if first and whole
                        else []
                    )
                    w_o = model.model.output_projection
                    readings = {kind: HeadsOfKind.of(run, kind, w_o) for kind in self._profilers}
                    with self._lock:
                        self._lines.append(todo)
                        self._shares += shares
                        for kind, reading in readings.items():
                            self._profilers[kind].add(reading, run.labels(kind))
                else:
                    counts = self._alignments.count(model, todo)
                    with self._lock:
                        self._alignments.counts.append(counts)
                        self._aligned.append(as_line(todo))
            except (InputError, DataError):
                self._skipped += 1
            yield max(0, number)

    def survey(self) -> Survey:
        """The results so far; ValueError if no sentence with a choice for every kind has been read
        yet."""
        with self._lock:
            if not self._lines:
                raise ValueError("No sentence has been read yet.")
            lines = (*self._lines, *self._aligned)
            usual = np.percentile(self._shares or [0], (5, 50, 95))
            return Survey(
                self._translator.name,
                lines,
                {
                    kind: each.profile(lines, self._alignments if kind is CROSS else None)
                    for kind, each in self._profilers.items()
                },
                len(self._lines),
                sum(line.target is not None for line in self._lines),
                len(self._aligned),
                self._skipped,
                tuple(usual.tolist()) if self._shares else None,
            )
