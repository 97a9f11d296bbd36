"""The values of an address that one page alone reads: a frozen dataclass for each page or section.

A page reads its own by `session.values(Masks)`. Programs count from 0; the address, for people, from
1. What pages of several groups read is a field of `State`.
"""

import math
from dataclasses import dataclass

from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.kinds import (
    HEAD,
    HEADS,
    LARGEST_SEED,
    LINE,
    MOST_DRAWS,
    POSITION,
    TEXT,
    YES,
    Kind,
    UnreadableError,
    decimal,
    one_of,
    parameter,
    read_head,
    read_position,
    whole,
    write_head,
)
from explorer.lenses.heads.roles import MIXED, PROFILED, ROLES, SORTED, STATISTICS, UNITS
from transformer.config import SCORE_RULES, Head

WALL_ORDERS = ("layer", "role", "weight", "effect")

"""What the wall of all heads may be sorted by."""
FOLLOWING = frozenset({"weight", "effect"})
"""Those that the cursor changes."""


def _read_only(value: str) -> str:
    name, _, number = value.partition("-")
    if name == "layer" and number.isascii() and number.isdigit():
        return f"layer-{max(1, min(int(number[:6]), 999))}"
    if value not in (*ROLES, MIXED):
        raise UnreadableError
    return value


ONLY = Kind(_read_only)


@dataclass(frozen=True)
class Maps:
    """What the pages of maps read, each for itself: no link takes it along."""

    first: int | None = parameter(
        POSITION
    )  # the first place of a window that does not show everything
    key: int | None = parameter(POSITION)  # the key at the cursor in self-attention
    # further heads of the same kind, drawn as lines together with the chosen head
    more: tuple[Head, ...] | None = parameter(HEADS)
    present: bool = parameter(YES, False)  # whether the view fills the window, in large type
    # what sorts the wall of all heads: layer, role, weight on a key, effect on the next token
    sort: str = parameter(one_of(*WALL_ORDERS), "layer")
    only: str | None = parameter(ONLY)  # heads of one layer, `layer-3`, or of one role


# --- Beam search ---------------------------------------------------------------------------------

PENALTIES = decimal(0.0, 2.0, 0.1)
OFFSETS = one_of(0, 5)


@dataclass(frozen=True)
class Tree:
    """The tree of a search, or of samples."""

    node: int | None = parameter(POSITION)  # the token of the tree that is chosen


@dataclass(frozen=True)
class BeamSearch:
    """The score by which a search chooses."""

    penalty: float | None = parameter(PENALTIES)  # α of the score; None for the model's own
    # k of the score, see `SearchRules`; None for the model's own
    length_offset: int | None = parameter(OFFSETS)


@dataclass(frozen=True)
class Sampling:
    """The samples that are drawn."""

    draws: int = parameter(whole(1, MOST_DRAWS), 8)  # how many samples
    seed: int | None = parameter(whole(0, LARGEST_SEED))  # of the first; None for that of `decode`


# --- Cross-attention, word alignment -------------------------------------------------------------

OWN = "own"


@dataclass(frozen=True)
class WordLinks:
    """The rules by which a map becomes links between words."""

    # that the visitor chose the head or row; None for the model's best
    aligner: str | None = parameter(one_of(OWN))
    rule: str | None = parameter(one_of("mutual"))  # None for each word's strongest link


# --- Explanation ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """The question “why this token?”."""

    rival: str | None = parameter(TEXT)  # the token that the written one is compared with


# --- Findings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """The document on the page."""

    study: str | None = parameter(TEXT)  # the document that is shown; None for the list


# --- Heads over sentences ------------------------------------------------------------------------

COLOURING = (
    *(statistic.name for statistic in (*STATISTICS, *PROFILED)),
    "aer",
    "aer_read",
    "keeps",
)
"""Statistics of `heads.json` that can colour the heads."""


@dataclass(frozen=True)
class HeadFacts:
    """A survey's heads, and what is shown of the chosen one."""

    # that colours the heads, as named in `heads.json`
    statistic: str | None = parameter(one_of(*COLOURING))
    # what is shown of the chosen head
    facet: str = parameter(one_of("tokens", "distances", "sentences", "points", "sink"), "tokens")
    unit: str = parameter(one_of(*UNITS), "words")  # whether its lists hold words or pieces
    keys_by: str = parameter(one_of("weight", "lift"), "weight")  # what orders its list of keys
    sorted_by: str = parameter(one_of(*SORTED), "role")  # what orders its sentences
    # what colours its queries and keys
    colour_by: str = parameter(one_of("side", "position", "class"), "side")
    # one of them: 0 for a query, 1 for a key, and its number
    point: Head | None = parameter(HEAD)


# --- Inside a head -------------------------------------------------------------------------------

STEPS = ("path", "projections", "products", "weights", "sum", "heads", "matrices")
"""The steps from a query to what the head adds to the stream, and the matrix form of it."""
BUILD = "build"
"""In place of a step: a query that the visitor builds."""
NOTATIONS = ("paper", "lecture")
COLDEST, HOTTEST = 0.05, 20.0
"""Ends of the temperature in an address."""
ARITHMETIC = ("no-projections", "no-scale", "temperature", "hard")
"""Other ways to compute weights."""
WhatIf = tuple[str, float | None]
"""Other arithmetic: its name, and its temperature if it has one."""


def _read_arithmetic(value: str) -> WhatIf:
    if value in ARITHMETIC:
        return value, None
    name, _, written = value.rpartition("-")
    if name != "temperature" or not math.isfinite(number := float(written)):
        raise UnreadableError
    return name, min(max(number, COLDEST), HOTTEST)


def _write_arithmetic(what_if: WhatIf) -> str:
    name, temperature = what_if
    if temperature is None:
        return name
    return f"{name}-{temperature:g}"


@dataclass(frozen=True)
class Build:
    """A query that the visitor builds: length · (a k̂ + b k̂'), with two keys as unit vectors."""

    # what a built query is to do with one key, or with two
    goal: str = parameter(one_of("copy", "average"), "copy")
    # the two keys (from 0) in whose plane it lies; None lets the app choose
    two: tuple[int, int] | None = parameter(HEAD)
    a: float = parameter(decimal(-10.0, 10.0), 1.0)
    b: float = parameter(decimal(-10.0, 10.0), 0.0)
    length: float = parameter(decimal(0.0, 10.0), 1.0)
    # by how many per cent of its length each key is moved
    disturbance: int = parameter(whole(0, 10), 3)


@dataclass(frozen=True)
class Inside:
    """The step that is shown, and how."""

    what_if: WhatIf | None = parameter(Kind(_read_arithmetic, _write_arithmetic))
    section: str = parameter(one_of(*STEPS, BUILD), "products")
    notation: str = parameter(one_of(*NOTATIONS), "paper")  # whose symbols are written


# --- Masks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Masks:
    """Another mask, and the sentences of a batch."""

    mask: str | None = parameter(one_of("none", "zero", "after"))  # another mask to try
    sentences: str | None = parameter(TEXT, long=True)  # the batch, one sentence per line
    member: int | None = parameter(POSITION)  # the sentence of the batch that is shown


# --- Positions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Positions:
    """An encoding, its table, and what is asked of the twins."""

    encoding: str | None = parameter(one_of(*ENCODINGS))
    beside: str | None = parameter(
        one_of(*ENCODINGS)
    )  # the encoding beside it, where two are compared
    word: str | None = parameter(LINE)  # on which they are compared
    # dimensions of the table; None for those of the twins
    d_model: int | None = parameter(whole(4, 512, step=2))
    base: int = parameter(whole(2, 1_000_000), 10_000)  # of the wavelengths
    positions: int = parameter(whole(2, 4096), 64)  # how many the table shows
    dimension: int | None = parameter(POSITION)  # drawn as a curve
    # by how many positions the sentence, or the table, is shifted
    offset: int = parameter(whole(0, 1000), 10)
    swap: tuple[int, int] | None = parameter(HEAD)  # the two words (from 0) that swap places
    # of all twins; None for each twin's own previous-token head
    twin_head: Head | None = parameter(HEAD)


# --- Recurrent -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recurrent:
    """The recurrent twin."""

    score: str | None = parameter(one_of(*SCORE_RULES))  # of the twin; None lets the page choose


# --- Training ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Live:
    """The model that learns here."""

    born: Head | None = parameter(
        HEAD
    )  # the head that is shown; None: the one whose rows differ most


@dataclass(frozen=True)
class Loss:
    """The loss at one position."""

    smoothing: float = parameter(decimal(0.0, 0.5), 0.1)  # ε; the paper's at first


@dataclass(frozen=True)
class Schedule:
    """The learning rate."""

    width: int = parameter(whole(32, 2048, step=16), 512)  # d_model
    warmup: int = parameter(whole(100, 20_000, step=100), 4000)  # steps


# --- What if -------------------------------------------------------------------------------------

MOST_SEED = 1_000
Detail = Head | int | str | None
Against = tuple[str, Detail]
"""What is compared with the selection: `uniform`, `untrained` with its seed, `head` with layer and
head, `model` with a name; `forced` and `sentence`, whose text is in `other`; `unchanged`, the run
as it is."""


def _read_seed(value: str) -> int:
    return min(read_position(value) + 1, MOST_SEED)


def _read_against(value: str) -> Against:
    name, _, detail = value.partition("-")
    if name == "model" and detail:
        return name, detail
    if name == "head":
        return name, read_head(detail)
    if name == "untrained":
        return name, _read_seed(detail)
    if detail or name not in {"uniform", "forced", "sentence", "unchanged"}:
        raise UnreadableError
    return name, None


def _write_against(against: Against) -> str:
    name, detail = against
    if detail is None:
        return name
    if isinstance(detail, tuple):
        return f"{name}-{write_head(detail)}"
    return f"{name}-{detail}"


@dataclass(frozen=True)
class Comparison:
    """The other side of a comparison."""

    against: Against | None = parameter(Kind(_read_against, _write_against))
    other: str | None = parameter(LINE, long=True)  # the other sentence or translation


# --- The whole model -----------------------------------------------------------------------------

PARTS = (
    "source-embedding",
    "encoder-start",
    "encoder-attention-norm",
    "encoder-attention",
    "encoder-attention-add",
    "encoder-forward-norm",
    "encoder-forward",
    "encoder-forward-add",
    "encoder-end",
    "target-embedding",
    "decoder-start",
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
"""Every part that a model can have."""


@dataclass(frozen=True)
class Diagram:
    """The part of the diagram that is open."""

    part: str | None = parameter(one_of(*PARTS))
    layer: int | None = parameter(POSITION)  # of the part
