"""The legend of a sheet: what the colours of each kind mean, and the hatching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from figures.base import style
from figures.paper.draw import GREY, Pen, colours
from figures.paper.layout import LINE, Measure, flowing

_SIDE = 0.9
"""Side of a square, in multiples of the font size."""
_AIR = 0.6
"""Space between two signs, in multiples of the font size."""


@dataclass(frozen=True)
class Sign:
    """A word of the legend, after its squares."""

    text: str  # the word
    share: float | None = None  # the share of the full colour that the squares show; None if there are none
    hatched: bool = False  # whether a hatched square stands there instead


class Legend:
    """The signs of a sheet, in as many lines as they need."""

    def __init__(
        self,
        kinds: Sequence[str],  # the kinds on the sheet; each has a square of its own
        masked: bool,  # whether masked cells are on the sheet
        scale: str,  # how weights become colours
        letters: float,  # the font size in pt
        room: float,  # width of the sheet in pt
        measure: Measure,  # the width of a text
    ) -> None:
        self._kinds, self._letters, self._measure = tuple(kinds), letters, measure
        signs = [Sign("weight"), *(Sign(text, share) for text, share in style.stops(scale))]
        signs += [Sign("masked", hatched=True)] * masked
        rows = flowing([self._width(sign) for sign in signs], room, _AIR * letters)
        self._rows = [[signs[i] for i in row] for row in rows]

    @property
    def height(self) -> float:
        """Height of all lines in pt."""
        return len(self._rows) * LINE * self._letters

    def draw(self, pen: Pen, y: float) -> None:
        """Draws the legend from a height in pt on."""
        for row in self._rows:
            x = 0.0
            for sign in row:
                self._sign(pen, sign, x, y)
                x += self._width(sign) + _AIR * self._letters
            y += LINE * self._letters

    def _squares(self, sign: Sign) -> float:
        """Width in pt of the squares and the gap after them."""
        count = 1 if sign.hatched else len(self._kinds) * (sign.share is not None)
        return (count + 0.3 * bool(count)) * _SIDE * self._letters

    def _width(self, sign: Sign) -> float:
        return self._squares(sign) + self._measure(sign.text)

    def _sign(self, pen: Pen, sign: Sign, x: float, y: float) -> None:
        side, down = _SIDE * self._letters, y + _SIDE * self._letters
        if sign.share is not None:
            for i, kind in enumerate(self._kinds):
                pen.box(x + i * side, y, side, side, facecolor=colours(np.array(sign.share), kind))
        if sign.hatched:
            pen.hatched(x, y, side, side)
            pen.box(x, y, side, side)
        pen.write(x + self._squares(sign), down - 0.12 * self._letters, sign.text, color=GREY)
