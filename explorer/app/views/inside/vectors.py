"""The first sections of "Inside a head": from the residual stream to the products of query and keys."""

from __future__ import annotations

import numpy as np

from explorer.app.controls.slots import signed
from explorer.app.controls.text import alt
from explorer.app.views.inside.look import EACH_ITS_OWN, ONE_SCALE, Look, SectionContents, SectionFigure
from explorer.figures.base import captions, labels
from explorer.figures.base.strips import Strip, largest, matrices_spec, strips_spec, vectors_spec
from explorer.figures.pages.lecture import lecture_keys, lecture_spec

_SOURCES = {
    "encoder": "Keys and values are computed from the same layer's input: ",
    "decoder": "Keys and values are computed from the same layer's input: ",
    "cross": "Keys and values come from outside, from the encoder's output (the paper calls it memory): ",
}


def length(vector: np.ndarray) -> str:
    """The length of a vector, as a note at the end of its strip."""
    return f"length {np.linalg.norm(vector):.2f}"


def noted(name: str, vector: np.ndarray, bold: bool = False) -> Strip:
    """A strip that says how long its vector is."""
    return Strip(name, vector, length(vector), bold)


def strips_drawing(
    name: str,  # unique on the page
    rows: list[Strip],  # the vectors
    quantity: str,  # what they are, for the caption
    joint: bool = False,  # whether they share one scale
    computed: bool = True,  # whether the model computed them
) -> SectionFigure:
    """Vectors as strips."""
    most = max(largest(row.values) for row in rows) if joint else None
    legend = signed(most, ONE_SCALE if joint else EACH_ITS_OWN)
    spec = strips_spec(rows, joint=joint)
    return SectionFigure(name, spec, quantity, alt(rows), (legend,), computed=computed)


def window_note(look: Look) -> str:
    """Says which keys are drawn, if some are not."""
    total = len(look.view.key_tokens)
    if look.stop - look.start == total:
        return ""
    return f" · keys {labels.count(look.start)}–{look.stop} of {total}"


def read(look: Look) -> SectionContents:
    """Input of the sub-layer."""
    inside, pre, symbols = look.inside, look.view.norm == "pre", look.symbols
    called = look.opened.translation.config.norm_name
    how = (
        f"after {'an RMSNorm' if called == 'RMSNorm' else 'a LayerNorm'} (pre-norm)"
        if pre
        else "as they are (post-norm)"
    )
    text = (
        f"At {look.query_name}, the residual stream holds {look.sizes[0]} numbers. The head reads them {how} "
        f"and calls them {symbols.x}. {_SOURCES[look.kind]}every key has one vector {symbols.source}. The "
        f"figure shows the one of {look.key_name}."
    )
    rows = [
        noted("stream", inside.stream),
        noted(symbols.x, inside.read),
        noted(f"{symbols.source} of {look.key_label}", inside.sources[look.key]),
    ]
    return SectionContents({"text": text}, {"figures": (strips_drawing("read", rows, "vectors"),)})


def projections(look: Look) -> SectionContents:
    """Query, keys, values."""
    inside, (d_model, d_k, heads, keys), symbols = look.inside, look.sizes, look.symbols
    stacked = "Side by side as columns" if symbols.columns else "Stacked in rows"
    shape = f"{d_k} × {keys}" if symbols.columns else f"{keys} × {d_k}"
    text = (
        f"Each head has three matrices of its own. Each matrix maps {d_model} numbers to {d_k} "
        f"({d_model} ÷ {heads} heads). The query q says what this position asks for, the key k says what a "
        f"position can be found by, and the value v is what a position hands over."
        + (" The positional encoding then turns q and k by their positions." if inside.rotates else "")
        + f" {stacked}, the {keys} keys are K and the {keys} values are V: {shape} each."
    )
    vectors = strips_drawing("vectors", _projected(look), "vectors")
    return SectionContents({"text": text}, {"matrices": (_weights(look),), "figures": (vectors,)})


def _weights(look: Look) -> SectionFigure:
    inside, turn = look.inside, look.symbols.columns
    each = (("Q", inside.w_q), ("K", inside.w_k), ("V", inside.w_v))
    named = [(look.symbols.matrix(name), one.weight.T if turn else one.weight) for name, one in each]
    legend = signed(None, "amber negative, purple positive, each matrix on its own scale")
    shown = ", ".join(f"W^{name}" for name, _ in each)
    return SectionFigure("weights", matrices_spec(named), "weight matrices", shown, (legend,), step=False)


def _projected(look: Look) -> list[Strip]:
    inside, view, key = look.inside, look.view, look.key
    rows = [noted("q", inside.query)]
    if inside.rotates:
        rows.append(noted("q, turned", view.query[0]))
    rows.append(noted(f"k of {look.key_label}", inside.key[key]))
    if inside.rotates:
        rows.append(noted("k, turned", view.key[key]))
    return [*rows, noted(f"v of {look.key_label}", view.value[key])]


def path(look: Look) -> SectionContents:
    """From a few inputs to the output, as lectures draw it."""
    view, symbols = look.view, look.symbols
    text = (
        "Many lectures draw the whole path of one query like this, from the bottom to the top. The query "
        f"meets every key, which gives the scores {symbols.score}. A softmax turns the scores into the "
        f"weights {symbols.weight}. {symbols.result_words.capitalize()} collects the values v, each "
        f"multiplied by its weight: the thicker a line, the larger the weight.{_others(look)}"
    )
    query = view.query_tokens[0], look.inside.row
    spec = lecture_spec(
        look.kind, query, view.key_tokens, view.scores[0], view.weights[0], view.mask[0], symbols
    )
    drawing = SectionFigure(
        "drawing",
        spec,
        f"scores {symbols.score} before the mask, weights {symbols.weight}",
        f"Drawing of how {captions.quote(query[0])} gathers its output from the keys of most weight",
    )
    return SectionContents({"text": text}, {"figures": (drawing,)})


def _others(look: Look) -> str:
    shown, weights = lecture_keys(look.view.weights[0], look.view.mask[0]), look.view.weights[0]
    rest = int(look.view.mask[0].sum()) - len(shown)
    if rest <= 0:
        return ""
    left = max(0.0, 1 - float(weights[shown].sum()))
    return f" Only the {len(shown)} keys with the most weight are drawn; the other {rest} share {left:.2f}."


def products(look: Look) -> SectionContents:
    """The query against every key."""
    inside, view = look.inside, look.view
    query, key = view.query[0], view.key[look.key]
    each = query * key
    best = int(np.argmax(np.abs(each)))
    factors = f"{labels.number(query[best])} × {labels.number(key[best])}"
    total = labels.number(inside.products[look.key])
    text = (
        f"q and k are multiplied dimension by dimension, and the products are summed. For {look.key_name}: "
        f"**q·k = {total}**. Dimension {labels.count(best)} contributes most: {factors} = "
        f"{labels.number(each[best])}. Point at any number to see its product."
    )
    rows = [
        Strip("q", query),
        Strip(f"k of {look.key_label}", key),
        Strip("q × k", each, f"Σ = {labels.number(each.sum())}", True),
    ]
    figures = strips_drawing("product", rows, "vectors"), _all_keys(look)
    return SectionContents({"text": text}, {"figures": figures})


def _all_keys(look: Look) -> SectionFigure:
    keys = look.view.key[look.keys]
    return SectionFigure(
        "keys",
        vectors_spec(keys, look.tokens, look.view.query[0][None], ("k", "q"), look.selected),
        f"keys, one per row{window_note(look)}",
        f"Keys of {len(keys)} tokens",
        (signed(largest(keys), ONE_SCALE),),
    )
