"""Feeds while a lesson's question is open: the pictures stay, and nothing beside them gives the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.figures import to_json
from explorer.figures.base.quiet import quiet

LATER = "What the numbers here say is shown after your answer."
"""Stands where a sentence will stand, so that nothing moves when it comes."""
UNNAMED = "?"


def silenced(feed: Mapping[str, Any], choices: Sequence[str]) -> dict[str, Any]:
    """A feed that names none of the choices and no number beside its picture; `silent` tells the scripts."""
    said = {**feed, "silent": True, **_SILENT.get(feed["draw"], _figure)(feed, choices)}
    if "sentences" in feed:
        said |= {"sentences": [[LATER]] * len(feed["sentences"]), "notes": {}}
    if "alt" in feed:
        said |= {"alt": f"{feed['title']}: the numbers are shown after your answer", "alts": ()}
    return said


def _figure(feed: Mapping[str, Any], _choices: Sequence[str]) -> dict[str, Any]:
    return {"figure": to_json(quiet(json.loads(feed["figure"])))} if "figure" in feed else {}


def _map(feed: Mapping[str, Any], _choices: Sequence[str]) -> dict[str, Any]:
    """A map whose hover texts name the row and the key; its row sums stay, as they are all alike."""
    figure = json.loads(feed["figure"])
    figure["data"][0]["hovertemplate"] = "%{text}<extra></extra>"
    choice = feed["choice"] and {**feed["choice"], "roles": []}
    return {"figure": to_json(figure), "choice": choice}


def _strips(feed: Mapping[str, Any], _choices: Sequence[str]) -> dict[str, Any]:
    """Strips without what an aligner or an example says about them; empty glosses keep their lines."""
    target = [
        {**chip, "gloss": chip["gloss"] and {**chip["gloss"], "text": "\xa0"}, "title": ""}
        for chip in feed["target"]
    ]
    return {"target": target, "claim": None}


def _race(feed: Mapping[str, Any], choices: Sequence[str]) -> dict[str, Any]:
    """The bars of the candidates; those among which the question asks have no name."""
    names = [[UNNAMED if f"“{name}”" in choices else name for name in row] for row in feed["names"]]
    shares = [[""] * len(row) for row in feed["shares"]]
    return {"names": names, "shares": shares, "ids": (), "caption": "the rest is shown after your answer"}


def _listed(_feed: Mapping[str, Any], _choices: Sequence[str]) -> dict[str, Any]:
    return {"listed": 0}


_SILENT = {"map": _map, "strips": _strips, "race": _race, "strongest": _listed}
