"""The tree of a search: columns are steps, and the thicker a line, the more probable its output so
far."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

WON, KEPT, LOST = "won", "kept", "lost"
"""The fates of a branch, by which it is coloured."""
STEPS = 40
"""Most steps that one picture shows."""
ACCENT, BESIDE_HUE = style.POSITIVE, style.NEGATIVE
_HUES = {WON: ACCENT, KEPT: "rgba(104,118,138,.95)", LOST: "rgba(128,128,128,.34)"}
_FAINT = "rgba(118,118,118,.85)"
_ROW, _TOP, _BOTTOM = 23, 50, 8
_FONT = 11
_NARROWEST, _WIDEST, _ROOM = 80, 124, 950
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


class Spot(NamedTuple):
    """Where a token is drawn: its column, its row and its width."""

    x: float
    y: float
    width: float


def search_tree(
    branches: Sequence[Branch],
    names: Mapping[str, str],
    beside: Beside | None = None,
    chosen: int | None = None,
    first: int = 0,
    start: str = "<s>",
    ink: str | None = None,
) -> go.Figure:
    """A tree without crossing lines, the best path at the top; a click's `customdata` is a branch's
    place."""
    last = max(branch.step for branch in branches)
    if beside is not None:
        last = max(last, len(beside.inside) + len(beside.tokens) - 1)
    last = min(last, first + STEPS - 1)
    columns = last - first + 2
    pitch = min(max(_ROOM / columns, _NARROWEST), _WIDEST)
    tree = _Tree(branches, beside, first, last, pitch, start)
    steps = [str(labels.count(step)) for step in range(first, last + 1)]
    across = plot.named_axis(steps, 10, side="top", tickvals=list(range(1, columns)))
    return plot.figure(
        [*tree.lines(names), *tree.dashes(), *tree.tokens(ink), *tree.ring(chosen), tree.targets()],
        across | {"range": [-12 / pitch if first == 0 else 0.4, columns]},
        plot.HIDDEN | {"range": [tree.height - 0.4, -0.6]},
        round(_TOP + _BOTTOM + _ROW * tree.height),
        (4, _TOP, 4, _BOTTOM),
        width=round(pitch * columns) + 16,
        **plot.CLICKS,
        **plot.legend(),
    )


def ordered(branches: Sequence[Branch]) -> list[list[int]]:
    """The places of the branches, step by step, so that no two lines cross; the best path comes
    first."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for place, each in enumerate(branches):
        children[each.parent].append(place)
    for found in children.values():
        found.sort(key=lambda place: branches[place].fate != WON)
    columns = [children[None]]
    while columns[-1]:
        columns.append([child for place in columns[-1] for child in children[place]])
    return columns[:-1]


class _Tree:
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
        self.branches = branches
        self.beside = beside
        self.steps = range(first, last + 1)
        self.pitch = pitch
        end = max((branch.step for branch in branches if branch.fate == WON), default=last)
        self.spots: dict[int, Spot] = {}
        for column in ordered(branches)[max(first - 1, 0) : last + 1]:
            for row, place in enumerate(column, start=int(branches[column[0]].step > end)):
                each = branches[place]
                self.spots[place] = self._spot(each.token, each.step, row, each.fate == WON)
        rows = max((spot.y for spot in self.spots.values()), default=0) + 1
        self.start = [(self._spot(begin, -1, 0), begin)] if first == 0 else []
        self.visible = [i for i in self.spots if branches[i].step in self.steps]
        left = zip(beside.tokens, beside.notes, strict=True) if beside else ()
        self.lane = [
            (self._spot(token, step, rows + 0.3), token, note)
            for step, (token, note) in enumerate(left, start=len(beside.inside) if beside else 0)
            if step in self.steps
        ]
        self.height = rows + (1.3 if self.lane else 0.0)

    def _spot(self, token: str, step: int, row: float, bold: bool = False) -> Spot:
        size = labels.width(self._text(token)) * _FONT * (_BOLD if bold else 1)
        return Spot(step - self.steps.start + 1, row, (_DOT + size + _GAP) / self.pitch)

    def _text(self, token: str) -> str:
        return labels.fitted(labels.piece(token), (self.pitch - _DOT - 2 * _GAP - 8) / _FONT)

    def lines(self, names: Mapping[str, str]) -> list[Spec]:
        """The lines of the tree, one trace for each colour and thickness, the best path last."""
        found: dict[tuple[str, float], list[np.ndarray]] = defaultdict(list)
        for place in sorted(self.visible):
            each = self.branches[place]
            root = self.start[0][0] if self.start else None
            before = root if each.parent is None else self.spots.get(each.parent)
            if before is not None:  # in whole px, so that a picture needs few traces
                width = float(round(_THINNEST + (_THICKEST - _THINNEST) * each.share))
                found[each.fate, width].append(_curve(before, self.spots[place]))
        keys = [key for fate in (LOST, KEPT, WON) for key in sorted(found) if key[0] == fate]
        drawn = [_line(found[key], {"color": _HUES[key[0]], "width": key[1]}) for key in keys]
        return drawn + [
            plot.nothing(mode="lines", name=name, line={"color": _HUES[fate], "width": 4})
            for fate, name in names.items()
        ]

    def dashes(self) -> list[Spec]:
        """The dashed path: a little under the tokens that it shares with the tree, then in a lane
        below."""
        inside = self.beside.inside if self.beside else ()
        path = [
            *(spot for spot, _ in self.start),
            *(self.spots[at] for at in inside if at in self.spots),
        ]
        under = [Spot(each.x, each.y + 0.26, 0) for each in path] + [spot for spot, *_ in self.lane]
        if self.beside is None or len(under) < 2:
            return []
        line = {"color": BESIDE_HUE, "width": 2, "dash": "dash"}
        return [
            _line([_curve(a, b) for a, b in pairwise(under)], line),
            plot.nothing(mode="lines", name=self.beside.name, line=line),
        ]

    def tokens(self, ink: str | None) -> list[Spec]:
        """The dots and their labels."""
        found: dict[str, list[int]] = defaultdict(list)
        for place in self.visible:
            found[self.branches[place].fate].append(place)
        drawn = []
        for fate, places in found.items():
            texts = [labels.escape(self._text(self.branches[place].token)) for place in places]
            texts = [f"<b>{text}</b>" for text in texts] if fate == WON else texts
            ends = ["square" if self.branches[place].ended else "circle" for place in places]
            hue = _FAINT if fate == LOST else _HUES[fate]
            dot = {"size": 5 if fate == LOST else 7, "symbol": ends, "color": hue}
            colour = {WON: ACCENT, KEPT: ink, LOST: _FAINT}[fate]
            drawn.append(_written([self.spots[place] for place in places], texts, dot, colour))
        spots = [*self.start, *((spot, token) for spot, token, _ in self.lane)]
        if spots:
            texts = [labels.escape(self._text(token)) for _, token in spots]
            drawn.append(
                _written([spot for spot, _ in spots], texts, {"size": 5, "color": BESIDE_HUE})
            )
        return drawn

    def ring(self, chosen: int | None) -> list[Spec]:
        """A frame around the chosen token."""
        if chosen is None or chosen not in self.spots:
            return []
        spot = self.spots[chosen]
        left = spot.x - 8 / self.pitch
        right = spot.x + spot.width
        top = spot.y - 0.43
        bottom = spot.y + 0.43
        x = [left, right, right, left, left]
        y = [top, top, bottom, bottom, top]
        return [
            plot.points(x, y, "lines", line={"color": style.FRAME, "width": 1.6}, showlegend=False)
        ]

    def targets(self) -> Spec:
        """Unseen squares over dot and label, which take the pointer and the click."""
        x = list[float]()
        y = list[float]()
        places = list[int]()
        notes = list[str]()
        for place in self.visible:
            spot = self.spots[place]
            count = max(2, round(spot.width * self.pitch / 16))
            x += np.linspace(
                spot.x, spot.x + max(0.0, spot.width - 14 / self.pitch), count
            ).tolist()
            y += [spot.y] * count
            places += [place] * count
            notes += [self.branches[place].note] * count
        for spot, _, note in self.lane:
            x = [*x, spot.x]
            y = [*y, spot.y]
            places = [*places, -1]
            notes = [*notes, note]
        return plot.targets(np.array(x, np.float32), np.array(y, np.float32), places, notes, 19)


def _curve(a: Spot, b: Spot) -> np.ndarray:
    """(points, 2): from the end of one label to the next dot, level at both ends."""
    start = a.x + a.width
    stop = b.x - (_DOT / 100 if b.width else 0)
    if a.y == b.y:
        return np.array([[start, a.y], [stop, b.y]])
    bend = _CURVE**2 * (3 - 2 * _CURVE)
    return np.stack([start + (stop - start) * _CURVE, a.y + (b.y - a.y) * bend], axis=1)


def _line(pieces: Sequence[np.ndarray], line: Spec) -> Spec:
    """Lines as one trace, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    x, y = np.concatenate([part for piece in pieces for part in (piece, gap)]).astype(np.float32).T
    return plot.points(x, y, "lines", line=line, showlegend=False)


def _written(
    spots: Sequence[Spot], texts: Sequence[str], marker: Spec, colour: str | None = None
) -> Spec:
    """Dots with a label at the right of each."""
    font = {"textfont": {"size": _FONT} | ({"color": colour} if colour else {})}
    x = [spot.x for spot in spots]
    y = [spot.y for spot in spots]
    return plot.points(
        x, y, "markers+text", text=texts, marker=marker, showlegend=False, **plot.BESIDE | font
    )
