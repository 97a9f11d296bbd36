"""What each part of the model does to the token at the cursor: formula, sentence, numbers."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State
from explorer.app.address.parameters import link
from explorer.app.controls import chart, export, plain
from explorer.app.controls.panels import says
from explorer.app.controls.text import alt, word
from explorer.app.maps.looking import lacking
from explorer.app.sections.whole_model.diagram import Inspected, proof
from explorer.app.server import per_run
from explorer.figures.base import labels, style
from explorer.figures.base.labels import count, number, percent, piece
from explorer.figures.base.strips import Strip, strips_spec
from explorer.figures.pages.anatomy import ranked
from explorer.lenses.inside import parts
from explorer.lenses.inside.parts import EmbeddingPart, NormPart
from transformer.config import ModelConfig
from transformer.view import Check

SWATCH = '<span><span style="display:inline-block;width:.8em;height:.8em;background:{}"></span> {}</span>'
CLEAR = "transparent;border:1px solid rgba(128,128,128,.6)"
HUES = ((style.NEGATIVE, "negative"), (CLEAR, "0"), (style.POSITIVE, "positive"))
LEGEND = f'<div style="font-size:.8rem;display:flex;gap:1rem">{"".join(SWATCH.format(*h) for h in HUES)}</div>'
CANDIDATES = 8  # next tokens drawn
NEIGHBOURS = 8  # tokens with like embeddings that are named
Checks = tuple[Check, ...]
MAPS = "vectors, each on its own scale"


def draw(
    at: Inspected, name: str, make: Callable[[], go.Figure], caption: str, alt: str, checks: Checks
) -> None:
    """Draws a figure of the part with its checks, and puts it into the page's export."""
    chart(f"anatomy.{name}", make(), alt)
    audit = at.audit(checks)
    picture = export.Picture(make, at.caption(caption), audit)
    export.collect(f"anatomy-part {name}", picture)
    says(picture, proof(audit))


def vectors(
    at: Inspected,
    name: str,
    rows: list[Strip],
    checks: Checks,
    caption: str = MAPS,
    *,
    joint: bool = False,
    across: str = "dimension",
) -> None:
    """Draws vectors one below the other, as `strips_spec` does."""

    def make() -> go.Figure:
        return style.figure(strips_spec(rows, joint, across))

    draw(at, name, make=make, caption=caption, alt=alt(rows), checks=checks)


def bars(
    at: Inspected,
    name: str,
    names: Sequence[str],
    values: np.ndarray,
    written: Sequence[str],
    what: str,
    caption: str,
    checks: Checks,
) -> None:
    draw(
        at,
        name,
        make=partial(ranked, names, values, written, what),
        caption=caption,
        alt=f"{caption}: {', '.join(names)}",
        checks=checks,
    )


def show(at: Inspected, now: State) -> None:
    st.markdown(f"##### {at.title}")
    st.html(LEGEND)
    what = at.part.rpartition("-")[2]
    for name in [picture for picture in export.pictures() if picture.startswith("anatomy-part ")]:
        del export.pictures()[name]  # of the part before
    if what in ("attention", "cross"):
        attention(at, now)
    else:
        PARTS[what](at)


def vector(name: str, values: np.ndarray, last: bool = False) -> Strip:
    return Strip(name, values, f"‖·‖ = {np.linalg.norm(values):.2f}", last)


def embedding(at: Inspected) -> None:
    """A token's row of the table, the row scaled, and the encoding of its position."""
    model = at.model.model
    embedded = parts.embedding_part(model, at.run, at.side, at.position, at.token_id)
    pieces, d_model = model.table(at.side).weight.shape
    st.latex(
        rf"\underset{{1 \times {d_model}}}{{x}} = \underset{{{pieces} \times "
        rf"{d_model}}}{{E}}[\mathrm{{id}}]{embedding_terms(embedded, d_model)}"
    )
    times = "as it is: this model does not scale it"
    if embedded.factor != 1:
        times = f"multiplied by {embedded.factor:.1f}"
    st.markdown(
        f"{at.token} is row {at.token_id:,} of the embedding table (from 0), {times}. "
        f"{position_words(at, embedded)}"
    )
    vectors(at, "embedding", embedding_rows(at, embedded), embedded.checks)
    near = parts.neighbours(model, at.side, at.token_id, NEIGHBOURS)
    tokenizer = at.model.tokenizer
    vocabulary = tokenizer.source if at.side == "encoder" else tokenizer.target
    tokens = vocabulary.named(token for token, _ in near)
    listed = ", ".join(
        f"{word(token)} {number(cosine)}" for token, (_, cosine) in zip(tokens, near, strict=True)
    )
    st.markdown(
        f"**Nearest neighbours** of {at.token} among the {pieces:,} rows of the table, by the "
        f"cosine of the angle (1: the same direction): {listed}. Tokens that the model treats "
        "alike come to lie near."
    )


def embedding_terms(embedded: EmbeddingPart, d_model: int) -> str:
    """LaTeX of what a row of the table is multiplied by, and of what is added."""
    terms = ""
    if embedded.factor != 1:
        is_root = abs(embedded.factor - d_model**0.5) < 1e-6
        terms += rf"\cdot \sqrt{{{d_model}}}" if is_root else rf"\cdot {embedded.factor:g}"
    if embedded.position is not None:
        terms += r" + \mathrm{PE}(pos)"
    return terms


def position_words(at: Inspected, embedded: EmbeddingPart) -> str:
    """What the model adds for the position of a token, and why."""
    positions = at.model.config.positions
    if positions == "none" and embedded.position is None:
        return "This model has no positional encoding, so nothing is added."
    if embedded.position is None:
        return (
            f"Nothing is added for its position: this model's positions ({positions}) act inside "
            "attention."
        )
    origin = "table" if positions == "learned" else "formula"
    order = "the decoder would know the order from its mask alone"
    if at.side == "encoder":
        order = "the encoder could not tell word orders apart"
    return (
        f"The encoding of its position is added: for token {count(at.position)}, the {origin} "
        f"takes {at.position}, because it counts from 0. Without it, {order}."
    )


def embedding_rows(at: Inspected, embedded: EmbeddingPart) -> list[Strip]:
    """The row of the table and what becomes of it, up to the input of the first layer."""
    rows = [vector("row of the table", embedded.row)]
    if embedded.factor != 1:
        rows.append(vector(f"× {embedded.factor:.1f}", embedded.scaled))
    if embedded.position is not None:
        rows.append(vector("+ position", embedded.position))
    end = "= input" if embedded.normed is None else f"{at.model.config.norm_name}(sum)"
    return [*rows, vector(end, embedded.input, True)]


def layer_norm(at: Inspected, given_norm: NormPart | None = None) -> None:
    """A norm: its input, the input normalised, the learned vectors, and the output."""
    config = at.model.config
    norm = given_norm or parts.norm_part(at.model.model, at.run, at.sublayer, at.position)
    epsilon = np.format_float_positional(norm.epsilon)
    mean = norm.mean
    if mean is None:
        st.latex(r"\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{\sqrt{\overline{x^2} + \epsilon}}")
        text = (
            f"the root of the mean square is **{norm.deviation:.3f}**, ε = {epsilon}. No mean is "
            "taken away"
        )
        learned = "γ, which is learned and the same for all tokens, stretches each dimension"
    else:
        st.latex(
            r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + "
            r"\beta"
        )
        text = f"**μ = {number(mean, '.3f')}**, **σ = {norm.deviation:.3f}**, ε = {epsilon}"
        learned = (
            "γ and β, which are learned and the same for all tokens, stretch and shift each "
            "dimension"
        )
    st.markdown(f"At {at.token}: {text}. {learned[0].upper()}{learned[1:]}.")
    divided = "x ÷ √(mean x² + ε)" if mean is None else "(x − μ) ÷ √(σ² + ε)"
    rows = [vector("x", norm.before), vector(divided, norm.normalised)]
    for name, values in (("γ", norm.weight), ("β", norm.bias)):
        if values is not None:
            rows.append(Strip(name, values, f"{number(values.min())} to {number(values.max())}"))
    vectors(at, "norm", [*rows, vector(f"{config.norm_name}(x)", norm.after, True)], norm.checks)


def attention(at: Inspected, now: State) -> None:
    """What the heads add to the stream, and the link that opens one."""
    kind = {"encoder-attention": "encoder", "decoder-attention": "decoder"}.get(at.part, "cross")
    head = at.layer, getattr(now, kind)[1]
    inside = per_run.inside(at.opened, kind, head, at.position)
    (d_model, d_k) = inside.w_q.weight.shape
    heads = len(inside.outputs)
    lengths = np.linalg.norm(inside.contributions, axis=1)
    checks = inside.audit.checks
    st.latex(
        rf"\underset{{1 \times {heads} \cdot {d_k}}}{{\mathrm{{Concat}}(\mathrm{{head}}_1, \dots, "
        rf"\mathrm{{head}}_{{{heads}}})}}\;\underset{{{heads * d_k} \times {d_model}}}{{W_O}} + b_O"
    )
    seen = int(inside.view.mask[0].sum())
    read = f"{labels.counted(heads, 'head')} of width {d_k} read {at.token}"
    st.markdown(f"{read} and gather from {labels.counted(seen, 'visible key')}.")
    names = [f"head {count(i)}" for i in range(heads)]
    written = [f"{length:.2f}" for length in lengths]
    caption = "length of what each head adds to the stream"
    bars(
        at,
        "heads",
        names=names,
        values=lengths,
        written=written,
        what="length",
        caption=caption,
        checks=checks,
    )
    rows = [vector("reads x", inside.read), vector("returns", inside.update, True)]
    vectors(at, "attention", rows, checks)
    st.page_link(
        "pages/inside_a_head.py",
        label=f"Open head {count(head[1])} step by step",
        icon=":material/function:",
        query_params=link(now, **{"kind": None if kind == "cross" else kind, kind: head}),
    )


def addition(at: Inspected) -> None:
    trace = at.run.stream(at.sublayer)
    stream, update = (vectors[at.position].numpy() for vectors in (trace.before, trace.output))
    total = stream + update
    (before, change) = (np.linalg.norm(vector) for vector in (stream, update))
    cosine = float(stream @ update / max(float(before * change), 1e-9))
    how = "the update is mostly a new direction"
    if cosine > 0.3:
        how = "the two agree"
    elif cosine < -0.3:
        how = "the two oppose each other"
    after = ""
    if at.run.config.norm == "post":
        after = f" With post-norm, a {at.run.config.norm_name} follows."
    st.latex(r"\mathrm{stream} + \mathrm{Sublayer}(\dots)")
    st.markdown(
        f"The length of the stream at {at.token} goes from {before:.2f} to "
        f"{np.linalg.norm(total):.2f}. The cosine between stream and update is {number(cosine)}: "
        f"{how}.{after}"
    )
    rows = [vector("stream", stream), vector("+ update", update), vector("= sum", total, True)]
    checks = parts.addition_check(at.model.model, at.run, at.sublayer, at.position, total)
    vectors(at, "add", rows, checks, "vectors, one scale for all", joint=True)


def feed_forward(at: Inspected) -> None:
    """The feed-forward network and its most active units."""
    config = at.model.config
    network = parts.feed_forward_part(at.model.model, at.run, at.side, at.layer, at.position)
    best = network.best
    wide = len(network.units)
    st.latex(inner_formula(config, wide))
    act = {"gelu_tanh": "gelu, by tanh"}.get(config.activation, config.activation)
    most = "none adds anything"
    if network.added[best[0]] > 0:
        most = f"unit {count(best[0])} adds most"
    text = (
        f"Attention mixes positions; here a non-linear function ({act}) acts on each position "
        "alone. "
    )
    if config.gated:
        text += "It makes a gate for each unit, which multiplies the unit's value. "
    st.markdown(
        f"{text}At {at.token}, {percent(float((network.units > 0).mean()))} of the {wide:,} units "
        f"are above 0; {most}. A bar shows |unit| times the length of the unit's row of $W_2$."
    )
    names = [f"unit {count(unit)}" for unit in best]
    written = [
        f"{number(network.added[unit])} (unit at {number(network.units[unit])})" for unit in best
    ]
    caption = f"the {len(best)} units that add most"
    bars(
        at,
        "units",
        names=names,
        values=network.added[best],
        written=written,
        what="adds a vector of length",
        caption=caption,
        checks=network.checks,
    )
    vectors(
        at,
        "forward",
        [vector("reads x", network.read), vector("returns", network.update, True)],
        network.checks,
    )
    inner = (("gates", network.gates), ("units u", network.units))
    units = [Strip(name, of, f"max {number(of.max())}") for name, of in inner if of is not None]
    vectors(at, "inner", units, network.checks, "all inner units", across="unit")


def inner_formula(config: ModelConfig, wide: int) -> str:
    """LaTeX of the network; its units u are activated, or a gate times a value."""
    named = {"relu": r"\max(0, \cdot)", "gelu_tanh": r"\mathrm{gelu}_{\tanh}"}
    act = named.get(config.activation, rf"\mathrm{{{config.activation}}}")
    biases = {of: f" + b_{of}" if config.biases else "" for of in "g12"}
    x = rf"\underset{{1 \times {config.d_model}}}{{x}}"
    units = rf"\underset{{1 \times {wide}}}{{u}}"
    linear = rf"{x}\,\underset{{{config.d_model} \times {wide}}}{{W_1}}{biases['1']}"
    inner = rf"{linear}\;\xrightarrow{{{act}}}\;{units}"
    if config.gated:
        inner = rf"{units} = {act}(x\, W_g{biases['g']}) \odot {linear}"
    return rf"{inner}\;\to\; u\,\underset{{{wide} \times {config.d_model}}}{{W_2}}{biases['2']}"


def output(at: Inspected) -> None:
    """The distribution over the next token, with the matrix that makes it."""
    pieces = at.model.config.n_target_pieces
    place = at.predicted
    st.latex(output_formula(at))
    if place is None:
        st.caption(plain(lacking(at.opened, "effect") or ""))
        return
    (*_, last), checks = parts.logit_lens(at.model.model, at.run, place, CANDIDATES)
    token = plain(piece(at.run.predictions[place].token))
    st.markdown(
        f"{output_words(at)}. Each of the {pieces:,} pieces gets a score, and the softmax makes "
        f"probabilities of them. Written at this step: “{token}” ({percent(last.chosen)}, rank "
        f"{last.rank:,} of {pieces:,})."
    )
    names = [piece(token) for token in at.model.pieces(guess.token_id for guess in last.best)]
    shares = np.array([guess.probability for guess in last.best])
    written = [percent(float(share)) for share in shares]
    caption = f"the {len(names)} most probable next tokens"
    bars(
        at,
        "output",
        names=names,
        values=shares,
        written=written,
        what="probability",
        caption=caption,
        checks=checks,
    )


def output_formula(at: Inspected) -> str:
    """LaTeX of the output, with the shapes of its factors."""
    config = at.model.config
    scale = r"\tfrac{1}{\sqrt{d_{model}}}\," if config.scaled_output else ""
    matrix = r"E^{\top}" if at.model.model.output is None else r"W"
    bias = " + b" if config.output_bias else ""
    return (
        rf"p = \mathrm{{softmax}}({scale}\underset{{1 \times {config.d_model}}}{{y}}\;"
        rf"\underset{{{config.d_model} \times {config.n_target_pieces}}}{{{matrix}}}{bias})"
    )


def output_words(at: Inspected) -> str:
    """Where the output's matrix comes from, and whether there is a bias."""
    model = at.model.model
    if model.output is not None:
        matrix = "The matrix is a table of its own, not the embeddings"
    elif model.target_embedding is None:
        matrix = "The matrix is the embedding table itself, transposed"
    else:
        matrix = "The matrix is the decoder's embedding table itself, transposed"
    if model.output is None:
        matrix += " (tied, section 3.4 of the paper)"
    bias = "a learned bias is added" if at.model.config.output_bias else "there is no bias"
    return f"{matrix}; {bias}"


PARTS: dict[str, Callable[[Inspected], None]] = {
    "embedding": embedding,
    "start": lambda at: layer_norm(
        at, parts.embedding_part(at.model.model, at.run, at.side, at.position, at.token_id).normed
    ),
    "norm": layer_norm,
    "add": addition,
    "forward": feed_forward,
    "end": lambda at: layer_norm(
        at, parts.final_norm_part(at.model.model, at.run, at.side, at.position)
    ),
    "output": output,
}
