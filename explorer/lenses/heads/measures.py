"""The statistics of a head: their names and definitions. No PyTorch."""

from __future__ import annotations

from typing import NamedTuple


class Statistic(NamedTuple):
    """A number that describes a head."""

    name: str  # name in `heads.json`
    label: str  # a few words for lists
    definition: str  # definition in one sentence
    unit: str = "share"  # "share" (0 to 1), "pieces", "times" or "norm"
    falling: bool = False  # whether small values stand out


_CONTENT = "Mean weight on pieces of words that are not function words, punctuation or special tokens."
_CHANCE = "Mean share of visible keys that are pieces of content words: their weight under even attention."
_ENTROPY = "Mean row entropy over the logarithm of the number of visible keys: 0 is one key, 1 is even."
_DISTANCE = "Mean of |row − key|, weighted by attention, in pieces."
_CONTRIBUTION = "Mean norm of what the head adds to the stream: weights × values × its part of W_O."
STATISTICS = (
    Statistic("previous", "points at the previous token", "Rows whose largest weight is one key earlier."),
    Statistic("same", "points at its own position", "Rows whose largest weight is on their own position."),
    Statistic("next", "points at the next token", "Rows whose largest weight is one key later."),
    Statistic("first", "points at the first key", "Rows whose largest weight is on the first key."),
    Statistic("last", "points at the last word", "Rows whose largest weight is on the last key with text."),
    Statistic("same_word", "points into its own word", "Rows whose largest weight is on their own word."),
    Statistic("previous_mass", "weight on the previous token", "Mean weight one key earlier."),
    Statistic("same_mass", "weight on its own position", "Mean weight on the row's own position."),
    Statistic("next_mass", "weight on the next token", "Mean weight one key later."),
    Statistic("first_mass", "weight on the first key", "Mean weight on the first key."),
    Statistic("eos_mass", "weight on </s>", "Mean weight on </s>."),
    Statistic("special_mass", "weight on special tokens", "Mean weight on <s>, </s> and their like."),
    Statistic("punctuation_mass", "weight on punctuation", "Mean weight on pieces of punctuation only."),
    Statistic("content_mass", "weight on content words", _CONTENT),
    Statistic("content_chance", "share of content pieces", _CHANCE),
    Statistic("peak", "largest weight", "Mean of each row's largest weight."),
    Statistic("entropy", "entropy", _ENTROPY, falling=True),
    Statistic("mean_distance", "mean distance", _DISTANCE, "pieces", True),
    Statistic("contribution", "norm of the contribution", _CONTRIBUTION, "norm"),
)
"""What the maps of a run say of every head; "rows" are shares of the rows."""
SENTENCES = 60
"""First sentences of a survey, on which every head is also tried."""
_MOVED = (
    "Of the weight in the rows and columns (in cross-attention the columns) of two words, the share that "
)
_VALUE = "Length of what the value of </s> writes, over the mean length of the other keys'."
PROFILED = (
    Statistic("stays", "stays in place", f"{_MOVED}stays where it was when they change places."),
    Statistic("follows", "goes along with words", f"{_MOVED}goes along when they change places."),
    Statistic("eos_value", "length of the value of </s>", _VALUE, "times"),
)
"""Statistics that only many sentences give; all but the last come from the first `SENTENCES`."""
_ERROR = "AER of the implied word alignment on the links made by hand"
JUDGED = (
    Statistic("aer", "alignment error", f"{_ERROR}, by the better of the two rows.", falling=True),
    Statistic("aer_read", "alignment error, row read", f"{_ERROR}, by rows that read a word.", falling=True),
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
