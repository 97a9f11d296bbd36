"""Hues, colour scales and the fixed frame of every map."""

import base64
import json
import math
from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

import numpy as np
import plotly.graph_objects as go

Spec = dict[str, Any]
"""A figure, or a part of one, as plotly.js reads it."""
HUES = {"encoder": "#0072B2", "decoder": "#009E73", "cross": "#D55E00"}
NEUTRAL = "rgba(128,128,128,.55)"
CHOSEN = "rgba(128,128,128,.95)"
FRAME, LINE, GRID = (f"rgba(128,128,128,{alpha})" for alpha in ("1", ".9", ".25"))
"""Greys of frames, of thin lines and of the lines behind numbers."""
SERIES = (("#E69F00", "solid"), ("#56B4E9", "dash"), ("#CC79A7", "dot"), ("#999999", "dashdot"))
"""Colours (Okabe and Ito) and line styles of what is drawn together.

None is the hue of an attention kind.
"""
HATCH = {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": "rgba(128,128,128,.6)"}
NEGATIVE, POSITIVE = "#B8860B", "#9457BE"
"""The ends of the diverging scale, amber and purple: no attention kind's hue, safe for colour
blindness."""
FAINTEST = 0.08
SCALES = ("linear", "sqrt", "log")
"""Colour of a weight: by its value, its square root, or its logarithm from 0.001 up."""
SCALE_NAMES = {"linear": "linear", "sqrt": "square root", "log": "logarithmic from 0.001"}
_STOPS = {
    "linear": (0, 0.25, 0.5, 0.75, 1),
    "sqrt": (0, 0.05, 0.2, 0.5, 1),
    "log": (0.001, 0.01, 0.1, 1),
}
MARGIN = {"l": 88, "t": 88, "r": 4, "b": 4}
"""Margin in px for labels as wide as `labels.ROOM`, plus a title outside them."""
SIZE = 330
LARGE = 450


def rgba(hue: str, alpha: float) -> str:
    """Writes a `#RRGGBB` hue with an opacity from 0 to 1."""
    red, green, blue = (int(hue[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


DIVERGING = [(0.0, NEGATIVE), (0.5, rgba(NEGATIVE, 0)), (0.5, rgba(POSITIVE, 0)), (1.0, POSITIVE)]
"""The scale of signed numbers and differences, transparent at zero: draw with `zmin=-m, zmax=m`."""
_MASKED_END = 0.5 / 255
SCALES_OF = {
    kind: [
        (0.0, rgba(hue, 0)),
        (_MASKED_END, rgba(hue, 0)),
        (_MASKED_END, rgba(hue, FAINTEST)),
        (1.0, rgba(hue, 1)),
    ]
    for kind, hue in HUES.items()
}
"""By kind, the scale of levels 0 to 255, on any background: level 0 is masked and transparent."""


def strength(weights: np.ndarray, scale: str = "linear") -> np.ndarray:
    """Turns weights into shares of the full colour, from 0 to 1; ValueError without the scale."""
    if scale not in SCALES:
        raise ValueError(f"There is no scale {scale!r}; there are {', '.join(SCALES)}.")
    clipped: np.ndarray = np.clip(weights, 0, 1)
    if scale == "log":
        return 1 + np.log10(np.maximum(clipped, 1e-3)) / 3
    if scale == "sqrt":
        return np.sqrt(clipped)
    return clipped


def stops(scale: str = "linear") -> list[tuple[str, float]]:
    """A few weights for a legend, each with its share of the full colour."""
    shares = strength(np.array(_STOPS[scale]), scale)
    texts = [f"{weight:g}" for weight in _STOPS[scale]]
    if scale == "log":
        texts[0] = f"≤ {texts[0]}"
    return [(text, round(float(share), 3)) for text, share in zip(texts, shares, strict=True)]


def marks(kind: str, scale: str) -> list[tuple[str, str]]:
    """A few weights with their colours, for a legend."""
    return [
        (text, rgba(HUES[kind], FAINTEST + (1 - FAINTEST) * share)) for text, share in stops(scale)
    ]


def shades(hue: str, low: float, high: float = 1) -> list[tuple[float, str]]:
    """A scale of one hue, from one opacity to another."""
    return [(0.0, rgba(hue, low)), (1.0, rgba(hue, high))]


def sign_hues(values: Iterable[float]) -> list[str]:
    """The colour of each number by its sign."""
    return [POSITIVE if value > 0 else NEGATIVE for value in values]


def margin(size: int = SIZE) -> dict[str, int]:
    """Margins around a map of `size` px for its labels, which are larger in a large map."""
    if size < LARGE:
        return MARGIN
    return MARGIN | {"l": 100, "t": 100}


def pitch(count: int, size: int = SIZE) -> float:
    """Px from one token to the next on an axis of `count` tokens in a map of `size` px."""
    around = margin(size)
    return (size - around["l"] - around["r"]) / max(count, 1)


def lettering(count: int, size: int = SIZE) -> tuple[int, int]:
    """For an axis of `count` tokens in a map of `size` px: the font size in px, and the step
    between the tokens that get a label, so that labels do not overlap."""
    sizes = (12, 10) if size >= LARGE else (10,)
    room = pitch(count, size)
    letters = next((font for font in sizes if room >= 0.9 * font), 8)
    return letters, math.ceil(0.75 * letters / room)


_NO_PAPER = dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0,0,0,0)")
_CLEAR = {**_NO_PAPER, "showlegend": False, "dragmode": False}


def spec(data: list[Spec], layout: Spec) -> Spec:
    """A figure as plain values on a transparent background, through which the theme shows."""
    return {"data": data, "layout": _CLEAR | layout, "frames": []}


def figure(values: Spec) -> go.Figure:
    """The Plotly figure of a `spec`, without Plotly's template to keep the figure small."""
    return go.Figure(values | {"layout": values["layout"] | {"template": go.layout.Template()}})


def to_json(values: Spec) -> str:
    """A `spec` in the JSON that plotly.js reads: arrays as base64, not as lists of numbers."""
    return json.dumps(values, default=packed, ensure_ascii=False, separators=(",", ":"))


class Packed(TypedDict):
    """An array in the form that plotly.js reads."""

    dtype: str
    bdata: str  # its bytes in base64
    shape: NotRequired[str]  # numbers with commas between them; of one axis, left out


def packed(values: np.ndarray) -> Packed:
    """An array in the form that plotly.js reads."""
    written = Packed(
        dtype=f"{values.dtype.kind}{values.dtype.itemsize}",
        bdata=base64.b64encode(np.ascontiguousarray(values).tobytes()).decode(),
    )
    if values.ndim != 1:
        written["shape"] = ", ".join(map(str, values.shape))
    return written
