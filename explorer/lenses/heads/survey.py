"""A survey of all heads over many sentences: its results, and its file (`survey.npz`).

No PyTorch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.heads import roles
from explorer.lenses.heads.roles import JUDGED, LISTS, PROFILED, SORTED, STATISTICS, UNITS, Floats
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind, Head
from transformer.families.registry import config_in
from transformer.storage.description import SURVEY_FILE, measured
from transformer.storage.files import CheckpointError
from transformer.storage.packed import Arrays, read_packed, write_packed
from transformer.text.pairs import DataError, ReadBounds, filled_lines

if TYPE_CHECKING:
    from transformer.run import Translation
    from transformer.translator import Translator

Ints = NDArray[np.int64]
MOST_SENTENCES, MOST_TOKENS = 500, 64
BOUNDS = ReadBounds(total=2**20, line=2**14, lines=2_000)
"""Limits of a visitor's file; tokens are those of one side of a line."""
FAR = 16
"""Farthest distance with a bar of its own; the last bars hold it and all beyond."""
MOST, SHOWN = 8, 15
"""Most tokens in a list of a head; sentences that are kept of an order: three of each fifth."""


@dataclass(frozen=True)
class Line:
    """A sentence to survey; `target` is forced, or the model writes greedily if it is None. An
    encoder alone reads the source."""

    source: str
    target: str | None = None

    def run(self, translator: Translator, residual: bool) -> Translation:
        """Runs it, with the residual stream if asked for; InputError if it is too long for the
        model."""
        from transformer.hooks import Capture  # PyTorch is there, as the model is

        capture = Capture(residual=residual)
        if self.target is None or not translator.config.writes:
            return translator.translate(self.source, capture=capture)
        return translator.force(self.source, self.target, capture=capture)


def as_line(pair: GoldPair) -> Line:
    """A gold pair as a line to survey: its words, separated by spaces."""
    return Line(" ".join(pair.source), " ".join(pair.target))


def read_sentences(
    path: Path, bounds: ReadBounds, translator: Translator, *, form: str
) -> tuple[Line, ...]:
    """A visitor's lines: one sentence or `source<TAB>target` each; DataError says which cannot be
    used, and what a line is: `form`."""
    lines = list[Line]()
    for number, line in filled_lines(path, bounds):
        columns = line.split("\t")
        if len(columns) > 2 or "\0" in line:
            raise DataError(
                f"Line {number} is binary data, or has {len(columns)} columns; give {form}."
            )
        if len(lines) == MOST_SENTENCES:
            raise DataError(f"The file has more than {MOST_SENTENCES} sentences.")
        for column, side in zip(columns, ("source", "target"), strict=False):
            try:
                tokens = len(translator.cut(column, side).ids) + 1
            except ValueError as error:
                raise DataError(f"Line {number}: {error}") from error
            if tokens > MOST_TOKENS:
                raise DataError(
                    f"Line {number} has {tokens} tokens on one side; the limit is {MOST_TOKENS}."
                )
        lines.append(Line(*columns))
    if not lines:
        raise DataError(f"The file is empty; each line needs {form}.")
    return tuple(lines)


class SurveyExample(NamedTuple):
    """A sentence of the survey, in an order of the sentences."""

    line: Line
    value: float  # by which the sentences are ordered; of a role, 1 at the threshold
    row: int | None  # the row of the head that counts, from 0; None if no row is marked


class Token(NamedTuple):
    """A word or piece in a list of a head."""

    text: str  # as people read it
    seen: int  # occurrences, as a key or as a query
    value: float  # share of the head's weight, or mean selectivity
    ratio: float  # of the value to what even weights give, or to the head's mean


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """All heads of one kind over many sentences; layers and heads count from 0."""

    # maps each statistic to (layers, heads), over all rows; with gold pairs, errors
    means: dict[str, Floats]
    # (layers, heads) share of the sentences (for an alignment, gold pairs) that show its role
    kept: Floats
    distances: Floats  # (layers, heads, 2 FAR + 1) share of the weight at query − key = −FAR … FAR
    chance: Floats  # (layers, 2 FAR + 1) the same for even weights over the visible keys
    # (SORTED, layers, heads, SHOWN) numbers of sentences from the largest value to the smallest; −1
    # for none
    sentences: Ints
    values: Floats  # of those, the value
    # of those, the row with the largest value (in the lower half, the smallest); −1 if unknown
    marked: Ints
    # (UNITS, LISTS, layers, heads, MOST) places in the vocabulary of the unit; −1 for none
    tokens: Ints
    # (…, 2) of those, share of the weight and lift, or mean selectivity and ratio to the head's
    told: Floats
    vocabulary: dict[str, list[str]]  # by unit, the tokens that are in a list
    counts: dict[str, list[list[int]]]  # by unit, occurrences of each as a key and as a query


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """Results of a survey so far, or of a file; layers and heads count from 0."""

    model: str  # name of the model
    lines: tuple[Line, ...]  # the sentences read so far, then the gold pairs
    profiles: dict[AttentionKind, Profile]  # the heads of each kind
    sentences: int  # number of sentences read
    forced: int  # number of those whose translation was given
    pairs: int  # number of gold pairs
    skipped: int = 0  # number of sentences too long for the model
    # share of the source (ALTI+) below which 5 %, 50 % and 95 % of the predictions stay; None if
    # unknown
    usual: tuple[float, ...] | None = None
    date: str = ""  # day of the measurement, of a file

    @property
    def brief(self) -> bool:
        """True if lists of tokens and sentences were left out."""
        return not all(profile.tokens.size for profile in self.profiles.values())

    def roles(self, kind: AttentionKind) -> NDArray[np.str_]:
        """The role of every head (layers, heads)."""
        return roles.assign(self.profiles[kind].means, kind)

    def fifths(
        self, kind: AttentionKind, layer: int, head: int, order: str
    ) -> list[list[SurveyExample]]:
        """Sentences of each fifth of an order (`SORTED`), the largest values first."""
        profile = self.profiles[kind]
        place = (SORTED.index(order), layer, head)
        columns = zip(
            profile.sentences[place].tolist(),
            profile.values[place].tolist(),
            profile.marked[place].tolist(),
            strict=True,
        )
        fifths: list[list[SurveyExample]] = [[] for _ in range(5)]
        for rank, (number, value, row) in enumerate(columns):
            if number >= 0:
                example = SurveyExample(self.lines[number], value, None if row < 0 else row)
                fifths[5 * rank // SHOWN].append(example)
        return fifths

    def tokens(self, kind: AttentionKind, layer: int, head: int, unit: str, by: str) -> list[Token]:
        """A list of a head: of `UNITS` and `LISTS`, the first token first."""
        profile = self.profiles[kind]
        place = (UNITS.index(unit), LISTS.index(by), layer, head)
        names = profile.vocabulary[unit]
        counts = profile.counts[unit][by == "selective"]
        listed = zip(profile.tokens[place].tolist(), profile.told[place].tolist(), strict=True)
        return [
            Token(names[number], counts[number], *values)
            for number, values in listed
            if number >= 0
        ]


# --- its file ------------------------------------------------------------------------------------

_HELD = {
    "kept": (np.float16, "layers heads"),
    "distances": (np.float16, "layers heads bars"),
    "chance": (np.float16, "layers bars"),
    "sentences": (np.int16, "orders layers heads shown"),
    "values": (np.float16, "orders layers heads shown"),
    "marked": (np.int8, "orders layers heads shown"),
    "tokens": (np.int16, "units lists layers heads listed"),
    "told": (np.float16, "units lists layers heads listed pair"),
}
"""How a file holds the arrays of a profile, and their axes; a brief file has nothing shown or
listed."""
_SIZES = {
    "bars": 2 * FAR + 1,
    "orders": len(SORTED),
    "units": len(UNITS),
    "lists": len(LISTS),
    "pair": 2,
}
_KNOWN = {statistic.name for statistic in (*STATISTICS, *PROFILED, *JUDGED[:2])}
_KNOWN.add("aer_diagonal")
"""The statistics that pages know; others of a file are read over."""
_COUNTS = ("sentences", "forced", "pairs", "skipped")


def fingerprint(lines: Sequence[Line], gold: Sequence[GoldPair]) -> str:
    """A hash of the sentences of a survey."""
    texts = [f"{line.source}\t{line.target}" for line in (*lines, *map(as_line, gold))]
    links = [str((sorted(pair.sure), sorted(pair.possible))) for pair in gold]
    return hashlib.sha256("\n".join((*texts, *links)).encode()).hexdigest()[:16]


def write_survey(
    directory: Path,
    survey: Survey,
    lines: Sequence[Line],
    gold: Sequence[GoldPair],
    head: Mapping[str, Any],
    brief: bool = False,
) -> None:
    """Writes a survey as a file."""
    every = [*lines, *map(as_line, gold)]
    number = {line: i for i, line in reversed([*enumerate(every)])}
    numbers = np.array([*(number[line] for line in survey.lines), -1])
    kinds: dict[str, dict[str, Any]] = {}
    arrays = Arrays()
    for kind, profile in survey.profiles.items():
        kinds[kind.value] = {
            "means": [*profile.means],
            "vocabulary": {} if brief else profile.vocabulary,
            "counts": {} if brief else profile.counts,
        }
        arrays[f"{kind}.means"] = np.stack([*profile.means.values()]).astype(np.float32)
        for name, (number_type, axes) in _HELD.items():
            values = numbers[profile.sentences] if name == "sentences" else getattr(profile, name)
            if brief:
                values = values[_brief(axes)]
            # of a strength beside a rare pattern
            limit = 6e4 if number_type is np.float16 else np.inf
            arrays[f"{kind}.{name}"] = np.minimum(values, limit).astype(number_type)
    entries = {"model": survey.model, "sample": fingerprint(lines, gold), **head, "kinds": kinds}
    entries |= {"usual": survey.usual} | {name: getattr(survey, name) for name in _COUNTS}
    write_packed(directory / SURVEY_FILE, entries, arrays)


def _brief(axes: str) -> tuple[slice, ...]:
    """The cells of an array that a brief file holds: none of what is shown or listed."""
    return tuple(slice(0 if axis in ("shown", "listed") else None) for axis in axes.split())


def survey_of(directory: Path, lines: Sequence[Line], gold: Sequence[GoldPair]) -> Survey | None:
    """A model's survey of these sentences; None without one, CheckpointError if damaged."""
    entries = measured(directory, SURVEY_FILE)
    if entries is None or entries.get("sample") != fingerprint(lines, gold):
        return None
    with _reading(directory / SURVEY_FILE) as (head, arrays):
        every = (*lines, *map(as_line, gold))
        profiles = {
            AttentionKind(kind): _profile(head["kinds"][kind], kind, arrays, size, len(every))
            for kind, size in config_in(directory).sizes.items()
        }
        counts = {name: int(head[name]) for name in _COUNTS}
        usual = tuple(map(float, head["usual"])) if head["usual"] else None
        _check(min(counts.values()) >= 0 and isinstance(head["date"], str))
        _check(usual is None or (len(usual) == 3 and [0, *usual, 1] == sorted([0, *usual, 1])))
        return Survey(
            model=head["model"],
            lines=every,
            profiles=profiles,
            **counts,
            usual=usual,
            date=head["date"],
        )


def surveyed(directory: Path) -> dict[str, list[list[str]]]:
    """By kind, layer and head, the role by a model's survey, empty if mixed; CheckpointError if
    damaged."""
    if measured(directory, SURVEY_FILE) is None:
        return {}
    by_kind = {}
    only = [f"{kind}.means" for kind in AttentionKind]
    with _reading(directory / SURVEY_FILE, *only) as (head, arrays):
        sizes = config_in(directory).sizes
        _check({*head["kinds"]} == {*sizes})
        for kind, size in sizes.items():
            means = _means(head["kinds"][kind], kind, arrays, size)
            names = roles.assign(means, AttentionKind(kind))
            by_kind[kind] = np.where(names == roles.MIXED, "", names).tolist()
    return by_kind


@contextmanager
def _reading(path: Path, *only: str) -> Iterator[tuple[dict[str, Any], Arrays]]:
    try:
        yield read_packed(path, only or None)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error


def _check(fits: bool | np.bool_) -> None:
    if not fits:
        raise ValueError("It says what cannot be of these heads and sentences.")


def _means(words: Mapping[str, Any], kind: str, arrays: Arrays, size: Head) -> dict[str, Floats]:
    """The statistics of a kind in a file; ValueError if they are not those of its heads."""
    named = dict(zip(words["means"], arrays[f"{kind}.means"], strict=True))
    _check("entropy" in named)
    _check(all(means.shape == size and np.isfinite(means).all() for means in named.values()))
    return {name: means for name, means in named.items() if name in _KNOWN}


def _profile(
    words: Mapping[str, Any], kind: str, arrays: Arrays, size: Head, lines: int
) -> Profile:
    """The profile of a kind in a file; ValueError if it does not fit heads, sentences or itself."""
    arrays_of = {name: arrays[f"{kind}.{name}"] for name in _HELD}
    sizes = _SIZES | {"layers": size[0], "heads": size[1]}
    sizes["shown"] = arrays_of["values"].shape[-1]
    sizes["listed"] = arrays_of["tokens"].shape[-1]
    _check(sizes["shown"] in (0, SHOWN) and sizes["listed"] in (0, MOST))
    for name, (_, axes) in _HELD.items():
        array = arrays_of[name]
        _check(array.shape == tuple(sizes[axis] for axis in axes.split()))
        _check(np.isfinite(array).all())
    vocabulary = words["vocabulary"]
    counts = words["counts"]
    _check_numbers(arrays_of["sentences"], lines)
    for unit, tokens in zip(UNITS, arrays_of["tokens"], strict=True):
        names = vocabulary.get(unit, [])
        occurrences = counts.get(unit, [])
        _check(all(isinstance(name, str) for name in names))
        _check(len(occurrences) == 2 or not names)
        _check(all(len(side) == len(names) for side in occurrences))
        _check_numbers(tokens, len(names))
    return Profile(
        means=_means(words, kind, arrays, size),
        kept=arrays_of["kept"].astype(np.float32),
        distances=arrays_of["distances"].astype(np.float32),
        chance=arrays_of["chance"].astype(np.float32),
        sentences=arrays_of["sentences"].astype(int),
        values=arrays_of["values"].astype(np.float32),
        marked=arrays_of["marked"].astype(int),
        tokens=arrays_of["tokens"].astype(int),
        told=arrays_of["told"].astype(np.float32),
        vocabulary=vocabulary,
        counts=counts,
    )


def _check_numbers(numbers: NDArray[np.generic], stop: int) -> None:
    """Places in a list of a length, or −1 for none."""
    _check(numbers.min(initial=-1) >= -1 and numbers.max(initial=-1) < stop)
