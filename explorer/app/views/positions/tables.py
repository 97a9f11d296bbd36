"""Each positional encoding: tables, curves and biases, by formula or read from a twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import inform, panel, part, pickers
from explorer.app.server import measured
from explorer.app.server.catalogue import twin_title as title
from explorer.app.shell import frame
from explorer.app.views.positions import plain, trained
from explorer.app.views.positions.encodings import (
    NARROW,
    USUAL,
    fitted,
    in_cross_attention,
    pick,
    probed,
    too_narrow,
)
from explorer.app.views.positions.trained import bias_curves, distances
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.positions import lines, margin, table_map
from transformer.encodings import alibi_slopes, rotary_angles, shift_matrix, sinusoidal_table
from transformer.training.presets import TWINS

WINDOW = 512
"""Most positions in one picture; visitors move through longer ranges, and positions are never pooled."""
SQUARE = 256
"""Most positions of a map of all pairs."""
_BASES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_FORMULA = "by formula, in float64"
_TWIN = TWINS["positions-rotary"].sizes


@part
def show() -> None:
    """Draws the part."""
    now = session.current()
    name = now.encoding or USUAL
    pick(name)
    notices = st.empty()
    shown = ENCODINGS[name]
    words, formula = st.columns([1.15, 1], vertical_alignment="center")
    with words:
        st.markdown(f"{shown.what} {in_cross_attention(name)} {probed(name)}")
        counting = ". The formula counts positions and dimensions from 0, the pictures from 1"
        st.caption(shown.paper + counting * (shown.from_zero))
    with formula:
        st.latex(shown.formula)
    _PARTS.get(name, partial(plain.show, name))(now)
    with notices:
        frame.show_notices(now)


def _none(now: State) -> None:
    inform(
        "There is no table to show. Open “on your sentence” and exchange two words: this twin's encoder "
        "does not notice. Only the rounding of float32 differs, by about one part in a million."
    )


def _sizes(now: State, width: bool = True) -> tuple[int, int, int, range]:
    """Draws the sliders: d_model, base, number of positions, and the window if not all positions fit."""
    d_model = now.d_model or (_TWIN["d_model"] if width else _TWIN["d_model"] // _TWIN["n_heads"])
    boxes = st.columns(4 if now.positions > WINDOW else 3)
    with boxes[0]:
        pickers.slide(
            "d_model",
            "d_model" if width else "Width of a head",
            d_model,
            lambda each: session.change(d_model=int(each), dimension=None),
        )
    with boxes[1]:
        options = sorted({*_BASES, now.base})
        st.select_slider(
            "Base",
            options,
            now.base,
            format_func=lambda each: f"{each:,}",
            **pickers.control("base", now.base, "base"),
        )
    with boxes[2]:
        pickers.slide(
            "positions",
            "Positions",
            now.positions,
            lambda each: session.change(positions=int(each), first=None),
        )
    first = fitted("window that starts at position", now.first or 0, max(0, now.positions - WINDOW))
    if now.positions > WINDOW:
        with boxes[3]:
            st.slider(
                f"Window of {WINDOW} positions from",
                1,
                now.positions - WINDOW + 1,
                first + 1,
                **pickers.control("first", first, lambda each: session.change(first=int(each) - 1 or None)),
            )
    return d_model, now.base, now.positions, range(first, min(first + WINDOW, now.positions))


def _sinusoidal(now: State) -> None:
    d_model, base, count, window = _sizes(now)
    table = sinusoidal_table(count, d_model, base).numpy()
    part = table[window.start : window.stop]
    where = f"positions {window.start + 1} to {window.stop}"
    left, right = st.columns(2) if d_model <= NARROW else (st.container(), st.container())
    with left:
        panel(
            "table",
            lambda: table_map(part, window.start + 1, "position", "dimension"),
            f"PE: {where} × {d_model} dimensions, base {base:,} · {_FORMULA}{too_narrow(d_model)}",
            alt=f"Sinusoids at {where}: fast waves in the first dimensions, almost constant in the last.",
            sentence=False,
        )
    with right:
        _curves(part, window, d_model, base, now.dimension or 0)
    left, right = st.columns(2)
    with left:
        square, start = part[:SQUARE], window.start + 1
        panel(
            "products",
            lambda: table_map(square @ square.T, start, "position", "position", left=start),
            f"PE · PEᵀ, positions {start} to {window.start + len(square)}: the product depends on the "
            f"distance alone, and is largest ({d_model // 2}) on the diagonal · {_FORMULA}",
            alt="Products of all pairs of positions: stripes along the diagonal.",
            sentence=False,
        )
    with right:
        _linear_map(table, d_model, base, now.offset)
    _whys(table, d_model)


def wavelength(dimension: int, d_model: int, base: float) -> float:
    """Tokens until a dimension (from 0) repeats: 2π · base^(2i / d_model)."""
    return 2 * math.pi * base ** (dimension // 2 * 2 / d_model)


def _curves(part: np.ndarray, window: range, d_model: int, base: int, asked: int) -> None:
    dimension = fitted("dimension", asked, d_model - 1)
    others = [each for each in (d_model // 4, d_model // 2, d_model - 2) if each // 2 != dimension // 2]

    def named(each: int) -> str:
        return f"dimension {labels.count(each)}, repeats after {wavelength(each, d_model, base):,.1f} tokens"

    series = {named(each): part[:, each] for each in dict.fromkeys([dimension, *others[:3]])}
    x = np.arange(window.start + 1, window.stop + 1)
    panel(
        "curves",
        lambda: lines(x, series, ("position", "value"), height=318, margin=margin(64)),
        f"Single dimensions of PE · {_FORMULA}",
        alt="; ".join(series),
        sentence=False,
    )
    st.slider(
        "Dimension drawn first",
        1,
        d_model,
        dimension + 1,
        **pickers.control(
            "dimension", dimension, lambda each: session.change(dimension=int(each) - 1 or None)
        ),
    )


def _linear_map(table: np.ndarray, d_model: int, base: int, asked: int) -> None:
    offset = min(asked, len(table) - 1)
    matrix = shift_matrix(offset, d_model, base).numpy()
    early, late = table[: len(table) - offset], table[offset:]
    exact = float(np.abs(early @ matrix.T - late).max())
    early_cast, late_cast = (each.astype(np.float32).astype(np.float64) for each in (early, late))
    cast = float(np.abs(early_cast @ matrix.T - late_cast).max())
    shown = slice(0, min(64, len(early)))
    mapped = early[shown] @ matrix.T
    x = np.arange(offset + 1, offset + 1 + len(mapped))
    series = {"PE at that position": late[shown, 0], f"M · PE, {offset} positions earlier": mapped[:, 0]}
    panel(
        "shift",
        lambda: lines(x, series, ("position", "dimension 1"), height=250),
        f"Why sinusoids: one matrix M (a rotation of each pair) moves every position by {offset}. Largest "
        f"error over {len(early):,} positions and all dimensions: "
        f"{labels.scientific(exact)} in float64, {labels.scientific(cast)} with PE "
        "cast to float32.",
        alt="Two curves that coincide.",
        sentence=False,
    )
    pickers.slide("offset", "Move by", offset, ends=(0, min(max(200, offset), len(table) - 1)))


def _whys(table: np.ndarray, d_model: int) -> None:
    last = len(table)
    norm = math.sqrt(d_model / 2)
    with st.expander("Why not simply the number of the position? Why added?"):
        st.markdown(
            f"**Why not the integer?** Position {last:,} would add {last - 1:,} to numbers of about 1 (the "
            "size of the entries of an embedding × √d_model), and would drown the word. Sines and cosines "
            f"stay between −1 and 1: every row of this table has the norm √(d_model / 2) = {norm:.2f}, at "
            "any position.\n\n"
            "**Why not pos / n?** The quotient stays between 0 and 1, but one step to the right is then 1/10 "
            "in a sentence of 10 tokens and 1/50 in a sentence of 50. The same distance looks different in "
            "every sentence, and the decoder does not know *n* yet.\n\n"
            "**Why sinusoids?** For a fixed offset *k*, PE(pos + k) is the same linear map of PE(pos) "
            "everywhere, as the picture shows. The paper hoped that this would make it easy to learn to "
            f"attend by relative positions. {learned_to_look_back()}\n\n"
            f"**Why added, and not concatenated?** {_concatenated(last, d_model)}\n\n"
            "**Why do learned tables fail at the end?** Only sentences that reach a row train that row. "
            "Choose “learned” above to see it."
        )


def _concatenated(positions: int, d_model: int) -> str:
    """Cost of giving the positions dimensions of their own."""
    wide = 2 * d_model
    return (
        "If words and positions had dimensions of their own, a matrix would act on each apart, as in "
        "W·[x; p] = W₁x + W₂p. Adding is the special case W₁ = W₂, and training has to keep the two apart in "
        f"one space. In return the stream stays narrow: with a table of the same width beside the embedding, "
        f"each of the {positions:,} positions would carry {wide:,} numbers through every layer instead of "
        f"{d_model:,}, and the four matrices of one attention sub-layer would grow from 4 · {d_model:,}² = "
        f"{4 * d_model**2:,} numbers to 4 · {wide:,}² = {4 * wide**2:,}."
    )


def learned_to_look_back() -> str:
    """Rate at which the best encoder head of each twin looks at the previous token; empty if not measured."""
    models = (measured.shipped(measured.POSITIONS) or {}).get("attention", {}).get("models", {})
    found = {
        name: accuracy["value"]
        for name, each in models.items()
        if name in ENCODINGS and (accuracy := each["encoder"]["previous"]["accuracy"])
    }
    if USUAL not in found:
        return ""
    own = found.pop(USUAL)
    others = ", ".join(
        f"{percent(share)} with {title(name)}"
        for name, share in sorted(found.items(), key=lambda each: -each[1])
        if share > own
    )
    than = f"; it is {others}" if others else ""
    return (
        "Measured on the twins: the best encoder head of the sinusoidal one has its largest weight on the "
        f"previous token in {percent(own)} of the rows{than}. So even if such a linear map exists, a head "
        "need not learn it."
    )


def turned(angles: np.ndarray) -> np.ndarray:
    """(n) angles in radians → (2n − 1) in degrees below 360, with halfway angles, a gap after each turn."""
    degrees = np.degrees(angles) % 360
    found = np.full(2 * len(degrees) - 1, np.nan)
    found[0::2] = degrees
    found[1::2] = np.where(np.diff(degrees) < 0, np.nan, (degrees[:-1] + degrees[1:]) / 2)
    return found


def _rotary(now: State) -> None:
    d_model, base, count, window = _sizes(now, width=False)
    angles = rotary_angles(count, d_model, base).numpy()
    pairs = list(dict.fromkeys([0, d_model // 8, d_model // 4, d_model // 2 - 1]))
    part = angles[window.start : window.stop]
    x = window.start + 1 + np.arange(2 * len(part) - 1) / 2
    left, right = st.columns(2)
    with left:
        series = {
            f"pair {labels.count(i)}, one turn in {2 * math.pi / angles[1, i]:,.1f} tokens": turned(
                part[:, i]
            )
            for i in pairs
        }
        panel(
            "angles",
            lambda: lines(
                x, series, ("position", "angle in degrees, modulo 360"), height=360, margin=margin(64)
            ),
            f"Angles by which rotary positions rotate each pair of dimensions, heads of {d_model}, base "
            f"{base:,} · {_FORMULA}",
            alt="; ".join(series),
            sentence=False,
        )
    with right:
        reach = np.arange(min(count, WINDOW))
        product = np.cos(angles[: len(reach)]).mean(axis=1)
        panel(
            "rotary-products",
            lambda: lines(
                reach, {"q · k": product}, ("distance", "product, as a share of |q||k|"), height=360
            ),
            "Product of a query and an equal key at a distance, with all pairs of equal size: the product "
            f"falls as the pairs drift apart · {_FORMULA}",
            alt="A curve that starts at 1 and falls with ripples.",
            sentence=False,
        )


def _alibi(now: State) -> None:
    heads = 4
    slopes = alibi_slopes(heads).numpy()
    for column, side in zip(st.columns(2), ("encoder", "decoder"), strict=True):
        far = np.abs(distances(side))
        series = {
            f"head {labels.count(i)}, slope 1/{1 / slope:g}": -slope * far for i, slope in enumerate(slopes)
        }
        note = "symmetric: left and right alike" if side == "encoder" else "one-sided: later keys are masked"
        with column:
            bias_curves(side, series, f"Bias by distance in the {side}, {heads} heads; {note} · {_FORMULA}")


_PARTS: dict[str, Callable[[State], None]] = {
    "none": _none,
    "sinusoidal": _sinusoidal,
    "learned": trained.learned,
    "shaw": trained.shaw,
    "rotary": _rotary,
    "alibi": _alibi,
}
"""Pictures with controls of their own; `plain` draws every other encoding."""
