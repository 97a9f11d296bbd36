"""What the linked view is fed with: chips of the strips, maps, bars, as plain JSON values."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from figures import captions, heatmap_spec, labels, to_json
from figures.captions import CheckedHead
from figures.heatmap import LARGEST
from transformer import words

AXES = {"encoder": ("source", "source"), "decoder": ("step", "step"), "cross": ("step", "source")}
ABOUT = {
    "encoder": "once, before step 1; row of “{source}”",
    "decoder": "reads “{reads}”, predicts “{predicts}”",
    "cross": "predicts “{predicts}”, reads “{reads}”",
}
SHORT_NAMES = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross"}


def direction(tokens: Sequence[str]) -> str:
    """`rtl` where most letters run from right to left, else `ltr`."""
    classes = [unicodedata.bidirectional(character) for token in tokens for character in token]
    right = sum(each in {"R", "AL"} for each in classes)
    return "rtl" if right > sum(each == "L" for each in classes) else "ltr"


def chips(tokens: Sequence[str], glosses: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Turns tokens into chips: text, positions, gap before a word, index of repeated tokens, gloss."""
    groups = words.character_groups(tokens)
    first_of_word = {group.start: group.text for group in words.word_groups(tokens)}
    texts = [tokens[group.start] if len(group.indices) == 1 else group.text for group in groups]
    numbers = labels.occurrences(texts)
    return [
        {
            "text": labels.shorten(labels.display(text), 24),
            "first": group.start,
            "last": group.stop - 1,
            "gap": words.starts_word(tokens[group.start]) or words.is_special(tokens[group.start]),
            "special": words.is_special(tokens[group.start]),
            "index": number,
            "gloss": (glosses or {}).get(first_of_word.get(group.start, "").rstrip(".,!?")),
        }
        for group, text, number in zip(groups, texts, numbers, strict=True)
    ]


def strips_feed(
    trace: str,
    source: Sequence[str],
    reads: Sequence[str],
    predicts: Sequence[str],
    follow: Sequence[int] = (),
    glosses: Mapping[str, str] | None = None,
    tour: Sequence[Mapping[str, Any]] = (),
    claim: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The strips: source and target chips, and the names that titles use.

    Args:
        trace: the name of the translation.
        source: source tokens.
        reads: decoder input tokens.
        predicts: target tokens.
        follow: for each step the source token that it attends to most, from 0.
        glosses: English words under target words.
        tour: stops of the tour: `{"plot", "text", "step"}`.
        claim: what an example shows, and at which step: `{"step", "text"}`.
    """
    shown = {"source": source, "reads": reads, "predicts": predicts}
    return {
        "trace": trace,
        "steps": len(predicts),
        "source": chips(source),
        "target": chips(predicts, glosses),
        "direction": {"source": direction(source), "target": direction(predicts)},
        "names": {name: [captions.quote(token) for token in tokens] for name, tokens in shown.items()},
        "follow": list(follow),
        "tour": list(tour),
        "claim": claim,
    }


def map_feed(trace: str, view: CheckedHead, largest: int = 360) -> dict[str, Any]:
    """One attention map with everything that is said about it."""
    kind = str(view.kind)
    rows, columns = AXES[kind]
    window = view.window
    return {
        "trace": trace,
        "figure": to_json(heatmap_spec(view, largest)),
        "hue": kind,
        "rows": rows,
        "columns": columns,
        "window": [window.query_start, window.query_stop, window.key_start, window.key_stop],
        "title": f"{SHORT_NAMES[kind]} {labels.head_name(view.layer, view.head)}",
        "about": ABOUT[kind],
        "caption": captions.caption(view),
        "badge": captions.badge(view.audit),
        "sentences": captions.sentences(view),
        "rests": captions.rests(view),
        "fade": kind != "encoder",
        "square": True,
        "largest": largest,
    }


def bars_feed(
    trace: str,
    figure: dict[str, Any],
    follows: str,
    title: str,
    about: str,
    caption: str,
    height: int | None = None,
) -> dict[str, Any]:
    """Bars whose frames follow the step or the source token.

    Args:
        trace: the name of the translation.
        figure: a figure with one frame per position.
        follows: `step` or `source`.
        title: name of the figure.
        about: second line; `{reads}`, `{predicts}`, `{source}` are filled in.
        caption: what it shows.
        height: in px; None takes the width.
    """
    return {
        "trace": trace,
        "figure": to_json(figure),
        "follows": follows,
        "title": title,
        "about": about,
        "caption": caption,
        "height": height,
        "largest": 360,
        "square": False,
    }


def overview_feed(trace: str, figure: dict[str, Any], kind: str, title: str, caption: str) -> dict[str, Any]:
    """The grid of all heads of a kind, whose tiles answer clicks."""
    return {
        "trace": trace,
        "figure": to_json(figure),
        "picks": kind,
        "hue": kind,
        "title": title,
        "about": "",
        "caption": caption,
        "height": figure["layout"]["height"],
        "largest": 900,
        "square": False,
    }


def window_around(length: int, position: int, size: int = LARGEST) -> tuple[int, int]:
    """The part of an axis that is drawn: all of it up to 64 tokens, else a window that moves in half steps.

    Args:
        length: tokens on the axis.
        position: the token that must be inside, from 0.
        size: tokens in a window.

    Returns:
        Start and exclusive stop, from 0.
    """
    if length <= size:
        return 0, length
    half = size // 2
    start = min(max(position // half * half - half // 2, 0), length - size)
    return start, start + size
