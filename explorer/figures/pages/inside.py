"""One row of attention in the order of the equation: products, scores, mask, weights, weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.base.strips import AIR, largest, signed
from explorer.figures.maps.heatmap import hatching

NUMBERS_UP_TO = 18
STRONG = 0.75
WHAT_IF = "#767676"


@dataclass(frozen=True)
class LedgerRow:
    """One line of the calculation."""

    name: str  # written to the left of the line
    values: np.ndarray  # one number per key (keys,)
    share: bool = False  # whether the numbers are weights from 0 to 1, drawn in the hue of the attention kind
    masked: bool = False  # whether masked keys have no number in this line
    what_if: bool = False  # whether the line shows other arithmetic than the model's

    def cut(self, keys: slice) -> LedgerRow:
        """The same line for some of the keys."""
        return replace(self, values=self.values[keys])


def ledger_spec(
    kind: str,  # encoder, decoder or cross
    tokens: Sequence[str],  # at most 64 keys
    mask: np.ndarray,  # true where the query may attend (keys,)
    rows: Sequence[LedgerRow],  # from the products down to the weights
    selected: int | None = None,  # the key to frame
) -> Spec:
    """The calculation of one row, a line for each stage; a gap precedes the first that is not the model's."""
    places = [i + 0.6 if row.what_if else i for i, row in enumerate(rows)]
    names = [labels.escape(name) for name in labels.key_names(tokens)]
    lines = list(zip(rows, places, strict=True))
    traces = [_line(kind, row, place, mask) | {"text": [names]} for row, place in lines]
    for row, place in lines:
        for hatched in hatching(mask[None]) if row.masked else ():
            traces.append(hatched | {"y": [None if y is None else y + place for y in hatched["y"]]})
    if len(tokens) <= NUMBERS_UP_TO:
        traces += _numbers(lines, mask)
    bottom = places[-1] + 0.5
    return plot.spec(
        traces,
        plot.token_axis(tokens, style.LARGE, side="top", tickangle=-90),
        plot.STILL
        | {"range": [bottom, -0.5], "tickvals": places, "ticktext": [labels.escape(row.name) for row in rows]}
        | {"tickmode": "array", "tickfont": {"size": 12}, "ticklabelstandoff": AIR},
        int(26 * (bottom + 0.5)) + 88,
        (112, 82, 4, 6),
        shapes=[] if selected is None else [plot.rectangle(selected - 0.5, selected + 0.5, -0.5, bottom)],
    )


def _numbers(lines: Sequence[tuple[LedgerRow, float]], mask: np.ndarray) -> list[Spec]:
    """The numbers in the cells: white on a strong purple or hue, otherwise in the page's text colour."""
    fonts = {"size": 10, "color": "#ffffff"}, {"size": 10}
    strong, faint = (plot.points([], [], "text", text=[], textfont=font) for font in fonts)
    for row, place in lines:
        end = 1.0 if row.share else largest(row.values[mask] if row.masked else row.values)
        for column in np.flatnonzero(mask | (not row.masked)):
            value = float(row.values[column])
            trace = strong if value > STRONG * end else faint
            for key, each in (("x", int(column)), ("y", place), ("text", labels.number(value))):
                trace[key].append(each)
    return [trace for trace in (strong, faint) if trace["x"]]


def _line(kind: str, row: LedgerRow, place: float, mask: np.ndarray) -> Spec:
    values = np.where(mask, row.values, np.nan) if row.masked else row.values
    hover = f"%{{text}}<br>{labels.escape(row.name)} %{{z:.3f}}<extra></extra>"
    shared = {"y0": place, "xgap": 1, "ygap": 5, "hovertemplate": hover, "hoverongaps": False}
    if not row.share:
        return signed(values[None], largest(np.nan_to_num(values)), **shared)
    hue = WHAT_IF if row.what_if else style.HUES[kind]
    return plot.heat(values[None], (0, 1), style.shades(hue, style.FAINTEST), **shared)


def saturation_spec(
    factors: np.ndarray,  # multipliers of the scores (n,)
    curves: Sequence[tuple[str, np.ndarray]],  # name and values (n,) of each curve
    marks: Sequence[tuple[str, float]],  # name and factor of each vertical line
) -> Spec:
    """Saturation of a softmax as its scores grow."""
    x, told = factors.astype(np.float32), "{} %{{y:.3f}} at × %{{x:.2f}}<extra></extra>"
    traces = [
        plot.curve(name, x, values.astype(np.float32), told.format(labels.escape(name)), style.FRAME, dash)
        for (name, values), dash in zip(curves, ("solid", "dash", "dot"), strict=False)
    ]
    ticks: Spec = {"tickvals": [0.125, 0.25, 0.5, 1, 2, 4, 8], "ticktext": ["⅛", "¼", "½", *"1248"]}
    corner = {"xanchor": "left", "yanchor": "top"}
    return plot.spec(
        traces,
        plot.number_axis("scores multiplied by", standoff=None, type="log", tickfont=None, **ticks),
        plot.number_axis(range=[0, 1.05], tickvals=[0, 0.5, 1], tickfont=None),
        210,
        (34, 30, 8, 40),
        shapes=[plot.stroke(x=factor) for _, factor in marks],
        annotations=[
            plot.note(labels.escape(name), float(np.log10(factor)), 1.03 - 0.14 * i, 10, **corner)
            for i, (name, factor) in enumerate(marks)
        ],
        **plot.legend(top=False),
    )
