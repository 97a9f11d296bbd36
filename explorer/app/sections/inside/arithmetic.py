"""The other arithmetic that "Inside a head" offers on the vectors of one query, and its explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from explorer.app.controls import plain
from explorer.app.sections.inside.asides import measured
from explorer.app.sections.inside.notation import Notation
from explorer.figures.base import captions, labels
from explorer.figures.pages.inside import LedgerRow
from explorer.figures.pages.lecture import Symbols
from explorer.lenses.inside.inside import InsideHead
from explorer.lenses.what_if import arithmetic as what_if
from explorer.lenses.what_if.arithmetic import BoolArray, Doubles

BADGE = "what if, not the model's computation"
TEMPERATURES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
RADII = (0, 1, 2, 3, 5, 8)
_LOCAL = ("local", "local-best", "local-predicted")


@dataclass(frozen=True)
class Outcome:
    """The result of the other arithmetic for one query, with numbers for all keys."""

    weights: Doubles  # (keys,)
    output: Doubles  # the sum with these weights: of the values (d_head,), or of the inputs (d_model,)
    rows: tuple[LedgerRow, ...]  # the lines that the calculation shows under the model's own
    factor: float | None = None  # multiplies the model's scores, if the arithmetic does only that
    note: str = ""  # what the arithmetic found in this row, in a sentence
    letter: str = ""  # the letter of the output, if it is not the head's

    def named(self, symbols: Symbols) -> str:
        """The name of the output in a figure."""
        return f"{self.letter or symbols.output}, what if"


Partner = Callable[[int], InsideHead]
"""Opens another head of the same layer, from 0, for the same query."""


@dataclass(frozen=True)
class Arithmetic:
    """One way to compute weights."""

    label: str  # its name in the list of choices
    formula: str  # LaTeX, with `SCORE`, `WEIGHT`, `OUTPUT`, `OWN` and `SOURCE` for the symbols of the page
    text: str  # what it changes, in one or two sentences
    # computes the outcome; the number is the chosen parameter
    compute: Callable[[InsideHead, float, Partner], Outcome]

    def written(self, symbols: Notation) -> str:
        """The formula in the symbols of the page."""
        letters = {
            "SCORE": symbols.latex_score,
            "WEIGHT": symbols.latex_weight,
            "OUTPUT": symbols.latex_output,
            "OWN": symbols.x,
            "SOURCE": symbols.source,
        }
        formula = self.formula
        for name, letter in letters.items():
            formula = formula.replace(name, letter)
        return formula


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


def _without_matrices(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.without_projections(inside.read, inside.sources)))


def _inputs(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    found = _outcome(inside, what_if.plain_products(inside.read, inside.sources))
    return replace(found, output=what_if.taken(found.weights, inside.sources), letter="y")


def _unscaled(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    factor = None if inside.bias is not None else float(np.sqrt(inside.view.query.shape[1]))
    found = _outcome(inside, _biased(inside, inside.products.astype(np.float64)), factor)
    told = measured(inside.spread)
    return replace(found, note=f"{told[0].upper()}{told[1:]}")


def _tempered(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, inside.view.scores[0].astype(np.float64) / number, 1 / number)


def _additive(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.additive(inside.view.query[0], inside.view.key)))


def _bilinear(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _outcome(inside, _biased(inside, what_if.bilinear(inside.view.query[0], inside.view.key)))


def _hard(inside: InsideHead, _number: float, _partner: Partner) -> Outcome:
    return _weights_alone(inside, what_if.hard(inside.view.scores[0], inside.view.mask[0]), "")


def _weights_alone(inside: InsideHead, weights: Doubles, note: str) -> Outcome:
    row = LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True)
    return Outcome(weights, what_if.taken(weights, inside.view.value), (row,), note=note)


def _window(inside: InsideHead, centre: float, radius: float) -> tuple[BoolArray, Doubles]:
    """The keys of a window, and the softmax over them."""
    mask = what_if.local_mask(inside.view.mask[0], centre, int(radius))
    return mask, what_if.softmax(inside.view.scores[0], mask)


def _local(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    _, weights = _window(inside, inside.row, number)
    note = f"The centre here is position {labels.count(inside.row)}."
    return _weights_alone(inside, weights, note)


def _local_best(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    view = inside.view
    best = int(np.argmax(what_if.hard(view.scores[0], view.mask[0])))
    token = plain(captions.quote(view.key_tokens[best]))
    _, weights = _window(inside, best, number)
    return _weights_alone(inside, weights, f"The best key here is “{token}”, position {labels.count(best)}.")


def _local_predicted(inside: InsideHead, number: float, _partner: Partner) -> Outcome:
    keys = len(inside.products)
    centre = what_if.predicted_centre(inside.view.query[0], keys)
    _, shares = _window(inside, centre, number)
    weights = what_if.bell(shares, centre, int(number))
    note = (
        f"The centre here is p = {centre + 1:.2f}, with {keys} keys counted from 1. The weights sum to "
        f"{weights.sum():.2f}."
    )
    return _weights_alone(inside, weights, note)


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
        "scores without W_Q and W_K",
        r"SCORE_j = \frac{OWN \cdot SOURCE_j}{\sqrt{d_{model}}}, \quad OUTPUT = \sum_j WEIGHT_j\, v_j",
        "The inputs are compared as they are, so the scores are not learned, and every head of the layer "
        "would have the same. But the sum still runs over the values v, which this head's third matrix "
        "computes. In self-attention, a token is usually most like itself.",
        _without_matrices,
    ),
    "inputs": Arithmetic(
        "no projections at all",
        r"y_i = \sum_j \mathrm{softmax}_j(OWN_i \cdot SOURCE_j)\, SOURCE_j",
        "Attention in its simplest form: the inputs are query, key and value at once. Nothing is learned, "
        "nothing is divided, positions add nothing, and y is as wide as the input. The only thing kept is "
        "the mask.",
        _inputs,
    ),
    "no-scale": Arithmetic(
        "no ÷ √d_k",
        r"SCORE_j = q \cdot k_j",
        "The scores grow √d_k-fold. The softmax saturates: in most rows one weight comes close to 1, and the "
        "gradient comes close to 0, so training would hardly change that weight (section 3.2.1 of the "
        "paper).",
        _unscaled,
    ),
    "temperature": Arithmetic(
        "temperature",
        r"WEIGHT = \mathrm{softmax}(SCORE / T)",
        "If T is below 1, the largest score takes a larger share. If T is above 1, the weights become more "
        "alike.",
        _tempered,
    ),
    "additive": Arithmetic(
        "additive score",
        r"SCORE_j = v^{\top} \tanh(W_1 q + W_2 k_j)",
        "This is Bahdanau's score of 2015, here with toy weights: W₁ = W₂ = identity, and v = 1/√d_k in "
        "every dimension. A trained model learns all three.",
        _additive,
    ),
    "bilinear": Arithmetic(
        "bilinear score",
        r"SCORE_j = q \cdot W k_j",
        "This is Luong's “general” score of 2015. As there, it is not divided by √d_k. W is a toy here: "
        "diagonal, falling evenly from 2 in the first dimension to 0 in the last. A trained model learns W.",
        _bilinear,
    ),
    "hard": Arithmetic(
        "hard attention",
        r"WEIGHT_j = \begin{cases} 1 & j = \arg\max_i SCORE_i \\ 0 & \text{else} \end{cases}",
        "The best key takes all. If the scores change a little, an arg max stays the same: its gradient is "
        "0 almost everywhere, so gradients alone cannot train it. There are two ways out. REINFORCE draws a "
        "key at random and makes lucky draws more likely. Gumbel-softmax adds noise to the scores and keeps "
        "a softmax of low temperature in place of the arg max, so that a gradient flows.",
        _hard,
    ),
    "local": Arithmetic(
        "local-m: around the position",
        r"WEIGHT_j = 0 \text{ for } |j - i| > r",
        "Luong's monotonic window of 2015: only keys within r tokens of the query's own position i stay "
        "visible. In cross-attention, i is the same position in the source, which fails if the translation "
        "moves words.",
        _local,
    ),
    "local-best": Arithmetic(
        "local: around the best key",
        r"WEIGHT_j = 0 \text{ for } |j - p| > r, \quad p = \arg\max_i SCORE_i",
        "The window follows the key with the highest score, wherever it is. This keeps the neighbours of "
        "the best key. It is no model of a paper: every key must be scored first, so nothing is saved.",
        _local_best,
    ),
    "local-predicted": Arithmetic(
        "local-p: a predicted centre",
        r"\begin{aligned} p &= S\,\sigma\!\left(u^{\top} \tanh(W q)\right) \\ "
        r"WEIGHT_j &= \mathrm{softmax}(SCORE)_j\; e^{-2 (j - p)^2 / r^2} \\ "
        r"& \text{over the keys with } |j - p| \le r \end{aligned}",
        "Luong's predictive window: the query itself says where to look among the S keys, and a bell curve "
        "favours keys near the centre. Luong learns W and u. This model has neither, so W = identity and u "
        "= 1/√d_k in every dimension: the centre moves with the query, but it means nothing.",
        _local_predicted,
    ),
    "pair": Arithmetic(
        "two heads against one",
        r"SCORE_j = \frac{[q, q'] \cdot [k_j, k_j']}{\sqrt{2 d_k}}",
        "The vectors of two heads stand side by side, as one head of twice the width. One softmax makes one "
        "choice; two heads make two. The output shown is the half that this head's values give.",
        _pair,
    ),
}


def offered(inside: InsideHead) -> dict[str, Arithmetic]:
    """Those that compute something else than the model does: one that never divides cannot leave it out."""
    return {name: each for name, each in ARITHMETIC.items() if name != "no-scale" or inside.divisor != 1}


def usual(name: str, head: int, heads: int) -> float:
    """The number with which an arithmetic opens; heads from 0."""
    return {**dict.fromkeys(_LOCAL, 1.0), "temperature": 2.0, "pair": float((head + 1) % heads)}.get(
        name, 0.0
    )
