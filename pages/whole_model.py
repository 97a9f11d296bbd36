"""The whole model: the running model as a diagram, and what each part does to the token at the cursor."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("whole_model"):
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.address.parameters import link
    from explorer.app.address.state import PARTS
    from explorer.app.controls import inform, options, panel, pickers, plain
    from explorer.app.maps.explorer import Scene, explorer, no_more
    from explorer.app.maps.looking import Looks
    from explorer.app.sections.whole_model import paper
    from explorer.app.sections.whole_model import parts as anatomy_parts
    from explorer.app.sections.whole_model.body import (
        Body,
        audited,
        boxes,
        in_layer,
        look,
        part_name,
        parts,
        proof,
    )
    from explorer.app.server import catalogue, measured
    from explorer.app.server.opened import Opened
    from explorer.app.shell.changed import of_tokens
    from explorer.app.shell.page import open_sentence_page, with_model
    from explorer.figures.base import captions, labels
    from explorer.figures.pages.anatomy import diagram, lens, norms, stream
    from explorer.lenses.inside import logit_lens
    from explorer.lenses.inside.logit_lens import LensRow
    from explorer.lenses.inside.parts import stream_norms
    from explorer.linked.view import Layout
    from transformer.config import ModelConfig, Sublayer

_LAYOUT = Layout("anatomy", "page", ("source", "target"), (), "cross", "step")
_SEEING = (
    "You see the model that runs, drawn from its configuration, with the numbers of this sentence. The "
    "encoder's parts show the source token at the cursor; the decoder's parts show the decode step. To open "
    "a part, click its box or choose it from the list. Purple is positive, amber is negative, clear is zero."
)
_PLACES = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}

_SHARES = (1.0, 1.35)
_PAIR = {"pre": f"{catalogue.TWINS}/sinusoidal", "post": f"{catalogue.TWINS}/postnorm"}
"""The two twins that differ in the place of their LayerNorm and the learning rate that it needs."""
_ORDERS = {
    "pre": "The {norm} stands before each sub-layer, as in most later models. From the bottom of a stack "
    "to its top there is a path that meets no {norm}, and one {norm} stands at the end. Training needs "
    "less care: it does without the long warm-up of the learning rate (Xiong et al. 2020). The paper has "
    "post-norm: its LayerNorm comes after each addition.",
    "post": "As in the paper, the LayerNorm comes after each addition, so the stream passes through every "
    "one of them. Most later models put it before each sub-layer (pre-norm). Then a path that meets no "
    "LayerNorm leads from the bottom of a stack to its top, and training does without the long warm-up of "
    "the learning rate (Xiong et al. 2020).",
}


def show(opened: Opened) -> None:
    """Draws the page for one sentence; the text names a head of cross-attention, but no map shows it."""

    def below(now: State, looks: Looks) -> None:
        _below(look(opened, now))

    explorer(Scene(_LAYOUT, opened, ("cross",), no_more, below, follows=True))
    _blocks(opened)
    paper.table(opened)
    paper.reading()


def _below(body: Body) -> None:
    for note in body.notes:
        inform(plain(note))
    left, right = st.columns(_SHARES, gap="medium")
    with left:
        _pick(body)
        _diagram(body)
    with right:
        anatomy_parts.show(body)
    _stream(body)
    _lens(body)


def _pick(body: Body) -> None:
    chosen, layer = st.columns([2, 1], gap="small")
    with chosen:
        names = {each: part_name(each, body.traced.config) for each in parts(body.traced.config)}
        pickers.choose("part", "Part", names, body.part, texts=True)
    if in_layer(body.part):
        with layer:
            layers = options.layers(body.traced.config.stacks[body.side].n_layers)
            pickers.choose("layer", "Layer", layers, body.layer, texts=True)


def _diagram(body: Body) -> None:
    run, config = body.traced, body.traced.config
    depths = config.stacks["encoder"].n_layers, config.stacks["decoder"].n_layers
    times = f"{depths[0]} ×", f"{depths[1]} ×"
    encoder, decoder = boxes(config, run.trace.embeddings["encoder"].positions is not None)

    panel(
        "anatomy-diagram",
        lambda: diagram(encoder, decoder, times, body.part, "decoder-cross"),
        f"{_several(depths[0], 'encoder layer')} and {_several(depths[1], 'decoder layer')}; "
        f"the stream is d_model = {config.d_model:,} numbers wide · "
        f"drawn from the configuration of {run.model} ({captions.norm_name(config.norm)})",
        seeing=_SEEING,
        alt="Diagram of the model; the list above chooses the same parts",
        take=take,
        sentence=False,
    )


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def take(part: Any) -> None:
    """Opens the box that the visitor clicked; a click that selects nothing changes nothing."""
    part = part[0] if isinstance(part, list) and part else part
    if part in PARTS:
        session.change(part=part)


def _stream(body: Body) -> None:
    st.divider()
    run = body.traced
    encoder = stream_norms(run, "encoder", body.source)
    decoder = stream_norms(run, "decoder", body.step)
    read = run.source_tokens[body.source], run.decoder_input_tokens[body.step]
    lines = [
        (
            f"{side} at “{captions.quote(token)}”",
            [_name(point.sublayer) for point in points],
            np.array([point.norm for point in points]),
        )
        for side, token, (points, _) in zip(("encoder", "decoder"), read, (encoder, decoder), strict=True)
    ]
    first, last = decoder[0][0].norm, decoder[0][-1].norm
    left, right = st.columns(_SHARES, gap="medium")
    with left:
        st.markdown("##### The residual stream")
        st.markdown(
            f"Every sub-layer adds to the same vector. In the decoder, the length of this vector goes from "
            f"{first:.1f} to {last:.1f}. "
            + (
                "With pre-norm, nothing scales the vector back on the way, so it mostly grows."
                if run.config.norm == "pre"
                else "With post-norm, every norm brings the vector back to the scale that its γ sets."
            )
        )
    audit = audited(run, (*encoder[1], *decoder[1]))
    with right:
        panel(
            "anatomy-stream",
            lambda: stream(lines),
            f"Residual stream · ‖x‖ after each sub-layer · {_where(body)}",
            alt="Length of the residual stream, sub-layer by sub-layer",
            audit=audit,
            proof=proof(audit),
            derived=True,
        )


def _where(body: Body) -> str:
    run = body.traced
    return (
        f"source token {labels.count(body.source)}, step {labels.count(body.step)} · "
        f"{run.model} ({captions.norm_name(run.config.norm)})"
    )


def _name(sublayer: Sublayer | None) -> str:
    return "input" if sublayer is None else f"layer {labels.count(sublayer.layer)}, {_PLACES[sublayer.name]}"


def _lens(body: Body) -> None:
    st.divider()
    run = body.traced
    rows, checks = logit_lens.logit_lens(body.translator.model, run, body.step, 4)
    names = ["input", *(f"after layer {row.layers}" for row in rows[1:])]
    left, right = st.columns(_SHARES, gap="medium")
    with left:
        st.markdown("##### Logit lens")
        st.markdown(_of_lens(body, rows, names))
    tokens = [body.translator.pieces(guess.token_id for guess in row.best) for row in rows]
    shares = np.array([[guess.probability for guess in row.best] for row in rows])
    chosen = run.steps[body.step].token_id
    written = np.array([[guess.token_id == chosen for guess in row.best] for row in rows])
    ranks = [f"rank {row.rank:,}" for row in rows]

    audit = audited(run, checks)
    with right:
        panel(
            "anatomy-lens",
            lambda: lens(names, tokens, shares, written, ranks),
            f"Logit lens · most probable tokens read off after each layer, best first · "
            f"step {labels.count(body.step)} · {run.model} ({captions.norm_name(run.config.norm)})",
            alt=f"Logit lens: most probable tokens after each of {len(rows) - 1} layers",
            audit=audit,
            proof=proof(audit),
            derived=True,
            scrolls=620,
        )


def _of_lens(body: Body, rows: Sequence[LensRow], names: Sequence[str]) -> str:
    """Explanation of the lens, and the row from which on the written token leads."""
    token = plain(captions.quote(body.traced.steps[body.step].token))
    settled = next((name for i, name in enumerate(names) if all(row.rank == 1 for row in rows[i:])), None)
    config = body.traced.config
    applied = f"The final {config.norm_name}, the" if config.norm == "pre" else "The"
    return (
        f"What would come next if the decoder ended here? {applied} output matrix and the softmax are "
        "applied to each layer's stream. **Only the top row is the model's own distribution**. The other "
        "layers were never trained to be read in this way. Beside the name of each row stands the rank of "
        f"“{token}”, the token that was written."
        + ("" if settled is None else f" From the row “{settled}” on, this token stays first.")
    )


def _blocks(opened: Opened) -> None:
    """Draws the section."""
    st.divider()
    run = opened.translation
    config, tokens = run.config, len(run.source_tokens)
    caption = f"Order of a sub-layer · {run.model} runs {captions.norm_name(config.norm)}"
    left, right = st.columns(_SHARES, gap="medium")
    with left:
        st.markdown("##### A block as one chain")
        st.markdown(
            "An encoder block takes x to z by attention, which mixes positions, and z to y by the "
            "feed-forward network, which treats each position alone. All three have the same shape, here "
            f"{tokens} tokens × {config.d_model:,} numbers, so blocks can be stacked. A decoder block has "
            "cross-attention between the two."
        )
        st.latex(chain(config, tokens))
        st.markdown(
            "The whole model is such a chain, too. Ids become rows, every block keeps their shape, the "
            "decoder's blocks also read the memory, and the last product turns each row into a score for "
            "every piece."
        )
        st.latex(whole(config, tokens, len(run.target_tokens)))
    with right:
        st.markdown("##### Pre-norm and post-norm")
        st.markdown(_ORDERS[config.norm].replace("{norm}", config.norm_name))
        alt = "Post-norm and pre-norm as diagrams"
        panel("anatomy-norms", lambda: norms(config.norm, config.norm_name), caption, alt=alt)
        _other(config.norm)


def chain(config: ModelConfig, tokens: int) -> str:
    """LaTeX of an encoder block from x to y, with its shapes."""
    shape = rf"{tokens} \times {config.d_model}"
    steps = {
        "pre": (r"{x} + \mathrm{MultiHead}(\mathrm{LN}({x}))", r"{z} + \mathrm{FFN}(\mathrm{LN}({z}))"),
        "post": (r"\mathrm{LN}({x} + \mathrm{MultiHead}({x}))", r"\mathrm{LN}({z} + \mathrm{FFN}({z}))"),
    }[config.norm]
    shaped = [rf"\underset{{{shape}}}{{{name}}}" for name in "xzy"]
    called = {"LayerNorm": "LN"}.get(config.norm_name, "RMS")
    first, second = (step.replace(r"\mathrm{LN}", rf"\mathrm{{{called}}}") for step in steps)
    return (
        rf"\begin{{aligned}} {shaped[0]} \;&\to\; {shaped[1]} = {first} \\[4pt] "
        rf"{shaped[1]} \;&\to\; {shaped[2]} = {second} \end{{aligned}}"
    )


def whole(
    config: ModelConfig,  # the model's
    source: int,  # number of source tokens
    target: int,  # number of target tokens
) -> str:
    """LaTeX of the whole model from ids to ids, with its shapes."""
    rows = {"encoder": source, "decoder": target}
    width = config.n_target_pieces
    ends = {"encoder": r"\text{memory}", "decoder": rf"{target} \times {width} \to {target}\ \text{{ids}}"}
    lines = []
    for side, stack in config.stacks.items():
        shape = rf"{rows[side]} \times {config.d_model}"
        blocks = rf"\xrightarrow{{{stack.n_layers}\ \text{{blocks}}}}"
        lines.append(rf"{rows[side]}\ \text{{ids}} &\to {shape} {blocks} {shape} \\ &\to {ends[side]}")
    return r"\begin{aligned} " + r" \\[4pt] ".join(lines) + r" \end{aligned}"


def _other(norm: str) -> None:
    """Links to the twin with the other order, if it is here, and says how the two compare."""
    other = "post" if norm == "pre" else "pre"
    if _PAIR[other] not in catalogue.twins():
        return
    scores = (measured.shipped(measured.POSITIONS) or {}).get("scores", {})
    gap = scores.get("postnorm", {}).get("bleu", {}).get("difference")
    if gap is not None:
        low, value, high = (labels.number(gap[end], "+.1f") for end in ("low", "value", "high"))
        st.caption(
            "Of the positional twins, two differ only in this order, and in the learning rate and the "
            "warm-up that it needs: "
            f"the post-norm twin differs from the pre-norm one by {value} BLEU ({low} to {high})."
        )
    fresh = dict.fromkeys(("encoder", "decoder", "cross", "step", "source"))
    st.page_link(
        "pages/whole_model.py",
        label=f"Open the {captions.norm_name(other)} twin on this sentence",
        icon=":material/swap_horiz:",
        query_params=link(session.current(), model=_PAIR[other], **fresh),
    )


opened = open_sentence_page("whole_model", changes=of_tokens, kinds=("encoder", "cross"))
if opened is not None:
    with_model(opened, show)
