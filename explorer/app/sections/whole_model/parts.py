"""Work of each part of the model on the token at the cursor: formula, shapes and numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address.parameters import link
from explorer.app.controls import chart, export, plain
from explorer.app.controls.text import alt, norm
from explorer.app.sections.whole_model.body import Body, Drawn, draw, title
from explorer.app.server import per_run
from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.strips import Strip, strips
from explorer.figures.pages.anatomy import ranked
from explorer.lenses.inside import logit_lens, parts
from explorer.lenses.inside.parts import NormPart
from transformer.config import ModelConfig

_SWATCH = '<span style="display:inline-block;width:.8em;height:.8em;background:{}"></span> {}'
_LEGEND = (
    '<div style="font-size:.8rem;display:flex;gap:1rem;flex-wrap:wrap">'
    + "".join(
        f"<span>{_SWATCH.format(colour, told)}</span>"
        for colour, told in (
            (style.NEGATIVE, "negative"),
            ("transparent;border:1px solid rgba(128,128,128,.6)", "0"),
            (style.POSITIVE, "positive"),
        )
    )
    + "</div>"
)
"""Meaning of the colours of the strips."""
_SHOWN = 8
"""Number of next tokens drawn."""


def show(body: Body) -> None:
    """Draws the part under inspection."""
    st.markdown(f"##### {title(body)}")
    st.html(_LEGEND)
    drawn: Drawn = {}
    _DRAWN.get(body.part, _DRAWN.get(body.part.rpartition("-")[2], attention))(body, drawn)
    export.pictures("anatomy-part", drawn)


def embedding(body: Body, to: Drawn) -> None:
    """Draws a token's row of the table, the row scaled, and the encoding of its position."""
    model = body.translator.model
    part = parts.embedding_part(model, body.traced, body.side, body.position, body.token_id)
    pieces, d_model = parts.embedding_table(model, body.side).shape
    scaled = part.factor != 1
    factor = rf"\cdot {_factor(part.factor, d_model)}" if scaled else ""
    added = r" + \mathrm{PE}(pos)" if part.position is not None else ""
    st.latex(
        rf"\underset{{1 \times {d_model}}}{{x}} = \underset{{{pieces} \times {d_model}}}{{E}}[\mathrm{{id}}]"
        rf"{factor}{added}"
    )
    st.markdown(
        f"{body.name} is row {body.token_id:,} of the embedding table (counted from 0), "
        + (f"multiplied by {part.factor:.1f}. " if scaled else "as it is: this model does not scale it. ")
        + _of_position(body, part.position is not None)
    )
    rows = [Strip("row of the table", part.row, norm(part.row))]
    if scaled:
        rows.append(Strip(f"× {part.factor:.1f}", part.scaled, norm(part.scaled)))
    if part.position is not None:
        rows.append(Strip("+ position", part.position, norm(part.position)))
    called = model.config.norm_name
    rows.append(
        Strip("= input" if part.normed is None else f"{called}(sum)", part.input, norm(part.input), True)
    )
    draw(
        body, to, "embedding", lambda: strips(rows), "vectors, each on its own scale", alt(rows), part.checks
    )
    _neighbours(body, to)


def _of_position(body: Body, added: bool) -> str:
    if added:
        source = {"learned": "table"}.get(body.translator.config.positions, "formula")
        without = (
            "the encoder could not tell word orders apart"
            if body.side == "encoder"
            else "the decoder would know the order from its mask alone, which lets each row see one token "
            "more than the row before"
        )
        return (
            f"The encoding of its position is added: for token {labels.count(body.position)}, the {source} "
            f"takes {body.position}, because it counts from 0. Without it, {without}."
        )
    kind = body.translator.config.positions
    if kind == "none":
        return "This model has no positional encoding, so nothing is added."
    return f"Nothing is added for the token's position: this model's positions ({kind}) act inside attention."


def _factor(factor: float, d_model: int) -> str:
    return rf"\sqrt{{{d_model}}}" if abs(factor - d_model**0.5) < 1e-6 else f"{factor:g}"


def _neighbours(body: Body, to: Drawn) -> None:
    found = parts.neighbours(body.translator.model, body.side, body.token_id)
    side = "source" if body.side == "encoder" else "target"
    names = [labels.piece(piece) for piece in body.translator.pieces((each.token_id for each in found), side)]
    cosines = np.array([each.cosine for each in found])
    st.markdown(
        f"**Nearest neighbours.** The rows of these pieces in the table point most nearly in the direction "
        f"of {body.name}'s row. They do not depend on the sentence."
    )

    def make() -> go.Figure:
        return ranked(names, cosines, [labels.number(float(each)) for each in cosines], "cosine")

    chart("anatomy.neighbours", make(), f"Nearest neighbours: {', '.join(names)}")
    caption = (
        f"{title(body)} · cosine between rows of the table, the {len(found)} largest · "
        f"weights of {body.traced.model}"
    )
    st.caption(plain(caption))
    to["neighbours"] = export.Picture(make, caption, sentence=False)


def layer_norm(body: Body, to: Drawn) -> None:
    """Draws the LayerNorm of a sub-layer."""
    _normed(body, to, parts.norm_part(body.translator.model, body.traced, body.sublayer, body.position))


def first_norm(body: Body, to: Drawn) -> None:
    """Draws the LayerNorm of a token's embedding."""
    model = body.translator.model
    part = parts.embedding_part(model, body.traced, body.side, body.position, body.token_id).normed
    assert part is not None
    _normed(body, to, part)


def last_norm(body: Body, to: Drawn) -> None:
    """Draws the LayerNorm at the end of a pre-norm stack."""
    part = parts.final_norm_part(body.translator.model, body.traced, body.side, body.position)
    assert part is not None
    _normed(body, to, part)


def _normed(body: Body, to: Drawn, part: NormPart) -> None:
    epsilon = np.format_float_positional(part.epsilon)
    called = body.translator.config.norm_name
    if part.mean is None:
        st.latex(r"\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{\sqrt{\overline{x^2} + \epsilon}}")
        st.markdown(
            f"At {body.name}, the root of the mean square is **{part.deviation:.3f}**; ε = {epsilon}. No "
            f"mean is taken away. Once divided, the {len(part.before)} numbers have a mean square of 1. Then "
            "γ stretches each dimension. γ is learned, and it is the same for all tokens; nothing is added."
        )
    else:
        st.latex(r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta")
        st.markdown(
            f"At {body.name}: **μ = {labels.number(part.mean, '.3f')}**, **σ = {part.deviation:.3f}**, "
            f"ε = {epsilon}. Once normalised, the {len(part.before)} numbers have mean 0 and variance 1. "
            "Then γ stretches and β shifts each dimension. γ and β are learned, and they are the same for "
            "all tokens."
        )
    divided = "x ÷ √(mean x² + ε)" if part.mean is None else "(x − μ) ÷ √(σ² + ε)"
    rows = [
        Strip("x", part.before, norm(part.before)),
        Strip(divided, part.normalised, norm(part.normalised)),
        Strip("γ", part.weight, _span(part.weight)),
    ]
    if part.bias is not None:
        rows.append(Strip("β", part.bias, _span(part.bias)))
    rows.append(Strip(f"{called}(x)", part.after, norm(part.after), True))
    draw(body, to, "norm", lambda: strips(rows), "vectors, each on its own scale", alt(rows), part.checks)


def attention(body: Body, to: Drawn) -> None:
    """Draws an attention sub-layer: what its heads add, and the link that opens a head."""
    kind = {"encoder-attention": "encoder", "decoder-attention": "decoder"}.get(body.part, "cross")
    chosen = getattr(body.now, kind)[1]
    head = (body.layer, chosen)
    inside = per_run.inside(body.opened, kind, head, body.position)
    d_model, d_k = inside.w_q.weight.shape
    heads = len(inside.outputs)
    lengths = np.linalg.norm(inside.contributions, axis=1)
    st.latex(
        rf"\underset{{1 \times {heads} \cdot {d_k}}}{{\mathrm{{Concat}}(\mathrm{{head}}_1, \dots, "
        rf"\mathrm{{head}}_{{{heads}}})}}\;\underset{{{heads * d_k} \times {d_model}}}{{W_O}} + b_O"
    )
    st.markdown(
        f"{_several(heads, 'head')} of width {d_k} read the {d_model} numbers at {body.name} and "
        f"gather from {_several(int(inside.view.mask[0].sum()), 'visible key')}. The bars show how much "
        "each head adds to the stream."
    )
    names = [f"head {labels.count(i)}" for i in range(heads)]
    draw(
        body,
        to,
        "heads",
        lambda: ranked(names, lengths, [f"{each:.2f}" for each in lengths], "length"),
        "length of what each head adds",
        f"Lengths of what {_several(heads, 'head')} add",
        inside.audit.checks,
    )
    rows = [
        Strip("reads x", inside.read, norm(inside.read)),
        Strip("returns", inside.update, norm(inside.update), True),
    ]
    draw(
        body,
        to,
        "attention",
        lambda: strips(rows),
        "vectors, each on its own scale",
        alt(rows),
        inside.audit.checks,
    )
    st.page_link(
        "pages/inside_a_head.py",
        label=f"Open head {labels.count(chosen)} step by step",
        icon=":material/function:",
        query_params=link(body.now, **{"kind": None if kind == "cross" else kind, kind: head}),
    )


def _span(values: np.ndarray) -> str:
    return f"{labels.number(values.min())} to {labels.number(values.max())}"


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def addition(body: Body, to: Drawn) -> None:
    """Draws the residual connection of a sub-layer."""
    trace = body.traced.stream(body.sublayer)
    stream, update = (each[body.position].numpy() for each in (trace.before, trace.output))
    total = stream + update
    cosine = float(stream @ update / max(float(np.linalg.norm(stream) * np.linalg.norm(update)), 1e-9))
    st.latex(r"\mathrm{stream} + \mathrm{Sublayer}(\dots)")
    st.markdown(
        f"The sub-layer does not replace the vector of {body.name} but adds to it. The length of the stream "
        f"goes from {np.linalg.norm(stream):.2f} to {np.linalg.norm(total):.2f}. The cosine between stream "
        f"and update is {labels.number(cosine)}: {_agreement(cosine)}"
        + (
            f" With post-norm, a {body.traced.config.norm_name} follows."
            if body.traced.config.norm == "post"
            else ""
        )
    )
    rows = [
        Strip("stream", stream, norm(stream)),
        Strip("+ update", update, norm(update)),
        Strip("= sum", total, norm(total), True),
    ]
    part = parts.addition_check(body.translator.model, body.traced, body.sublayer, body.position, total)
    draw(body, to, "add", lambda: strips(rows, joint=True), "vectors, one scale for all", alt(rows), part)


def _agreement(cosine: float) -> str:
    if abs(cosine) > 0.3:
        return "the two agree." if cosine > 0 else "the two oppose each other."
    return "the update is mostly a new direction."


def feed_forward(body: Body, to: Drawn) -> None:
    """Draws the feed-forward network and its most active units."""
    config = body.translator.config
    part = parts.feed_forward_part(body.translator.model, body.traced, body.side, body.layer, body.position)
    best = part.most_active()
    wide = len(part.units)
    st.latex(
        _inner(config, wide)
        + rf"\;\to\; u\,\underset{{{wide} \times {config.d_model}}}{{W_2}}{_b(config, 2)}"
    )
    active = percent(float((part.units > 0).mean()))
    most = f"unit {labels.count(best[0])} adds most" if part.added[best[0]] > 0 else "none adds anything"
    st.markdown(
        "Attention mixes positions by weighted means of values. Here a non-linear function "
        f"({_act(config)}) acts on each position alone; no other token comes in. "
        + ("It makes a gate for each unit, which multiplies the unit's value. " if config.gated else "")
        + f"At {body.name}, {active} of the {wide:,} units are above 0; {most}. A bar shows |unit| times the "
        "length of the unit's row of $W_2$."
    )
    names = [f"unit {labels.count(unit)}" for unit in best]
    written = [
        f"{labels.number(part.added[unit])} (unit at {labels.number(part.units[unit])})" for unit in best
    ]
    draw(
        body,
        to,
        "units",
        lambda: ranked(names, part.added[list(best)], written, "adds a vector of length"),
        f"the {len(best)} units that add most",
        f"Most active units: {', '.join(names)}",
        part.checks,
    )
    ends = [
        Strip("reads x", part.read, norm(part.read)),
        Strip("returns", part.update, norm(part.update), True),
    ]
    draw(body, to, "forward", lambda: strips(ends), "vectors, each on its own scale", alt(ends), part.checks)
    units = [Strip("units u", part.units, f"max {labels.number(part.units.max())}")]
    if part.gates is not None:
        units.insert(0, Strip("gates", part.gates, f"max {labels.number(part.gates.max())}"))
    draw(body, to, "inner", lambda: strips(units, across="unit"), "all inner units", alt(units), part.checks)


def _act(config: ModelConfig) -> str:
    return {"gelu_tanh": "gelu, by tanh"}.get(config.activation, config.activation)


def _b(config: ModelConfig, number: int) -> str:
    return f" + b_{number or 'g'}" if config.biases else ""


def _inner(config: ModelConfig, wide: int) -> str:
    """LaTeX of the inner units u: activated, or a gate times a value."""
    named = {"relu": r"\max(0, \cdot)", "gelu_tanh": r"\mathrm{gelu}_{\tanh}"}
    act = named.get(config.activation, rf"\mathrm{{{config.activation}}}")
    x = rf"\underset{{1 \times {config.d_model}}}{{x}}"
    shape, units = rf"{config.d_model} \times {wide}", rf"\underset{{1 \times {wide}}}{{u}}"
    if config.gated:
        gate = rf"{act}(x\, W_g{_b(config, 0)})"
        return rf"{units} = {gate} \odot {x}\,\underset{{{shape}}}{{W_1}}{_b(config, 1)}"
    return rf"{x}\,\underset{{{shape}}}{{W_1}}{_b(config, 1)}\;\xrightarrow{{{act}}}\;{units}"


def output(body: Body, to: Drawn) -> None:
    """Draws the last linear map and the softmax."""
    model, config = body.translator.model, body.translator.config
    (*_, last), checks = logit_lens.logit_lens(model, body.traced, body.step, _SHOWN)
    pieces = config.n_target_pieces
    bias = " + b" if config.output_bias else ""
    scale = r"\tfrac{1}{\sqrt{d_{model}}}\," if config.scaled_output else ""
    matrix = r"E^{\top}" if model.output is None else r"W"
    st.latex(
        rf"p = \mathrm{{softmax}}({scale}\underset{{1 \times {config.d_model}}}{{y}}\;"
        rf"\underset{{{config.d_model} \times {pieces}}}{{{matrix}}}{bias})"
    )
    table = "the embedding table" if model.target_embedding is None else "the decoder's embedding table"
    tied = (
        f"The matrix is {table} itself, transposed (tied, section 3.4 of the paper): it has "
        "no numbers of its own"
        if model.output is None
        else "The matrix is a table of its own, not the embeddings"
    )
    own_bias = "; a learned bias is added" if config.output_bias else ", and there is no bias"
    st.markdown(
        f"{tied}{own_bias}. Each of the {pieces:,} pieces gets a score, and the softmax turns the scores "
        "into probabilities: all are positive, and they sum to 1."
    )
    names = [labels.piece(piece) for piece in body.translator.pieces(each.token_id for each in last.best)]
    shares = np.array([each.probability for each in last.best])
    draw(
        body,
        to,
        "output",
        lambda: ranked(names, shares, [percent(float(each)) for each in shares], "probability"),
        f"the {len(names)} most probable next tokens",
        f"Next tokens: {', '.join(names)}",
        checks,
    )
    written = plain(labels.piece(body.traced.steps[body.step].token))
    st.markdown(
        f"Written at this step: “{written}” ({percent(last.chosen)}, rank {last.rank:,} of {pieces:,})."
    )


_DRAWN: dict[str, Callable[[Body, Drawn], None]] = {
    "embedding": embedding,
    "start": first_norm,
    "norm": layer_norm,
    "add": addition,
    "forward": feed_forward,
    "end": last_norm,
    "output": output,
}
