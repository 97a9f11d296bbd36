"""The tree of a search: columns are steps, and a line is the thicker the more probable it is."""

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
    """A tree without crossing lines, the best path at the top.

    A click's `customdata` is a branch's place.
    """
    last = max(branch.step for branch in branches)
    if beside is not None:
        last = max(last, len(beside.inside) + len(beside.tokens) - 1)
    last = min(last, first + STEPS - 1)
    columns = last - first + 2
    pitch = min(max(_ROOM / columns, _NARROWEST), _WIDEST)
    steps = range(first, last + 1)
    tree = _Tree(branches, beside, steps=steps, pitch=pitch, begin=start)
    numbers = [str(labels.count(step)) for step in steps]
    across = plot.named_axis(numbers, 10, side="top", tickvals=list(range(1, columns)))
    left = -12 / pitch if first == 0 else 0.4
    return plot.figure(
        [*tree.lines(names), *tree.dashes(), *tree.tokens(ink), *tree.ring(chosen), tree.targets()],
        across | {"range": [left, columns]},
        plot.HIDDEN | {"range": [tree.height - 0.4, -0.6]},
        round(_TOP + _BOTTOM + _ROW * tree.height),
        (4, _TOP, 4, _BOTTOM),
        width=round(pitch * columns) + 16,
        **plot.CLICKS,
        **plot.legend(),
    )


def ordered(branches: Sequence[Branch]) -> list[list[int]]:
    """The places of the branches by step, so that no two lines cross; the best path comes first."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for place, branch in enumerate(branches):
        children[branch.parent].append(place)
    for siblings in children.values():
        siblings.sort(key=lambda place: branches[place].fate != WON)
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
        *,
        steps: range,  # those in the picture
        pitch: float,  # px from one step to the next
        begin: str,  # what stands before the first step
    ) -> None:
        self.branches = branches
        self.beside = beside
        self.steps = steps
        self.pitch = pitch
        first = steps.start
        end = max(
            (branch.step for branch in branches if branch.fate == WON), default=steps.stop - 1
        )
        self.spots: dict[int, Spot] = {}
        for column in ordered(branches)[max(first - 1, 0) : steps.stop]:
            for row, place in enumerate(column, start=int(branches[column[0]].step > end)):
                branch = branches[place]
                self.spots[place] = self._spot(branch.token, branch.step, row, branch.fate == WON)
        self.start: list[tuple[Spot, str]] = []
        if first == 0:
            self.start.append((self._spot(begin, -1, 0), begin))
        self.visible = [i for i in self.spots if branches[i].step in self.steps]
        rows = max((spot.y for spot in self.spots.values()), default=0) + 1
        self.lane: list[tuple[Spot, str, str]] = []
        if beside is not None:
            self.lane = self._lane(beside, rows + 0.3)
        self.height = rows
        if self.lane:
            self.height += 1.3

    def _lane(self, beside: Beside, row: float) -> list[tuple[Spot, str, str]]:
        """What a path writes after leaving the tree: where each token stands, its text and note."""
        tokens = zip(beside.tokens, beside.notes, strict=True)
        return [
            (self._spot(token, step, row), token, note)
            for step, (token, note) in enumerate(tokens, start=len(beside.inside))
            if step in self.steps
        ]

    def _spot(self, token: str, step: int, row: float, bold: bool = False) -> Spot:
        size = labels.width(self._text(token)) * _FONT
        if bold:
            size *= _BOLD
        return Spot(step - self.steps.start + 1, row, (_DOT + size + _GAP) / self.pitch)

    def _text(self, token: str) -> str:
        return labels.fitted(labels.piece(token), (self.pitch - _DOT - 2 * _GAP - 8) / _FONT)

    def lines(self, names: Mapping[str, str]) -> list[Spec]:
        """The lines of the tree, one trace for each colour and thickness, the best path last."""
        curves: dict[tuple[str, float], list[np.ndarray]] = defaultdict(list)
        for place in sorted(self.visible):
            branch = self.branches[place]
            before = self._before(branch)
            if before is not None:  # in whole px, so that a picture needs few traces
                width = float(round(_THINNEST + (_THICKEST - _THINNEST) * branch.share))
                curves[branch.fate, width].append(_curve(before, self.spots[place]))
        looks = [look for fate in (LOST, KEPT, WON) for look in sorted(curves) if look[0] == fate]
        lines = [
            _line(curves[fate, width], {"color": _HUES[fate], "width": width})
            for fate, width in looks
        ]
        return lines + [
            plot.nothing(mode="lines", name=name, line={"color": _HUES[fate], "width": 4})
            for fate, name in names.items()
        ]

    def _before(self, branch: Branch) -> Spot | None:
        """Where the line to a branch begins; None if that is not in the picture."""
        if branch.parent is not None:
            return self.spots.get(branch.parent)
        if self.start:
            return self.start[0][0]
        return None

    def dashes(self) -> list[Spec]:
        """The dashed path: a little under the tokens that it shares, then in a lane below."""
        if self.beside is None:
            return []
        path = [
            *(spot for spot, _ in self.start),
            *(self.spots[place] for place in self.beside.inside if place in self.spots),
        ]
        under = [Spot(spot.x, spot.y + 0.26, 0) for spot in path] + [spot for spot, *_ in self.lane]
        if len(under) < 2:
            return []
        line = {"color": BESIDE_HUE, "width": 2, "dash": "dash"}
        return [
            _line([_curve(a, b) for a, b in pairwise(under)], line),
            plot.nothing(mode="lines", name=self.beside.name, line=line),
        ]

    def tokens(self, ink: str | None) -> list[Spec]:
        """The dots and their labels."""
        by_fate: dict[str, list[int]] = defaultdict(list)
        for place in self.visible:
            by_fate[self.branches[place].fate].append(place)
        traces = [self._of_fate(fate, places, ink) for fate, places in by_fate.items()]
        outside = [*self.start, *((spot, token) for spot, token, _ in self.lane)]
        if outside:
            spots = [spot for spot, _ in outside]
            texts = [labels.escape(self._text(token)) for _, token in outside]
            traces.append(_written(spots, texts, {"size": 5, "color": BESIDE_HUE}))
        return traces

    def _of_fate(self, fate: str, places: Sequence[int], ink: str | None) -> Spec:
        """The dots and labels of the branches of one fate; an output ends at a square."""
        branches = [self.branches[place] for place in places]
        texts = [
            labels.bold(labels.escape(self._text(branch.token)), fate == WON) for branch in branches
        ]
        size, hue = {WON: (7, ACCENT), KEPT: (7, _HUES[KEPT]), LOST: (5, _FAINT)}[fate]
        symbols = ["square" if branch.ended else "circle" for branch in branches]
        dot = {"size": size, "symbol": symbols, "color": hue}
        colour = {WON: ACCENT, KEPT: ink, LOST: _FAINT}[fate]
        return _written([self.spots[place] for place in places], texts, dot, colour)

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
            x.append(spot.x)
            y.append(spot.y)
            places.append(-1)
            notes.append(note)
        return plot.targets(np.array(x, np.float32), np.array(y, np.float32), places, notes, 19)


def _curve(a: Spot, b: Spot) -> np.ndarray:
    """(points, 2): from the end of one label to the next dot, level at both ends."""
    start = a.x + a.width
    stop = b.x
    if b.width:
        stop -= _DOT / 100
    if a.y == b.y:
        return np.array([[start, a.y], [stop, b.y]])
    bend = _CURVE**2 * (3 - 2 * _CURVE)
    return np.stack([start + (stop - start) * _CURVE, a.y + (b.y - a.y) * bend], axis=1)


def _line(pieces: Sequence[np.ndarray], line: Spec) -> Spec:
    """Lines as one trace, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    corners = np.concatenate([rows for piece in pieces for rows in (piece, gap)])
    x, y = corners.astype(np.float32).T
    return plot.points(x, y, "lines", line=line, showlegend=False)


def _written(
    spots: Sequence[Spot], texts: Sequence[str], marker: Spec, colour: str | None = None
) -> Spec:
    """Dots with a label at the right of each."""
    font: Spec = {"size": _FONT}
    if colour:
        font["color"] = colour
    x = [spot.x for spot in spots]
    y = [spot.y for spot in spots]
    look = plot.BESIDE | {"textfont": font}
    return plot.points(x, y, "markers+text", text=texts, marker=marker, showlegend=False, **look)
