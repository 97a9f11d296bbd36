"""Feeds while a lesson's question is open: nothing beside the pictures gives the answer."""

import json
from collections.abc import Sequence
from typing import TypeVar

from explorer.figures import to_json
from explorer.figures.base.plot import quiet
from explorer.lenses.heads.walls import by_layer
from explorer.linked.view.feeds import OneHead
from explorer.linked.view.wire import (
    BarsFeed,
    Chip,
    Choice,
    Feed,
    HeadRow,
    MapFeed,
    RaceFeed,
    RankingFeed,
    StripsFeed,
    TilesFeed,
    WholeFeed,
)

LATER = "What the numbers here say is shown after your answer."
"""Stands once on a page, at the question."""
Picture = TypeVar("Picture", WholeFeed, BarsFeed, TilesFeed)
BLANK = "…"
"""Stands where a sentence will stand, so that nothing moves when it comes."""
UNNAMED = "?"


def silenced(feed: Feed, choices: Sequence[str]) -> Feed:
    """A feed that names none of the choices and no number beside its picture.

    `silent` tells the scripts.
    """
    if feed["draw"] == "strips":
        return _strips(feed)
    if feed["draw"] == "ranking":
        return _ranking(feed)
    alt = f"{feed['title']}: the numbers are shown after your answer"
    if feed["draw"] == "race":
        return {**_race(feed, choices), "silent": True, "alt": alt, "alts": ()}
    if feed["draw"] == "map":
        return {**_head(feed), "figure": _unnamed(feed), "choice": _unchosen(feed), "alt": alt}
    if feed["draw"] == "lines":
        return {**_head(feed), "alt": alt}
    if feed["draw"] == "strongest":
        return {**_head(feed), "listed": 0, "alt": alt}
    if feed["draw"] == "wall":
        return {**feed, "silent": True, "alt": alt, "alts": ()}
    if feed["draw"] == "whole":
        return {**_picture(feed), "alt": alt}
    if feed["draw"] == "bars":
        return {**_picture(feed), "alt": alt}
    return {**_picture(feed), "alt": alt}


def _head(feed: OneHead) -> OneHead:
    """A head of which every sentence is left out."""
    sentences = [[BLANK]] * len(feed["sentences"])
    return {**feed, "silent": True, "sentences": sentences, "notes": {}, "alts": ()}


def _picture(feed: Picture) -> Picture:
    """A picture without its texts."""
    figure = to_json(quiet(json.loads(feed["figure"])))
    return {**feed, "silent": True, "figure": figure, "alts": ()}


def _unnamed(feed: MapFeed) -> str:
    """The figure, whose hover texts name row and key; row sums stay, as they are all alike."""
    figure = json.loads(feed["figure"])
    figure["data"][0]["hovertemplate"] = "%{text}<extra></extra>"
    return to_json(figure)


def _unchosen(feed: MapFeed) -> Choice | None:
    """The choice of heads without their roles."""
    choice = feed["choice"]
    return None if choice is None else {**choice, "roles": []}


def _ranking(feed: RankingFeed) -> RankingFeed:
    """The heads of a wall by layer, with nothing written at them."""
    nothing = [["" for _ in row] for row in feed["numbers"]]
    layers: list[HeadRow] = [
        {"name": group.name, "heads": list(group.heads)}
        for group in by_layer((len(nothing), len(nothing[0])))
    ]
    return {
        **feed,
        "silent": True,
        "aligned": True,
        "groups": layers,
        "numbers": nothing,
        "notes": nothing,
        "order": "",
    }


def _strips(feed: StripsFeed) -> StripsFeed:
    """The strips without glosses and the example's claim."""
    chips = [_blank(chip) for chip in feed["target"]]
    return {**feed, "silent": True, "target": chips, "claim": None}


def _blank(chip: Chip) -> Chip:
    """A chip whose gloss is empty, but keeps its line."""
    gloss = chip["gloss"]
    if gloss is not None:
        gloss = {**gloss, "text": "\xa0"}
    return {**chip, "gloss": gloss, "title": ""}


def _race(feed: RaceFeed, choices: Sequence[str]) -> RaceFeed:
    """Candidates, of which those among which the question asks have no name."""
    names = [[UNNAMED if f"“{name}”" in choices else name for name in row] for row in feed["names"]]
    shares = [[""] * len(row) for row in feed["shares"]]
    return {**feed, "names": names, "shares": shares, "ids": (), "caption": BLANK}
