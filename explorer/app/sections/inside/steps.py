"""The steps of "Inside a head": the formulas of each, and what it shows of the query at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.app.controls.slots import shares, signed, slot
from explorer.app.sections.inside import asides, formulas
from explorer.app.sections.inside.arithmetic import BADGE, Outcome
from explorer.app.sections.inside.formulas import UNDIVIDED
from explorer.app.sections.inside.look import (
    EACH_ITS_OWN,
    Contents,
    Figure,
    Look,
    keys_figure,
    length,
    noted,
    strips_figure,
)
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.base.strips import Strip, largest, matrices_spec
from explorer.figures.pages.inside import LedgerRow, ledger_spec
from explorer.figures.pages.lecture import lecture_keys, lecture_spec

SOURCES = {
    "encoder": "Keys and values are computed from the same layer's input: ",
    "decoder": "Keys and values are computed from the same layer's input: ",
    "cross": "Keys and values come from outside, from the encoder's output (the paper calls it memory): ",
}
OUTSIDE = (
    "The same attention lets any text look into another. In reading comprehension, each word of the text "
    "asks the question: the text makes the queries, and the question the keys and values."
)
NEXT = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "the feed-forward network",
}
NARROWEST = 600
"""Width in px below which the numbers of the calculation would run into each other."""


@dataclass(frozen=True)
class Step:
    """One step: what is drawn once, and what is fed into its slots at every query."""

    title: str  # its heading
    short: str  # its name in the switch
    latex: Callable[[Look], Sequence[str]]  # its formulas
    contents: Callable[[Look, Outcome | None], Contents]  # its texts and figures for a query
    slots: tuple[str, ...] = ("figures",)  # places of its figures, in order
    more: Callable[[Look], None] | None = None  # draws explanations that are one click away


def explained(title: str) -> st.delta_generator.DeltaGenerator:
    """An explanation, one click away."""
    return st.popover(title, type="tertiary", icon=":material/help:")


# --- the whole path -----------------------------------------------------------------------------------------


def path(look: Look, _outcome: Outcome | None) -> Contents:
    """From a few inputs to the output, as lectures draw it."""
    view, symbols = look.view, look.symbols
    weights, mask = view.weights[0], view.mask[0]
    drawn = lecture_keys(weights, mask)
    others = ""
    if (rest := int(mask.sum()) - len(drawn)) > 0:
        left = max(0.0, 1 - float(weights[drawn].sum()))
        others = f" Only the {len(drawn)} keys of most weight are drawn; the other {rest} share {left:.2f}."
    text = (
        f"The path of one query, from the bottom to the top. It meets every key, which gives the scores "
        f"{symbols.score}. A softmax turns them into the weights {symbols.weight}. "
        f"{symbols.result_words.capitalize()} collects the values v, each times its weight: the thicker a "
        f"line, the larger the weight.{others}"
    )
    query = view.query_tokens[0], look.inside.row
    spec = lecture_spec(look.kind, query, view.key_tokens, view.scores[0], weights, mask, symbols)
    told = f"Drawing of how {captions.quote(query[0])} gathers its output from the keys of most weight"
    quantity = f"scores {symbols.score} before the mask, weights {symbols.weight}"
    return Contents({"text": text}, {"figures": (Figure("drawing", spec, quantity, told),)})


def summed(look: Look) -> tuple[str, ...]:
    """The output as the sum of the values."""
    symbols = look.symbols
    return (rf"{symbols.latex_output} = \sum_j {symbols.latex_weight}_j\, {symbols.indexed('v')}",)


# --- from the stream to query, key and value ----------------------------------------------------------------


def projected(look: Look) -> tuple[str, ...]:
    """What the head reads, and its three products with matrices."""
    symbols, norm = look.symbols, look.opened.translation.config.norm_name
    reads = rf"\mathrm{{{norm}}}(\mathrm{{stream}})" if look.view.norm == "pre" else r"\mathrm{stream}"
    k, v, source = (symbols.indexed(each) for each in ("k", "v", symbols.source))
    named = (("q", symbols.x, "Q"), (k, source, "K"), (v, source, "V"))
    return rf"{symbols.x} = {reads}", *(symbols.product(*each, look.sizes[:2]) for each in named)


def projections(look: Look, _outcome: Outcome | None) -> Contents:
    """The input of the sub-layer, and query, keys and values."""
    inside, view, symbols, key = look.inside, look.view, look.symbols, look.key
    d_model, d_k, heads, _ = look.sizes
    norm = look.opened.translation.config.norm_name
    article = "an" if norm == "RMSNorm" else "a"
    how = f"after {article} {norm} (pre-norm)" if view.norm == "pre" else "as they are (post-norm)"
    turned = " The positional encoding then turns q and k by their positions." if inside.rotates else ""
    text = (
        f"At {look.query_name}, the residual stream holds {d_model} numbers. The head reads them {how} and "
        f"calls them {symbols.x}. {SOURCES[look.kind]}every key has one vector {symbols.source}; the figure "
        f"shows the one of {look.key_name}.\n\nEach head has three matrices of its own, from {d_model} "
        f"numbers to {d_k} ({d_model} ÷ {heads} heads). The query q says what this position asks for, the "
        f"key k what a position can be found by, the value v what it hands over.{turned}"
    )
    read = [
        noted("stream", inside.stream),
        noted(symbols.x, inside.read),
        noted(f"{symbols.source} of {look.key_label}", inside.sources[key]),
    ]
    rows = [noted("q", inside.query), noted(f"k of {look.key_label}", inside.key[key])]
    if inside.rotates:
        rows = [rows[0], noted("q, turned", view.query[0]), rows[1], noted("k, turned", view.key[key])]
    rows.append(noted(f"v of {look.key_label}", view.value[key]))
    matrices = (("Q", inside.w_q), ("K", inside.w_k), ("V", inside.w_v))
    drawn = [
        (symbols.matrix(name), one.weight.T if symbols.columns else one.weight) for name, one in matrices
    ]
    legend = signed(None, "amber negative, purple positive, each matrix on its own scale")
    weights = Figure(
        "weights", matrices_spec(drawn), "weight matrices", "W^Q, W^K, W^V", (legend,), step=False
    )
    return Contents(
        {"text": text},
        {
            "read": (strips_figure("read", read, "vectors"),),
            "matrices": (weights,),
            "figures": (strips_figure("vectors", rows, "vectors"),),
        },
    )


def outside(look: Look) -> None:
    """Where else one text looks into another."""
    if look.kind == "cross":
        with explained("What else attention reads"):
            st.markdown(OUTSIDE)


# --- the query against the keys -----------------------------------------------------------------------------


def product(look: Look) -> tuple[str, ...]:
    """q·k as a sum over dimensions."""
    entry = "k^j_i" if look.symbols.columns else "k_{j,i}"
    return (rf"q \cdot {look.symbols.indexed('k')} = \sum_i q_i\, {entry}",)


def products(look: Look, _outcome: Outcome | None) -> Contents:
    """The query against every key."""
    query, key = look.view.query[0], look.view.key[look.key]
    each = query * key
    best = int(np.argmax(np.abs(each)))
    factors = f"{labels.number(query[best])} × {labels.number(key[best])}"
    total = labels.number(look.inside.products[look.key])
    text = (
        f"q and k are multiplied dimension by dimension, and the products are summed. For {look.key_name}: "
        f"**q·k = {total}**. Dimension {labels.count(best)} contributes most: {factors} = "
        f"{labels.number(each[best])}. Point at any number to see its product."
    )
    sign = f"Σ = {labels.number(each.sum())}"
    rows = [Strip("q", query), Strip(f"k of {look.key_label}", key), Strip("q × k", each, sign, True)]
    keys = keys_figure(look, "keys", look.view.key, query[None], ("k", "q"))
    return Contents({"text": text}, {"figures": (strips_figure("product", rows, "vectors"), keys)})


# --- from scores to weights ---------------------------------------------------------------------------------


def softmax(look: Look) -> tuple[str, ...]:
    """The weights of the query, and what the letters mean."""
    symbols, terms = look.symbols, formulas.terms_of(look)
    if symbols.columns:
        return terms.column(symbols.latex_weight, symbols.latex_score), *terms.defined()
    return terms.row(symbols.latex_weight), *terms.defined()


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


def scores(look: Look, outcome: Outcome | None) -> Contents:
    """From products to weights, with the lines of another arithmetic under the model's own."""
    inside, view = look.inside, look.view
    divides, hidden = inside.divisor != 1, int((~view.mask[0]).sum())
    by, scaled = (labels.number(each[look.key]) for each in (inside.products, inside.scaled))
    divided = f"{by} ÷ √{look.sizes[1]} = {scaled}"
    if not divides:
        divided = f"q·k = {by} ({UNDIVIDED[0].lower()}{UNDIVIDED[1:-1]})"
    masks = f" The mask hides {hidden} later key{'s' * (hidden != 1)}." if hidden else ""
    text = (
        f"For {look.key_name}: {divided}{formulas.bias_here(look)}.{masks} The softmax makes the weights "
        "of all "
        "visible keys positive and scales them to sum to 1. This key gets "
        f"**{view.weights[0, look.key]:.2f}**, "
        f"and the whole row {view.weights[0].sum():.2f}.\n\n{formulas.terms_of(look).words()}"
    )
    texts = {
        "text": text,
        "divide": asides.why_divide(inside.spread, divides),
        "subtract": asides.why_subtract(view.scores[0], view.mask[0]),
    }
    rows = [*ledger_rows(look), *([] if outcome is None else [row.cut(look.keys) for row in outcome.rows])]
    figure = Figure(
        "scores",
        ledger_spec(look.kind, look.tokens, view.mask[0, look.keys], rows, look.selected),
        f"one column per key{lower(outcome, 'lines')}",
        f"Products, scores and weights of {look.stop - look.start} keys",
        (signed(None, EACH_ITS_OWN), shares(look.kind, "weight")),
        least=NARROWEST,
    )
    return Contents(texts, {"figures": (figure,)})


def lower(outcome: Outcome | None, what: str) -> str:
    """Says in a caption which part is not the model's."""
    return "" if outcome is None else f" · lower {what}: {BADGE}"


def why_scores(look: Look) -> None:
    """Why scores are divided, and why a softmax subtracts the maximum."""
    divides = look.site.score == "scaled_dot"
    with explained(f"Why divide by √{look.sizes[1]}?" if divides else "Why is nothing divided by √d_k?"):
        slot("weights.divide")
    with explained("Why subtract the maximum?"):
        st.latex(asides.shifted(look.symbols.latex_score))
        slot("weights.subtract")


# --- the sum of the values ----------------------------------------------------------------------------------


def weighted_sum(look: Look, outcome: Outcome | None) -> Contents:
    """The values, each times its weight."""
    value, weight, output = look.view.value[look.key], look.view.weights[0, look.key], look.output
    text = (
        f"Every value is multiplied by its weight, and the results are added. {look.key_name} gives "
        f"{percent(float(weight))} of its value. Point at a number to see what it adds to "
        f"{look.symbols.result_words}."
    )
    rows = [
        Strip(f"v of {look.key_label}", value),
        Strip(f"{weight:.2f} × v", weight * value),
        Strip(f"{look.symbols.output}, all keys", output, length(output), True),
    ]
    other, apart = [], []
    if outcome is not None:
        strip = Strip(outcome.named(look.symbols), outcome.output, length(outcome.output))
        if len(outcome.output) == len(output):
            other = [strip]
        else:
            apart = [strips_figure("other sum", [strip], BADGE, computed=False)]
    quantity = f"values{lower(outcome if other else None, 'strip')}"
    drawn = [strips_figure("sum", [*rows, *other], quantity, joint=True), *apart]
    factors: np.ndarray = look.view.weights[0, look.keys, None]
    values = keys_figure(look, "values", look.view.value, factors, ("v", "weight"))
    return Contents({"text": text}, {"figures": (*drawn, values)})


# --- all heads, and back into the stream --------------------------------------------------------------------


def joined(look: Look) -> tuple[str, ...]:
    """All heads, the output matrix, and the sum with the stream."""
    config = look.opened.translation.config
    reads = "stream" if look.view.norm == "post" else "read"
    total = r"\mathrm{sum} = \mathrm{stream} + \mathrm{update}"
    after = rf"\mathrm{{{reads}}}' = \mathrm{{{config.norm_name}}}(\mathrm{{sum}})"
    return *formulas.joined(look.symbols, config.biases), total, after


def all_heads(look: Look, _outcome: Outcome | None) -> Contents:
    """What each head adds, and what becomes of the stream."""
    inside, (_, d_k, heads, _), own = look.inside, look.sizes, look.view.head
    config, post = look.opened.translation.config, look.view.norm == "post"
    lengths = np.linalg.norm(inside.contributions, axis=1)
    before, after = np.linalg.norm(inside.stream), np.linalg.norm(inside.added)
    following = config.stacks[look.site.query_side].after(look.site.sublayer(look.view.layer))
    reader = NEXT[following.name] if following else "whatever follows"
    reads = f"a {config.norm_name} follows, and {reader} reads its result" if post else ""
    text = (
        f"The {heads} heads of the layer give {d_k} numbers each; side by side, they pass the output matrix. "
        f"That is the same as a sum of what each head adds. Head {labels.count(own)} adds a vector of length "
        f"{lengths[own]:.2f}; the longest comes from head {labels.count(int(np.argmax(lengths)))} "
        f"({lengths.max():.2f}).\n\nThe update is added to the stream, whose length changes from "
        f"{before:.2f} to "
        f"{after:.2f}; next, {reads or f'{reader} reads {config.norm_name}(sum)'}."
    )
    added = [noted(f"head {labels.count(i)}", each, i == own) for i, each in enumerate(inside.contributions)]
    added += [noted("bias", inside.w_o.bias)] * config.biases + [noted("= update", inside.update)]
    stream = [noted("stream", inside.stream), noted("+ update", inside.update), noted("= sum", inside.added)]
    stream += [noted(config.norm_name, inside.next_stream)] * post
    together = [Strip("all heads' outputs", inside.outputs.reshape(-1))]
    figures = {
        "joined": (strips_figure("together", together, f"{heads} × {d_k} numbers"),),
        "matrices": (output_matrix(look),),
        "figures": (strips_figure("heads", added, "what each head adds", joint=True),),
        "stream": (strips_figure("stream", stream, "vectors", joint=True),),
    }
    return Contents({"text": text}, figures)


def output_matrix(look: Look) -> Figure:
    """This head's part of W^O."""
    weight, turned, head = look.inside.w_o.weight, look.symbols.columns, labels.count(look.view.head)
    part = f"{look.symbols.matrix('O')}, the {'columns' if turned else 'rows'} of head {head}"
    return Figure(
        "output matrix",
        matrices_spec([(part + " (drawn on its side)" * turned, weight)], 150),
        "this head's part of the output matrix",
        f"The part of the output matrix that head {head} goes through",
        (signed(largest(weight), "amber negative, purple positive"),),
        step=False,
    )


def seven(look: Look) -> None:
    """Two heads as seven matrices."""
    with explained("Two heads are seven matrices"):
        asides.seven_matrices(look.sizes[0], look.sizes[2], look.sizes[1])


STEPS = {
    "path": Step("The whole path", "the path", summed, path),
    "projections": Step(
        "From the stream to query, key, value",
        "q, k, v",
        projected,
        projections,
        ("read", "matrices", "figures"),
        outside,
    ),
    "products": Step("Query against keys", "q·k", product, products),
    "weights": Step("Scores and weights", "weights", softmax, scores, more=why_scores),
    "sum": Step("Weighted sum of values", "sum of values", summed, weighted_sum),
    "heads": Step(
        "All heads, and back into the stream",
        "all heads",
        joined,
        all_heads,
        ("joined", "matrices", "figures", "stream"),
        seven,
    ),
}
"""The steps by their names in the address, in order."""
CHANGED = ("weights", "sum")
"""The steps whose arithmetic the switches change."""
