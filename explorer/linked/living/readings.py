"""Names and places with which a page reads its maps in words, or without special tokens, by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from explorer.figures import to_json
from explorer.figures.base import captions, labels
from explorer.lenses.words.reading import Reading, ReadView, read_view
from transformer.view import HeadMap

READINGS = {
    "words": Reading(words=True),
    "special": Reading(hide_special=True),
    "words special": Reading(words=True, hide_special=True),
}
"""The ways of reading, by the switches that are on."""
_OF_A_HEAD = {"sentences", "notes", "alt", "choice", "acts", "figure"}
_SUMMED = " · summed here from weights with three decimals"


def readings(
    view: HeadMap,  # any head of a kind whose heads have one mask
    feed: Callable[[ReadView], Mapping[str, Any]],  # the feed of its map
) -> dict[str, dict[str, Any]]:
    """For each reading with maps of its own, what its feeds have in place of those as recorded."""
    plain = feed(read_view(view, Reading()))
    known, found = [plain["spans"]], {}
    for name, reading in READINGS.items():
        read = read_view(view, reading)
        own = feed(read)
        if own["spans"] in known:
            continue
        known.append(own["spans"])
        figure = json.loads(own["figure"])
        figure["data"][0] |= {"z": None, "customdata": None}
        caption = own["caption"].partition("{step}")[2]
        if reading.words:
            hover = figure["data"][0]["hovertemplate"]
            figure["data"][0]["hovertemplate"] = hover.replace(":.3f", ":.2f")
            caption += _SUMMED
        changed = {key: value for key, value in own.items() if value != plain[key] and key not in _OF_A_HEAD}
        found[name] = {
            "feed": changed,
            "figure": to_json(figure),
            "caption": caption,
            "words": reading.words,
            "openings": [each[:2] for each in own["sentences"]],
            "keys": [captions.quote(token) for token in read.key_tokens],
            "special": {i: token for i, token in enumerate(read.key_tokens) if labels.is_special(token)},
        }
    return found
