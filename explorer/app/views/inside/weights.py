"""The middle sections of "Inside a head": from scores to weights, and the weighted sum of the values."""

from __future__ import annotations

import numpy as np

from explorer.app.controls.slots import shares, signed
from explorer.app.views.inside import asides
from explorer.app.views.inside.arithmetic import BADGE, Outcome
from explorer.app.views.inside.formulas import UNDIVIDED, bias_here
from explorer.app.views.inside.look import EACH_ITS_OWN, ONE_SCALE, Look, SectionContents, SectionFigure
from explorer.app.views.inside.vectors import length, strips_drawing, window_note
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.base.strips import Strip, largest, vectors_spec
from explorer.figures.pages.inside import LedgerRow, ledger_spec

_NARROWEST = 600
"""Width in px below which the numbers of the calculation would run into each other."""


def ledger_rows(look: Look) -> list[LedgerRow]:
    """The model's own lines of the calculation, for the keys that are drawn."""
    inside, view = look.inside, look.view
    rows = [LedgerRow("q·k", inside.products[look.keys])]
    if inside.divisor != 1:
        rows.append(LedgerRow("÷ √d_k", inside.scaled[look.keys]))
    if inside.bias is not None:
        rows.append(LedgerRow("+ position", inside.bias[look.keys]))
        rows.append(LedgerRow("score", view.scores[0, look.keys]))
    if not view.mask.all():
        rows.append(LedgerRow("masked", view.scores[0, look.keys], masked=True))
    rows.append(LedgerRow("softmax", view.weights[0, look.keys], share=True, masked=True))
    return rows


def scores(look: Look, outcome: Outcome | None) -> SectionContents:
    """From products to weights, with the lines of the other arithmetic under the model's own."""
    texts = {
        "text": _told(look),
        "divide": asides.why_divide(look.inside.spread, look.inside.divisor != 1),
        "subtract": asides.why_subtract(look.view.scores[0], look.view.mask[0]),
    }
    return SectionContents(texts, {"figures": (_ledger(look, outcome),)})


def _told(look: Look) -> str:
    inside, view = look.inside, look.view
    masked = int((~view.mask[0]).sum())
    hidden = f" The mask hides {masked} later key{'s' * (masked != 1)}." if masked else ""
    product, scaled = (labels.number(each[look.key]) for each in (inside.products, inside.scaled))
    share, total = view.weights[0, look.key], view.weights[0].sum()
    divided = f"{product} ÷ √{look.sizes[1]} = {scaled}"
    if inside.divisor == 1:
        divided = f"q·k = {product} ({UNDIVIDED[0].lower()}{UNDIVIDED[1:-1]})"
    return (
        f"For {look.key_name}: {divided}{bias_here(look)}.{hidden} The softmax "
        "makes the weights of all visible keys positive and scales them to sum to 1. This key gets "
        f"**{share:.2f}**, and the whole row {total:.2f}. Because every visible key gets a share, this is "
        "*soft* attention, and *global*: it reads everything that it may see."
    )


def _ledger(look: Look, outcome: Outcome | None) -> SectionFigure:
    rows = [*ledger_rows(look), *([] if outcome is None else [row.cut(look.keys) for row in outcome.rows])]
    return SectionFigure(
        "scores",
        ledger_spec(look.kind, look.tokens, look.view.mask[0, look.keys], rows, look.selected),
        f"one column per key{window_note(look)}{_lower(outcome, 'lines')}",
        f"Products, scores and weights of {look.stop - look.start} keys",
        (signed(None, EACH_ITS_OWN), shares(look.kind, "weight")),
        least=_NARROWEST,
    )


def _lower(outcome: Outcome | None, what: str) -> str:
    """Says in a caption which part is not the model's."""
    return "" if outcome is None else f" · lower {what}: {BADGE}"


def weighted_sum(look: Look, outcome: Outcome | None) -> SectionContents:
    """The values, each times its weight."""
    share = float(look.view.weights[0, look.key])
    text = (
        f"Every value is multiplied by its weight, and the results are added. {look.key_name} gives "
        f"{percent(share)} of its value. Point at a number to see what it adds to "
        f"{look.symbols.result_words}."
    )
    return SectionContents({"text": text}, {"figures": (*_sums(look, outcome), _all_values(look))})


def _sums(look: Look, outcome: Outcome | None) -> list[SectionFigure]:
    value, weight, b = look.view.value[look.key], look.view.weights[0, look.key], look.output
    rows = [
        Strip(f"v of {look.key_label}", value),
        Strip(f"{weight:.2f} × v", weight * value),
        Strip(f"{look.symbols.output}, all keys", b, length(b), True),
    ]
    if outcome is None:
        return [strips_drawing("sum", rows, "values", joint=True)]
    other = Strip(outcome.named(look.symbols), outcome.output, length(outcome.output))
    quantity = f"values{_lower(outcome, 'strip')}"
    if len(outcome.output) == len(b):
        return [strips_drawing("sum", [*rows, other], quantity, joint=True)]
    what_if = strips_drawing("other sum", [other], BADGE, computed=False)
    return [strips_drawing("sum", rows, "values", joint=True), what_if]


def _all_values(look: Look) -> SectionFigure:
    values = look.view.value[look.keys]
    factors: np.ndarray = look.view.weights[0, look.keys, None]
    return SectionFigure(
        "values",
        vectors_spec(values, look.tokens, factors, ("v", "weight"), look.selected),
        f"values, one per row{window_note(look)}",
        f"Values of {len(values)} tokens",
        (signed(largest(values), ONE_SCALE),),
    )
