"""What the scripts of the linked view are sent: a `TypedDict` for each kind of feed.

`python -m explorer.linked.living.declare` writes the same for the scripts (`feeds.d.ts`).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, final

from explorer.figures.base.captions import Badge
from explorer.figures.base.style import Packed
from transformer.config import Head

Span = tuple[int, int]
"""The tokens that a row or column stands for: the first, and one past the last."""


class Spans(TypedDict):
    """The tokens of every row and column of a map."""

    rows: list[Span]
    columns: list[Span]


class Names(TypedDict):
    """Texts of every row and column of a map."""

    rows: list[str]
    columns: list[str]


class Legend(TypedDict):
    """What the colours of a picture mean."""

    title: str
    marks: Sequence[tuple[str, str]]  # a text and its colour


class Choice(TypedDict):
    """A choice of heads over a map."""

    name: str
    label: str
    size: Head  # how many layers, and heads of each
    head: Head  # the chosen one
    roles: Sequence[Sequence[str]]  # by layer and head
    first: str  # which head is the model's default, as a sentence
    only: NotRequired[Sequence[Head]]  # the heads that can be chosen; without it, all


class _Feed(TypedDict):
    """What every feed has."""

    trace: str  # the run that it belongs to
    silent: NotRequired[bool]  # whether a question is open that it must not answer


class _Figure(_Feed):
    """What every picture has."""

    title: str
    about: str  # under the title, with names of tokens to fill in
    caption: str
    alt: str  # the picture in words
    alts: NotRequired[Sequence[str]]  # the same for each place of the cursor


class _Proved(_Figure):
    """What every picture has that an audit stands behind."""

    badge: Badge


class HeadFeed(_Proved):
    """What every way of drawing a head has: its axes, and all its texts."""

    kind: str
    hue: str
    rows: str  # what the rows are: `step` or `source`
    columns: str
    spans: Spans
    names: Names
    sentences: Sequence[Sequence[str]]  # of every row, plain and emphasised parts
    absent: str  # the sentence of a row that is not drawn
    notes: Mapping[int, str]  # by row
    legend: Legend | None
    quantity: str  # what a number from 0 to 1 is
    limit: str  # what such a number cannot say
    scale: str  # how numbers become colours
    off: NotRequired[bool]  # whether the head is switched off in the run


class Hover(TypedDict):
    """What Plotly's texts of the cells of a map say."""

    rows: list[str]
    columns: list[str]
    masked: str
    later: str


@final
class MapFeed(HeadFeed):
    """One head as a map."""

    draw: Literal["map"]
    figure: str  # JSON for plotly.js
    hover: Hover
    head: Head
    acts: Sequence[str]  # what its title offers to do with the head
    fade: bool  # whether later rows are faded
    largest: int  # px
    choice: Choice | None


class LineHead(TypedDict):
    """A head among the lines."""

    name: str
    color: str
    dash: str  # of SVG


@final
class LinesFeed(HeadFeed):
    """One head or several as lines."""

    draw: Literal["lines"]
    labels: Names
    values: Packed
    links: list[tuple[int, int, float, int]]  # query, key, weight, place among the heads
    heads: list[LineHead]
    fade: bool
    largest: int


@final
class StrongestFeed(HeadFeed):
    """The keys of a query and the queries of a key as lists."""

    draw: Literal["strongest"]
    listed: int  # how many are listed
    labels: Names
    values: Packed
    shades: Packed
    direction: str


@final
class WholeFeed(_Figure):
    """The whole matrix of a head, pooled."""

    draw: Literal["whole"]
    kind: str
    hue: str
    rows: str
    columns: str
    spans: Spans
    figure: str
    largest: int


@final
class BarsFeed(_Figure):
    """Bars whose frames follow the step or the source token."""

    draw: Literal["bars"]
    figure: str
    follows: str  # `step` or `source`
    height: int | None  # px
    largest: int
    spans: list[Span] | None
    hue: NotRequired[str]
    joins: NotRequired[bool]  # whether its frames are rows that can be looked at as one


class ProofFeed(_Feed):
    """What the audit found of pictures that were sent before it, by their names."""

    draw: Literal["proof"]
    badges: Mapping[str, Badge]


@final
class RaceFeed(_Figure):
    """The candidates of each position, whose bars run when the cursor moves."""

    draw: Literal["race"]
    follows: str  # `step` or `source`
    puts: str  # what a click on a candidate does: `continue with it`
    names: list[list[str]]
    shares: list[list[str]]
    logs: Packed  # (steps, candidates) log-probabilities; not a number beyond the last candidate
    chosen: list[int]  # by step, the place of the chosen candidate; −1 if it is not shown
    ids: Sequence[Sequence[int | None]]  # by step, token ids to continue with; empty if none can be
    tried: list[list[int]]


@final
class TilesFeed(_Proved):
    """The grid of all heads of a kind."""

    draw: Literal["tiles"]
    figure: str
    picks: str  # the kind whose head a click chooses
    hue: str
    height: int
    legend: Legend | None


@final
class WallFeed(_Proved):
    """All heads of a kind as pictures; how they stand is said by the ranking."""

    draw: Literal["wall"]
    picks: str  # the kind whose head a click chooses
    hue: str
    size: Head  # layers, and heads of each
    cells: Packed  # (layers, heads, rows, columns) levels of colour


class HeadRow(TypedDict):
    """Heads that stand together on the wall."""

    name: str
    heads: list[Head]


@final
class RankingFeed(_Feed):
    """How the heads of a wall stand, and what is written at each."""

    draw: Literal["ranking"]
    head: Head  # the one that is shown large
    aligned: bool  # whether each group is a row whose columns are the heads of a layer
    groups: list[HeadRow]
    numbers: list[list[str]]  # by layer and head, written under it; empty texts for none
    notes: list[list[str]]  # by layer and head, what is said at the pointer
    order: str  # the order in words, for the caption


class Gloss(TypedDict):
    """A source word under a target word, and where it comes from."""

    text: str
    origin: str  # `EXAMPLE`, or the name of an aligner


class Shade(TypedDict):
    """How dark a token of the target is, and why."""

    share: float  # from 0 to 1
    text: str  # the reason
    number: NotRequired[Gloss]  # what stands under the token


class Chip(TypedDict):
    """A token of a strip, or several that make one character."""

    text: str
    first: int
    last: int
    gap: bool  # whether a gap stands before it
    special: bool
    index: int | None  # which of several equal texts this is
    gloss: Gloss | None
    shade: NotRequired[float]
    title: NotRequired[str]
    role: NotRequired[str]  # who says it, where a turn of a conversation begins


class Stop(TypedDict):
    """A stop of the tour."""

    plot: str  # the part of the view that it is about
    text: str
    step: int | None  # the position of the cursor that it goes to


class StepClaim(TypedDict):
    """What an example shows, and at which step."""

    step: int
    text: str


class Directions(TypedDict):
    """`ltr` or `rtl`, of each strip."""

    source: str
    target: str


class TokenNames(TypedDict):
    """Quoted tokens that fill placeholders of texts."""

    source: list[str]
    reads: list[str]
    predicts: list[str]  # empty if the run has no steps


class PositionNames(TypedDict):
    """What one position of each axis is called, such as “step” and “source token”."""

    step: str
    source: str


@final
class StripsFeed(_Feed):
    """The token strips."""

    draw: Literal["strips"]
    steps: int
    source: list[Chip]
    target: list[Chip]
    sides: Mapping[str, str]  # the names of the strips
    positions: PositionNames
    begins: str  # what a text begins with, if that is read and no step; else empty
    given: int  # how many tokens were given, of a prompt
    direction: Directions
    names: TokenNames
    follow: Sequence[int]  # by step, the source token that the cursor follows
    tour: Sequence[Stop]
    claim: StepClaim | None
    glossed: str  # where the glosses come from, as a sentence


Feed = (
    MapFeed
    | LinesFeed
    | StrongestFeed
    | WholeFeed
    | BarsFeed
    | RaceFeed
    | TilesFeed
    | WallFeed
    | RankingFeed
    | StripsFeed
)
"""What one part of a linked view is sent; `draw` names its script.

Each is final, so that types know of a feed with a badge that it is a picture of heads."""
