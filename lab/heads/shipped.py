"""A survey as a file (`survey.json`), so that a page can show it without reading the sentences again.

The file names its sentences by their numbers and holds the hashes of those sentences and of the weights. If
either has changed, the file says nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.heads.statistics import Floats
from lab.heads.survey import Example, Line, Survey, as_line
from lab.measurement import Json
from lenses.heads import roles
from transformer.model.sites import AttentionKind
from transformer.storage.description import SURVEY_FILE
from transformer.storage.marks import measured
from transformer.storage.typed import read_typed
from transformer.text.links import GoldPair

Examples = tuple[list[Example], list[Example]]
"""The sentences that show the role of a head most, and those that show it least."""


@dataclass(frozen=True, eq=False)
class ShippedSurvey:
    """A survey read from a file."""

    model: str  # name of the model
    date: str  # day of the measurement
    means: dict[AttentionKind, dict[str, Floats]]  # per kind, maps each statistic to (layers, heads)
    # per kind, (layers, heads) share of the sentences that show the role of a head
    kept: dict[AttentionKind, Floats]
    shown: dict[AttentionKind, list[list[Examples]]]  # per kind, layer and head, its examples
    sentences: int  # number of sentences read
    forced: int  # number of sentences whose translation was given
    pairs: int  # number of gold pairs
    skipped: int  # number of sentences too long for the model

    def roles(self, kind: AttentionKind) -> NDArray[np.str_]:
        """The role of every head (layers, heads)."""
        return roles.assign(self.means[kind], kind)

    def stability(self, kind: AttentionKind, layer: int, head: int) -> float:
        """Share of the sentences (of the gold pairs, for the role alignment) that show the role of a head."""
        return float(self.kept[kind][layer, head])

    def examples(self, kind: AttentionKind, layer: int, head: int) -> Examples:
        """The sentences that show the role of a head most and least; each list has the clearest first."""
        return self.shown[kind][layer][head]


Surveyed = Survey | ShippedSurvey
"""A survey, whether it was computed here or read from a file."""


def fingerprint(lines: Sequence[Line], gold: Sequence[GoldPair]) -> str:
    """A hash of the sentences of a survey."""
    texts = [f"{line.source}\t{line.target}" for line in (*lines, *map(as_line, gold))]
    links = [str((sorted(pair.sure), sorted(pair.possible))) for pair in gold]
    return hashlib.sha256("\n".join((*texts, *links)).encode()).hexdigest()[:16]


def as_json(survey: Survey, lines: Sequence[Line], gold: Sequence[GoldPair]) -> Json:
    """A complete survey of these sentences as JSON values.

    An example is the number of its sentence (from 0; of its gold pair, if the role is alignment), and how
    strongly it shows the role.
    """
    places = [_numbers(lines), _numbers([as_line(pair) for pair in gold])]
    heads = {}
    for kind in survey.means:
        names = survey.roles(kind)
        heads[kind.value] = [
            [
                _cell(survey, kind, (layer, head), places[name == roles.ALIGNMENT])
                for head, name in enumerate(row)
            ]
            for layer, row in enumerate(names)
        ]
    told = {"sentences": survey.sentences, "forced": survey.forced, "pairs": survey.pairs}
    return told | {"skipped": survey.skipped, "sample": fingerprint(lines, gold), "heads": heads}


def _numbers(lines: Sequence[Line]) -> dict[Line, int]:
    return {line: number for number, line in reversed([*enumerate(lines)])}


def _cell(survey: Survey, kind: AttentionKind, place: tuple[int, int], numbers: Mapping[Line, int]) -> Json:
    most, least = (
        [[numbers[each.line], round(each.strength, 4)] for each in examples]
        for examples in survey.examples(kind, *place)
    )
    values = {name: round(float(each[place]), 6) for name, each in survey.means[kind].items()}
    kept = round(survey.stability(kind, *place), 4)
    return {"statistics": values, "keeps": kept, "most": most, "least": least}


def survey_of(directory: Path, lines: Sequence[Line], gold: Sequence[GoldPair]) -> ShippedSurvey | None:
    """The survey of a model's directory; None if there is none of this model and these sentences."""
    if (measured(directory, SURVEY_FILE) or {}).get("sample") != fingerprint(lines, gold):
        return None
    pairs = [as_line(pair) for pair in gold]
    return read_typed(directory / SURVEY_FILE, lambda values: _survey(values, lines, pairs))


def _survey(values: Mapping[str, Any], lines: Sequence[Line], pairs: Sequence[Line]) -> ShippedSurvey:
    means, kept, shown = {}, {}, {}
    for kind in map(AttentionKind, values["heads"] | {"cross": values["heads"]["cross"]}):
        grid = values["heads"][kind.value]
        means[kind] = {
            name: np.array([[each["statistics"][name] for each in layer] for layer in grid], np.float32)
            for name in grid[0][0]["statistics"]
        }
        kept[kind] = np.array([[each["keeps"] for each in layer] for layer in grid], np.float32)
        aligns = roles.assign(means[kind], kind) == roles.ALIGNMENT
        shown[kind] = [
            [_examples(cell, pairs if own else lines) for cell, own in zip(*layer, strict=True)]
            for layer in zip(grid, aligns, strict=True)
        ]
    counts = (int(values[name]) for name in ("sentences", "forced", "pairs", "skipped"))
    return ShippedSurvey(values["model"], values["date"], means, kept, shown, *counts)


def _examples(cell: Mapping[str, Any], texts: Sequence[Line]) -> Examples:
    most, least = (
        [Example(texts[place], float(strength)) for place, strength in cell[name]]
        for name in ("most", "least")
    )
    return most, least
