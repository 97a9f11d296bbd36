"""Feeds while a lesson's question is open: the pictures stay, and nothing beside them gives the
answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.figures import to_json
from explorer.figures.base.plot import quiet

LATER = "What the numbers here say is shown after your answer."
"""Stands once on a page, at the question."""
BLANK = "…"
"""Stands where a sentence will stand, so that nothing moves when it comes."""
UNNAMED = "?"


def silenced(feed: Mapping[str, Any], choices: Sequence[str]) -> dict[str, Any]:
    """A feed that names none of the choices and no number beside its picture; `silent` tells the
    scripts."""
    said = {**feed, "silent": True}
    draw = feed["draw"]
    if draw == "map":  # hover texts name row and key; row sums stay, as they are all alike
        figure = json.loads(feed["figure"])
        figure["data"][0]["hovertemplate"] = "%{text}<extra></extra>"
        said |= {
            "figure": to_json(figure),
            "choice": feed["choice"] and {**feed["choice"], "roles": []},
        }
    elif draw == "strips":  # empty glosses keep their lines
        blank = [each["gloss"] and {**each["gloss"], "text": "\xa0"} for each in feed["target"]]
        chips = zip(feed["target"], blank, strict=True)
        said |= {
            "target": [{**each, "gloss": gloss, "title": ""} for each, gloss in chips],
            "claim": None,
        }
    elif draw == "race":  # candidates among which the question asks have no name
        names = [
            [UNNAMED if f"“{name}”" in choices else name for name in row] for row in feed["names"]
        ]
        shares = [[""] * len(row) for row in feed["shares"]]
        said |= {"names": names, "shares": shares, "ids": (), "caption": BLANK}
    elif draw == "strongest":
        said["listed"] = 0
    elif "figure" in feed:
        said["figure"] = to_json(quiet(json.loads(feed["figure"])))
    if "sentences" in feed:
        said |= {"sentences": [[BLANK]] * len(feed["sentences"]), "notes": {}}
    if "alt" in feed:
        said |= {"alt": f"{feed['title']}: the numbers are shown after your answer", "alts": ()}
    return said
