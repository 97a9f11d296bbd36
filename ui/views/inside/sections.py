"""The sections of "Inside a head": text and formula at the left, the numbers of this run at the right."""

from __future__ import annotations

import numpy as np
import streamlit as st

from figures.base import captions, labels
from figures.base.bars import percent
from figures.base.strips import Strip, matrices, strips, vectors
from figures.pages.inside import LedgerRow, form, lecture, lecture_keys, ledger
from ui.controls.text import alt, norm
from ui.views.inside.arithmetic import BADGE, Outcome
from ui.views.inside.look import Drawn, Look, draw, raised, section

# --- the steps ----------------------------------------------------------------------------------------------


def read(look: Look) -> None:
    """1: what the sub-layer reads."""
    inside, pre = look.inside, look.view.norm == "pre"
    d_model = look.sizes[0]
    whose = "the encoder's output" if look.kind == "cross" else "the same layer's input"
    how = "after a LayerNorm (pre-norm)" if pre else "as they are (post-norm)"
    text = (
        f"At {look.query_name}, the residual stream holds {d_model} numbers. The head reads them {how}. "
        f"Keys and values are computed from {whose}: every key has one vector a. The figure shows the a of "
        f"{look.key_name}."
    )
    formula = r"x = \mathrm{LayerNorm}(\mathrm{stream})" if pre else r"x = \mathrm{stream}"
    rows = [
        Strip("stream", inside.stream, norm(inside.stream)),
        Strip("x", inside.read, norm(inside.read)),
        Strip(f"a of {look.key_label}", inside.sources[look.key], norm(inside.sources[look.key])),
    ]
    with section(1, "The input", text, formula) as to:
        draw(look, to, "read", lambda: strips(rows), "vectors, each on its own scale", alt(rows))


def projections(look: Look) -> None:
    """2: query, keys, values."""
    inside, (d_model, d_k, heads, keys) = look.inside, look.sizes
    text = (
        f"Each head has three matrices of its own. Each matrix maps {d_model} numbers to {d_k} "
        f"({d_model} ÷ {heads} heads). The query q says what this position asks for, the key k says what a "
        f"position can be found by, and the value v is what a position hands over."
        + (" The positional encoding then turns q and k by their positions." if inside.rotates else "")
        + f" Stacked in rows, the {keys} keys are K and the {keys} values are V: {keys} × {d_k} each."
    )
    formulas = [
        rf"\underset{{1 \times {d_k}}}{{{small}}} = \underset{{1 \times {d_model}}}{{{read}}}\;"
        rf"\underset{{{d_model} \times {d_k}}}{{W_{big}}} + \underset{{1 \times {d_k}}}{{b_{big}}}"
        for small, read, big in (("q", "x", "Q"), ("k_j", "a_j", "K"), ("v_j", "a_j", "V"))
    ]
    rows = [Strip("q", inside.query, norm(inside.query))]
    if inside.rotates:
        rows.append(Strip("q, turned", look.view.query[0], norm(look.view.query[0])))
        rows.append(Strip(f"k of {look.key_label}", inside.key[look.key], norm(inside.key[look.key])))
    turned = ", turned" if inside.rotates else ""
    rows += [
        Strip(f"k of {look.key_label}{turned}", look.view.key[look.key], norm(look.view.key[look.key])),
        Strip(f"v of {look.key_label}", look.view.value[look.key], norm(look.view.value[look.key])),
    ]
    weights = (("Q", inside.w_q), ("K", inside.w_k), ("V", inside.w_v))
    named = [(f"W<sub>{name}</sub>", each.weight) for name, each in weights]
    with section(2, "Query, key, value", text, *formulas) as to:
        draw(
            look,
            to,
            "weights",
            lambda: matrices(named),
            "weight matrices, each on its own scale",
            "W_Q, W_K and W_V",
        )
        draw(look, to, "vectors", lambda: strips(rows), "vectors, each on its own scale", alt(rows))


def drawing(look: Look) -> None:
    """3: b from a few vectors a, as lectures draw it."""
    view = look.view
    position = labels.count(look.inside.row)
    text = (
        f"Many lectures draw the whole path of one query like this. q{raised(position)} meets every key, "
        "which gives the scores α. A softmax turns the scores into the weights α̂. b collects the values v, "
        f"each multiplied by its weight: the thicker a line, the larger the weight.{_others(look)}"
    )
    query = view.query_tokens[0], look.inside.row
    with section(3, f"From a to b{raised(position)}", text, r"b = \sum_j \hat\alpha_j\, v_j") as to:
        draw(
            look,
            to,
            "drawing",
            lambda: lecture(look.kind, query, view.key_tokens, view.scores[0], view.weights[0], view.mask[0]),
            "scores α before the mask, weights α̂",
            f"Drawing of how {captions.quote(query[0])} gathers its output from the keys of most weight",
        )


def _others(look: Look) -> str:
    shown, weights = lecture_keys(look.view.weights[0], look.view.mask[0]), look.view.weights[0]
    rest = int(look.view.mask[0].sum()) - len(shown)
    if rest <= 0:
        return ""
    left = max(0.0, 1 - float(weights[shown].sum()))
    return f" Only the {len(shown)} keys with the most weight are drawn; the other {rest} share {left:.2f}."


def products(look: Look) -> None:
    """4: the query against every key."""
    inside, view = look.inside, look.view
    query, key = view.query[0], view.key[look.key]
    each = query * key
    best = int(np.argmax(np.abs(each)))
    text = (
        f"q and k are multiplied dimension by dimension, and the products are summed. For {look.key_name}: "
        f"**q·k = {inside.products[look.key]:.2f}**. Dimension {labels.count(best)} contributes most: "
        f"{query[best]:.2f} × {key[best]:.2f} = {each[best]:.2f}. Point at any number to see its product."
    )
    rows = [
        Strip("q", query),
        Strip(f"k of {look.key_label}", key),
        Strip("q × k", each, f"Σ = {each.sum():.2f}", True),
    ]
    with section(4, "Query against keys", text, r"q \cdot k_j = \sum_i q_i\, k_{j,i}") as to:
        draw(look, to, "product", lambda: strips(rows), "vectors, each on its own scale", alt(rows))
        keys = view.key[look.keys]
        draw(
            look,
            to,
            "keys",
            lambda: vectors(keys, look.tokens, query[None], ("k", "q"), look.selected),
            f"keys, one per row{window_note(look)}",
            f"Keys of {len(keys)} tokens",
        )


def window_note(look: Look) -> str:
    """Says which keys are drawn, if some are not."""
    total = len(look.view.key_tokens)
    return (
        ""
        if look.stop - look.start == total
        else f" · keys {labels.count(look.start)}–{look.stop} of {total}"
    )


def ledger_rows(look: Look) -> list[LedgerRow]:
    """The model's own lines of the calculation, for the keys that are drawn."""
    inside, view = look.inside, look.view
    rows = [LedgerRow("q·k", inside.products[look.keys]), LedgerRow("÷ √dₖ", inside.scaled[look.keys])]
    if inside.bias is not None:
        rows.append(LedgerRow("+ position", inside.bias[look.keys]))
        rows.append(LedgerRow("score", view.scores[0, look.keys]))
    if not view.mask.all():
        rows.append(LedgerRow("masked", view.scores[0, look.keys], masked=True))
    rows.append(LedgerRow("softmax", view.weights[0, look.keys], share=True, masked=True))
    return rows


def scores(look: Look, outcome: Outcome | None) -> None:
    """5: from products to weights, with the lines of the other arithmetic under the model's own."""
    inside, view = look.inside, look.view
    masked = int((~view.mask[0]).sum())
    weight = float(view.weights[0, look.key])
    text = (
        f"For {look.key_name}: {inside.products[look.key]:.2f} ÷ √{look.sizes[1]} = "
        f"{inside.scaled[look.key]:.2f}"
        + ("" if inside.bias is None else f", and its position adds {inside.bias[look.key]:+.2f}")
        + (f". The mask hides {masked} later key{'s' * (masked != 1)}" if masked else "")
        + f". The softmax gives this key the weight **{weight:.2f}**. All weights sum to "
        f"{view.weights[0].sum():.2f}."
    )
    rows = [*ledger_rows(look), *_cut(look, outcome)]
    mask = view.mask[0, look.keys]
    with section(
        5,
        "Scores and weights",
        text,
        r"w = \mathrm{softmax}\!\left(\frac{q K^{\top}}{\sqrt{d_k}} + \mathrm{mask}\right)",
    ) as to:
        with st.container(key="inside-ledger"):
            draw(
                look,
                to,
                "scores",
                lambda: ledger(look.kind, look.tokens, mask, rows, look.selected),
                f"one column per key{window_note(look)}{_lower(outcome, 'lines')}",
                f"Products, scores and weights of {look.stop - look.start} keys",
            )
        if outcome is not None:
            st.badge(f"lower lines: {BADGE}", color="gray", icon=":material/science:")


def _lower(outcome: Outcome | None, what: str) -> str:
    """Says in a caption which part is not the model's."""
    return "" if outcome is None else f" · lower {what}: {BADGE}"


def _cut(look: Look, outcome: Outcome | None) -> list[LedgerRow]:
    return [] if outcome is None else [row.cut(look.keys) for row in outcome.rows]


def weighted_sum(look: Look, outcome: Outcome | None) -> None:
    """6: the values, each times its weight."""
    view = look.view
    b, weights = look.inside.outputs[view.head], view.weights[0]
    text = (
        f"Every value is multiplied by its weight, and the results are added. {look.key_name} gives "
        f"{percent(float(weights[look.key]))} of its value. Point at a number to see what it adds to b."
    )
    rows = [
        Strip(f"v of {look.key_label}", view.value[look.key]),
        Strip(f"{weights[look.key]:.2f} × v", weights[look.key] * view.value[look.key]),
        Strip("b, all keys", b, norm(b), True),
    ]
    if outcome is not None:
        rows.append(Strip("b, what if", outcome.output, norm(outcome.output)))
    values, factors = view.value[look.keys], weights[look.keys, None]
    with section(6, "Weighted sum of values", text, r"b = \sum_j w_j\, v_j") as to:
        draw(
            look,
            to,
            "sum",
            lambda: strips(rows, joint=True),
            f"one scale for all{_lower(outcome, 'strip')}",
            alt(rows),
        )
        if outcome is not None:
            st.badge(f"last strip: {BADGE}", color="gray", icon=":material/science:")
        draw(
            look,
            to,
            "values",
            lambda: vectors(values, look.tokens, factors, ("v", "weight"), look.selected),
            f"values, one per row{window_note(look)}",
            f"Values of {len(values)} tokens",
        )


def matrix_form(look: Look, _outcome: Outcome | None) -> None:
    """7: all queries at once, in rows and in columns."""
    _, d_k, _, keys = look.sizes
    queries = keys if look.kind != "cross" else len(look.opened.translation.target_tokens)
    text = (
        "A matrix product handles all queries at once. The paper writes vectors as rows. Other books write "
        "vectors as columns, which transposes everything. The numbers are the same. A frame marks this query."
    )
    rows = r"B = \mathrm{softmax}\!\left(\tfrac{QK^{\top}}{\sqrt{d_k}}\right) V"
    columns = r"B = V\, \mathrm{softmax}\!\left(\tfrac{K^{\top}Q}{\sqrt{d_k}}\right)"
    with section(7, "The matrix form", text) as to:
        left, right = st.columns(2)
        with left:
            st.latex(rows)
            st.caption(
                f"in rows: ({queries} × {keys}) · ({keys} × {d_k}) = {queries} × {d_k}; each row sums to 1"
            )
            _form(look, to, "in rows")
        with right:
            st.latex(columns)
            st.caption(
                f"in columns: ({d_k} × {keys}) · ({keys} × {queries}) = {d_k} × {queries}; "
                "each column sums to 1"
            )
            _form(look, to, "in columns")


def _form(look: Look, to: Drawn, name: str) -> None:
    view = look.map
    row = look.inside.row - view.window.query_start
    draw(
        look,
        to,
        name,
        lambda: form(view, row, name == "in columns"),
        f"weights, {name}, colour from 0 to 1{captions.window_note(view.window)}",
        f"Weights of the whole head, queries {name}",
    )


def all_heads(look: Look, _outcome: Outcome | None) -> None:
    """8: concatenation and W_O."""
    inside, (d_model, d_k, heads, _) = look.inside, look.sizes
    own = look.view.head
    lengths = np.linalg.norm(inside.contributions, axis=1)
    text = (
        f"Each of the {heads} heads of the layer gives {d_k} numbers. Side by side they are {heads * d_k} "
        f"numbers, and $W_O$ ({heads * d_k} × {d_model}) mixes them. The result is the same as a sum of what "
        f"each head adds. Head {labels.count(own)} adds a vector of length {lengths[own]:.2f}; the longest "
        f"comes from head {labels.count(int(np.argmax(lengths)))} ({lengths.max():.2f})."
    )
    formulas = (r"\mathrm{update} = [b_1; \dots; b_h]\,W_O + b_O", r"= b_1 W_O^1 + \dots + b_h W_O^h + b_O")
    together = [Strip("all b, side by side", inside.outputs.reshape(-1))]
    mixing = [(f"W<sub>O</sub>, the rows of head {labels.count(own)}", inside.w_o.weight)]
    rows = [
        Strip(f"head {labels.count(i)}", each, norm(each), i == own)
        for i, each in enumerate(inside.contributions)
    ]
    rows += [
        Strip("bias", inside.w_o.bias, norm(inside.w_o.bias)),
        Strip("= update", inside.update, norm(inside.update)),
    ]
    with section(8, "All heads, and the output matrix", text, *formulas) as to:
        draw(look, to, "together", lambda: strips(together), f"{heads} × {d_k} numbers", alt(together))
        draw(
            look,
            to,
            "output matrix",
            lambda: matrices(mixing, 150),
            "this head's rows of the output matrix",
            f"The {d_k} rows of W_O that head {labels.count(own)} goes through",
        )
        draw(
            look,
            to,
            "heads",
            lambda: strips(rows, joint=True),
            "what each head adds, one scale for all",
            alt(rows),
        )


def stream(look: Look, _outcome: Outcome | None) -> None:
    """9: back into the residual stream."""
    inside, post = look.inside, look.view.norm == "post"
    before, after = np.linalg.norm(inside.stream), np.linalg.norm(inside.added)
    share = np.linalg.norm(inside.update) / max(float(before), 1e-9)
    text = (
        f"The update is added to the stream and changes the stream's length from {before:.2f} to "
        f"{after:.2f}. The update is {share:.2f} times as long as the stream."
        + (" With post-norm, a LayerNorm follows." if post else " The next sub-layer reads the sum.")
    )
    formula = (
        r"\mathrm{LayerNorm}(\mathrm{stream} + \mathrm{update})"
        if post
        else r"\mathrm{stream} + \mathrm{update}"
    )
    rows = [
        Strip("stream", inside.stream, norm(inside.stream)),
        Strip("+ update", inside.update, norm(inside.update)),
        Strip("= sum", inside.added, norm(inside.added)),
    ]
    if post:
        rows.append(Strip("LayerNorm", inside.next_stream, norm(inside.next_stream)))
    with section(9, "Back into the residual stream", text, formula) as to:
        draw(look, to, "stream", lambda: strips(rows, joint=True), "vectors, one scale for all", alt(rows))


FIRST = (read, projections, drawing, products)
LAST = (scores, weighted_sum, matrix_form, all_heads, stream)
