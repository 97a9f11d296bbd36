"""The running model as a diagram, the part under inspection, the stream, and the logit lens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import captions, labels
from figures.pages.anatomy import diagram, lens, stream
from transformer.lenses.inside import logit_lens
from transformer.lenses.inside.logit_lens import LensRow
from transformer.lenses.inside.parts import stream_norms
from transformer.model.sites import Sublayer
from ui.address import session
from ui.address.state import State
from ui.address.values import PARTS
from ui.controls import export, options, pickers
from ui.controls.text import plain
from ui.linked_view import Layout
from ui.maps.explorer import Scene, explorer, no_more
from ui.maps.looking import Looks
from ui.server.opened import Opened
from ui.views.anatomy import blocks, paper
from ui.views.anatomy import parts as anatomy_parts
from ui.views.anatomy.body import (
    CONFIG,
    Body,
    audited,
    boxes,
    chart,
    in_layer,
    look,
    part_name,
    parts,
    signed,
)

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


def show(opened: Opened) -> None:
    """Draws the page for one sentence; the text names a head of cross-attention, but no map shows it."""

    def below(now: State, looks: Looks) -> None:
        _below(look(opened, now))

    explorer(Scene(_LAYOUT, opened, ("cross",), no_more, below, follows=True))
    blocks.show(opened)
    paper.table(opened)
    paper.reading()


def _below(body: Body) -> None:
    for note in body.notes:
        st.info(plain(note), icon=":material/info:")
    left, right = st.columns(_SHARES, gap="medium")
    with left:
        _pick(body)
        _diagram(body)
    with right:
        anatomy_parts.show(body)
    _stream(body)
    _lens(body)


def _pick(body: Body) -> None:
    known = parts(body.traced.config)
    chosen, layer = st.columns([2, 1], gap="small")
    with chosen:
        st.selectbox(
            "Part",
            known,
            index=known.index(body.part),
            format_func=part_name,
            label_visibility="collapsed",
            **pickers.control(
                "part", body.part, lambda part: session.change(part=part), map(part_name, known)
            ),
        )
    if in_layer(body.part):
        with layer:
            layers = options.layers(body.traced.config.stacks[body.side].n_layers)
            pickers.choose(
                "layer", "Layer", layers, body.layer, lambda each: session.change(layer=int(each)), texts=True
            )


def _diagram(body: Body) -> None:
    run, config = body.traced, body.traced.config
    depths = config.stacks["encoder"].n_layers, config.stacks["decoder"].n_layers
    times = f"{depths[0]} ×", f"{depths[1]} ×"
    encoder, decoder = boxes(config, run.positions("encoder") is not None)

    def make() -> go.Figure:
        return diagram(encoder, decoder, times, body.part, "decoder-cross")

    picked = pickers.control("diagram", body.part, take)
    with st.container(key="anatomy-diagram"):
        st.plotly_chart(
            make(),
            key=picked["key"],
            on_select=lambda: session.on_control(*picked["args"]),
            selection_mode="points",
            alt="Diagram of the model; the list above chooses the same parts",
            config=CONFIG,
        )
    caption = (
        f"{_several(depths[0], 'encoder layer')} and {_several(depths[1], 'decoder layer')}; "
        f"the stream is d_model = {config.d_model:,} numbers wide · "
        f"drawn from the configuration of {run.model} ({captions.norm_name(config.norm)})"
    )
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING)
        export.picture("anatomy-diagram", make, caption, sentence=False)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def take(selection: Any) -> None:
    """Opens the box that the visitor clicked; a click that selects nothing changes nothing."""
    points = selection.get("selection", {}).get("points", []) if hasattr(selection, "get") else []
    part = points[0].get("customdata") if points else None
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
                else "With post-norm, every LayerNorm brings the vector back to the scale that its γ sets."
            )
        )
    with right:
        chart("stream", lambda: stream(lines), "Length of the residual stream, sub-layer by sub-layer")
        caption = f"Residual stream · ‖x‖ after each sub-layer · {_where(body)}"
        audit = audited(run, (*encoder[1], *decoder[1]))
        picture = signed(lambda: stream(lines), caption, audit, derived=True)
    with left:
        export.pictures("anatomy-stream", {"stream": picture})


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

    def make() -> go.Figure:
        return lens(names, tokens, shares, written, ranks)

    with right:
        with st.container(key="anatomy-lens"):
            chart("lens", make, f"Logit lens: most probable tokens after each of {len(rows) - 1} layers")
        caption = (
            f"Logit lens · most probable tokens read off after each layer, best first · "
            f"step {labels.count(body.step)} · {run.model} ({captions.norm_name(run.config.norm)})"
        )
        picture = signed(make, caption, audited(run, checks), derived=True)
    with left:
        export.pictures("anatomy-lens", {"lens": picture})


def _of_lens(body: Body, rows: Sequence[LensRow], names: Sequence[str]) -> str:
    """What the lens is, and from which row on the written token leads."""
    token = plain(captions.quote(body.traced.steps[body.step].token))
    settled = next((name for i, name in enumerate(names) if all(row.rank == 1 for row in rows[i:])), None)
    applied = "The final LayerNorm, the" if body.traced.config.norm == "pre" else "The"
    return (
        f"What would come next if the decoder ended here? {applied} output matrix and the softmax are "
        "applied to each layer's stream. **Only the top row is the model's own distribution**. The other "
        "layers were never trained to be read in this way. At the right of each row stands the rank of "
        f"“{token}”, the token that was written."
        + ("" if settled is None else f" From the row “{settled}” on, this token stays first.")
    )
