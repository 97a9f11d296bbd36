"""The visitor's state, as one value. Programs count from 0; the address, for people, from 1."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from explorer.app.address.change_list import CHANGES, SWITCHED_OFF, Off
from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.kinds import (
    AGAINST,
    ARITHMETIC,
    DECODE,
    GOLD_PAIR,
    HEAD,
    HEADS,
    HIDDEN,
    LANGUAGE,
    LARGEST_SEED,
    LAYERS,
    LESSON,
    LINE,
    LINKS,
    MOST_DRAWS,
    OWN,
    PAIRS,
    POSITION,
    RULE,
    SENTENCE,
    TEXT,
    YES,
    Against,
    HandLinks,
    Kind,
    WhatIf,
    decimal,
    numbers,
    one_of,
    whole,
)
from explorer.app.address.sitemap import VIEWS
from explorer.figures.base.quantity import MEASURES
from explorer.figures.base.style import SCALES
from explorer.lenses.heads import measures
from explorer.lenses.heads.measures import SORTED, UNITS
from explorer.lenses.what_if.questions import GOALS
from transformer.config import SCORE_RULES, Head
from transformer.interventions import Intervention

ORDERS = (
    *("entropy", "mean_distance", "previous_mass", "same_mass", "next_mass", "first_mass", "eos_mass"),
    *("contribution", "aer"),
)
"""Statistics that can order and colour a grid of heads."""
STATISTICS = (
    *(each.name for each in (*measures.STATISTICS, *measures.PROFILED)),
    *("aer", "aer_read", "keeps"),
)
"""Every statistic of a head over many sentences."""
FACETS = ("tokens", "distances", "sentences", "points", "sink")
"""Sections about a head on the page "Heads over sentences"."""
PARTS = (
    *("source-embedding", "encoder-start"),
    *("encoder-attention-norm", "encoder-attention", "encoder-attention-add"),
    *("encoder-forward-norm", "encoder-forward", "encoder-forward-add", "encoder-end"),
    *("target-embedding", "decoder-start"),
    *("decoder-attention-norm", "decoder-attention", "decoder-attention-add"),
    *("decoder-cross-norm", "decoder-cross", "decoder-cross-add"),
    *("decoder-forward-norm", "decoder-forward", "decoder-forward-add", "decoder-end"),
    "output",
)
"""Parts of the model on the page Anatomy."""


STEPS = ("path", "projections", "products", "weights", "sum", "heads", "build")
"""The steps of the page Inside a head."""


def _declared(
    several: bool,  # whether several pages read the value
    kind: Kind,  # its kind
    default: Any = None,  # the value that an address leaves out; None lets the app choose
    place: bool = False,  # whether it belongs to models of one sort: a page of another sort has its own
    long: bool = False,  # whether it may be too long for an address
) -> Any:
    marks = {"kind": kind, "several": several, "place": place, "long": long}
    return field(default=default, metadata=marks)


shared, own = partial(_declared, True), partial(_declared, False)


@dataclass(frozen=True)
class State:
    """Everything that an address carries; positions, layers and heads count from 0; None: the app chooses."""

    text: str | None = shared(LINE, long=True)  # the text: a sentence, or several
    # which of its sentences is shown; `AS_ONE` for all of them as one run, None for the first
    sentence: int | None = shared(SENTENCE)
    model: str | None = shared(TEXT, place=True)  # the name of the model
    # the target language, such as `>>fra<<`, for a model with several
    language: str | None = shared(LANGUAGE)
    step: int | None = shared(POSITION, place=True)  # the decode step
    source: int | None = shared(POSITION, place=True)  # the source token that was clicked
    encoder: Head | None = shared(HEAD, place=True)  # the chosen head of encoder self-attention
    decoder: Head | None = shared(HEAD, place=True)  # the chosen head of masked decoder self-attention
    cross: Head | None = shared(HEAD, place=True)  # the chosen head of cross-attention
    view: str | None = own(one_of(*VIEWS))  # the section of a page, or its way of drawing
    decode: str = shared(DECODE, "greedy")  # `greedy`, `beam-4`, `sample-7`
    target: str | None = shared(LINE, place=True, long=True)  # the visitor's own translation
    # what is changed in the run of the model, in the order of acting
    changes: tuple[Intervention, ...] = shared(CHANGES, (), place=True)
    # changes that are switched off, each with its place in the list: `2.hide_3` stands second
    off: Off = shared(SWITCHED_OFF, (), place=True)
    order: str | None = shared(one_of(*ORDERS))  # the statistic by which the grids of heads are ordered
    words: bool = shared(YES, False)  # whether sub-words are merged into words
    hide: tuple[str, ...] = shared(HIDDEN, ())  # what the maps leave out, from `HIDEABLE`
    # whether decoder rows are named by the token `read` or `predicted`; None for the kind's default
    rows: str | None = shared(one_of("read", "predicted"))
    scale: str = shared(one_of(*SCALES), "linear")  # how weights become colours: `linear`, `sqrt`, `log`
    window: int = shared(numbers(64, 32, 16), 64)  # most rows and columns that a map shows
    # how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`
    show: str = shared(one_of("matrix", "lines", "strongest"), "matrix")
    # what the cells of the maps say: weights, what they carried, or what they did
    measure: str = shared(one_of(*MEASURES), "weight")
    # whether target tokens are shaded by how much of them comes from the source
    shares: bool = shared(YES, False)
    lesson: tuple[str, int] | None = shared(LESSON)  # the lesson that is open, and its step
    # which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those of at least
    # 0.10
    links: str = shared(LINKS, "mass-70")
    # further heads of the same kind, drawn as lines together with the chosen head
    more: tuple[Head, ...] | None = own(HEADS)
    color: str | None = shared(one_of(*ORDERS))  # the statistic that colours the grids of heads
    # the attention kind shown by a page that offers all three: encoder, decoder or cross
    kind: str | None = own(one_of("encoder", "decoder", "cross"))
    # a different mask to try on the Masks page: `zero`, `after`; None for the real mask
    mask: str | None = own(one_of("none", "zero", "after"))
    # the statistic that colours the page "Heads over sentences", as named in `heads.json`
    statistic: str | None = own(one_of(*STATISTICS))
    facet: str = own(one_of(*FACETS), "tokens")  # what that page shows of a head
    unit: str = own(one_of(*UNITS), "words")  # whether its lists hold words or pieces
    keys_by: str = own(one_of("weight", "lift"), "weight")  # what orders its list of keys
    sorted_by: str = own(one_of(*SORTED), "role")  # what orders its sentences
    colour_by: str = own(one_of("side", "position", "class"), "side")  # what colours its queries and keys
    point: Head | None = own(HEAD)  # one of them: 0 for a query, 1 for a key, and its number
    heads_as: str = own(one_of("tiles", "points"), "tiles")  # how that page draws all heads
    across: str | None = own(one_of(*STATISTICS))  # the statistic from left to right, of points
    up: str | None = own(one_of(*STATISTICS))  # the statistic upwards
    sentences: str | None = own(TEXT, long=True)  # the batch of the Masks page, one sentence per line
    member: int | None = own(POSITION)  # the sentence of that batch to show
    # `own` if the visitor chose the head, mean or row of an alignment; None for the model's best
    aligner: str | None = own(one_of(OWN))
    # the layers (first and last, from 0) over whose heads an alignment averages; None for one head
    mean: tuple[int, int] | None = own(LAYERS)
    # how attention becomes links: `mutual`, `above-0.3`; None for each word's strongest link
    rule: str | None = own(RULE)
    pairs: HandLinks = shared(PAIRS, frozenset())  # word links made by hand
    # source of those links, such as `sample-3`; None if the visitor drew them
    gold: str | None = shared(GOLD_PAIR)
    against: Against | None = own(AGAINST)  # what the page Compare compares the selection with
    # the other sentence or translation on the page Compare
    other: str | None = own(LINE, long=True)
    # the token that a written one is compared with on the page "Is attention an explanation?"
    rival: str | None = own(TEXT)
    key: int | None = own(POSITION)  # the key that "Inside a head" shows in self-attention
    section: str | None = own(one_of(*STEPS))  # the step that "Inside a head" shows
    # the alternative arithmetic on "Inside a head", and its number: a temperature, a radius, a head (from 0)
    what_if: WhatIf | None = own(ARITHMETIC)
    goal: str = own(one_of(*GOALS), "copy")  # what a built query is to do: `copy` one key, `average` two
    two: Head | None = own(HEAD)  # the two keys (from 0) in whose plane it lies; None lets the app choose
    # the query is length · (a k̂ + b k̂'), with the two keys as unit vectors
    a: float = own(decimal(-10.0, 10.0), 1.0)
    b: float = own(decimal(-10.0, 10.0), 0.0)
    length: float = own(decimal(0.0, 10.0), 1.0)
    disturbance: int = own(whole(0, 10), 3)  # by how many per cent of its length each key is moved
    # whose symbols "Inside a head" writes: `paper`, `lecture`
    notation: str = own(one_of("paper", "lecture"), "paper")
    part: str | None = own(one_of(*PARTS))  # the part of the model on the page Anatomy, from `PARTS`
    layer: int | None = own(POSITION)  # the layer of that part
    encoding: str | None = own(one_of(*ENCODINGS))  # the positional encoding that the page Positions explains
    # the encoding beside it, where two are compared
    beside: str | None = own(one_of(*ENCODINGS))
    word: str | None = own(LINE)  # the word that they are compared on
    # dimensions of the table on the page Positions; None for those of the twins
    d_model: int | None = own(whole(4, 512, step=2))
    base: int = own(whole(2, 1_000_000), 10_000)  # base of the wavelengths in that table
    positions: int = own(whole(2, 4096), 64)  # how many positions that table shows
    # the first position or step shown, if not all of them fit into one picture
    first: int | None = own(POSITION)
    dimension: int | None = own(POSITION)  # the dimension drawn as a curve
    offset: int = own(whole(0, 1000), 10)  # by how many positions the sentence, or the table, is shifted
    swap: Head | None = own(HEAD)  # the two words (from 0) that swap places
    # the head shown for all twins; None for each twin's own previous-token head
    twin_head: Head | None = own(HEAD)
    # whether the linked view of the home page fills the window, in large type
    present: bool = own(YES, False)
    temperature: float = shared(decimal(0.1, 3.0, 0.1), 0.8)  # the temperature of sampling
    # how many of the most probable tokens sampling draws from; None for all
    top_k: int | None = shared(whole(1, 1_000))
    # what the probabilities of these tokens must reach together; None for all tokens
    top_p: float | None = shared(decimal(0.05, 1.0, 0.05))
    # α of the score on the page Search; None for the model's own
    penalty: float | None = own(decimal(0.0, 2.0, 0.1))
    # k of that score, see `SearchRules`; None for the model's own
    length_offset: int | None = own(numbers(0, 5))
    node: int | None = own(POSITION)  # the token chosen in the tree on the page Search
    draws: int = own(whole(1, MOST_DRAWS), 8)  # how many samples that page draws
    seed: int | None = own(whole(0, LARGEST_SEED))  # the seed of the first of them; None for that of `decode`
    # the label smoothing ε on the page Training; the paper's is the default
    smoothing: float = own(decimal(0.0, 0.5), 0.1)
    width: int = own(whole(32, 2048, step=16), 512)  # d_model of the schedule on that page
    warmup: int = own(whole(100, 20_000, step=100), 4000)  # warm-up steps of that schedule
    born: Head | None = own(HEAD)  # the head of a model that is trained here
    prompt: str | None = own(LINE, place=True, long=True)  # the text on the page Language model
    study: str | None = own(TEXT)  # the document that the page Findings shows
    # the score of the recurrent twin on the page Recurrent; None lets the app choose
    score: str | None = own(one_of(*SCORE_RULES))


def _marked(mark: str, value: bool = True) -> tuple[str, ...]:
    return tuple(each.name for each in fields(State) if each.metadata[mark] is value)


KINDS: dict[str, Kind] = {each.name: each.metadata["kind"] for each in fields(State)}
"""Kind of each value in an address."""
TEXTS = _marked("long")
"""Values that may be too long for an address."""
PAGE_OWN = _marked("several", False)
"""Values that only one page reads; the links of the menu leave them out."""
PLACE = _marked("place")
"""Values that belong to models of one sort: a page of another sort has its own."""


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    return State(**{name: getattr(state, name) for name in _marked("several")})


def changed(state: State, **values: Any) -> State:
    """The state with other values; another text opens at its first sentence."""
    fresh = {"sentence": None} if values.get("text", state.text) != state.text else {}
    return replace(state, **{**fresh, **values})
