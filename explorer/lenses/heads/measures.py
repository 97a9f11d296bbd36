"""The statistics of a head: their names and definitions. No PyTorch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistic:
    """A number that describes a head."""

    name: str  # name in `heads.json`
    label: str  # a few words for lists
    definition: str  # definition in one sentence
    unit: str = "share"  # "share" (0 to 1), "pieces" or "norm"
    falling: bool = False  # whether small values stand out


STATISTICS = (
    Statistic(
        "previous", "points at the previous token", "Share of rows whose largest weight is one key earlier."
    ),
    Statistic(
        "same", "points at its own position", "Share of rows whose largest weight is on their own position."
    ),
    Statistic("next", "points at the next token", "Share of rows whose largest weight is one key later."),
    Statistic("first", "points at the first key", "Share of rows whose largest weight is on the first key."),
    Statistic(
        "last", "points at the last word", "Share of rows whose largest weight is on the last key with text."
    ),
    Statistic(
        "same_word",
        "points into its own word",
        "Share of rows whose largest weight is on a piece of the row's own word.",
    ),
    Statistic("previous_mass", "weight on the previous token", "Mean weight one key earlier."),
    Statistic("same_mass", "weight on its own position", "Mean weight on the row's own position."),
    Statistic("next_mass", "weight on the next token", "Mean weight one key later."),
    Statistic("first_mass", "weight on the first key", "Mean weight on the first key."),
    Statistic("eos_mass", "weight on </s>", "Mean weight on </s>."),
    Statistic(
        "special_mass", "weight on special tokens", "Mean weight on <s>, </s> and other special tokens."
    ),
    Statistic(
        "punctuation_mass", "weight on punctuation", "Mean weight on pieces that consist of punctuation only."
    ),
    Statistic(
        "content_mass",
        "weight on content words",
        "Mean weight on pieces of words that are not function words, punctuation or special tokens.",
    ),
    Statistic(
        "content_chance",
        "share of content pieces",
        "Mean share of visible keys that are pieces of content words: their weight under even attention.",
    ),
    Statistic("peak", "largest weight", "Mean of each row's largest weight."),
    Statistic(
        "entropy",
        "entropy",
        "Mean row entropy over the logarithm of the number of visible keys: 0 is one key, 1 is even.",
        falling=True,
    ),
    Statistic(
        "mean_distance",
        "mean distance",
        "Mean of |row − key|, weighted by attention, in pieces.",
        "pieces",
        True,
    ),
    Statistic(
        "contribution",
        "norm of the contribution",
        "Mean norm of what the head adds to the residual stream: weights × values × its part of W_O.",
        "norm",
    ),
)
"""Every statistic of a head; with gold alignments, cross-attention also has `aer` and `aer_read`."""
SENTENCES = 60
"""First sentences of a survey, on which every head is also tried."""
PROFILED = (
    Statistic(
        "stays",
        "stays in place",
        "Share of the weight in the rows and columns (in cross-attention the columns) of two words that "
        "stays where it was when they change places.",
    ),
    Statistic(
        "follows",
        "goes along with words",
        "Share of the weight in the rows and columns (in cross-attention the columns) of two words that "
        "goes along when they change places.",
    ),
    Statistic(
        "eos_value",
        "length of the value of </s>",
        "Length of what the value of </s> writes, over the mean length of the other keys'.",
        "times",
    ),
)
"""Statistics that only many sentences give; all but the last come from the first `SENTENCES`."""
UNITS = ("words", "pieces")
LISTS = ("weight", "lift", "selective")
"""Keys by their share of the weight, keys by lift, queries by mean selectivity."""
SORTED = (
    *("role", "peak", "entropy", "mean_distance", "special_mass"),
    *("previous_mass", "same_mass", "content_mass", "contribution"),
)
"""What orders the sentences of a head; `role` is how strongly they show its role."""
