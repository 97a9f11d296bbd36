"""The tree of a search: columns are steps, and the thicker a line, the more probable its output so far."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.cells import hover, targets

WON, KEPT, LOST = "won", "kept", "lost"
"""The fates of a branch, by which it is coloured."""
STEPS = 40
"""Most steps that one picture shows."""
ACCENT, BESIDE = style.POSITIVE, style.NEGATIVE
_HUES = {WON: ACCENT, KEPT: "rgba(104,118,138,.95)", LOST: "rgba(128,128,128,.34)"}
_FAINT = "rgba(118,118,118,.85)"
_ROW, _TOP, _BOTTOM = 23, 50, 8
_FONT = 11
_NARROWEST, _WIDEST, _ROOM = 80, 124, 1060
"""Px from one step to the next, and the px that a short tree fills."""
_DOT, _GAP = 5, 7
"""Px from the middle of a dot to its label, and from the label to the line."""
_BOLD = 1.1
"""Ratio of the width of bold letters to that of others."""
_THICKEST, _THINNEST = 9.0, 1.0
_CURVE = np.linspace(0, 1, 9)


@dataclass(frozen=True)
class Branch:
    """One node of the tree, with the line that leads to it."""

    token: str  # the piece
    step: int  # from 0
    parent: int | None  # place of the branch that it continues; None at the first step
    share: float  # how thick the line is, from 0 to 1
    fate: str  # `won`, `kept` or `lost`
    ended: bool  # whether the output ends here
    note: str  # the hover text


@dataclass(frozen=True)
class Beside:
    """A path drawn dashed beside the tree, such as that of greedy search."""

    name: str  # what the legend calls it
    inside: Sequence[int]  # the branches along which it runs, as far as the tree has them
    tokens: Sequence[str] = ()  # the pieces that it writes after leaving the tree
    notes: Sequence[str] = ()  # their hover texts


@dataclass(frozen=True)
class Spot:
    """Where a token is drawn: its column, its row and its width."""

    x: float
    y: float
    width: float


def search_tree(
    branches: Sequence[Branch],  # the nodes, step by step
    names: Mapping[str, str],  # what the legend calls each fate; a fate without a name is left out of it
    beside: Beside | None = None,  # a path drawn dashed
    chosen: int | None = None,  # place of the branch with a ring around it
    first: int = 0,  # the first step drawn, of at most `STEPS`
    start: str = "<s>",  # what the decoder reads first
    ink: str | None = None,  # colour of the tokens that were kept; None for the figure's text colour
) -> go.Figure:
    """Draws a tree without crossing lines; the best path is the straight line at the top.

    A click on a token gives a point whose `customdata` is the place of its branch.
    """
    last = min(_last_step(branches, beside), first + STEPS - 1)
    columns = last - first + 2
    pitch = min(max(_ROOM / columns, _NARROWEST), _WIDEST)
    canvas = _Canvas(branches, beside, first, last, pitch, start)
    data = [
        *canvas.lines(names),
        *canvas.dashes(),
        *canvas.tokens(ink),
        *canvas.ring(chosen),
        canvas.targets(),
    ]
    width = round(pitch * columns) + 16
    return style.figure(style.spec(data, _layout(canvas, width)))


def _last_step(branches: Sequence[Branch], beside: Beside | None) -> int:
    tree = max(each.step for each in branches)
    return tree if beside is None else max(tree, len(beside.inside) + len(beside.tokens) - 1)


def ordered(branches: Sequence[Branch]) -> list[list[int]]:
    """The places of the branches, step by step, so that no two lines cross; the best path comes first."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for place, each in enumerate(branches):
        children[each.parent].append(place)
    for found in children.values():
        found.sort(key=lambda place: branches[place].fate != WON)
    columns = [children[None]]
    while columns[-1]:
        columns.append([child for place in columns[-1] for child in children[place]])
    return columns[:-1]


class _Canvas:
    """The places of everything in the picture, and the traces that draw it."""

    def __init__(
        self,
        branches: Sequence[Branch],
        beside: Beside | None,
        first: int,
        last: int,
        pitch: float,
        begin: str,
    ) -> None:
        self.branches, self.beside = branches, beside
        self.first, self.last, self.pitch, self.begin = first, last, pitch, begin
        shown = ordered(branches)[max(first - 1, 0) : last + 1]
        end = max((each.step for each in branches if each.fate == WON), default=last)
        self.spots = {
            place: self._spot(branches[place].token, branches[place].step, row, branches[place].fate == WON)
            for column in shown
            for row, place in enumerate(column, start=int(branches[column[0]].step > end))
        }
        self.rows = max((spot.y for spot in self.spots.values()), default=0) + 1
        self.start = self._spot(begin, -1, 0) if first == 0 else None
        self.lane = list(self._lane())

    def _spot(self, token: str, step: int, row: float, bold: bool = False) -> Spot:
        size = labels.width(self._text(token)) * _FONT * (_BOLD if bold else 1)
        return Spot(step - self.first + 1, row, (_DOT + size + _GAP) / self.pitch)

    def _text(self, token: str) -> str:
        return labels.fitted(labels.piece(token), (self.pitch - _DOT - 2 * _GAP - 8) / _FONT)

    def _lane(self) -> Iterator[tuple[Spot, str, str]]:
        """The dashed path outside the tree: the spot, the token and the hover text."""
        if self.beside is None:
            return
        told = zip(self.beside.tokens, self.beside.notes, strict=True)
        for step, (token, note) in enumerate(told, start=len(self.beside.inside)):
            if self.first <= step <= self.last:
                yield self._spot(token, step, self.rows + 0.3), token, note

    @property
    def height(self) -> float:
        """Rows of the whole picture."""
        return self.rows + (1.3 if self.lane else 0.0)

    def lines(self, names: Mapping[str, str]) -> list[dict[str, Any]]:
        """The lines of the tree, one trace for each colour and thickness, the best path last."""
        found: dict[tuple[str, float], list[np.ndarray]] = defaultdict(list)
        for place, each in enumerate(self.branches):
            before = self.start if each.parent is None else self.spots.get(each.parent)
            if place in self.spots and before is not None and self.first <= each.step <= self.last:
                found[each.fate, _thickness(each.share)].append(_curve(before, self.spots[place]))
        keys = [key for fate in (LOST, KEPT, WON) for key in sorted(found) if key[0] == fate]
        drawn = [_line(found[key], {"color": _HUES[key[0]], "width": key[1]}) for key in keys]
        return drawn + [_sample(name, {"color": _HUES[fate], "width": 4}) for fate, name in names.items()]

    def dashes(self) -> list[dict[str, Any]]:
        """The dashed path: a little under the tokens that it shares with the tree, then in a lane below."""
        if self.beside is None:
            return []
        inside = [self.spots[place] for place in self.beside.inside if place in self.spots]
        path = [*([] if self.start is None else [self.start]), *inside]
        under = [Spot(each.x, each.y + 0.26, 0) for each in path] + [spot for spot, *_ in self.lane]
        if len(under) < 2:
            return []
        pieces = [_curve(a, b) for a, b in itertools.pairwise(under)]
        line = {"color": BESIDE, "width": 2, "dash": "dash"}
        return [_line(pieces, line), _sample(self.beside.name, line)]

    def tokens(self, ink: str | None) -> list[dict[str, Any]]:
        """The dots and their labels."""
        found: dict[str, list[int]] = defaultdict(list)
        for place in self._visible():
            found[self.branches[place].fate].append(place)
        drawn = [self._labels(places, fate, ink) for fate, places in found.items()]
        spots = [] if self.start is None else [(self.start, self.begin)]
        spots += [(spot, token) for spot, token, _ in self.lane]
        if spots:
            texts = [labels.escape(self._text(token)) for _, token in spots]
            drawn.append(_written([spot for spot, _ in spots], texts, {"size": 5, "color": BESIDE}, {}))
        return drawn

    def _labels(self, places: Sequence[int], fate: str, ink: str | None) -> dict[str, Any]:
        texts = [labels.escape(self._text(self.branches[place].token)) for place in places]
        texts = [f"<b>{text}</b>" for text in texts] if fate == WON else texts
        ends = ["square" if self.branches[place].ended else "circle" for place in places]
        dot = {"size": 5 if fate == LOST else 7, "symbol": ends}
        font = {"color": color} if (color := {WON: ACCENT, KEPT: ink, LOST: _FAINT}[fate]) else {}
        hue = _HUES[fate] if fate != LOST else _FAINT
        return _written([self.spots[place] for place in places], texts, dot | {"color": hue}, font)

    def ring(self, chosen: int | None) -> list[dict[str, Any]]:
        """A frame around the chosen token."""
        if chosen is None or chosen not in self.spots:
            return []
        spot = self.spots[chosen]
        x = [spot.x - 8 / self.pitch, spot.x + spot.width]
        y = [spot.y - 0.43, spot.y + 0.43]
        corners = {"x": [x[0], x[1], x[1], x[0], x[0]], "y": [y[0], y[0], y[1], y[1], y[0]]}
        line = {"color": "rgba(128,128,128,1)", "width": 1.6}
        return [{"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"} | corners | _UNNAMED]

    def targets(self) -> dict[str, Any]:
        """Unseen squares over dot and label, which take the pointer and the click."""
        x, y, places, notes = list[float](), list[float](), list[int](), list[str]()
        for place in self._visible():
            spot = self.spots[place]
            count = max(2, round(spot.width * self.pitch / 16))
            x += np.linspace(spot.x, spot.x + max(0.0, spot.width - 14 / self.pitch), count).tolist()
            y += [spot.y] * count
            places += [place] * count
            notes += [hover(self.branches[place].note)] * count
        for spot, _, note in self.lane:
            x, y, places, notes = [*x, spot.x], [*y, spot.y], [*places, -1], [*notes, hover(note)]
        return targets(np.array(x, np.float32), np.array(y, np.float32), places, notes, 19)

    def _visible(self) -> list[int]:
        return [i for i in self.spots if self.first <= self.branches[i].step <= self.last]


_UNNAMED = {"showlegend": False}


def _thickness(share: float) -> float:
    """Px of a line, in whole px, so that a picture needs few traces."""
    return float(round(_THINNEST + (_THICKEST - _THINNEST) * share))


def _curve(a: Spot, b: Spot) -> np.ndarray:
    """(points, 2): from the end of one label to the next dot, level at both ends."""
    start, stop = a.x + a.width, b.x - (_DOT / 100 if b.width else 0)
    if a.y == b.y:
        return np.array([[start, a.y], [stop, b.y]])
    bend = _CURVE**2 * (3 - 2 * _CURVE)
    return np.stack([start + (stop - start) * _CURVE, a.y + (b.y - a.y) * bend], axis=1)


def _line(pieces: Sequence[np.ndarray], line: dict[str, Any]) -> dict[str, Any]:
    """Lines as one trace, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([part for piece in pieces for part in (piece, gap)]).astype(np.float32)
    drawn = {"x": points[:, 0], "y": points[:, 1], "line": line, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", **drawn, **_UNNAMED}


def _sample(name: str, line: dict[str, Any]) -> dict[str, Any]:
    """An entry of the legend."""
    return {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": name, "line": line}


def _written(
    spots: Sequence[Spot], texts: Sequence[str], marker: dict[str, Any], font: dict[str, Any]
) -> dict[str, Any]:
    """Dots with a label at the right of each."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [spot.x for spot in spots],
        "y": [spot.y for spot in spots],
        "text": texts,
        "textposition": "middle right",
        "textfont": {"size": _FONT} | font,
        "marker": marker,
        "hoverinfo": "skip",
        "cliponaxis": False,
    } | _UNNAMED


def _layout(canvas: _Canvas, width: int) -> dict[str, Any]:
    steps = range(canvas.first, canvas.last + 1)
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "automargin": False, "ticks": ""}
    columns = canvas.last - canvas.first + 2
    return {
        "width": width,
        "height": round(_TOP + _BOTTOM + _ROW * canvas.height),
        "margin": {"l": 4, "r": 4, "t": _TOP, "b": _BOTTOM},
        "xaxis": {
            **still,
            "range": [-12 / canvas.pitch if canvas.first == 0 else 0.4, columns],
            "side": "top",
            "tickvals": [step - canvas.first + 1 for step in steps],
            "ticktext": [f"{labels.count(step)}" for step in steps],
            "tickfont": {"size": 10},
        },
        "yaxis": {**still, "range": [canvas.height - 0.4, -0.6], "visible": False},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
        **style.LEGEND,
    }
