"""Other arithmetic on the vectors of one query: its table, its switches, and the difference that it makes."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import Kind, UnreadableError
from explorer.app.address.state import page_value
from explorer.app.controls import inform, options, pickers
from explorer.app.controls.slots import SlotPicture
from explorer.app.sections.inside.look import BADGE, Contents, Look, Outcome
from explorer.app.server import per_run
from explorer.figures.base import labels
from explorer.figures.pages.inside import LedgerRow, saturation_spec
from explorer.lenses.what_if import arithmetic as toys
from explorer.lenses.what_if.arithmetic import Doubles

WHAT_IF = "what-if"  # names the slots of the switches
_FACTORS = np.geomspace(1 / 8, 8, 61)


class Arithmetic(NamedTuple):
    """One way to compute weights."""

    label: str  # its name in the list of choices
    formula: str  # LaTeX, as `Notation.latex` takes it
    text: str  # what it changes, in one or two sentences
    compute: Callable[[Look, float], Outcome]  # gets its number
    ends: tuple[float, float] | None = None  # of its number in an address; None if it takes none
    usual: tuple[float, ...] = ()  # the numbers that are offered, the first one first
    written: str = ""  # how a number is called


def _scored(look: Look, scores: Doubles, placed: bool = True, factor: float | None = None) -> Outcome:
    """The softmax of other scores, to which positions add what they add here, if they are to be placed."""
    if placed and look.inside.bias is not None:
        scores, factor = scores + look.inside.bias, None
    weights = toys.softmax(scores, look.view.mask[0])
    line = LedgerRow("what if: score", scores, masked=True, what_if=True)
    return _weighed(look, weights, "", line)._replace(factor=factor)


def _weighed(look: Look, weights: Doubles, note: str = "", *above: LedgerRow) -> Outcome:
    """What other weights give, with their line of the calculation under those above it."""
    line = LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True)
    return Outcome(weights, toys.taken(weights, look.view.value), (*above, line), note=note)


def _inputs(look: Look, _number: float) -> Outcome:
    found = _scored(look, toys.plain_products(look.inside.read, look.inside.sources), False)
    return found._replace(output=toys.taken(found.weights, look.inside.sources), letter="y")


def _local(look: Look, radius: float, predicted: bool = False) -> Outcome:
    view, mask, centre = look.view, look.view.mask[0], float(look.inside.row)
    if predicted:
        centre = toys.predicted_centre(view.query[0], len(mask))
    weights = toys.softmax(view.scores[0], toys.local_mask(mask, centre, int(radius)))
    if not predicted:
        return _weighed(look, weights, f"The centre here is position {labels.count(look.inside.row)}.")
    weights = toys.bell(weights, centre, int(radius))
    here = f"The centre here is p = {centre + 1:.2f}, with {len(mask)} keys counted from 1. "
    return _weighed(look, weights, f"{here}The weights sum to {weights.sum():.2f}.")


def _pair(look: Look, number: float) -> Outcome:
    inside = look.inside
    other = per_run.inside(look.opened, look.kind, (look.view.layer, int(number) - 1), inside.row)
    scores = toys.joined((inside.products, other.products), look.sizes[1])
    if inside.bias is not None and other.bias is not None:
        scores = scores + (inside.bias + other.bias) / np.sqrt(2)
    found = _scored(look, scores, False)
    line = LedgerRow(f"weights of head {number:g}", other.view.weights[0], share=True, masked=True)
    return found._replace(rows=(line, *found.rows))


ARITHMETIC = {
    "no-projections": Arithmetic(
        "scores without W_Q and W_K",
        r"SCORE_j = \frac{OWN \cdot SOURCE_j}{\sqrt{d_{model}}}, \quad OUTPUT = \sum_j WEIGHT_j\, v_j",
        "The inputs are compared as they are: nothing about the scores is learned, and all heads of the "
        "layer would have the same. The values v still come from this head's third matrix. In "
        "self-attention, a token is usually most like itself.",
        lambda look, _: _scored(look, toys.without_projections(look.inside.read, look.inside.sources)),
    ),
    "inputs": Arithmetic(
        "no projections at all",
        r"y_i = \sum_j \mathrm{softmax}_j(OWN_i \cdot SOURCE_j)\, SOURCE_j",
        "Attention in its simplest form: the inputs are query, key and value at once. Nothing is learned or "
        "divided, positions add nothing, and y is as wide as the input. Only the mask is kept.",
        _inputs,
    ),
    "no-scale": Arithmetic(
        "no ÷ √d_k",
        r"SCORE_j = q \cdot k_j",
        "The scores grow √d_k-fold. The softmax saturates: in most rows one weight comes close to 1, and the "
        "gradient close to 0, so training would hardly change that weight (section 3.2.1 of the paper).",
        lambda look, _: _scored(look, look.inside.products.astype(np.float64), factor=look.inside.divisor),
    ),
    "temperature": Arithmetic(
        "temperature",
        r"WEIGHT = \mathrm{softmax}(SCORE / T)",
        "If T is below 1, the largest score takes a larger share. If T is above 1, the weights become more "
        "alike.",
        lambda look, t: _scored(look, look.view.scores[0].astype(np.float64) / t, False, 1 / t),
        (0.05, 20.0),
        (2.0, 0.1, 0.25, 0.5, 4.0, 10.0),
        "T = {:g}",
    ),
    "additive": Arithmetic(
        "additive score",
        r"SCORE_j = v^{\top} \tanh(W_1 q + W_2 k_j)",
        "Bahdanau's score of 2015, here with toy weights: W₁ = W₂ = identity, and v = 1/√d_k in every "
        "dimension. A trained model learns all three.",
        lambda look, _: _scored(look, toys.additive(look.view.query[0], look.view.key)),
    ),
    "bilinear": Arithmetic(
        "bilinear score",
        r"SCORE_j = q \cdot W k_j",
        "Luong's “general” score of 2015, which is not divided by √d_k. W is a toy here: diagonal, falling "
        "evenly from 2 in the first dimension to 0 in the last. A trained model learns W.",
        lambda look, _: _scored(look, toys.bilinear(look.view.query[0], look.view.key)),
    ),
    "hard": Arithmetic(
        "hard attention",
        r"WEIGHT_j = \begin{cases} 1 & j = \arg\max_i SCORE_i \\ 0 & \text{else} \end{cases}",
        "The best key takes all. The gradient of an arg max is 0 almost everywhere, so gradients alone "
        "cannot train it. REINFORCE draws a key at random and makes lucky draws more likely; Gumbel-softmax "
        "adds noise to the scores and takes a softmax of low temperature, so that a gradient flows.",
        lambda look, _: _weighed(look, toys.hard(look.view.scores[0], look.view.mask[0])),
    ),
    "local": Arithmetic(
        "local-m: around the position",
        r"WEIGHT_j = 0 \text{ for } |j - i| > r",
        "Luong's monotonic window of 2015: only keys within r tokens of the query's own position i stay "
        "visible. In cross-attention, i is the same position in the source, which fails if the translation "
        "moves words.",
        _local,
        (0.0, 1024.0),
        (1.0, 0.0, 2.0, 3.0, 5.0, 8.0),
        "r = {:g}",
    ),
    "local-predicted": Arithmetic(
        "local-p: a predicted centre",
        r"\begin{aligned} p &= S\,\sigma\!\left(u^{\top} \tanh(W q)\right) \\ "
        r"WEIGHT_j &= \mathrm{softmax}(SCORE)_j\; e^{-2 (j - p)^2 / r^2} \\ "
        r"& \text{over the keys with } |j - p| \le r \end{aligned}",
        "Luong's predictive window: the query itself says where to look among the S keys, and a bell curve "
        "favours keys near the centre. Luong learns W and u. Here W = identity and u = 1/√d_k in every "
        "dimension: the centre moves with the query, but it means nothing.",
        partial(_local, predicted=True),
        (1.0, 1024.0),
        (1.0, 2.0, 3.0, 5.0, 8.0),
        "r = {:g}",
    ),
    "pair": Arithmetic(
        "two heads against one",
        r"SCORE_j = \frac{[q, q'] \cdot [k_j, {k'}_j]}{\sqrt{2 d_k}}",
        "The vectors of two heads stand side by side, as one head of twice the width. One softmax makes one "
        "choice; two heads make two. The output shown is the half that this head's values give.",
        _pair,
        (1.0, 256.0),
        written="with head {:g}",
    ),
}
WhatIf = tuple[str, float | None]


def _read(value: str) -> WhatIf:
    if value in ARITHMETIC:
        return value, None
    name, _, written = value.rpartition("-")
    ends = ARITHMETIC[name].ends if name in ARITHMETIC else None
    if ends is None or not math.isfinite(number := float(written)):
        raise UnreadableError
    number = min(max(number, ends[0]), ends[1])
    return name, number if name == "temperature" else float(int(number))


_write = lambda value: value[0] if value[1] is None else f"{value[0]}-{value[1]:g}"  # noqa: E731
page_value("what_if", Kind(_read, _write))  # a temperature, a radius, a head (from 1)


def _offered(look: Look) -> dict[str, Arithmetic]:
    """Those that compute something else than the model does: one that never divides cannot leave it out."""
    return {name: each for name, each in ARITHMETIC.items() if name != "no-scale" or look.inside.divisor != 1}


def fitted(look: Look, change: WhatIf | None) -> tuple[str, float]:
    """The arithmetic that a state asks for, with its number fitted to the model; no name for the model's."""
    name, number = change or ("", None)
    if name not in _offered(look):
        return "", 0.0
    if name == "pair":
        heads = look.sizes[2]
        return name, float((look.view.head + 1) % heads + 1 if number is None else min(number, heads))
    return name, (*ARITHMETIC[name].usual, 0.0)[0] if number is None else number


def outcome(look: Look, change: WhatIf | None) -> Outcome | None:
    """What the arithmetic that a state asks for makes of this query; None if that is the model's own."""
    name, number = fitted(look, change)
    return ARITHMETIC[name].compute(look, number) if name else None


def controls(look: Look, change: WhatIf | None) -> None:
    name, number = fitted(look, change)
    with st.container(horizontal=True, vertical_alignment="center", key="what-if"):
        st.markdown("**What if** this head computed otherwise?", width="content")
        names = {"": "the model's arithmetic", **{key: each.label for key, each in _offered(look).items()}}
        take = lambda chosen: session.change(what_if=(chosen, None) if chosen else None)  # noqa: E731
        pickers.choose("what_if", "Other arithmetic", names, name, take, width=260)
        if not name:
            return
        usual, written = ARITHMETIC[name].usual, ARITHMETIC[name].written
        if written:
            choices = options.numbers(usual or range(1, look.sizes[2] + 1), number, written.format)
            take = lambda chosen: session.change(what_if=(name, float(chosen)))  # noqa: E731
            pickers.choose(f"what_if.{name}", "Number", choices, number, take, texts=True, width=150)
        st.badge(BADGE, color="gray", icon=":material/science:")
    if name == "pair" and change is not None and (change[1] or 0) > (heads := look.sizes[2]):
        inform(f"This layer has {heads} heads; head {heads} is taken.")


def difference(look: Look, change: WhatIf | None) -> Contents | None:
    """What other arithmetic changes for this query; None if the model's own is chosen."""
    found, (name, _) = look.outcome, fitted(look, change)
    if found is None:
        return None
    mask, symbols, output = look.view.mask[0], look.symbols, look.view.output[0]
    own, other = (toys.saturation(each, mask) for each in (look.view.weights[0], found.weights))
    entropy, gradient, moved = f"{other.entropy:.2f}", f"{other.gradient:.3f}", "–"
    if name == "hard":
        gradient = "0 (arg max)"
    if name == "local-predicted":  # no softmax: the bell curve keeps the weights from summing to 1
        entropy = gradient = "–"
    if len(found.output) == len(output):
        moved = f"{np.linalg.norm(found.output - output) / max(float(np.linalg.norm(output)), 1e-9):.2f}"
    letters = f"{symbols.weight}/∂{symbols.score}"
    nothing = "" if found.weights.any() else " **No key is that near, so every weight is 0.**"
    return Contents(
        [ARITHMETIC[name].formula],
        f"{ARITHMETIC[name].text} {found.note}{nothing} This switch changes only the arithmetic of this "
        "head; nothing after the head is computed again.",
        [] if found.factor is None else [_curve(look, found.factor)],
        "| | the model | what if |\n|--|--|--|\n"
        f"| largest weight | {own.largest:.2f} | {other.largest:.2f} |\n"
        f"| entropy, as a share of that of equal weights | {own.entropy:.2f} | {entropy} |\n"
        f"| gradient of the softmax, ‖∂{letters}‖ | {own.gradient:.3f} | {gradient} |\n"
        f"| {symbols.output} moves by, as a multiple of its length | – | {moved} |",
    )


def _curve(look: Look, factor: float) -> SlotPicture:
    """Largest weight and gradient of the softmax as all scores grow."""
    scores, mask, symbols = look.view.scores[0].astype(np.float64), look.view.mask[0], look.symbols
    found = [toys.saturation(toys.softmax(scores * each, mask), mask) for each in _FACTORS]
    gradient = f"gradient ‖∂{symbols.weight}/∂{symbols.score}‖"
    sides = zip(*((each.largest, each.gradient) for each in found), strict=True)
    curves = list(zip(("largest weight", gradient), map(np.array, sides), strict=True))
    return look.figure(
        "saturation",
        saturation_spec(_FACTORS, curves, [("the model", 1.0), ("what if", factor)]),
        f"softmax of this row's scores times a factor; {BADGE}, except at 1",
        "Largest weight and gradient of the softmax as the scores grow",
        computed=False,
    )
