"""The steps of "Inside a head": functions from the query at the cursor to what is drawn of it."""

import math
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
from transformer.encodings import rotary_frequencies

SUMMED = r"OUTPUT = \sum_j WEIGHT_j\, v_j"
NARROWEST = 600  # px below which the numbers of the calculation would run into each other


def inner(look: Look, query: str, index: str = "") -> str:
    """LaTeX of the scores: q Kᵀ / √d_k and what this head adds to it, for one query or for all."""
    q = query
    k = "K"
    if look.inside.rotates:
        q = rf"\tilde {q}"
        k = rf"\tilde {k}"
    columns = look.symbols.columns
    score = rf"{k}^{{\top}} {q}" if columns else rf"{q} {k}^{{\top}}"
    if look.inside.divisor != 1:
        score = rf"\frac{{{score}}}{{\sqrt{{d_k}}}}"
    transposed = r"^{\top}" if columns else ""
    terms = [score]
    if look.inside.rule:
        terms.append(f"B{index}{transposed}")
    if look.site.causal:
        terms.append(f"M{index}{transposed}")
    return " + ".join(terms)


def overview(look: Look) -> str:
    """The whole head as one formula, for all queries."""
    weights = rf"\mathrm{{softmax}}\!\left({inner(look, 'Q')}\right)"
    return f"OUTPUT = {look.symbols.times(weights, 'V')}"


def path(look: Look) -> Contents:
    """From a few inputs to the output, as lectures draw it."""
    view = look.view
    symbols = look.symbols
    weights = view.weights[0]
    mask = view.mask[0]
    text = (
        "The path of one query, from the bottom to the top. It meets every key, which gives the "
        f"scores {symbols.score}. A softmax turns them into the weights {symbols.weight}. "
        f"{symbols.result_words.capitalize()} collects the values v: the thicker a line, the "
        "larger the weight."
    )
    drawn = lecture_keys(weights, mask)
    if (rest := int(mask.sum()) - len(drawn)) > 0:
        left = max(0.0, 1 - float(weights[drawn].sum()))
        text += (
            f" Only the {len(drawn)} keys of most weight are drawn; the other {rest} share "
            f"{left:.2f}."
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
    alt = (
        f"Drawing of how {captions.quote(query[0])} gathers its output from the keys of most weight"
    )
    quantity = f"scores {symbols.score} before the mask, weights {symbols.weight}"
    return Contents([SUMMED], text, [look.figure("drawing", spec, quantity, alt=alt)])


EACH_MATRIX = "amber negative, purple positive, each matrix on its own scale"


def projections(look: Look) -> Contents:
    """From the stream to q, k and v."""
    inside = look.inside
    symbols = look.symbols
    read = [
        noted("stream", inside.stream),
        noted(symbols.x, inside.read),
        noted(f"{symbols.source} of {look.key_label}", inside.sources[look.key]),
    ]
    matrices = [
        (symbols.matrix(name), symbols.laid(projection.weight))
        for name, projection in (("Q", inside.w_q), ("K", inside.w_k), ("V", inside.w_v))
    ]
    legend = signed(None, EACH_MATRIX)
    figures = [
        look.strips("read", read, "vectors"),
        look.figure(
            "weights", matrices_spec(matrices), "weight matrices", legend, alt="W^Q, W^K, W^V"
        ),
        look.strips("vectors", _projected(look), "vectors"),
    ]
    return Contents(_projections_latex(look), _projections_text(look), figures)


def _projections_latex(look: Look) -> list[str]:
    """What the head reads, and the three products with their shapes."""
    d_model, d_k, _ = look.sizes
    read = r"\mathrm{stream}"
    if look.view.norm == "pre":
        read = rf"\mathrm{{{look.opened.translation.config.norm_name}}}(\mathrm{{stream}})"
    rows = (("q", "OWN", "Q"), ("k_j", "SOURCE_j", "K"), ("v_j", "SOURCE_j", "V"))
    products = [look.symbols.product(*row, d_model, d_k) for row in rows]
    return [f"OWN = {read}", *products]


def _projections_text(look: Look) -> str:
    """What the head reads, where keys and values come from, and what the matrices do."""
    symbols = look.symbols
    d_model, d_k, heads = look.sizes
    token = f"“{plain(captions.quote(look.view.query_tokens[0]))}”"
    place = token if look.kind == "encoder" else f"the position that reads {token}"
    origin = "are computed from the same layer's input"
    if look.kind == "cross":
        origin = "come from the encoder's output (the paper calls it memory)"
    width = f" ({d_model} ÷ {heads} heads)" if d_k * heads == d_model else ""
    text = (
        f"At {place}, the residual stream holds {d_model} numbers. The head reads them "
        f"{_reading(look)} and calls them {symbols.x}. Keys and values {origin}: every key has one "
        f"vector {symbols.source}, here that of {look.key_name}.\n\n"
        f"Three matrices of this head lead from {d_model} numbers to {d_k}{width}. "
        "The query q says what this position asks for, the key k what a position can be "
        "found by, the value v what it hands over."
    )
    return text + _shared_keys(look) + _turned(look)


def _shared_keys(look: Look) -> str:
    """Which heads read the same keys and values, as a sentence more; empty if each has its own."""
    config = look.opened.translation.config
    if config.n_key_heads is None:
        return ""
    group = config.n_heads // config.n_key_heads
    key_head = look.view.head // group
    heads = (
        f"Heads {labels.count(key_head * group)} to {labels.count(key_head * group + group - 1)}"
    )
    if group == 1:
        return ""
    return f" {heads} read the same keys and values: key head {labels.count(key_head)}."


def _turned(look: Look) -> str:
    """By how much the positional encoding turns q and k apart, as a sentence more."""
    if not look.inside.rotates:
        return ""
    config = look.opened.translation.config
    distance = look.inside.row - look.key
    turns = rotary_frequencies(config.rotary, config.rotary.width or config.d_head)
    first, last = (math.degrees(abs(distance) * float(turns[i])) for i in (0, -1))
    return (
        " The positional encoding then turns each pair of their numbers by an angle that grows "
        f"with the position. {labels.counted(abs(distance), 'token')} apart, the first pair of q "
        f"and that of k are turned {labels.number(first, '.1f')}° apart, the last pair "
        f"{labels.number(last, '.2g')}°."
    )


def _reading(look: Look) -> str:
    """How the head reads the stream: after a norm, or as it is."""
    if look.view.norm != "pre":
        return "as they are (post-norm)"
    norm = look.opened.translation.config.norm_name
    article = "an" if norm == "RMSNorm" else "a"
    return f"after {article} {norm} (pre-norm)"


def _projected(look: Look) -> list[Strip]:
    """The vectors q, k and v, and q and k turned by rotary positions."""
    inside = look.inside
    view = look.view
    query = noted("q", inside.query)
    key = noted(f"k of {look.key_label}", inside.key[look.key])
    value = noted(f"v of {look.key_label}", view.value[look.key])
    if not inside.rotates:
        return [query, key, value]
    turned_query = noted("q, turned", view.query[0])
    turned_key = noted("k, turned", view.key[look.key])
    return [query, turned_query, key, turned_key, value]


def products(look: Look) -> Contents:
    query = look.view.query[0]
    key = look.view.key[look.key]
    products = query * key
    best = int(np.argmax(np.abs(products)))
    factors = f"{labels.number(query[best])} × {labels.number(key[best])}"
    text = (
        "q and k are multiplied dimension by dimension, and the products are summed. For "
        f"{look.key_name}: **q·k = {labels.number(look.inside.products[look.key])}**. Dimension "
        f"{labels.count(best)} contributes most: {factors} = {labels.number(products[best])}. Point at "
        "any number to see its product."
    )
    total = f"Σ = {labels.number(products.sum())}"
    rows = [
        Strip("q", query),
        Strip(f"k of {look.key_label}", key),
        Strip("q × k", products, total, True),
    ]
    keys = look.of_keys("keys", look.view.key, query[None], ("k", "q"))
    latex = r"q \cdot k_j = \sum_i q_i\, k_{j,i}"
    return Contents([latex], text, [look.strips("product", rows, "vectors"), keys])


def weights(look: Look) -> Contents:
    """From products to weights, with the lines of another arithmetic under the model's own."""
    divides = look.inside.divisor != 1
    quantity = "one column per key"
    if look.outcome is not None:
        quantity += f" · lower lines: {BADGE}"
    tokens = look.view.key_tokens[look.keys]
    rows = [replace(row, values=row.values[look.keys]) for row in _ledger(look)]
    mask = look.view.mask[0, look.keys]
    figure = look.figure(
        "scores",
        ledger_spec(look.kind, tokens, mask, rows, look.key - look.keys.start),
        quantity,
        signed(None, EACH_ITS_OWN),
        shares(look.kind, "weight"),
        alt=f"Products, scores and weights of {len(tokens)} keys",
        least=NARROWEST,
    )
    terms = _terms(look)
    latex = [
        rf"SCORE = {inner(look, 'q', '_i')},\quad WEIGHT = \mathrm{{softmax}}(SCORE)",
        *(term.latex for term in terms if term.latex),
    ]
    text = f"{_score_of_key(look)}\n\n{' '.join(term.words for term in terms)}"
    why = f"Why divide by √{look.sizes[1]}?" if divides else "Why is nothing divided by √d_k?"
    return Contents(latex, text, [figure], asides={why: why_divide(look.inside.spread, divides)})


class _Term(NamedTuple):
    """What acts on the scores of a head besides the product, in words."""

    words: str
    latex: str = ""  # its formula; empty if nothing is added


def _terms(look: Look) -> list[_Term]:
    """What positions and the mask do to the scores."""
    terms = []
    if look.inside.rotates:
        terms.append(
            _Term(
                "Rotary positions rotate every q and k before the product (marked by ~).",
                r"\tilde q_i = q_i R_i,\quad \tilde k_j = k_j R_j",
            )
        )
    if look.inside.rule:
        rule = ENCODINGS[look.inside.rule]
        terms.append(_Term(rule.bias_words, rule.bias))
    if look.site.causal:
        terms.append(
            _Term(
                "M hides every key after the query, so that no position sees what is still to "
                "come.",
                r"M_{ij} = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}",
            )
        )
    else:
        sees = "token sees every token"
        if look.kind == "cross":
            sees = "step sees every source token"
        terms.append(
            _Term(f"Every {sees}: nothing is masked. In a batch, M would hide the padding.")
        )
    if look.kind == "cross":
        terms.append(
            _Term(
                "Positions add nothing here; those added to embeddings come in through the stream."
            )
        )
    return terms


def _score_of_key(look: Look) -> str:
    """The way of one key from the product to its weight, in numbers."""
    inside = look.inside
    product = labels.number(inside.products[look.key])
    if inside.divisor != 1:
        scaled = labels.number(inside.scaled[look.key])
        way = f"{product} ÷ √{look.sizes[1]} = {scaled}"
    else:
        way = f"q·k = {product} (this model does not divide q·k by √d_k)"
    if inside.bias is not None:
        way += f", and its position adds {labels.number(inside.bias[look.key], '+.2f')}"
    masks = ""
    hidden = int((~look.view.mask[0]).sum())
    if hidden:
        masks = f" The mask hides {labels.counted(hidden, 'later key')}."
    row = look.view.weights[0]
    return (
        f"For {look.key_name}: {way}.{masks} The softmax makes the weights of all visible keys "
        f"positive and scales them to sum to 1. This key gets **{row[look.key]:.2f}**, and the "
        f"whole row {row.sum():.2f}."
    )


def _ledger(look: Look) -> list[LedgerRow]:
    """The lines of the calculation, those of another arithmetic last."""
    inside = look.inside
    scores = look.view.scores[0]
    rows = [LedgerRow("q·k", inside.products)]
    if inside.divisor != 1:
        rows.append(LedgerRow("÷ √d_k", inside.scaled))
    if inside.bias is not None:
        rows += [LedgerRow("+ position", inside.bias), LedgerRow("score", scores)]
    if not look.view.mask.all():
        rows.append(LedgerRow("masked", scores, masked=True))
    rows.append(LedgerRow("softmax", look.view.weights[0], share=True, masked=True))
    if look.outcome is not None:
        rows += look.outcome.rows
    return rows


def why_divide(spread: ProductSpread, divided: bool = True) -> str:
    """The reason for the root, `divided` if it is taken, and what this head's products really do."""
    d_k = spread.d_head
    pairs = "1 pair" if spread.pairs == 1 else f"{spread.pairs:,} pairs"
    variance = f"{spread.products:.1f}"
    if divided:
        variance += f", and {spread.products / d_k:.2f} after the division"
        reason = (
            "Training sets the scale of the scores itself; the root decides where it starts and, "
            "under Adam, how large each step is beside the scores."
        )
    else:
        reason = (
            "This model does not divide: its training began with queries that are smaller by this "
            "root instead (Raffel et al. 2020)."
        )
    return (
        f"q·k is a sum of {d_k} products. If the entries of q and k were independent, with mean 0 "
        f"and variance 1, it would have the variance {d_k}: wider heads would get larger scores, "
        "and the softmax would start out close to a hard choice, where its gradient is nearly 0. "
        f"Divided by √{d_k} = {np.sqrt(d_k):.2f}, the variance is 1 for every width.\n\n"
        "This holds about where training starts, but not after it: in this sentence (over its "
        f"{pairs} of a query and a key it may see), this head's q·k has the variance {variance}. "
        f"The entries of all its queries here have the variance {spread.query:.2f}, those of its "
        f"keys {spread.key:.2f}. {reason}"
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
    _, d_k, heads = look.sizes
    together = [Strip("all heads' outputs", look.inside.outputs.reshape(-1))]
    head = labels.count(look.view.head)
    matrix = look.inside.w_o.weight
    figures = [
        look.strips("together", together, f"{heads} × {d_k} numbers"),
        look.figure(
            "output matrix",
            matrices_spec([(_output_title(look), matrix)], 150),
            "this head's part of the output matrix",
            signed(largest(matrix), "amber negative, purple positive"),
            alt=f"The part of the output matrix that head {head} goes through",
        ),
        look.strips("heads", _contributions(look), "what each head adds", True),
        look.strips("stream", _stream(look), "vectors", True),
    ]
    return Contents(_all_heads_latex(look), _all_heads_text(look), figures)


def _all_heads_latex(look: Look) -> list[str]:
    """From the heads' outputs to what the next sub-layer reads."""
    config = look.opened.translation.config
    update = look.symbols.times(r"\mathrm{all}", "W^O")
    if config.biases:
        update += r" + \text{bias}"
    result = "stream" if look.view.norm == "post" else "read"
    return [
        r"\mathrm{all} = \mathrm{Concat}(OUTPUT_1, \dots, OUTPUT_h)",
        rf"\mathrm{{update}} = {update}",
        r"\mathrm{sum} = \mathrm{stream} + \mathrm{update}",
        rf"\mathrm{{{result}}}' = \mathrm{{{config.norm_name}}}(\mathrm{{sum}})",
    ]


def _all_heads_text(look: Look) -> str:
    """How long the heads' vectors are, what the update does, and who reads the result."""
    inside = look.inside
    _, d_k, heads = look.sizes
    head = look.view.head
    lengths = np.linalg.norm(inside.contributions, axis=1)
    longest = int(np.argmax(lengths))
    norm = look.opened.translation.config.norm_name
    following = f"{_reader(look)} reads {norm}(sum)"
    if look.view.norm == "post":
        following = f"a {norm} follows, and {_reader(look)} reads its result"
    return (
        f"The {heads} heads of the layer give {d_k} numbers each; side by side, they pass the "
        "output matrix. That is the same as a sum of what each head adds. Head "
        f"{labels.count(head)} adds a vector of length {lengths[head]:.2f}; the longest comes from "
        f"head {labels.count(longest)} ({lengths.max():.2f}).\n\n"
        "The update is added to the stream, whose length changes from "
        f"{np.linalg.norm(inside.stream):.2f} to {np.linalg.norm(inside.added):.2f}; next, "
        f"{following}. {matrix_count(*look.sizes)}"
    )


def _reader(look: Look) -> str:
    """The sub-layer that reads what this attention gives; a layer ends with its feed-forward."""
    names = look.opened.translation.config.stacks[look.site.query_side].sublayers
    following = names[names.index(look.site.name) + 1]
    if following == "feed_forward":
        return "the feed-forward network"
    return following.replace("_attention", "-attention")


def _contributions(look: Look) -> list[Strip]:
    """What each head adds, and their sum."""
    inside = look.inside
    rows = [
        noted(f"head {labels.count(head)}", contribution, head == look.view.head)
        for head, contribution in enumerate(inside.contributions)
    ]
    if look.opened.translation.config.biases:
        rows.append(noted("bias", inside.w_o.bias))
    return [*rows, noted("= update", inside.update)]


def _stream(look: Look) -> list[Strip]:
    """The stream before and after, and its norm if that is the next stream."""
    inside = look.inside
    rows = [
        noted("stream", inside.stream),
        noted("+ update", inside.update),
        noted("= sum", inside.added),
    ]
    if look.view.norm == "post":
        rows.append(noted(look.opened.translation.config.norm_name, inside.next_stream))
    return rows


def _output_title(look: Look) -> str:
    """The name of what the head has of the output matrix."""
    matrix = look.symbols.matrix("O")
    head = labels.count(look.view.head)
    if look.symbols.columns:
        return f"{matrix}, the columns of head {head} (drawn on its side)"
    return f"{matrix}, the rows of head {head}"


def matrix_form(look: Look) -> Contents:
    """The head over the whole sentence, as equation 1: one matrix product for all queries."""
    view = look.opened.translation.head(look.kind, look.view.layer, look.view.head)
    symbols = look.symbols
    _, d_k, _ = look.sizes
    queries, keys = view.weights.shape
    vectors = [
        ("Q", symbols.laid(view.query)),
        ("K", symbols.laid(view.key)),
        ("V", symbols.laid(view.value)),
    ]
    products = [("softmax", symbols.laid(view.weights)), ("output", symbols.laid(view.output))]
    side = "columns" if symbols.columns else "rows"
    text = (
        f"What the steps before do for one query, one product of matrices does for all {queries}. "
        f"The {side} of Q are the queries, those of K and V the {keys} keys and values, {d_k} "
        "numbers each. QKᵀ has a score for every query and key; the softmax acts on each row "
        "alone, and the product with V adds up the values. No query waits for another: this is "
        "why training is quick."
    )
    legend = signed(None, EACH_MATRIX)
    figures = [
        look.figure("sentence", matrices_spec(vectors), "Q, K, V", legend, alt="Q, K and V"),
        look.figure(
            "attention",
            matrices_spec(products),
            "weights and output",
            legend,
            alt="Weights, output",
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
