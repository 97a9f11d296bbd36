"""What the visitor sees, as one value. Programs count from 0; the address, for people, from 1."""

from __future__ import annotations

from dataclasses import dataclass, fields

from transformer.interventions import Intervention
from ui.address.listed import Off
from ui.address.values import WINDOWS, Against, HandLinks, WhatIf
from ui.linked_view.events import Head


@dataclass(frozen=True)
class State:
    """Everything that an address carries; positions, layers and heads count from 0; None: the app chooses."""

    text: str | None = None  # the sentence
    model: str | None = None  # the name of the model
    language: str | None = None  # the target language, such as `>>fra<<`, for a model with several
    step: int | None = None  # the decode step
    source: int | None = None  # the source token that was clicked
    encoder: Head | None = None  # the chosen head of encoder self-attention
    decoder: Head | None = None  # the chosen head of masked decoder self-attention
    cross: Head | None = None  # the chosen head of cross-attention
    view: str | None = None  # the variant of a page, from `VIEWS`
    decode: str = "greedy"  # `greedy`, `beam-4`, `sample-7`
    target: str | None = None  # the visitor's own translation
    changes: tuple[Intervention, ...] = ()  # what is changed in the run of the model, in the order of acting
    off: Off = ()  # changes that are switched off, each with its place in the list: `2.hide_3` stands second
    batch: str | None = None  # the second sentence on the encoder page
    order: str | None = None  # the statistic by which the grids of heads are ordered
    words: bool = False  # whether sub-words are merged into words
    hide: tuple[str, ...] = ()  # what the maps leave out, from `HIDEABLE`
    # whether decoder rows are named by the token `read` or `predicted`; None for the kind's default
    rows: str | None = None
    scale: str = "linear"  # how weights become colours: `linear`, `sqrt`, `log`
    window: int = WINDOWS[0]  # most rows and columns that a map shows
    show: str = "matrix"  # how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`
    # which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those of at least
    # 0.10
    links: str = "mass-70"
    # further heads of the same kind, drawn as lines together with the chosen head
    more: tuple[Head, ...] | None = None
    color: str | None = None  # the statistic that colours the grids of heads
    # the attention kind shown by a page that offers all three: encoder, decoder or cross
    kind: str | None = None
    # a different mask to try on the Masks page: `zero`, `after`; None for the real mask
    mask: str | None = None
    # the statistic that colours the page "Heads over sentences", as named in `heads.json`
    statistic: str | None = None
    sentences: str | None = None  # the batch of the Masks page, one sentence per line
    member: int | None = None  # the sentence of that batch to show
    # `own` if the visitor chose the head, mean or row of an alignment; None for the model's best
    aligner: str | None = None
    # the layers (first and last, from 0) over whose heads an alignment averages; None for one head
    mean: tuple[int, int] | None = None
    # how attention becomes links: `mutual`, `above-0.3`; None for each word's strongest link
    rule: str | None = None
    pairs: HandLinks = frozenset()  # word links made by hand
    gold: str | None = None  # source of those links, such as `sample-3`; None if the visitor drew them
    against: Against | None = None  # what the page Compare compares the selection with
    # the other sentence or translation on the page Compare; the second sentence of a causal trace
    other: str | None = None
    scored: int | None = None  # the step whose token a causal trace scores; None for the whole translation
    key: int | None = None  # the key that "Inside a head" shows in self-attention
    # the alternative arithmetic on "Inside a head", and its number: a temperature, a radius, a head (from 0)
    what_if: WhatIf | None = None
    notation: str = "paper"  # whose symbols "Inside a head" writes: `paper`, `lecture`
    part: str | None = None  # the part of the model on the page Anatomy, from `PARTS`
    layer: int | None = None  # the layer of that part
    encoding: str | None = None  # the positional encoding that the page Positions explains
    d_model: int | None = None  # dimensions of the table on the page Positions; None for those of the twins
    base: int = 10_000  # base of the wavelengths in that table
    positions: int = 64  # how many positions that table shows
    first: int | None = None  # the first position or step shown, if not all of them fit into one picture
    dimension: int | None = None  # the dimension drawn as a curve
    offset: int = 10  # by how many positions the sentence, or the table, is shifted
    swap: Head | None = None  # the two words (from 0) that swap places
    # the head shown for all twins; None for each twin's own previous-token head
    twin_head: Head | None = None
    present: bool = False  # whether the linked view of the home page fills the window, in large type
    temperature: float = 0.8  # the temperature of sampling
    top_k: int | None = None  # how many of the most probable tokens sampling draws from; None for all
    # what the probabilities of these tokens must reach together; None for all tokens
    top_p: float | None = None
    penalty: float | None = None  # α of the score on the page Search; None for the model's own
    length_offset: int | None = None  # k of that score, see `SearchRules`; None for the model's own
    node: int | None = None  # the token chosen in the tree on the page Search
    draws: int = 8  # how many samples that page draws
    seed: int | None = None  # the seed of the first of them; None for that of `decode`
    smoothing: float = 0.1  # the label smoothing ε on the page Training; the paper's is the default
    width: int = 512  # d_model of the schedule on that page
    warmup: int = 4000  # warm-up steps of that schedule
    depth: int = 6  # layers of each stack of the untrained models on that page
    update: int = 28  # the step of the run in which that page follows one weight, from 1
    # the training run whose snapshots that page shows; None for the chosen model's or the bundled one
    run: str | None = None
    snapshot: int | None = None  # the training step of the snapshot shown; None for the last one
    born: Head | None = None  # the head of that run
    play: bool = False  # whether its snapshots are shown one after the other
    # the text on the page Language model; there, the first sentence of a pair (`other` the second)
    prompt: str | None = None
    word: str | None = None  # the word in space that the page Language model looks at
    tokens: int = 2048  # the length of text at which that page measures attention
    # the score of the recurrent twin on the page Recurrent; None lets the app choose
    score: str | None = None


TEXTS = ("text", "target", "batch", "sentences", "other", "prompt")
"""Values that may be too long for an address."""
SHARED = (
    *("text", "model", "language", "decode", "target", "step", "source", "encoder", "decoder", "cross"),
    *("changes", "off", "batch", "order", "color", "words", "hide", "rows", "scale", "window", "show"),
    *("links", "pairs", "gold", "temperature", "top_k", "top_p"),
)
"""Values that several pages read."""
PAGE_OWN = tuple(field.name for field in fields(State) if field.name not in SHARED)
"""Values that only one page reads; the links of the menu leave them out."""
PLACE = ("model", "step", "source", "encoder", "decoder", "cross", "changes", "off", "target", "prompt")
"""Values that belong to models of one sort: a page of another sort has its own."""


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    return State(**{name: getattr(state, name) for name in SHARED})
