"""One block as a chain from x to y, pre-norm and post-norm, and the twin that has the other order."""

from __future__ import annotations

import streamlit as st

from figures.base import captions
from figures.pages.anatomy import norms
from transformer.model.config import ModelConfig
from ui.address import session
from ui.address.parameters import link
from ui.controls import export
from ui.controls.text import plain
from ui.server import catalogue, measured
from ui.server.opened import Opened
from ui.views.anatomy.body import chart

_SHARES = (1.0, 1.35)
_PAIR = {"pre": f"{catalogue.TWINS}/sinusoidal", "post": f"{catalogue.TWINS}/postnorm"}
"""The two twins that differ in the place of their LayerNorm and the learning rate that it needs."""
_ORDERS = {
    "pre": "The LayerNorm stands before each sub-layer, as in most later models. From the bottom of a stack "
    "to its top there is a path that meets no LayerNorm, and one LayerNorm stands at the end. Training needs "
    "less care: it does without the long warm-up of the learning rate (Xiong et al. 2020). The paper has "
    "post-norm: the LayerNorm comes after each addition.",
    "post": "As in the paper, the LayerNorm comes after each addition, so the stream passes through every "
    "one of them. Most later models put it before each sub-layer (pre-norm). Then a path that meets no "
    "LayerNorm leads from the bottom of a stack to its top, and training does without the long warm-up of "
    "the learning rate (Xiong et al. 2020).",
}


def show(opened: Opened) -> None:
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
        st.markdown(_ORDERS[config.norm])
        chart("norms", lambda: norms(config.norm), "Post-norm and pre-norm as diagrams")
        st.caption(plain(caption))
        export.picture("anatomy-norms", lambda: norms(config.norm), caption)
        _other(config.norm)


def chain(config: ModelConfig, tokens: int) -> str:
    """LaTeX of an encoder block from x to y, with its shapes."""
    shape = rf"{tokens} \times {config.d_model}"
    steps = {
        "pre": (
            r"{x} + \mathrm{MultiHead}(\mathrm{LN}({x}))",
            r"{z} + \mathrm{FFN}(\mathrm{LN}({z}))",
        ),
        "post": (
            r"\mathrm{LN}({x} + \mathrm{MultiHead}({x}))",
            r"\mathrm{LN}({z} + \mathrm{FFN}({z}))",
        ),
    }[config.norm]
    shaped = [rf"\underset{{{shape}}}{{{name}}}" for name in "xzy"]
    first, second = steps
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
        low, value, high = (f"{gap[end]:+.1f}".replace("-", "−") for end in ("low", "value", "high"))
        st.caption(
            "Of the positional twins, two differ only in this order, and in the learning rate and the "
            "warm-up that it needs: "
            f"the post-norm twin differs from the pre-norm one by {value} BLEU ({low} to {high})."
        )
    fresh = dict.fromkeys(("encoder", "decoder", "cross", "step", "source"))
    st.page_link(
        "pages/anatomy.py",
        label=f"Open the {captions.norm_name(other)} twin on this sentence",
        icon=":material/swap_horiz:",
        query_params=link(session.current(), model=_PAIR[other], **fresh),
    )
