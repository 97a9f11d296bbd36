"""One query's path as lectures draw it: from the vectors of a few keys up to the output of the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

LECTURE_KEYS = 4
_GREY = "rgba(128,128,128,.14)"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Symbols:
    """Vectors and numbers of attention in the notation of a text."""

    x: str  # the vector that the query is computed from
    source: str  # the vectors that keys and values are computed from
    score: str  # the score of a key, before the softmax
    weight: str  # the weight of a key, after the softmax
    output: str  # the output of the head for one query
    columns: bool  # whether vectors are columns, and a position stands at the top of a symbol

    def numbered(self, symbol: str, position: int) -> str:
        """A symbol with its position (from 0), in Plotly's markup: raised in columns, lowered in rows."""
        number = str(labels.count(position))
        return symbol + (number.translate(_SUPERSCRIPTS) if self.columns else f"<sub>{number}</sub>")

    def result(self, position: int) -> str:
        """The output for one query, in Plotly's markup; a number at "head" would name another head."""
        return self.numbered(self.output, position) if self.columns else self.output

    def matrix(self, name: str) -> str:
        """The weight matrix Q, K, V or O, in Plotly's markup."""
        return f"W<sup>{name.lower() if self.columns else name}</sup>"

    def projected(self, position: int) -> str:
        """The formula of a position's query: q = x W^Q, or q = W^q a."""
        q, x = self.numbered("q", position), self.numbered(self.x, position)
        return f"{q} = {self.matrix('Q')}{x}" if self.columns else f"{q} = {x}{self.matrix('Q')}"


def lecture_keys(weights: np.ndarray, mask: np.ndarray) -> list[int]:
    """The keys that the drawing shows: the four visible keys of most weight, in reading order."""
    seen = np.flatnonzero(mask)
    best = seen[np.argsort(-weights[seen], kind="stable")][:LECTURE_KEYS]
    return sorted(int(i) for i in best)


def lecture_spec(
    kind: str,  # encoder, decoder or cross
    query: tuple[str, int],  # token and position (from 0) of the query
    tokens: Sequence[str],  # all keys
    scores: np.ndarray,  # scores before the mask (keys,)
    weights: np.ndarray,  # attention weights (keys,)
    mask: np.ndarray,  # true where the query may attend (keys,)
    symbols: Symbols,  # how the vectors are written
) -> Spec:
    """The path from one query to its output."""
    keys, names = lecture_keys(weights, mask), labels.names(tokens, 9)
    token, position = labels.short(query[0], 9), query[1]
    boxes = [
        _box(0, 0, f"{symbols.numbered(symbols.x, position)}<br>{token}"),
        _box(0, 1, symbols.projected(position)),
        _box(0, 5, f"<b>{symbols.result(position)}</b> = Σ {symbols.weight} v"),
    ]
    lines = [_link((0, 0.2), (0, 0.8))]
    for x, key in enumerate(keys, start=1):
        source, k, v = (symbols.numbered(each, key) for each in (symbols.source, "k", "v"))
        left, right, weight = x - 0.2, x + 0.27, float(weights[key])
        boxes += [
            _box(x, 0, f"{source}<br>{labels.escape(names[key])}"),
            _box(left, 1, k),
            _box(right, 3.8, v),
            _box(left, 2, f"{symbols.score} = {labels.number(float(scores[key]))}"),
            _box(left, 3.8, f"{symbols.weight} = <b>{weight:.2f}</b>"),
        ]
        lines += [
            _link((left, 0.3), (left, 0.8)),
            _link((left, 1.2), (left, 1.8)),
            _link((right, 0.3), (right, 3.6)),
            _link((0.1, 1.2), (x - 0.3, 1.8)),
            _link((left, 2.2), (left, 2.65)),
            _link((left, 3.15), (left, 3.6)),
            _link((x, 4.05), (0.12, 4.75), 1 + 9 * weight, style.rgba(style.HUES[kind], 0.75)),
        ]
    softmax = plot.rectangle(0.5, len(keys) + 0.5, 2.65, 3.15, width=0, fillcolor=_GREY)
    return plot.spec(
        lines,
        plot.HIDDEN | {"range": [-0.6, len(keys) + 0.6]},
        plot.HIDDEN | {"range": [-0.45, 5.4]},
        330,
        annotations=[*boxes, plot.note("softmax", 1.5, 2.9, borderpad=0)],
        shapes=[softmax],
    )


def _box(x: float, y: float, text: str) -> Spec:
    return plot.note(text, x, y, bordercolor="rgba(128,128,128,.6)", borderpad=3, bgcolor=_GREY)


def _link(
    start: tuple[float, float], end: tuple[float, float], width: float = 1, colour: str = style.NEUTRAL
) -> Spec:
    line = {"width": width, "color": style.NEUTRAL if width == 1 else colour}
    return plot.points([start[0], end[0]], [start[1], end[1]], "lines", line=line)
