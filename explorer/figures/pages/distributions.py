"""Bars of tokens: model against smoothed target, gradient, what sampling changes, surprisal."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.bars import upright
from explorer.figures.base.labels import percent
from explorer.figures.base.plot import Spec

_HUES = style.NEUTRAL, style.POSITIVE
"""The colours of the first and of the second bar of every row."""
_ROOM = 0.3
"""Space beyond the longest bar for its number, as a share of the axis."""
_ROW = 31
Values = Sequence[float]


def against_target(names: Sequence[str], model: Values, target: Values, right: int) -> go.Figure:
    """The model's probabilities beside the smoothed target's; `right` is the right piece's row."""
    sides = {"the model, p": model, "the target, q": target}
    return _pairs(_names(names), sides, right, write=small)


def gradient_bars(names: Sequence[str], bare: Values, smoothed: Values, right: int) -> go.Figure:
    """The gradient with respect to each logit, without smoothing and with it."""
    low = min(0.0, *bare, *smoothed)
    high = max(0.0, *bare, *smoothed, 1e-6)
    sides = {"without smoothing": bare, "with smoothing": smoothed}
    return _pairs(_names(names), sides, right, ends=(low, high), write=_signed)


def before_after(
    tokens: Sequence[str], before: Sequence[float], after: Sequence[float], written: int
) -> go.Figure:
    """Draws two bars for each token: its probability under the model, and that of being drawn."""
    notes = [
        _drawing(labels.piece(token), model, drawn)
        for token, model, drawn in zip(tokens, before, after, strict=True)
    ]
    sides = {"the model": before, "after temperature, top-k and top-p": after}
    names = list(map(labels.short, tokens))
    return _pairs(names, sides, written, write=_or_dash, notes=notes, row=26)


def _drawing(piece: str, model: float, drawn: float) -> str:
    """A token's probability under the model, and that of being drawn, in words."""
    log_prob = labels.number(math.log(model)) if model > 0 else "−∞"
    chance = percent(drawn) if drawn else "never"
    return f"{piece}\nthe model: {percent(model)} (log p {log_prob})\ndrawn with: {chance}"


def _or_dash(share: float) -> str:
    """A probability; a dash for none."""
    return percent(share) if share else "–"


def _pairs(
    names: Sequence[str],
    sides: Mapping[str, Sequence[float]],
    emphasised: int,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
    write: Callable[[float], str],
    notes: Sequence[str] | None = None,
    row: int = _ROW,
) -> go.Figure:
    """Two bars for each name, with their numbers; the hover texts are `notes`, else the numbers."""
    low, high = ends
    room = _ROOM * (high - low)
    data = []
    for (name, values), hue in zip(sides.items(), _HUES, strict=True):
        texts = list(map(write, values))
        hover = plot.noted(notes or [f"{name}: {text}" for text in texts])
        look = {"constraintext": "none", "textfont": {"size": 10}, **hover}
        data.append(
            plot.bars(list(values), hue, name=name, text=list(map(labels.escape, texts))) | look
        )
    start = low - room if low else 0
    across = plot.STILL | {"range": [start, high + room], "showticklabels": False}
    written = [labels.bold(name, place == emphasised) for place, name in enumerate(names)]
    return plot.figure(
        data,
        across | {"zeroline": low < 0, "zerolinecolor": "rgba(128,128,128,.6)"},
        plot.named_axis(written, 12, down=True, edge=0.55),
        50 + row * len(names),
        (118, 34, 8, 6),
        bargap=0.3,
        bargroupgap=0.05,
        barmode="group",
        **plot.legend(),
    )


def _names(pieces: Sequence[str]) -> list[str]:
    return [labels.escape(labels.shorten(piece, 16)) for piece in pieces]


def small(share: float) -> str:
    """A probability as people read it, with as many digits as a very small one needs."""
    if not 0 < share < 0.001:
        return percent(share)
    if share < 1e-7:
        return f"<0.00001{labels.PER_CENT}"
    return f"{100 * share:.1g}{labels.PER_CENT}"


def _signed(value: float) -> str:
    if abs(value) < 5e-7:
        return "0"
    if abs(value) >= 0.095:
        return labels.number(value, "+.2f")
    form = "+.1e" if abs(value) < 1e-4 else "+.2g"
    return labels.number(value, form).replace("e−0", "e−")


LARGEST = 16.0
"""Bits at which a token has the full shade, in every text, so that texts can be compared."""


def share(bits: float) -> float:
    """The shade of a token of so many bits, from 0 to 1."""
    return min(bits / LARGEST, 1.0)


def bits_spec(tokens: Sequence[str], bits: Sequence[float], height: int = 190) -> Spec:
    """The surprisal of each token, −log₂ p, as bars; in its frame, a token's bar stands out."""
    bar = plot.bars(
        np.array(bits, np.float32),
        style.POSITIVE,
        across=False,
        hovertext=[labels.escape(name) for name in labels.names(tokens)],
        hovertemplate="%{hovertext}<br>%{y:.2f} bits<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0.45}},
    )
    frames = [{"name": str(i), "data": [{"selectedpoints": [i]}]} for i in range(len(tokens))]
    axes = upright(tokens, "bits", [0, 1.05 * max(*bits, 1.0)])
    return plot.spec([bar], *axes, height, (50, 8, 6, 74), bargap=0.15) | {"frames": frames}
