"""The last sections of "Inside a head": all queries, all heads, the stream, and the layer as a chain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.app.controls.slots import shares, signed
from explorer.app.server import per_run
from explorer.app.views.inside.formulas import terms_of
from explorer.app.views.inside.look import Look, SectionContents, SectionFigure
from explorer.app.views.inside.vectors import noted, strips_drawing
from explorer.figures.base import captions, labels
from explorer.figures.base.strips import Strip, largest, matrices_spec
from explorer.figures.pages.inside import form_spec
from explorer.lenses.inside.block import Block
from transformer.config import ModelConfig, Side

_NEXT = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "the feed-forward network",
}
FORMS = ("in rows", "in columns")
"""The two ways to write the matrix form."""
_POINTS = {2: ("x", "z", "y"), 3: ("x", "z", "z′", "y")}
"""The names of the stream before, between and after a layer's sub-layers, by the number of sub-layers."""
_ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU by tanh", "silu": "SiLU"}
_SHORT = {
    "self_attention": "attention",
    "cross_attention": "cross-att.",
    "feed_forward": "FFN",
}


def matrix_form(look: Look) -> SectionContents:
    """All queries at once, in rows and in columns."""
    text = (
        "A matrix product handles all queries at once. The paper writes vectors as rows. Many lectures write "
        "them as columns, with I for the inputs and O for the outputs. That transposes everything, and the "
        f"numbers are the same. A frame marks this query.\n\n{terms_of(look).words()}"
    )
    figures = {name: (_form(look, name),) for name in FORMS}
    return SectionContents({"text": text}, figures)


def _form(look: Look, name: str) -> SectionFigure:
    view = look.map
    row = look.inside.row - view.window.query_start
    return SectionFigure(
        name,
        form_spec(view, row, name == "in columns"),
        f"weights, {name}{captions.window_note(view.window)}",
        f"Weights of the whole head, queries {name}",
        (shares(look.kind, "weight"),),
    )


def all_heads(look: Look) -> SectionContents:
    """Concatenation and W^O."""
    inside, (d_model, d_k, heads, _), symbols = look.inside, look.sizes, look.symbols
    own = look.view.head
    lengths = np.linalg.norm(inside.contributions, axis=1)
    size = f"{d_model} × {heads * d_k}" if symbols.columns else f"{heads * d_k} × {d_model}"
    text = (
        f"Each of the {heads} heads of the layer gives {d_k} numbers. Side by side they are {heads * d_k} "
        f"numbers, and the output matrix ({size}) mixes them. The result is the same as a sum of what "
        f"each head adds. Head {labels.count(own)} adds a vector of length {lengths[own]:.2f}; the longest "
        f"comes from head {labels.count(int(np.argmax(lengths)))} ({lengths.max():.2f})."
    )
    together = [Strip("all heads' outputs", inside.outputs.reshape(-1))]
    figures = {
        "joined": (strips_drawing("together", together, f"{heads} × {d_k} numbers"),),
        "matrices": (_output_matrix(look),),
        "figures": (strips_drawing("heads", _added(look), "what each head adds", joint=True),),
    }
    return SectionContents({"text": text}, figures)


def _output_matrix(look: Look) -> SectionFigure:
    inside, name = look.inside, look.symbols.matrix("O")
    part = (
        f"{name}, the {'columns' if look.symbols.columns else 'rows'} of head {labels.count(look.view.head)}"
    )
    note = " (drawn on its side)" * look.symbols.columns
    return SectionFigure(
        "output matrix",
        matrices_spec([(part + note, inside.w_o.weight)], 150),
        "this head's part of the output matrix",
        f"The part of the output matrix that head {labels.count(look.view.head)} goes through",
        (signed(largest(inside.w_o.weight), "amber negative, purple positive"),),
        step=False,
    )


def _added(look: Look) -> list[Strip]:
    inside = look.inside
    rows = [
        noted(f"head {labels.count(i)}", each, i == look.view.head)
        for i, each in enumerate(inside.contributions)
    ]
    biased = look.opened.translation.config.biases
    return [*rows, *[noted("bias", inside.w_o.bias)] * biased, noted("= update", inside.update)]


def stream(look: Look) -> SectionContents:
    """Back into the residual stream."""
    inside, post = look.inside, look.view.norm == "post"
    before, after = np.linalg.norm(inside.stream), np.linalg.norm(inside.added)
    share = np.linalg.norm(inside.update) / max(float(before), 1e-9)
    config = look.opened.translation.config
    following = config.stacks[look.site.query_side].after(look.site.sublayer(look.view.layer))
    reader = _NEXT[following.name] if following else "whatever follows"
    text = (
        f"The update is added to the stream and changes the stream's length from {before:.2f} to "
        f"{after:.2f}. The update is {share:.2f} times as long as the stream. "
        + (
            f"With post-norm, a {config.norm_name} follows, and the next sub-layer, {reader}, reads its "
            "result."
            if post
            else "With pre-norm, the sum stays in the stream as it is, and the next sub-layer, "
            f"{reader}, reads {config.norm_name}(sum)."
        )
    )
    rows = [noted("stream", inside.stream), noted("+ update", inside.update), noted("= sum", inside.added)]
    if post:
        rows.append(noted(config.norm_name, inside.next_stream))
    return SectionContents(
        {"text": text}, {"figures": (strips_drawing("stream", rows, "vectors", joint=True),)}
    )


def layer(look: Look) -> SectionContents:
    """The layer of this head as one chain, with the vectors of this position."""
    side = look.site.query_side
    found = per_run.block(look.opened, side, look.view.layer, look.inside.row)
    names = points(len(found.names))
    rows = [noted(_named(names, found, i), point) for i, point in enumerate(found.points)]
    drawing = strips_drawing("block", rows, f"the {side}'s layer at this position", joint=True)
    told = _chain_told(look.opened.translation.config, side)
    return SectionContents({"text": told}, {"figures": (replace(drawing, audit=found.audit),)})


def points(sublayers: int) -> tuple[str, ...]:
    """The names of the stream before, between and after the sub-layers of a layer."""
    return _POINTS.get(sublayers, tuple(f"x{i}" for i in range(sublayers + 1)))


def _named(names: tuple[str, ...], found: Block, place: int) -> str:
    if place == 0:
        return f"{names[0]}, entering"
    return f"{names[place]}, after {_SHORT[found.names[place - 1]]}"


def _chain_told(config: ModelConfig, side: Side) -> str:
    return (
        f"Seen from outside, a layer is a chain of vectors of one shape: {config.d_model:,} numbers for each "
        f"position go in, and {config.d_model:,} come out. {short_norm(config)} is {config.norm_name}.\n\n"
        "**Attention** moves information between positions, and nothing else in the layer does. **The "
        "feed-forward network (FFN)** works on each position alone, always with the same "
        f"{_matrices(config)}: {config.d_model:,} → {config.inner_width(side):,} → {config.d_model:,}, and "
        "between them the "
        f"non-linearity ({_ACTIVATIONS[config.activation]}). {_between(config)}"
    )


def short_norm(config: ModelConfig) -> str:
    """The norm in a formula."""
    return {"LayerNorm": "LN"}.get(config.norm_name, "RMS")


def _matrices(config: ModelConfig) -> str:
    return "three matrices" if config.gated else "two matrices"


def _between(config: ModelConfig) -> str:
    if config.gated:
        return "It is gated: the activated numbers of one inner matrix multiply those of the other."
    return "Without it, the two matrices would be one."
