"""Reads many sentences: what each head does in them, sentence by sentence, and what it does over all.

*Lists* compare key weight with what even attention gives the same token. *Source share* is ALTI+, but for the
first step and `</s>`.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from explorer.lenses.heads import roles
from explorer.lenses.heads.roles import SENTENCES, SORTED, UNITS, Means
from explorer.lenses.heads.statistics import HeadsOfKind, Sums, added, means
from explorer.lenses.heads.survey import FAR, MOST, SHOWN, Line, Profile, Survey, as_line
from explorer.lenses.measures.attribution import alti
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.linking import CrossAlignments
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.text.pairs import DataError
from transformer.text.words import EOS, Group, readable
from transformer.translator import InputError, Translator
from transformer.view import Array, HeadLabels

LEAST = 3
"""Fewest occurrences of a token that is in a list."""
SHORTEST_EXAMPLE = 5
"""Fewest words of an example; in a sentence of two words every head looks sharp."""
ENCODER, DECODER, CROSS = AttentionKind


def rows_of(labels: HeadLabels, kind: AttentionKind) -> tuple[str, ...]:
    """The tokens that name the rows of a profile: those read, and in cross-attention those predicted."""
    predicted = labels.predicted if kind is CROSS else None
    return labels.queries if predicted is None else predicted


# --- one kind over its sentences ----------------------------------------------------------------------------


class Profiler:
    """Collects what the heads of one kind do in sentences; even attention is one more head of each layer."""

    def __init__(self) -> None:
        self._bars: Array = np.zeros((), np.float32)  # (layers, heads + 1, 2 FAR + 1) weight by distance
        # by unit and token, (2,) occurrences as key and as query, (2, layers, heads + 1) sums over them
        self._tokens: dict[str, dict[str, tuple[Array, Array]]] = {unit: {} for unit in UNITS}
        self._ends: list[Array] = []
        # by sentence and statistic, (2, layers, heads) the row with the largest value, and with the smallest
        self._marked: list[dict[str, Array]] = []

    def add(self, reading: HeadsOfKind, queries: Sequence[str], keys: Sequence[str]) -> None:
        """Adds a sentence with the pieces of its rows and columns; rows that see one key say nothing."""
        sees = (reading.mask.sum(-1) > 1).all(0)
        seen, mask = np.flatnonzero(sees), reading.mask[:, sees]
        even = mask / np.maximum(1, mask.sum(-1, keepdims=True))
        weights = np.concatenate([reading.weights[:, :, sees], even[:, None].astype(np.float32)], 1)
        distance = (seen[:, None] - np.arange(len(keys))).clip(-FAR, FAR) + FAR
        bars = np.eye(2 * FAR + 1, dtype=np.float32)[distance.ravel()]
        self._bars = self._bars + weights.reshape(*weights.shape[:2], -1) @ bars
        selective = np.pad(np.nan_to_num(1 - reading.rows["entropy"]) * sees, ((0, 0), (0, 1), (0, 0)))
        for unit, tokens in self._tokens.items():
            for side, names in enumerate((keys, queries)):
                for group in _groups(names, unit):
                    part, none = (
                        slice(group.start, group.stop),
                        np.zeros((2, *selective.shape[:2]), np.float32),
                    )
                    often, sums = tokens.setdefault(group.text, (np.zeros(2, np.float32), none))
                    often[side] += sees[part].mean() if side else 1
                    sums[side] += selective[..., part].mean(-1) if side else weights[..., part].sum((2, 3))
        ends = np.array([key == EOS for key in keys])
        if reading.lengths is not None and ends.any() and not ends.all():
            end, others = (reading.lengths[..., of].mean(-1) for of in (ends, ~ends))
            self._ends.append(end / np.maximum(others, 1e-9))
        ordered = {name: reading.rows[name] for name in SORTED if name in reading.rows}
        signed = {name: np.nan_to_num(np.stack([r, -r]), nan=-np.inf) for name, r in ordered.items()}
        self._marked.append({name: both.argmax(-1) for name, both in signed.items()})

    def means(self) -> dict[str, Array]:
        """`eos_value`, (layers, heads), if any keys end with `</s>`."""
        return {"eos_value": np.mean(self._ends, axis=0, dtype=np.float32)} if self._ends else {}

    def profile(
        self,
        means: dict[str, Array],  # the statistics over all rows
        shares: Array,  # as in `Profile`
        orders: Mapping[str, Array],  # by name of `SORTED`, (sentences, layers, heads); NaN: left out
    ) -> Profile:
        """The profile of the sentences so far; sentences that orders name beyond them have no marked row."""
        bars = self._bars / np.maximum(self._bars.sum(-1, keepdims=True), 1e-9)
        ranked = zip(*(self._ranked(name, orders.get(name)) for name in SORTED), strict=True)
        sentences, values, marked = (np.stack(each) for each in ranked)
        vocabulary, counts, places, told = {}, {}, [], []
        for unit in UNITS:
            seen, listed, said = self._lists(unit)
            used, names = np.unique(listed[listed >= 0]), [*self._tokens[unit]]
            places.append(np.where(listed < 0, -1, np.searchsorted(used, listed)))
            told.append(said)
            vocabulary[unit], counts[unit] = (
                [names[i] for i in used],
                np.rint(seen[:, used]).astype(int).tolist(),
            )
        lists = np.stack(places), np.stack(told)
        ordered = sentences, values, marked
        return Profile(means, shares, bars[:, :-1], bars[:, -1], *ordered, *lists, vocabulary, counts)

    def _ranked(self, name: str, values: Array | None) -> tuple[Array, Array, Array]:
        """Sentences, values and rows (layers, heads, SHOWN) of evenly spaced ranks of one order."""
        if values is None or not len(values):
            shape = (self._bars.shape[0], self._bars.shape[1] - 1, SHOWN)
            return np.full(shape, -1), np.zeros(shape, np.float32), np.full(shape, -1)
        order, many = np.argsort(-values, axis=0), (~np.isnan(values)).sum(0)
        ranks = np.rint(np.linspace(0, 1, SHOWN)[:, None, None] * (many - 1)).astype(int).clip(0)
        chosen = np.take_along_axis(order, ranks, 0)
        again = np.concatenate([np.zeros((1, *many.shape), bool), ranks[1:] == ranks[:-1]]) | (many == 0)
        marked = np.stack([each["peak" if name == "role" else name] for each in self._marked], 1)
        largest, smallest = (np.take_along_axis(m, chosen.clip(0, len(m) - 1), 0) for m in marked)
        rows = np.where(np.arange(SHOWN)[:, None, None] <= SHOWN // 2, largest, smallest)
        rows = np.where(again | (chosen >= len(self._marked)), -1, rows)
        shown = np.nan_to_num(np.take_along_axis(values, chosen, 0)).astype(np.float32)
        sentences, shown, rows = (np.moveaxis(x, 0, -1) for x in (np.where(again, -1, chosen), shown, rows))
        return sentences, shown, rows

    def _lists(self, unit: str) -> tuple[Array, Array, Array]:
        """(2, tokens) occurrences, (LISTS, layers, heads, MOST) places of tokens, and two values of each."""
        seen, sums = (np.stack(each, -1) for each in zip(*self._tokens[unit].values(), strict=True))
        whole = sums.sum(-1, keepdims=True)
        share = sums[0] / np.maximum(whole[0], 1e-9)
        share, lift = share[:, :-1], share[:, :-1] / np.maximum(share[:, -1:], 1e-9)
        mean = sums[1, :, :-1] / np.maximum(seen[1], 1e-9)
        ratio = mean / np.maximum(whole[1, :, :-1] / max(seen[1].sum(), 1e-9), 1e-9)
        lists = [_top(share, seen[0], (share, lift)), _top(lift, seen[0], (share, lift))]
        lists.append(_top(mean, seen[1], (mean, ratio)))
        return seen, np.stack([best for best, _ in lists]), np.stack([told for _, told in lists])


def _groups(pieces: Sequence[str], unit: str) -> Sequence[Group]:
    if unit == "words":
        return reading_groups(pieces)
    return [Group(i, i + 1, readable(each)) for i, each in enumerate(pieces)]


def _top(by: Any, seen: Array, values: tuple[Any, Any]) -> tuple[Array, Array]:
    """(layers, heads, MOST) places of the largest, −1 where there are too few, and both values of each."""
    allowed = np.flatnonzero(seen >= LEAST - 0.5)
    order = np.argsort(-by[..., allowed], axis=-1, kind="stable")[..., :MOST]
    best = np.full((*by.shape[:2], MOST), -1)
    best[..., : order.shape[-1]] = allowed[order]
    told = np.stack([np.take_along_axis(each, best.clip(0), -1) for each in values], -1)
    return best, np.where(best[..., None] < 0, 0, told).astype(np.float32)


# --- all kinds ----------------------------------------------------------------------------------------------


class Surveyor:
    """Runs sentences through a model one by one; other threads may read a `survey` of those so far."""

    def __init__(self, translator: Translator, lines: Sequence[Line], gold: Sequence[GoldPair] = ()) -> None:
        self._translator = translator
        self._todo: tuple[GoldPair | Line, ...] = (*gold, *lines)
        self.total = len(lines)  # number of sentences
        self._lock = threading.Lock()
        self._kinds = tuple(translator.config.sites)
        self._profilers = {kind: Profiler() for kind in self._kinds}
        self._shares: list[float] = []
        self._found: list[tuple[Line, dict[AttentionKind, Sums]]] = []
        self._skipped = 0
        self._alignments = CrossAlignments(translator.config)
        self._aligned: list[GoldPair] = []

    def run(self) -> Iterator[int]:
        """Reads gold pairs, then sentences; yields the number of sentences read. To stop, leave the loop."""
        for number, todo in enumerate(self._todo, start=1 + self.total - len(self._todo)):
            try:
                if isinstance(todo, Line):
                    self._read(todo)
                else:
                    links = self._alignments.links(self._translator, todo)
                    with self._lock:
                        self._alignments.take(links, todo)
                        self._aligned.append(todo)
            except (InputError, DataError):
                self._skipped += 1
            yield max(0, number)

    def _read(self, line: Line) -> None:
        translator, first = self._translator, len(self._found) < SENTENCES
        run = line.run(translator, residual=first)
        projections = translator.model.output_projection
        readings = {kind: HeadsOfKind.of(run, kind, projections) for kind in self._kinds}
        shares: list[float] = []
        if first and {*self._kinds} == {*AttentionKind}:
            shares = alti(translator.model, run).source.sum(1)[1:-1].tolist()
        with self._lock:
            self._found.append((line, {kind: reading.sums() for kind, reading in readings.items()}))
            self._shares += shares
            for kind, reading in readings.items():
                labels = run.labels(kind)
                self._profilers[kind].add(reading, rows_of(labels, kind), labels.keys)

    def survey(self) -> Survey:
        """The results so far; ValueError if no sentence with a choice for every kind has been read yet."""
        with self._lock:
            if not self._found:
                raise ValueError("No sentence has been read yet.")
            over = {kind: means(added(sums[kind] for _, sums in self._found)) for kind in self._kinds}
            if any("entropy" not in each for each in over.values()):
                raise ValueError("No row of any sentence sees two tokens yet, so no head has a choice.")
            read = [line for line, _ in self._found]
            lines = (*read, *map(as_line, self._aligned))
            low, middle, high = np.percentile(self._shares or [0], (5, 50, 95)).tolist()
            return Survey(
                self._translator.name,
                lines,
                {kind: self._profile(kind, found, lines) for kind, found in over.items()},
                len(read),
                sum(line.target is not None for line in read),
                len(self._aligned),
                self._skipped,
                (low, middle, high) if self._shares else None,
            )

    def _profile(self, kind: AttentionKind, over: dict[str, Array], lines: Sequence[Line]) -> Profile:
        profiler = self._profilers[kind]
        over = over | profiler.means()
        if kind is CROSS and self._aligned:
            over |= self._alignments.errors()
        by_line = _stacked([means(sums[kind]) for _, sums in self._found])
        shown, kept = self._role_strength(kind, over, by_line)
        short = np.array([len(line.source.split()) < SHORTEST_EXAMPLE for line in lines])[:, None, None]
        orders = {name: each for name, each in by_line.items() if name in SORTED} | {"role": shown}
        left = {name: np.where(short[: len(each)], np.float32(np.nan), each) for name, each in orders.items()}
        return profiler.profile(over, kept, left)

    def _role_strength(self, kind: AttentionKind, over: Means, by_line: Means) -> tuple[Array, Array]:
        """How strongly each sentence (of the role alignment, each gold pair) shows the role of each head,
        (sentences and pairs, layers, heads); and the share of them that show it, (layers, heads)."""
        names, many = roles.assign(over, kind), len(self._found)
        shown = np.full((many + len(self._aligned), *names.shape), np.nan, np.float32)
        enough: Array = np.zeros(shown.shape, bool)
        for name in np.unique(names):
            heads = names == name
            if name == roles.ALIGNMENT:
                error = self._alignments.pair_errors()[:, heads]
                pairs = {"aer": error, "aer_diagonal": np.full_like(error, over["aer_diagonal"].flat[0])}
                shown[many:, heads] = roles.shows(name, pairs, kind)
            else:
                own = {each: values[:, heads] for each, values in by_line.items()}
                strength = roles.shows(name, own, kind)
                shown[:many, heads] = np.where(np.isnan(own["entropy"]), np.nan, strength)
            enough[:, heads] = roles.keeps(name, shown[:, heads])
        return shown, (enough.sum(0) / np.maximum(1, (~np.isnan(shown)).sum(0))).astype(np.float32)


def _stacked(sentences: Sequence[Means]) -> dict[str, Array]:
    """By statistic, (sentences, layers, heads); NaN where a sentence lacks it."""
    nothing = {name: np.full_like(some, np.nan) for each in sentences for name, some in each.items()}
    return {name: np.stack([each.get(name, none) for each in sentences]) for name, none in nothing.items()}
