"""The values that an address may hold, and how to read and write each of them. Addresses count from 1.

Reading raises ValueError if a value means nothing; a number out of range moves to the nearest end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from lab.heads import measures
from ui.linked_view.events import Head

SAMPLE = "sample-"
BEAM = "beam-"
ABOVE = "above-"
OWN = "own"
GOLD = ("sample", "file")
LARGEST_BEAM = 8
ORDERS = (
    "entropy",
    "mean_distance",
    "previous_mass",
    "same_mass",
    "next_mass",
    "first_mass",
    "eos_mass",
    "contribution",
    "aer",
)
"""Statistics that can order and colour a grid of heads."""
HIDEABLE = ("special", "punctuation")
"""What a map can leave out."""
WINDOWS = (64, 32, 16)
"""Choices for the most rows and columns that a map shows."""

STATISTICS = (*(each.name for each in measures.STATISTICS), "aer", "aer_read", "keeps")
"""Every statistic of a head over many sentences."""

VIEWS = (
    *("batch", "trained", "alignment", "relations", "sentence", "results"),
    *("experiments", "causal", "backup"),
    "sampling",
    *("loss", "schedule", "history", "residuals", "adam", "dropout", "birth", "cost", "here"),
    *("surprisal", "lengths", "induction", "agreement", "space", "pretraining"),
    *("long", "path", "speed", "hard"),
)
"""Every variant of a page that is not its first: those of several pages, of What if, of Search, of Training,
of Language model, and of Recurrent."""

WIDTHS, BASES, COUNTS, OFFSETS = (4, 512), (2, 1_000_000), (2, 4096), (0, 1000)
"""Smallest and largest d_model, base, number of positions and offset on the page Positions."""

PENALTIES, DRAWS = (0.0, 2.0), (1, 16)
"""Smallest and largest α and number of samples on the page Search."""
LENGTH_OFFSETS = (0, 5)
"""Choices for k of the score on that page: that of length^α, and that of Wu et al. (2016)."""
UPDATES = (1, 200)
"""First and last step of the recorded run on the page Training."""
DEPTHS = (3, 6, 12)
"""Choices for the layers of the untrained models on the page Training."""
SMOOTHINGS, WARMUPS, MODEL_WIDTHS = (0.0, 0.5), (100, 20_000), (32, 2048)
"""Smallest and largest label smoothing, warm-up steps and d_model of the schedule on the page Training."""
LONGEST_WORD = 40
TEXT_LENGTHS = (64, 4096)
"""Smallest and largest number of tokens at which the page Language model measures attention."""
SNAPSHOTS = (0, 1_000_000_000)
"""Smallest and largest training step whose snapshot that page shows."""
TEMPERATURES, TOP_KS, TOP_PS = (0.1, 3.0), (1, 1_000), (0.05, 1.0)
"""Smallest and largest temperature, top-k and top-p of sampling."""
LARGEST_SEED = 2**31 - 1

WhatIf = tuple[str, float | None]
WHAT_IFS: dict[str, tuple[float, float] | None] = {
    **dict.fromkeys(("no-projections", "inputs", "no-scale", "additive", "bilinear", "hard")),
    "temperature": (0.05, 20.0),
    "local": (0.0, 1024.0),
    "local-best": (0.0, 1024.0),
    "local-predicted": (1.0, 1024.0),
    "pair": (1.0, 256.0),
}
"""Alternative arithmetic on "Inside a head", with the range of its number; None if it takes no number."""

MOST_SEED = 1_000
PARTS = (
    "source-embedding",
    "encoder-attention-norm",
    "encoder-attention",
    "encoder-attention-add",
    "encoder-forward-norm",
    "encoder-forward",
    "encoder-forward-add",
    "encoder-end",
    "target-embedding",
    "decoder-attention-norm",
    "decoder-attention",
    "decoder-attention-add",
    "decoder-cross-norm",
    "decoder-cross",
    "decoder-cross-add",
    "decoder-forward-norm",
    "decoder-forward",
    "decoder-forward-add",
    "decoder-end",
    "output",
)
"""Parts of the model on the page Anatomy."""

Against = tuple[str, Any]
"""What Compare compares the selection with: `uniform`, `untrained` with its seed, `head` with layer and head,
`decode` with a way of decoding, `model` with a name; `forced` and `sentence`, whose text is in `other`;
`unchanged`, the run without changes."""

HandLinks = frozenset[tuple[int, int, bool]]
"""Word links: source word, target word (from 0), and whether the link is sure or only possible."""
MOST_PAIRS = 1_000
_LANGUAGE = re.compile(r">>[^\s<>]{1,40}<<")
_PAIR = re.compile(r"(\d{1,4})([-p])(\d{1,4})")


class _UnreadableError(ValueError):
    """A value in the address cannot be read."""


def read_position(value: str) -> int:
    try:
        number = float(value)
    except ValueError as error:
        raise _UnreadableError from error
    if math.isnan(number):
        raise _UnreadableError
    return int(min(max(number, 1), 1e6)) - 1


def read_head(value: str) -> Head:
    layer, dot, head = value.partition(".")
    if not dot:
        raise _UnreadableError
    return read_position(layer), read_position(head)


def write_head(head: Head) -> str:
    return f"{head[0] + 1}.{head[1] + 1}"


def read_decode(value: str) -> str:
    if value == "greedy":
        return value
    for start, low, high in ((BEAM, 2, LARGEST_BEAM), (SAMPLE, 0, LARGEST_SEED)):
        number = value.removeprefix(start)
        if value.startswith(start) and number.isascii() and number.isdigit():
            return f"{start}{min(max(int(number[:10]), low), high)}"
    raise _UnreadableError


def read_layers(value: str) -> tuple[int, int]:
    first, _, last = value.partition("-")
    ends = read_position(first), read_position(last or first)
    return min(ends), max(ends)


def read_rule(value: str) -> str:
    least = value.removeprefix(ABOVE)
    if value == "mutual":
        return value
    if value == least or not math.isfinite(share := float(least)):
        raise _UnreadableError
    return f"{ABOVE}{min(max(share, 0.01), 1):.2f}"


def read_pairs(value: str) -> HandLinks:
    found = [_PAIR.fullmatch(each) for each in value.split(",")][:MOST_PAIRS]
    if not all(found):
        raise _UnreadableError
    return frozenset((read_position(m[1]), read_position(m[3]), m[2] == "-") for m in found if m)


def write_pairs(pairs: HandLinks) -> str:
    return ",".join(f"{i + 1}{'-' if sure else 'p'}{j + 1}" for i, j, sure in sorted(pairs))


def read_gold(value: str) -> str:
    name, _, number = value.partition("-")
    if name not in GOLD:
        raise _UnreadableError
    return f"{name}-{read_position(number) + 1}"


def read_seed(value: str) -> int:
    return min(read_position(value) + 1, MOST_SEED)


def read_against(value: str) -> Against:
    name, _, detail = value.partition("-")
    if name == "model" and detail:
        return name, detail
    readers: dict[str, Callable[[str], Any]] = {
        "head": read_head,
        "decode": read_decode,
        "untrained": read_seed,
    }
    if name in readers:
        return name, readers[name](detail)
    if detail or name not in {"uniform", "forced", "sentence", "unchanged"}:
        raise _UnreadableError
    return name, None


def write_against(against: Against) -> str:
    name, detail = against
    if detail is None:
        return name
    return f"{name}-{write_head(detail) if name == 'head' else detail}"


def one_of(*names: str) -> Callable[[str], str]:
    """Reads one of the given names."""

    def read(value: str) -> str:
        if value not in names:
            raise _UnreadableError
        return value

    return read


def whole(low: int, high: int, step: int = 1) -> Callable[[str], int]:
    """Reads a whole number, clamped to a range and rounded down to a multiple of a step."""

    def read(value: str) -> int:
        if math.isnan(number := float(value)):
            raise _UnreadableError
        return int(min(max(number, low), high)) // step * step

    return read


def decimal(low: float, high: float) -> Callable[[str], float]:
    """Reads a number with at most two decimals, clamped to a range."""

    def read(value: str) -> float:
        if math.isnan(number := float(value)):
            raise _UnreadableError
        return round(min(max(number, low), high), 2)

    return read


def read_hide(value: str) -> tuple[str, ...]:
    asked = value.split(".")
    if not set(asked) <= set(HIDEABLE):
        raise _UnreadableError
    return tuple(name for name in HIDEABLE if name in asked)


def read_language(value: str) -> str:
    if not _LANGUAGE.fullmatch(value):
        raise _UnreadableError
    return value


def read_word(value: str) -> str:
    """One word of letters, of a length that a vocabulary has."""
    if not (value.isalpha() and len(value) <= LONGEST_WORD):
        raise _UnreadableError
    return value


def read_links(value: str) -> str:
    name, _, number = value.partition("-")
    if name not in {"mass", "weight"} or not (number.isascii() and number.isdigit()):
        raise _UnreadableError
    return f"{name}-{min(int(number[:4]), 100)}"


def read_more(value: str) -> tuple[Head, ...]:
    return tuple(dict.fromkeys(map(read_head, value.split("_"))))[:3]


def read_what_if(value: str) -> WhatIf:
    if value in WHAT_IFS:
        return value, None
    name, dash, written = value.rpartition("-")
    low, high = WHAT_IFS.get(name) or (0.0, 0.0)
    if not dash or not high or not math.isfinite(number := float(written)):
        raise _UnreadableError
    number = min(max(number, low), high)
    if name == "temperature":
        return name, number
    return name, float(int(number) - (name == "pair"))


def write_what_if(value: WhatIf) -> str:
    name, number = value
    return name if number is None else f"{name}-{number + (name == 'pair'):g}"
