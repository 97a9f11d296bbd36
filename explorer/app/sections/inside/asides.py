"""Explanations one click away: why scores are divided, why the maximum goes, and a pair of toy heads."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.figures.base import labels
from explorer.lenses.inside.spread import ProductSpread
from explorer.lenses.what_if import arithmetic as what_if
from explorer.lenses.what_if.arithmetic import WORDS, TwoHeads, two_heads

_PRECISIONS: dict[str, type[np.floating]] = {"half": np.float16, "single": np.float32}


def why_divide(spread: ProductSpread, divided: bool = True) -> str:
    """The reason for the root, and what this head's products really do; ``divided``: whether it is taken."""
    d_k = spread.d_head
    return (
        f"q·k is a sum of {d_k} products. If the entries of q and k were independent, with mean 0 and "
        f"variance 1, that sum would have the variance {d_k}: wider heads would get larger scores, and the "
        f"softmax would start out close to a hard choice, where its gradient is nearly 0. Divided by √{d_k} "
        f"= {np.sqrt(d_k):.2f}, the variance is 1 for every width.\n\nThis holds about where training "
        f"starts, but not after it: {measured(spread, divided)} "
        + (
            "Training sets the scale of the scores itself; the root decides where it starts and, under Adam, "
            "how large each step is beside the scores."
            if divided
            else "This model does not divide: its training began with queries that are smaller by this root "
            "instead (Raffel et al. 2020)."
        )
    )


def measured(spread: ProductSpread, divided: bool = True) -> str:
    """The variances of this head in this sentence, and over what they were measured."""
    pairs = f"{spread.pairs:,} pair{'s' * (spread.pairs != 1)} of a query and a key it may see"
    return (
        f"in this sentence (over its {pairs}), this head's q·k has the variance {spread.products:.1f}"
        + (f", and {spread.divided:.2f} after the division. " if divided else ". ")
        + f"The entries of all its queries here have the variance "
        f"{spread.query:.2f}, those of its keys {spread.key:.2f}."
    )


def shifted(score: str) -> str:
    """The identity behind the subtraction, in LaTeX, with the letter of a score."""
    formula = r"\frac{e^{s_j}}{\sum_i e^{s_i}} = \frac{e^{s_j - m}}{\sum_i e^{s_i - m}}, \quad m = \max_i s_i"
    return formula.replace("s_", f"{score}_")


def why_subtract(
    scores: np.ndarray,  # the scores of all keys (keys,)
    mask: np.ndarray,  # true where the query may attend (keys,)
) -> str:
    """Why a softmax subtracts the largest score first, with the numbers of this row."""
    if not mask.any():
        return "This row sees no key, so there is nothing to normalise."
    largest = float(scores[mask].max())
    written = labels.number(largest)
    return (
        f"Subtracting one number from all scores changes no weight, because it cancels. With m = {written}, "
        "the largest score of this row, every power lies between 0 and e⁰ = 1. Without the subtraction, the "
        f"largest power here would be exp({written}) = {np.exp(largest):.4g}. "
        f"{_overflow(scores, mask, largest)}"
    )


def _overflow(scores: np.ndarray, mask: np.ndarray, largest: float) -> str:
    """The row without the subtraction, in half and in single precision; each is tried out."""
    half, single = what_if.overflow_from(np.float16), what_if.overflow_from(np.float32)
    broken = [name for name, dtype in _PRECISIONS.items() if _breaks(scores, mask, dtype)]
    limits = (
        f"A power is infinite from a score of {half:.2f} in half precision (float16), and from {single:.2f} "
        "in single precision (float32)."
    )
    if broken:
        why = "0 ÷ 0 is not a number" if largest < 0 else "a number ÷ ∞ is 0, and ∞ ÷ ∞ is not a number"
        return f"{limits} So this row breaks in {' and '.join(broken)} precision: {why}."
    if largest <= 0:
        return f"{limits} All scores of this row are below both."
    return (
        f"{limits} This row stays below both; with scores {single / largest:.1f} times as large, even "
        "single precision would break: ∞ ÷ ∞ is not a number."
    )


def _breaks(scores: np.ndarray, mask: np.ndarray, dtype: type[np.floating]) -> bool:
    total = float(what_if.unshifted(scores, mask, dtype).sum())
    return not abs(total - 1) < 0.05


def seven_matrices(d_model: int, heads: int, d_k: int) -> None:
    """Two heads as seven matrices, with real numbers, and the count for a layer of this model."""
    toy = two_heads()
    st.markdown(_told(toy))
    for number, head in enumerate(toy.heads, start=1):
        names = [f"W_{number}^{each}" for each in "QKV"]
        st.latex(r"\quad ".join(map(_equation, names, head.matrices)))
    st.latex(_equation("W^O", toy.w_o))
    st.markdown(_counted(toy, d_model, heads, d_k))


def _told(toy: TwoHeads) -> str:
    first, last = (head.weights[1] for head in toy.heads)
    words = ", ".join(f"“{word}”" for word in WORDS)
    return (
        f"Two toy heads, set by hand: the tokens are {words}, and their four numbers say noun, verb, first "
        f"and last. The verb asks two questions at once. Head 1 finds “{WORDS[int(first.argmax())]}” (weight "
        f"{first.max():.3f}), head 2 finds “{WORDS[int(last.argmax())]}” ({last.max():.3f}). One head would "
        "have to share its weight of 1 between them."
    )


def _counted(toy: TwoHeads, d_model: int, heads: int, d_k: int) -> str:
    inner = heads * d_k
    square = f"{d_model}²" if inner == d_model else f"{d_model} · {inner}"
    counted = f"4 · {square} = {4 * d_model * inner:,}"
    matrices = len(toy.matrices)
    width = toy.x.shape[1]
    output = ", ".join(labels.number(each) for each in toy.output[1])
    return (
        f"{matrices - 1} matrices of {width} × {width // 2} and one of {width} × {width}: {matrices} "
        f"matrices, {toy.numbers} numbers. One head of width {width} needs four matrices, and also 4 · "
        f"{width}² = {4 * width**2} numbers: more heads need no more numbers. The verb's output is "
        f"({output}): it now carries the marks of both nouns.\n\nThis layer has {heads} heads: 3 · {heads} + "
        f"1 = {3 * heads + 1} matrices with {counted} numbers, without any biases."
    )


def _equation(name: str, matrix: np.ndarray) -> str:
    rows = r" \\ ".join(" & ".join(map(str, row)) for row in matrix.tolist())
    return rf"{name} = \begin{{pmatrix}} {rows} \end{{pmatrix}}"
