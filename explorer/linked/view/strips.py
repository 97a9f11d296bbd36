"""The token strips: chips with their gaps, glosses and shades, and the names of tokens in titles."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.figures.base import captions, labels
from explorer.linked.view.glosses import Feed, Gloss, Shade, legend
from transformer.text import words


def direction(tokens: Sequence[str]) -> str:
    """`rtl` if most letters run from right to left, otherwise `ltr`."""
    texts = (token for token in tokens if not words.is_language(token))
    classes = [unicodedata.bidirectional(character) for token in texts for character in token]
    right = sum(each in {"R", "AL"} for each in classes)
    return "rtl" if right > sum(each == "L" for each in classes) else "ltr"


def chips(tokens: Sequence[str], glosses: Mapping[int, Gloss] | None = None) -> list[dict[str, Any]]:
    """Turns tokens into chips: text, positions, gap before a word, index of a repeated token, gloss."""
    groups = words.character_groups(tokens)
    texts = [tokens[group.start] if len(group.indices) == 1 else group.text for group in groups]
    numbers, names = labels.occurrences(texts), labels.pieces(texts)
    return [
        {
            "text": labels.shorten(name, 24),
            "first": group.start,
            "last": group.stop - 1,
            "gap": words.starts_word(tokens[group.start]) or words.is_special(tokens[group.start]),
            "special": words.is_special(tokens[group.start])
            or words.unknown_text(tokens[group.start]) is not None,
            "index": number,
            "gloss": (glosses or {}).get(group.start),
        }
        for group, name, number in zip(groups, names, numbers, strict=True)
    ]


SIDES = {"source": "source", "target": "target"}
"""The usual names of the strips."""


def shaded(
    chips: Sequence[dict[str, Any]],  # the chips
    shades: Sequence[Shade],  # one for each token; none leaves the chips as they are
) -> list[dict[str, Any]]:
    """Chips with the shade of their darkest token, and its number in the place of a gloss."""
    if not shades:
        return list(chips)
    found = []
    for chip in chips:
        own = shades[chip["first"] : chip["last"] + 1]
        darkest = max(own, key=lambda each: each["share"])
        title = " + ".join(each["text"] for each in own)
        gloss = darkest.get("number", chip["gloss"])
        found.append({**chip, "gloss": gloss, "shade": darkest["share"], "title": title})
    return found


def strips_feed(
    trace: str,  # the name of the translation
    source: Sequence[str],  # source tokens
    reads: Sequence[str],  # decoder input tokens
    predicts: Sequence[str],  # target tokens
    follow: Sequence[int] = (),  # for each step, the source token that the step attends to most, from 0
    # source words under target words, by the position of the target word's first piece
    glosses: Mapping[int, Gloss] | None = None,
    tour: Sequence[Mapping[str, Any]] = (),  # stops of the tour: `{"plot", "text", "step"}`
    claim: Mapping[str, Any] | None = None,  # what an example shows, and at which step: `{"step", "text"}`
    sides: Mapping[str, str] = SIDES,  # names of the strips
    n_given: int = 0,  # how many of the target tokens were given to the model, and not written by it
    shades: Sequence[Shade] = (),  # how dark each target token is; none if the strip is not shaded
) -> Feed:
    """The strips: source and target chips, and the token names used in titles."""
    shown = {"source": source, "reads": reads, "predicts": predicts}
    return {
        "draw": "strips",
        "trace": trace,
        "steps": len(predicts),
        "source": chips(source),
        "target": shaded(chips(predicts, glosses), shades),
        "sides": dict(sides),
        "given": n_given,
        "direction": {"source": direction(source), "target": direction(predicts)},
        "names": {name: [captions.quote(token) for token in tokens] for name, tokens in shown.items()},
        "follow": list(follow),
        "tour": list(tour),
        "claim": claim,
        "glossed": legend(glosses or {}),
    }
