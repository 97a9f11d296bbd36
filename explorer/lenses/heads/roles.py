"""What is measured of a head, and its role: a measured pattern, and no purpose. No PyTorch."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.config import AttentionKind

Floats = NDArray[np.float32]
Means = Mapping[str, Floats]
"""By statistic, the means of every head: (layers, heads), or any other shape of heads."""
ALL = tuple(AttentionKind)
MIXED, ALIGNMENT = "mixed", "alignment"


class Role(NamedTuple):
    """A pattern with a name."""

    name: str  # name of the role
    short: str  # the same in a few letters
    kinds: tuple[AttentionKind, ...]  # kinds of attention that can have the role
    definition: str  # one sentence, with the threshold
    # computes the statistic of all heads; None or NaN for heads that cannot have the role
    statistic: Callable[[Means], Floats | None]
    threshold: float = 0.5  # smallest value (largest, for `at_most`) with which a head has the role
    at_most: bool = False  # whether small values show the role
    share: bool = True  # whether the value is a share of 1

    def strength(self, means: Means) -> Floats:
        """Value divided by threshold (inverted for `at_most`); a head has the role from 1
        upwards."""
        values = self.statistic(means)
        if values is None:
            return np.zeros_like(next(iter(means.values())))
        ratio = values / self.threshold
        if self.at_most:
            ratio = self.threshold / np.maximum(values, 1e-6)
        return np.nan_to_num(ratio, nan=0.0).astype(np.float32)


def _content(means: Means) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        lift: Floats = means["content_mass"] / means["content_chance"]
    return np.where(means["content_chance"] > 0, lift, np.float32(np.nan))


def _alignment(means: Means) -> Floats | None:
    if "aer" not in means:
        return None
    error = np.fmin(means["aer"], means.get("aer_read", means["aer"]))
    diagonal = means["aer_diagonal"]
    without = np.where(
        error > 0, np.inf, error
    )  # no error of either is as good; what is not known stays so
    return np.where(diagonal > 0, error / np.maximum(diagonal, 1e-6), without).astype(np.float32)


def aligned_by(means: Means) -> NDArray[np.str_]:
    """Which row of each head implies the better word alignment: the one that reads a word, or
    predicts it."""
    reads = means.get("aer_read", means["aer"]) < means["aer"]
    return np.where(reads, "reads", "predicts")


THRESHOLDS = (
    "All thresholds are this project's own choice: 50 % of the rows stands for most rows. Papers "
    "on heads set other thresholds, so counts of roles cannot be compared with theirs."
)
_most = "Its largest weight is {} in at least 50 % of the rows.".format
_LINKS = (
    "The word alignment of its rows, those that predict a word or those that read it, has an "
    "error (AER) of at most 0.8 times that of the diagonal."
)
_SINK = "At least 50 % of its weight is on <s>, </s> and punctuation."
_LIFT = "It puts at least 1.33 times as much weight on content words as even weights would."
_ROLES = (
    Role(
        name=ALIGNMENT,
        short="align",
        kinds=ALL[2:],
        definition=_LINKS,
        statistic=_alignment,
        threshold=0.8,
        at_most=True,
        share=False,
    ),
    Role(
        name="previous token",
        short="prev",
        kinds=ALL,
        definition=_most("one key earlier"),
        statistic=lambda means: means.get("previous"),
    ),
    Role(
        name="next token",
        short="next",
        kinds=ALL,
        definition=_most("one key later"),
        statistic=lambda means: means.get("next"),
    ),
    Role(
        name="same word",
        short="word",
        kinds=ALL[:2],
        definition=_most("on its own word"),
        statistic=lambda means: means.get("same_word"),
    ),
    Role(
        name="first or last",
        short="edge",
        kinds=ALL,
        definition=_most("on the first key, or on the last one with text,"),
        statistic=lambda means: np.fmax(means["first"], means.get("last", means["first"])),
    ),
    Role(
        name="sink",
        short="sink",
        kinds=ALL,
        definition=_SINK,
        statistic=lambda means: means["special_mass"] + means["punctuation_mass"],
    ),
    Role(
        name="content",
        short="content",
        kinds=ALL,
        definition=_LIFT,
        statistic=_content,
        threshold=4 / 3,
        share=False,
    ),
)
ROLES = {role.name: role for role in _ROLES}
"""By name; a head has the first role whose threshold it reaches, in this order; otherwise it is
mixed."""
MIXED_DEFINITION = "It reaches none of these thresholds."


def strengths(means: Means, kind: AttentionKind) -> dict[str, Floats]:
    """Strength of each role possible for its kind in each head, in the shape of the statistics."""
    return {role.name: role.strength(means) for role in ROLES.values() if kind in role.kinds}


def assign(means: Means, kind: AttentionKind) -> NDArray[np.str_]:
    """The role of every head: the first of `ROLES` with a strength of at least 1, else `mixed`."""
    reached = strengths(means, kind)
    return np.select([strength >= 1 for strength in reached.values()], [*reached], MIXED)


def shows(name: str, means: Means, kind: AttentionKind) -> Floats:
    """Strength of a role in each head, 1 at the threshold; for `mixed`, the distance below all
    thresholds."""
    if name != MIXED:
        return ROLES[name].strength(means)
    best = np.max(np.stack([*strengths(means, kind).values()]), axis=0)
    return (1 / np.maximum(best, 1e-6)).astype(np.float32)


def keeps(name: str, values: Floats) -> NDArray[np.bool_]:
    """True where the strength is enough for the role; a mixed head must stay below every
    threshold."""
    return values > 1 if name == MIXED else values >= 1


class Statistic(NamedTuple):
    """A number that describes a head."""

    name: str  # name in `heads.json`
    label: str  # a few words for lists
    definition: str  # definition in one sentence
    unit: str = "share"  # "share" (0 to 1), "pieces", "times" or "norm"
    falling: bool = False  # whether small values stand out


_CONTENT = (
    "Mean weight on pieces of words that are not function words, punctuation or special tokens."
)
_CHANCE = (
    "Mean share of visible keys that are pieces of content words: their weight under even "
    "attention."
)
_ENTROPY = (
    "Mean row entropy over the logarithm of the number of visible keys: 0 is one key, 1 is even."
)
_DISTANCE = "Mean of |row − key|, weighted by attention, in pieces."
_CONTRIBUTION = "Mean norm of what the head adds to the stream: weights × values × its part of W_O."
STATISTICS = (
    Statistic(
        "previous", "points at the previous token", "Rows whose largest weight is one key earlier."
    ),
    Statistic(
        "same", "points at its own position", "Rows whose largest weight is on their own position."
    ),
    Statistic("next", "points at the next token", "Rows whose largest weight is one key later."),
    Statistic("first", "points at the first key", "Rows whose largest weight is on the first key."),
    Statistic(
        "last", "points at the last word", "Rows whose largest weight is on the last key with text."
    ),
    Statistic(
        "same_word", "points into its own word", "Rows whose largest weight is on their own word."
    ),
    Statistic("previous_mass", "weight on the previous token", "Mean weight one key earlier."),
    Statistic("same_mass", "weight on its own position", "Mean weight on the row's own position."),
    Statistic("next_mass", "weight on the next token", "Mean weight one key later."),
    Statistic("first_mass", "weight on the first key", "Mean weight on the first key."),
    Statistic("eos_mass", "weight on </s>", "Mean weight on </s>."),
    Statistic(
        "special_mass", "weight on special tokens", "Mean weight on <s>, </s> and their like."
    ),
    Statistic(
        "punctuation_mass", "weight on punctuation", "Mean weight on pieces of punctuation only."
    ),
    Statistic("content_mass", "weight on content words", _CONTENT),
    Statistic("content_chance", "share of content pieces", _CHANCE),
    Statistic("peak", "largest weight", "Mean of each row's largest weight."),
    Statistic("entropy", "entropy", _ENTROPY, falling=True),
    Statistic("mean_distance", "mean distance", _DISTANCE, "pieces", True),
    Statistic("contribution", "norm of the contribution", _CONTRIBUTION, "norm"),
)
"""What the maps of a run say of every head; "rows" are shares of the rows."""
SENTENCES = 60
"""First sentences of a survey, of which the source's share is measured."""
_VALUE = "Length of what the value of </s> writes, over the mean length of the other keys'."
PROFILED = (Statistic("eos_value", "length of the value of </s>", _VALUE, "times"),)
"""Statistics that only many sentences give."""
_ERROR = "AER of the implied word alignment on the links made by hand"
JUDGED = (
    Statistic("aer", "alignment error", f"{_ERROR}, by the better of the two rows.", falling=True),
    Statistic(
        "aer_read",
        "alignment error, row read",
        f"{_ERROR}, by rows that read a word.",
        falling=True,
    ),
    Statistic("keeps", "keeps its role", "Share of the sentences that show the head's role."),
)
"""Statistics that need links made by hand, or a role."""
UNITS = ("words", "pieces")
LISTS = ("weight", "lift", "selective")
"""Keys by their share of the weight, keys by lift, queries by mean selectivity."""
SORTED = (
    *("role", "peak", "entropy", "mean_distance", "special_mass"),
    *("previous_mass", "same_mass", "content_mass", "contribution"),
)
"""What orders the sentences of a head; `role` is how strongly they show its role."""
