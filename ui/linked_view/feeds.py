"""What the linked view is fed with: chips of the strips, maps, bars, as plain JSON values."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from figures import captions, heatmap, labels
from figures.captions import CheckedHead
from figures.heatmap import LARGEST

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


def _byte(token: str) -> int | None:
    is_byte = len(token) == 6 and token.startswith("<0x") and token.endswith(">")
    return int(token[3:5], 16) if is_byte else None


def _spans(tokens: Sequence[str]) -> list[tuple[int, int, str]]:
    """Positions that form one chip, as (first, last, text): the byte pieces of one character stay together."""
    spans: list[tuple[int, int, str]] = []
    first, held = 0, b""
    for i, token in enumerate(tokens):
        value = _byte(token)
        if value is None:
            spans += _broken(first, held)
            held = b""
            spans.append((i, i, token))
            continue
        if not held:
            first = i
        held += bytes([value])
        try:
            spans.append((first, i, held.decode("utf-8")))
            held = b""
        except UnicodeDecodeError:
            if len(held) == 4:
                spans += _broken(first, held)
                held = b""
    return spans + _broken(first, held)


def _broken(first: int, held: bytes) -> list[tuple[int, int, str]]:
    return [(first + i, first + i, f"<0x{value:02X}>") for i, value in enumerate(held)]


def chips(tokens: Sequence[str], glosses: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Turns tokens into chips: readable text, positions, gap before a word, index of repeated tokens, gloss."""
    spans = _spans(tokens)
    texts = [text for _, _, text in spans]
    words = _words(texts)
    numbers = labels.occurrences(texts)
    return [
        {
            "text": labels.shorten(labels.display(text), 24),
            "first": first,
            "last": last,
            "gap": text.startswith(labels.WORD_START) or labels.is_special(text),
            "special": labels.is_special(text),
            "index": number,
            "gloss": (glosses or {}).get(word),
        }
        for (first, last, text), number, word in zip(spans, numbers, words, strict=True)
    ]


def _words(texts: Sequence[str]) -> list[str]:
    """For each chip that starts a word the whole word, for all others nothing."""
    words = [""] * len(texts)
    start = 0
    for i, text in enumerate(texts):
        if text.startswith(labels.WORD_START) or labels.is_special(text) or not text.isalnum():
            start = i
        words[start] += text.removeprefix(labels.WORD_START)
    return words


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
        "figure": heatmap(view, compact=True).to_json(),
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
    trace: str, figure: go.Figure, follows: str, title: str, about: str, caption: str, height: int | None = None
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
        "figure": figure.to_json(),
        "follows": follows,
        "title": title,
        "about": about,
        "caption": caption,
        "height": height,
        "largest": 360,
        "square": False,
    }


def overview_feed(trace: str, figure: go.Figure, kind: str, title: str, caption: str) -> dict[str, Any]:
    """The grid of all heads of a kind, whose tiles answer clicks."""
    return {
        "trace": trace,
        "figure": figure.to_json(),
        "picks": kind,
        "title": title,
        "about": "",
        "caption": caption,
        "height": figure.layout.height,
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
