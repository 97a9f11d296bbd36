"""A survey as a file (`survey.npz`), so that a page can show it without reading the sentences again.

The file names its sentences by their numbers and holds the hashes of those sentences and of the model. If
either has changed, the file says nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from explorer.lenses.heads.measures import LISTS, PROFILED, SORTED, STATISTICS, UNITS
from explorer.lenses.heads.profile import FAR, MOST, SHOWN, Profile
from explorer.lenses.heads.survey import Line, Survey, as_line
from explorer.lenses.words.gold_links import ERRORS
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind, Head
from transformer.families.registry import config_in
from transformer.storage.description import SURVEY_FILE, measured
from transformer.storage.files import CheckpointError
from transformer.storage.packed import Arrays, read_packed, write_packed

_TYPES = {
    **dict.fromkeys(("kept", "distances", "chance", "values", "told"), np.float16),
    **dict.fromkeys(("sentences", "tokens"), np.int16),
    "marked": np.int8,
}
"""How a file holds the arrays of a profile."""
_MEANS = {*(each.name for each in (*STATISTICS, *PROFILED)), *ERRORS, "stays_error", "aer_diagonal"}
"""The statistics that pages know; others of a file are read over."""
_LISTED = ("sentences", "values", "marked", "tokens", "told")
_COUNTS = ("sentences", "forced", "pairs", "skipped")


def fingerprint(lines: Sequence[Line], gold: Sequence[GoldPair]) -> str:
    """A hash of the sentences of a survey."""
    texts = [f"{line.source}\t{line.target}" for line in (*lines, *map(as_line, gold))]
    links = [str((sorted(pair.sure), sorted(pair.possible))) for pair in gold]
    return hashlib.sha256("\n".join((*texts, *links)).encode()).hexdigest()[:16]


def write_survey(
    directory: Path,
    survey: Survey,  # of these sentences
    lines: Sequence[Line],
    gold: Sequence[GoldPair],
    head: Mapping[str, Any],  # says of which model, when and by which command
    brief: bool = False,  # whether lists of tokens and sentences are left out
) -> None:
    """Writes a survey as a file."""
    told: dict[str, Any] = {"model": survey.model, "sample": fingerprint(lines, gold), **head, "kinds": {}}
    number = {line: i for i, line in reversed([*enumerate([*lines, *map(as_line, gold)])])}
    numbers = np.array([*(number[line] for line in survey.lines), -1])
    arrays: Arrays = {}
    for kind, profile in survey.profiles.items():
        words = {"means": list(profile.means), "vocabulary": {}, "counts": {}}
        words |= {} if brief else {"vocabulary": profile.vocabulary, "counts": profile.counts}
        told["kinds"][kind.value] = words
        arrays[f"{kind}.means"] = np.stack([*profile.means.values()]).astype(np.float32)
        for name, type_ in _TYPES.items():
            values = numbers[profile.sentences] if name == "sentences" else getattr(profile, name)
            limit = 6e4 if type_ is np.float16 else np.inf  # of a strength beside a rare pattern
            if brief and name in _LISTED:
                values = values[..., :0, :] if name == "told" else values[..., :0]
            arrays[f"{kind}.{name}"] = np.minimum(values, limit).astype(type_)
    told["usual"] = survey.usual
    write_packed(directory / SURVEY_FILE, told | {name: getattr(survey, name) for name in _COUNTS}, arrays)


def survey_of(directory: Path, lines: Sequence[Line], gold: Sequence[GoldPair]) -> Survey | None:
    """The survey of a model's directory; None if there is none of this model and these sentences."""
    head = measured(directory, SURVEY_FILE)
    if head is None or head.get("sample") != fingerprint(lines, gold):
        return None
    head, arrays = read_packed(directory / SURVEY_FILE)
    try:
        sizes, most = config_in(directory).sizes, len(lines) + len(gold)
        profiles = {
            AttentionKind(kind): _checked(_profile(kind, head, arrays), size, most)
            for kind, size in sizes.items()
        }
        counts = {name: int(head[name]) for name in _COUNTS}
        low, middle, high = map(float, head["usual"] or (0, 0, 0))
        if (
            min(counts.values()) < 0
            or not isinstance(head["date"], str)
            or not 0 <= low <= middle <= high <= 1
        ):
            raise ValueError("It counts or dates what cannot be.")
        return Survey(
            head["model"],
            (*lines, *map(as_line, gold)),
            profiles,
            **counts,
            usual=(low, middle, high) if head["usual"] else None,
            date=head["date"],
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{directory / SURVEY_FILE} is damaged; remove it, or write it again."
        ) from error


def _profile(kind: str, head: Mapping[str, Any], arrays: Arrays) -> Profile:
    words = head["kinds"][kind]
    named = dict(zip(words["means"], arrays[f"{kind}.means"], strict=True))
    means = {name: values for name, values in named.items() if name in _MEANS}
    found = {name: arrays[f"{kind}.{name}"] for name in _TYPES}
    wide = {
        name: values.astype(np.float32 if values.dtype == np.float16 else int)
        for name, values in found.items()
    }
    assert {*wide, "means", "vocabulary", "counts"} == {each.name for each in fields(Profile)}
    return Profile(means=means, **wide, vocabulary=words["vocabulary"], counts=words["counts"])


def _checked(found: Profile, size: Head, lines: int) -> Profile:
    """The profile, if its arrays fit these heads, sentences and one another; otherwise ValueError."""
    shown, listed = found.sentences.shape[-1:], found.tokens.shape[-1:]
    shapes = {
        "kept": size,
        "distances": (*size, 2 * FAR + 1),
        "chance": (size[0], 2 * FAR + 1),
        **dict.fromkeys(("sentences", "values", "marked"), (len(SORTED), *size, *shown)),
        "tokens": (len(UNITS), len(LISTS), *size, *listed),
        "told": (len(UNITS), len(LISTS), *size, *listed, 2),
    }
    arrays = {name: getattr(found, name) for name in shapes} | found.means
    shapes |= dict.fromkeys(found.means, size)
    fits = {"entropy"} <= {*found.means} and shown[0] in (0, SHOWN) and listed[0] in (0, MOST)
    fits = fits and all(arrays[name].shape == shape for name, shape in shapes.items())
    fits = fits and all(np.isfinite(each).all() for each in arrays.values())
    fits = fits and found.sentences.max(initial=-1) < lines and found.sentences.min(initial=-1) >= -1
    for unit, tokens in zip(UNITS, found.tokens, strict=True):
        words, counts = found.vocabulary.get(unit, []), found.counts.get(unit, [])
        fits = fits and all(isinstance(word, str) for word in words)
        fits = fits and -1 <= tokens.min(initial=-1) <= tokens.max(initial=-1) < len(words)
        fits = fits and all(len(each) == len(words) for each in counts) and (len(counts) == 2 or not words)
    if not fits:
        raise ValueError("Its arrays do not fit.")
    return found
