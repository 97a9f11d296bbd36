"""Payloads for the scripts of the linked view, as the types of plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from transformer.config import Head

Draw = Literal["strips", "map", "lines", "strongest", "tiles", "whole", "bars", "race"]
"""Way of drawing a feed; the scripts have one class for each."""
Sides = dict[str, list[str]]
"""Names of `rows` and `columns`."""
Spans = list[tuple[int, int]]


class Gloss(TypedDict):
    """A source word under a target word, and where it comes from: ``EXAMPLE`` or the name of an aligner."""

    text: str
    origin: str


EXAMPLE = "example"
"""Where a gloss comes from that was written for an example."""


class Shade(TypedDict):
    """Darkness of a token of the target, from 0 to 1, its reason, and a number to write under the token."""

    share: float
    text: str
    number: NotRequired[Gloss]


class StripsFeed(TypedDict):
    """The token strips, and the names of tokens in titles.

    `sides` holds the names of the strips. The first `given` tokens of the target were given to the model.
    """

    draw: Draw
    trace: str
    steps: int
    source: list[dict[str, Any]]
    target: list[dict[str, Any]]
    sides: dict[str, str]
    given: int
    direction: dict[str, str]
    names: dict[str, list[str]]
    follow: list[int]
    tour: list[Mapping[str, Any]]
    claim: Mapping[str, Any] | None
    glossed: str


class CellFeed(TypedDict):
    """Base of every cell of the view: its way of drawing, its translation, and its texts.

    `alt` is the text alternative of the picture, `alts` what it adds for each row of the cursor.
    """

    draw: Draw
    trace: str
    title: str
    about: str
    caption: str
    alt: str
    alts: NotRequired[Sequence[str]]


class HeadFeed(CellFeed):
    """One head, however it is drawn; `quantity` names its numbers, `limit` says what they do not say."""

    kind: str
    hue: str
    rows: str
    columns: str
    spans: dict[str, Spans]
    names: Sides
    badge: dict[str, Any]
    sentences: Sequence[Sequence[str]]
    absent: str
    notes: dict[int, str]
    off: NotRequired[bool]  # whether the head is switched off in this run
    legend: dict[str, Any] | None
    quantity: str
    limit: str


class HeadChoice(TypedDict):
    """A choice of heads over a map: how many layers and heads, which is drawn, and which opens first."""

    name: str
    label: str
    size: tuple[int, int]
    head: tuple[int, int]
    roles: Sequence[Sequence[str]]
    first: str
    only: NotRequired[Sequence[Head]]  # the heads that can be chosen, if not all


class MapFeed(HeadFeed):
    """One head as a map, with a choice of heads if it offers one.

    `hover` holds the parts of its hover texts, escaped for plotly.js.
    """

    figure: str
    hover: dict[str, Any]
    head: Head
    acts: list[str]  # what can be done with the head: `inside`, `off`
    fade: bool
    largest: int
    choice: HeadChoice | None


class LinesFeed(HeadFeed):
    """Heads of one kind as lines."""

    labels: Sides
    values: Any
    links: list[tuple[int, int, float, int]]
    heads: list[dict[str, str]]
    fade: bool
    largest: int


class StrongestFeed(HeadFeed):
    """The strongest keys and queries as lists of at most `listed` entries."""

    labels: Sides
    values: Any
    shades: Any
    direction: str
    listed: int


class WholeFeed(CellFeed):
    """A whole matrix, pooled."""

    kind: str
    hue: str
    rows: str
    columns: str
    spans: dict[str, Spans]
    figure: str
    largest: int


class BarsFeed(CellFeed):
    """Bars, with one frame for each position of the cursor."""

    figure: str
    follows: str
    height: int | None
    largest: int
    spans: Spans | None
    hue: NotRequired[str]


class RaceFeed(CellFeed):
    """The candidates of each decode step, best first."""

    follows: str
    names: list[list[str]]
    shares: list[list[str]]  # their probabilities as people read them
    logs: dict[str, str]  # their log-probabilities (steps, candidates), NaN where there is none
    chosen: list[int]  # which of them was chosen
    ids: Sequence[Sequence[int | None]]
    tried: list[list[int]]


class TilesFeed(CellFeed):
    """All heads of a kind as tiles."""

    figure: str
    picks: str
    hue: str
    height: int
    legend: dict[str, Any] | None


Feed = MapFeed | LinesFeed | StrongestFeed | WholeFeed | BarsFeed | RaceFeed | TilesFeed
"""Feed of one cell of the view."""
