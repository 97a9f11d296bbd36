"""The other arithmetic that "Inside a head" offers on the vectors of one query, and its explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from figures.base import labels
from figures.pages.inside import LedgerRow
from transformer.lenses.inside import InsideHead
from transformer.what_if import arithmetic as what_if
from transformer.what_if.arithmetic import Doubles

BADGE = "what if, not the model's computation"
TEMPERATURES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
RADII = (0, 1, 2, 3, 5, 8)


@dataclass(frozen=True)
class Outcome:
    """The result of the other arithmetic for one query, with numbers for all keys.

    Attributes:
        weights: (keys,).
        output: (d_head,) the sum of the values with these weights.
        rows: the lines that the calculation shows under the model's own.
        factor: multiplies the model's scores, if the arithmetic does only that.
    """

    weights: Doubles
    output: Doubles
    rows: tuple[LedgerRow, ...]
    factor: float | None = None


Partner = Callable[[int], InsideHead]
"""Opens another head of the same layer, from 0, for the same query."""


@dataclass(frozen=True)
class Arithmetic:
    """One way to compute weights.

    Attributes:
        label: its name in the list of choices.
        formula: LaTeX.
        text: what it changes, in one or two sentences.
        compute: computes the outcome; the number is the chosen parameter.
    """

    label: str
    formula: str
    text: str
    compute: Callable[[InsideHead, float, Partner], Outcome]


def _outcome(inside: InsideHead, scores: Doubles, factor: float | None = None) -> Outcome:
    """Applies the softmax to other scores, which include what the encoding adds."""
    mask = inside.view.mask[0]
    weights = what_if.softmax(scores, mask)
    rows = (
        LedgerRow("what if: score", scores, masked=True, what_if=True),
        LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True),
    )
    return Outcome(weights, what_if.taken(weights, inside.view.value), rows, factor)


def _biased(inside: InsideHead, scores: Doubles) -> Doubles:
    return scores if inside.bias is None else scores + inside.bias


def _inputs(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.without_projections(inside.read, inside.sources)))


def _unscaled(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    factor = None if inside.bias is not None else float(np.sqrt(inside.view.query.shape[1]))
    return _outcome(inside, _biased(inside, inside.products.astype(np.float64)), factor)


def _tempered(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, inside.view.scores[0].astype(np.float64) / number, 1 / number)


def _additive(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.additive(inside.view.query[0], inside.view.key)))


def _bilinear(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.bilinear(inside.view.query[0], inside.view.key)))


def _hard(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    weights = what_if.hard(inside.view.scores[0], inside.view.mask[0])
    row = LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True)
    return Outcome(weights, what_if.taken(weights, inside.view.value), (row,))


def _local(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    mask = what_if.local_mask(inside.view.mask[0], inside.row, int(number))
    weights = what_if.softmax(inside.view.scores[0], mask)
    row = LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True)
    return Outcome(weights, what_if.taken(weights, inside.view.value), (row,))


def _pair(inside: InsideHead, number: float, partner: Partner) -> Outcome:
    other = partner(int(number))
    d_head = inside.view.query.shape[1]
    joined = what_if.joined((inside.products, other.products), d_head)
    if inside.bias is not None and other.bias is not None:
        joined = joined + (inside.bias + other.bias) / np.sqrt(2)
    own = LedgerRow(
        f"weights of head {labels.count(other.view.head)}", other.view.weights[0], share=True, masked=True
    )
    found = _outcome(inside, joined)
    return Outcome(found.weights, found.output, (own, *found.rows))


ARITHMETIC = {
    "no-projections": Arithmetic(
        "no projections: x·xⱼ",
        r"s_j = \frac{x \cdot x_j}{\sqrt{d_{model}}}",
        "The inputs are compared as they are. Nothing is learned, so every head of the layer would see the "
        "same. In self-attention, a token is usually most like itself.",
        _inputs,
    ),
    "no-scale": Arithmetic(
        "no ÷ √dₖ",
        r"s_j = q \cdot k_j",
        "The scores grow √dₖ-fold. The softmax saturates: one weight comes close to 1, and the gradient "
        "comes close to 0, so training would hardly change that weight (section 3.2.1 of the paper).",
        _unscaled,
    ),
    "temperature": Arithmetic(
        "temperature",
        r"w = \mathrm{softmax}(s / T)",
        "If T is below 1, the largest score takes a larger share. If T is above 1, the weights become more "
        "alike.",
        _tempered,
    ),
    "additive": Arithmetic(
        "additive score",
        r"s_j = v^{\top} \tanh(W_1 q + W_2 k_j)",
        "This is Bahdanau's score of 2015, here with toy weights: W₁ = W₂ = identity, and v = 1/√dₖ in "
        "every dimension. A trained model learns all three.",
        _additive,
    ),
    "bilinear": Arithmetic(
        "bilinear score",
        r"s_j = \frac{q\,W k_j^{\top}}{\sqrt{d_k}}",
        "This is Luong's “general” score of 2015, here with toy weights: W is diagonal and falls evenly from "
        "2 in the first dimension to 0 in the last. A trained model learns W.",
        _bilinear,
    ),
    "hard": Arithmetic(
        "hard attention",
        r"w_j = \begin{cases} 1 & j = \arg\max_i s_i \\ 0 & \text{else} \end{cases}",
        "The best key takes all. If the scores change a little, an arg max stays the same: its gradient is "
        "0 almost everywhere, so gradients alone cannot train it. Training draws samples instead "
        "(REINFORCE).",
        _hard,
    ),
    "local": Arithmetic(
        "local attention",
        r"w_j = 0 \text{ for } |j - i| > r",
        "Only keys within r tokens of the query's own position i stay visible. In cross-attention, i is the "
        "same position in the source, which fails if the translation moves words.",
        _local,
    ),
    "pair": Arithmetic(
        "two heads against one",
        r"s_j = \frac{[q, q'] \cdot [k_j, k_j']}{\sqrt{2 d_k}}",
        "The vectors of two heads stand side by side, as one head of twice the width. One softmax makes one "
        "choice; two heads make two. The b shown is the half of the output that this head's values give.",
        _pair,
    ),
}


def usual(name: str, head: int, heads: int) -> float:
    """The number with which an arithmetic opens; heads from 0."""
    return {"temperature": 2.0, "local": 1.0, "pair": float((head + 1) % heads)}.get(name, 0.0)
