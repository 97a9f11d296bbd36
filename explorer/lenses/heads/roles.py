"""Roles of heads: one table with the statistic and threshold of each role.

A role names a measured pattern and does not explain it. For example, a head whose largest weight is on the
previous token in most rows is a "previous token" head, whatever the model uses it for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind, Head
from transformer.families.registry import config_in
from transformer.storage.description import SURVEY_FILE, model_digests
from transformer.storage.files import CheckpointError
from transformer.storage.packed import Arrays, read_packed

Floats = NDArray[np.float32]
Means = Mapping[str, Floats]
SELF = (AttentionKind.ENCODER, AttentionKind.DECODER)
ALL = tuple(AttentionKind)
MIXED, ALIGNMENT = "mixed", "alignment"


@dataclass(frozen=True)
class Role:
    """A pattern with a name."""

    name: str  # name of the role
    kinds: tuple[AttentionKind, ...]  # kinds of attention that can have the role
    definition: str  # one sentence, with the threshold
    # computes the statistic of all heads from the means of `statistics.py`; NaN for heads that cannot have
    # the role
    statistic: Callable[[Means], Floats]
    threshold: float  # smallest value (largest, for `at_most`) with which a head has the role
    at_most: bool = False  # whether small values show the role
    share: bool = True  # whether the value is a share of 1

    def strength(self, means: Means) -> Floats:
        """Value divided by threshold (inverted for `at_most`); a head has the role from 1 upwards."""
        values = self.statistic(means)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.threshold / np.maximum(values, 1e-6) if self.at_most else values / self.threshold
        found: Floats = np.nan_to_num(ratio, nan=0.0).astype(np.float32)
        return found


def _value(name: str) -> Callable[[Means], Floats]:
    return lambda means: means[name] if name in means else _missing(means)


def _missing(means: Means) -> Floats:
    return np.full_like(next(iter(means.values())), np.nan)


def _content(means: Means) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = means["content_mass"] / means["content_chance"]
    return np.where(means["content_chance"] > 0, found, np.float32(np.nan))


def _alignment(means: Means) -> Floats:
    if "aer" not in means:
        return _missing(means)
    error, diagonal = np.fmin(means["aer"], means.get("aer_read", means["aer"])), means["aer_diagonal"]
    without = np.where(error > 0, np.inf, error)  # no error of either is as good; what is not known stays so
    return np.where(diagonal > 0, error / np.maximum(diagonal, 1e-6), without).astype(np.float32)


def aligned_by(means: Means) -> NDArray[np.str_]:
    """Which row of each head implies the better word alignment: the one that reads a word, or predicts it."""
    reads = means.get("aer_read", means["aer"]) < means["aer"]
    return np.where(reads, "reads", "predicts")


THRESHOLDS = (
    "All thresholds are this project's own choice: 50 % of the rows stands for most rows. Papers on heads "
    "set other thresholds, so counts of roles cannot be compared with theirs."
)
ROLES = (
    Role(
        ALIGNMENT,
        (AttentionKind.CROSS,),
        "The word alignment of its rows, those that predict a word or those that read it, has an error (AER) "
        "of at most 0.8 times that of the diagonal.",
        _alignment,
        0.8,
        at_most=True,
        share=False,
    ),
    Role(
        "previous token",
        ALL,
        "Its largest weight is one key earlier in at least 50 % of the rows.",
        _value("previous"),
        0.5,
    ),
    Role(
        "next token",
        ALL,
        "Its largest weight is one key later in at least 50 % of the rows.",
        _value("next"),
        0.5,
    ),
    Role(
        "same word",
        SELF,
        "Its largest weight is on a piece of the row's own word in at least 50 % of the rows.",
        _value("same_word"),
        0.5,
    ),
    Role(
        "first or last",
        ALL,
        "Its largest weight is on the first key, or on the last one with text, in at least 50 % of the rows.",
        lambda means: np.fmax(means["first"], means.get("last", means["first"])),
        0.5,
    ),
    Role(
        "sink",
        ALL,
        "At least 50 % of its weight is on <s>, </s> and punctuation.",
        lambda means: means["special_mass"] + means["punctuation_mass"],
        0.5,
    ),
    Role(
        "content",
        ALL,
        "It puts at least 1.33 times as much weight on content words as even weights would.",
        _content,
        4 / 3,
        share=False,
    ),
)
"""A head has the first role whose threshold it reaches, in this order; otherwise it is mixed."""
MIXED_DEFINITION = "It reaches none of these thresholds."


def role(name: str) -> Role:
    """The role with that name; `mixed` is not in the table."""
    return next(each for each in ROLES if each.name == name)


def strengths(means: Means, kind: AttentionKind) -> dict[str, Floats]:
    """Strength of each role possible for its kind in each head, in the shape of the statistics."""
    shape = np.shape(means["entropy"])
    return {each.name: np.broadcast_to(each.strength(means), shape) for each in ROLES if kind in each.kinds}


def assign(means: Means, kind: AttentionKind) -> NDArray[np.str_]:
    """The role of every head: the first of `ROLES` with a strength of at least 1, else `mixed`."""
    found = strengths(means, kind)
    names = np.full(np.shape(means["entropy"]), MIXED, dtype="U16")
    for name in reversed(found):
        names = np.where(found[name] >= 1, name, names)
    return names


def surveyed(directory: Path) -> dict[str, list[list[str]]]:
    """What every head of a model does over many sentences, by kind, layer and head; empty for a mixed head.

    Returns:
        An empty dictionary if there is no survey of this very model beside it.

    Raises:
        CheckpointError: the survey is damaged.
    """
    if not (path := directory / SURVEY_FILE).is_file():
        return {}
    head, arrays = read_packed(path, only=tuple(f"{kind}.means" for kind in AttentionKind))
    try:
        if head["digests"] != model_digests(directory):
            return {}
        sizes = config_in(directory).sizes
        if {*head["kinds"]} != {*sizes}:
            raise ValueError("It is about other kinds of attention.")
        return {
            kind: _roles(words["means"], kind, arrays, sizes[kind]) for kind, words in head["kinds"].items()
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error


def _roles(names: Sequence[str], kind: str, arrays: Arrays, size: Head) -> list[list[str]]:
    means = dict(zip(names, arrays[f"{kind}.means"], strict=True))
    if any(each.shape != size or not np.isfinite(each).all() for each in means.values()):
        raise ValueError("It is about other heads, or has no numbers.")
    found = assign(means, AttentionKind(kind)).tolist()
    return [["" if name == MIXED else name for name in layer] for layer in found]


def shows(name: str, means: Means, kind: AttentionKind) -> Floats:
    """Strength of a role in each head, 1 at the threshold; for `mixed`, the distance below all thresholds."""
    if name != MIXED:
        return role(name).strength(means)
    best = np.max(np.stack(list(strengths(means, kind).values())), axis=0)
    return (1 / np.maximum(best, 1e-6)).astype(np.float32)


def keeps(name: str, shown: Floats) -> NDArray[np.bool_]:
    """True where the strength is enough for the role; a mixed head must stay below every threshold."""
    return shown > 1 if name == MIXED else shown >= 1
