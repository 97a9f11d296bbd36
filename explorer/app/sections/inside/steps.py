"""The steps of "Inside a head": each is a function from the query at the cursor to what is shown of
it."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import plain
from explorer.app.controls.slots import shares, signed
from explorer.app.sections.inside.look import BADGE, EACH_ITS_OWN, Contents, Look, noted
from explorer.figures.base import captions, labels
from explorer.figures.base.labels import percent
from explorer.figures.base.strips import Strip, largest, matrices_spec
from explorer.figures.pages.inside import LedgerRow, lecture_keys, lecture_spec, ledger_spec
from explorer.lenses.inside.inside import ProductSpread

SUMMED = r"OUTPUT = \sum_j WEIGHT_j\, v_j"
NARROWEST = 600  # px below which the numbers of the calculation would run into each other


def inner(look: Look, query: str, index: str = "") -> str:
    """LaTeX of the scores: q Kᵀ / √d_k and what this head adds to it, for one query or for all."""
    symbols, inside = look.symbols, look.inside
    q, k = (rf"\tilde {each}" if inside.rotates else each for each in (query, "K"))
    product = rf"{k}^{{\top}} {q}" if symbols.columns else rf"{q} {k}^{{\top}}"
    scaled = rf"\frac{{{product}}}{{\sqrt{{d_k}}}}" if inside.divisor != 1 else product
    more = ["B"] * bool(inside.rule) + ["M"] * look.site.causal
    turned = r"^{\top}" if symbols.columns else ""
    return " + ".join([scaled, *(f"{each}{index}{turned}" for each in more)])


def overview(look: Look) -> str:
    """The whole head as one formula, for all queries."""
    weights = rf"\mathrm{{softmax}}\!\left({inner(look, 'Q')}\right)"
    return f"OUTPUT = {look.symbols.times(weights, 'V')}"


def path(look: Look) -> Contents:
    """From a few inputs to the output, as lectures draw it."""
    view, symbols = look.view, look.symbols
    weights = view.weights[0]
    mask = view.mask[0]
    drawn = lecture_keys(weights, mask)
    others = ""
    if (rest := int(mask.sum()) - len(drawn)) > 0:
        left = max(0.0, 1 - float(weights[drawn].sum()))
        others = (
            f" Only the {len(drawn)} keys of most weight are drawn; the other {rest} share "
            f"{left:.2f}."
        )
    text = (
        "The path of one query, from the bottom to the top. It meets every key, which gives the "
        f"scores {symbols.score}. A softmax turns them into the weights {symbols.weight}. "
        f"{symbols.result_words.capitalize()} collects the values v: the thicker a line, the "
        f"larger the weight.{others}"
    )
    query = view.query_tokens[0], look.inside.row
    spec = lecture_spec(
        look.kind,
        query,
        tokens=view.key_tokens,
        scores=view.scores[0],
        weights=weights,
        mask=mask,
        symbols=symbols,
    )
    told = (
        f"Drawing of how {captions.quote(query[0])} gathers its output from the keys of most weight"
    )
    quantity = f"scores {symbols.score} before the mask, weights {symbols.weight}"
    return Contents([SUMMED], text, [look.figure("drawing", spec, quantity, told)])


def projections(look: Look) -> Contents:
    inside, view, symbols, key = look.inside, look.view, look.symbols, look.key
    d_model, d_k, heads = look.sizes
    norm = look.opened.translation.config.norm_name
    pre = view.norm == "pre"
    latex = [rf"OWN = \mathrm{{{norm}}}(\mathrm{{stream}})" if pre else r"OWN = \mathrm{stream}"]
    latex += [
        symbols.product(*each, d_model, d_k)
        for each in (("q", "OWN", "Q"), ("k_j", "SOURCE_j", "K"), ("v_j", "SOURCE_j", "V"))
    ]
    token = f"“{plain(captions.quote(view.query_tokens[0]))}”"
    place = token if look.kind == "encoder" else f"the position that reads {token}"
    memory = "come from the encoder's output (the paper calls it memory)"
    origin = memory if look.kind == "cross" else "are computed from the same layer's input"
    article = "an" if norm == "RMSNorm" else "a"
    how = f"after {article} {norm} (pre-norm)" if pre else "as they are (post-norm)"
    turned = (
        " The positional encoding then turns q and k by their positions." if inside.rotates else ""
    )
    text = (
        f"At {place}, the residual stream holds {d_model} numbers. The head reads them {how} and "
        "calls them "
        f"{symbols.x}. Keys and values {origin}: every key has one vector {symbols.source}, here "
        "that of "
        f"{look.key_name}.\n\nThree matrices of this head lead from {d_model} numbers to {d_k} "
        f"({d_model} ÷ "
        f"{heads} heads). The query q says what this position asks for, the key k what a position "
        "can be "
        f"found by, the value v what it hands over.{turned}"
    )
    of_key = f"of {look.key_label}"
    read = [noted("stream", inside.stream), noted(symbols.x, inside.read)]
    read.append(noted(f"{symbols.source} {of_key}", inside.sources[key]))
    rows = [noted("q", inside.query), noted(f"k {of_key}", inside.key[key])]
    if inside.rotates:
        rows = [
            rows[0],
            noted("q, turned", view.query[0]),
            rows[1],
            noted("k, turned", view.key[key]),
        ]
    rows.append(noted(f"v {of_key}", view.value[key]))
    matrices = [
        (symbols.matrix(name), one.weight.T if symbols.columns else one.weight)
        for name, one in (("Q", inside.w_q), ("K", inside.w_k), ("V", inside.w_v))
    ]
    legend = signed(None, "amber negative, purple positive, each matrix on its own scale")
    figures = [
        look.strips("read", read, "vectors"),
        look.figure("weights", matrices_spec(matrices), "weight matrices", "W^Q, W^K, W^V", legend),
        look.strips("vectors", rows, "vectors"),
    ]
    return Contents(latex, text, figures)


def products(look: Look) -> Contents:
    query = look.view.query[0]
    key = look.view.key[look.key]
    each = query * key
    best = int(np.argmax(np.abs(each)))
    factors = f"{labels.number(query[best])} × {labels.number(key[best])}"
    text = (
        "q and k are multiplied dimension by dimension, and the products are summed. For "
        f"{look.key_name}: **q·k = {labels.number(look.inside.products[look.key])}**. Dimension "
        f"{labels.count(best)} contributes most: {factors} = {labels.number(each[best])}. Point at "
        "any number to see its product."
    )
    total = f"Σ = {labels.number(each.sum())}"
    rows = [
        Strip("q", query),
        Strip(f"k of {look.key_label}", key),
        Strip("q × k", each, total, True),
    ]
    keys = look.of_keys("keys", look.view.key, query[None], ("k", "q"))
    latex = r"q \cdot k_j = \sum_i q_i\, k_{j,i}"
    return Contents([latex], text, [look.strips("product", rows, "vectors"), keys])


def weights(look: Look) -> Contents:
    """From products to weights, with the lines of another arithmetic under the model's own."""
    inside, view, outcome, at = look.inside, look.view, look.outcome, look.key
    divides = inside.divisor != 1
    hidden = int((~view.mask[0]).sum())
    rule = ENCODINGS[inside.rule] if inside.rule else None
    latex = [rf"SCORE = {inner(look, 'q', '_i')},\quad WEIGHT = \mathrm{{softmax}}(SCORE)"]
    words = []
    if inside.rotates:
        latex.append(r"\tilde q_i = q_i R_i,\quad \tilde k_j = k_j R_j")
        words.append("Rotary positions rotate every q and k before the product (marked by ~).")
    if rule is not None:
        latex.append(rule.bias)
        words.append(rule.bias_words)
    if look.site.causal:
        latex.append(r"M_{ij} = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}")
        words.append(
            "M hides every key after the query, so that no position sees what is still to come."
        )
    else:
        everyone = (
            "step sees every source token" if look.kind == "cross" else "token sees every token"
        )
        words.append(f"Every {everyone}: nothing is masked. In a batch, M would hide the padding.")
    if look.kind == "cross":
        words.append(
            "Positions add nothing here; those added to embeddings come in through the stream."
        )
    by, scaled = (labels.number(each[at]) for each in (inside.products, inside.scaled))
    undivided = f"q·k = {by} (this model does not divide q·k by √d_k)"
    divided = f"{by} ÷ √{look.sizes[1]} = {scaled}" if divides else undivided
    bias = None if inside.bias is None else labels.number(inside.bias[at], "+.2f")
    placed = "" if bias is None else f", and its position adds {bias}"
    masks = f" The mask hides {hidden} later key{'s' * (hidden != 1)}." if hidden else ""
    text = (
        f"For {look.key_name}: {divided}{placed}.{masks} The softmax makes the weights of all "
        "visible keys positive and scales them to sum to 1. This key gets "
        f"**{view.weights[0, at]:.2f}**, "
        f"and the whole row {view.weights[0].sum():.2f}.\n\n{' '.join(words)}"
    )
    rows = [LedgerRow("q·k", inside.products)]
    rows += [LedgerRow("÷ √d_k", inside.scaled)] if divides else []
    if inside.bias is not None:
        rows += [LedgerRow("+ position", inside.bias), LedgerRow("score", view.scores[0])]
    rows += [] if view.mask.all() else [LedgerRow("masked", view.scores[0], masked=True)]
    rows.append(LedgerRow("softmax", view.weights[0], share=True, masked=True))
    rows += [] if outcome is None else outcome.rows
    cut = [replace(row, values=row.values[look.keys]) for row in rows]
    tokens = view.key_tokens[look.keys]
    figure = look.figure(
        "scores",
        ledger_spec(look.kind, tokens, view.mask[0, look.keys], cut, at - look.keys.start),
        "one column per key" + ("" if outcome is None else f" · lower lines: {BADGE}"),
        f"Products, scores and weights of {len(tokens)} keys",
        signed(None, EACH_ITS_OWN),
        shares(look.kind, "weight"),
        least=NARROWEST,
    )
    why = f"Why divide by √{look.sizes[1]}?" if divides else "Why is nothing divided by √d_k?"
    return Contents(latex, text, [figure], asides={why: why_divide(inside.spread, divides)})


def why_divide(spread: ProductSpread, divided: bool = True) -> str:
    """The reason for the root, and what this head's products really do; ``divided``: whether it is
    taken."""
    d_k = spread.d_head
    pairs = f"{spread.pairs:,} pair{'s' * (spread.pairs != 1)}"
    after = f", and {spread.products / d_k:.2f} after the division" if divided else ""
    kept = (
        "Training sets the scale of the scores itself; the root decides where it starts and, "
        "under Adam, how large each step is beside the scores."
        if divided
        else "This model does not divide: its training began with queries that are smaller by this root "
        "instead (Raffel et al. 2020)."
    )
    return (
        f"q·k is a sum of {d_k} products. If the entries of q and k were independent, with mean 0 "
        "and "
        f"variance 1, it would have the variance {d_k}: wider heads would get larger scores, and "
        "the softmax "
        "would start out close to a hard choice, where its gradient is nearly 0. Divided by "
        f"√{d_k} = "
        f"{np.sqrt(d_k):.2f}, the variance is 1 for every width.\n\nThis holds about where "
        "training starts, "
        f"but not after it: in this sentence (over its {pairs} of a query and a key it may see), "
        "this head's "
        f"q·k has the variance {spread.products:.1f}{after}. The entries of all its queries here "
        "have the "
        f"variance {spread.query:.2f}, those of its keys {spread.key:.2f}. {kept}"
    )


def weighted_sum(look: Look) -> Contents:
    value = look.view.value[look.key]
    weight = look.view.weights[0, look.key]
    symbols = look.symbols
    outcome = look.outcome
    output = look.view.output[0]
    text = (
        f"Every value is multiplied by its weight, and the results are added. {look.key_name} "
        f"gives {percent(float(weight))} of its value. Point at a number to see what it adds to "
        f"{symbols.result_words}."
    )
    rows = [Strip(f"v of {look.key_label}", value), Strip(f"{weight:.2f} × v", weight * value)]
    rows.append(noted(f"{symbols.output}, all keys", output, True))
    quantity = "values"
    if outcome is not None:
        rows.append(noted(f"{symbols.output}, what if", outcome.output))
        quantity += f" · lower strip: {BADGE}"
    factors: np.ndarray = look.view.weights[0, look.keys, None]
    keys = look.of_keys("values", look.view.value, factors, ("v", "weight"))
    return Contents([SUMMED], text, [look.strips("sum", rows, quantity, True), keys])


def all_heads(look: Look) -> Contents:
    """What each head adds, and what becomes of the stream."""
    inside, symbols, (_, d_k, heads), own = look.inside, look.symbols, look.sizes, look.view.head
    config = look.opened.translation.config
    post = look.view.norm == "post"
    everything = r"\mathrm{all}"
    bias = r" + \text{bias}" * config.biases
    latex = [
        r"\mathrm{all} = \mathrm{Concat}(OUTPUT_1, \dots, OUTPUT_h)",
        rf"\mathrm{{update}} = {symbols.times(everything, 'W^O')}{bias}",
        r"\mathrm{sum} = \mathrm{stream} + \mathrm{update}",
        (
            rf"\mathrm{{{'stream' if post else 'read'}}}' = "
            rf"\mathrm{{{config.norm_name}}}(\mathrm{{sum}})"
        ),
    ]
    lengths = np.linalg.norm(inside.contributions, axis=1)
    before = np.linalg.norm(inside.stream)
    after = np.linalg.norm(inside.added)
    names = config.stacks[look.site.query_side].sublayers
    following = names[
        names.index(look.site.name) + 1
    ]  # every layer ends with its feed-forward network
    reader = following.replace("_attention", "-attention").replace("feed_", "the feed-")
    reader += " network" * (following == "feed_forward")
    reads = f"a {config.norm_name} follows, and {reader} reads its result" if post else ""
    text = (
        f"The {heads} heads of the layer give {d_k} numbers each; side by side, they pass the "
        "output matrix. "
        f"That is the same as a sum of what each head adds. Head {labels.count(own)} adds a vector "
        "of length "
        f"{lengths[own]:.2f}; the longest comes from head {labels.count(int(np.argmax(lengths)))} "
        f"({lengths.max():.2f}).\n\nThe update is added to the stream, whose length changes from "
        f"{before:.2f} to {after:.2f}; next, {reads or f'{reader} reads {config.norm_name}(sum)'}."
    )
    added = [
        noted(f"head {labels.count(i)}", each, i == own)
        for i, each in enumerate(inside.contributions)
    ]
    added += [noted("bias", inside.w_o.bias)] * config.biases + [noted("= update", inside.update)]
    stream = [
        noted("stream", inside.stream),
        noted("+ update", inside.update),
        noted("= sum", inside.added),
    ]
    stream += [noted(config.norm_name, inside.next_stream)] * post
    together = [Strip("all heads' outputs", inside.outputs.reshape(-1))]
    matrix = inside.w_o.weight
    turned = symbols.columns
    head = labels.count(own)
    part = f"{symbols.matrix('O')}, the {'columns' if turned else 'rows'} of head {head}"
    figures = [
        look.strips("together", together, f"{heads} × {d_k} numbers"),
        look.figure(
            "output matrix",
            matrices_spec([(part + " (drawn on its side)" * turned, matrix)], 150),
            "this head's part of the output matrix",
            f"The part of the output matrix that head {head} goes through",
            signed(largest(matrix), "amber negative, purple positive"),
        ),
        look.strips("heads", added, "what each head adds", True),
        look.strips("stream", stream, "vectors", True),
    ]
    return Contents(latex, f"{text} {matrix_count(*look.sizes)}", figures)


def matrix_form(look: Look) -> Contents:
    """The head over the whole sentence, as equation 1 is printed: one matrix product for all
    queries."""
    view = look.opened.translation.head(look.kind, look.view.layer, look.view.head)
    symbols, (_, d_k, _) = look.symbols, look.sizes
    queries, keys = view.weights.shape
    held = {"Q": view.query, "K": view.key, "V": view.value}
    turned = {name: one.T if symbols.columns else one for name, one in held.items()}
    side = "columns" if symbols.columns else "rows"
    text = (
        f"What the steps before do for one query, one product of matrices does for all {queries}. "
        f"The {side} of Q are the queries, those of K and V the {keys} keys and values, {d_k} "
        "numbers each. QKᵀ has a score for every query and key; the softmax acts on each row "
        "alone, and the product with V adds up the values. No query waits for another: this is "
        "why training is quick."
    )
    weights = view.weights.T if symbols.columns else view.weights
    output = view.output.T if symbols.columns else view.output
    legend = signed(None, "amber negative, purple positive, each matrix on its own scale")
    products = [("softmax", weights), ("output", output)]
    figures = [
        look.figure("sentence", matrices_spec([*turned.items()]), "Q, K, V", "Q, K and V", legend),
        look.figure(
            "attention", matrices_spec(products), "weights and output", "Weights, output", legend
        ),
    ]
    return Contents([overview(look)], text, figures)


def matrix_count(d_model: int, d_k: int, heads: int) -> str:
    """How many matrices and numbers the heads of a layer are, in a sentence (section 3.2.2)."""
    inner_width = heads * d_k
    square = f"{d_model}²" if inner_width == d_model else f"{d_model} · {inner_width}"
    return (
        f"The layer's {heads} heads are 3 · {heads} + 1 = {3 * heads + 1} matrices with 4 · "
        f"{square} = {4 * d_model * inner_width:,} numbers: as many as one head of the whole width "
        "would have, without any biases."
    )


class Step(NamedTuple):
    title: str  # its heading
    short: str  # its name in the switch
    contents: Callable[[Look], Contents]


STEPS = {
    "path": Step("The whole path", "the path", path),
    "projections": Step("From the stream to query, key, value", "q, k, v", projections),
    "products": Step("Query against keys", "q·k", products),
    "weights": Step("Scores and weights", "weights", weights),
    "sum": Step("Weighted sum of values", "sum of values", weighted_sum),
    "heads": Step("All heads, and back into the stream", "all heads", all_heads),
    "matrices": Step("All queries at once", "matrix form", matrix_form),
}
"""The steps by their names in the address, in order."""
CHANGED = ("weights", "sum")  # whose arithmetic the switches change
