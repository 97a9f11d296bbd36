"""The frame of "Inside a head": headings, formulas, explanations and exports, drawn once around empty slots.

Nothing here changes with the step. What does is fed into the slots by `page`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import export, part
from explorer.app.controls.slots import slot
from explorer.app.server import runs
from explorer.app.views.inside import asides, formulas
from explorer.app.views.inside.contents import SECTIONS
from explorer.app.views.inside.layer import FORMS, points, short_norm
from explorer.app.views.inside.look import Look, SectionContents
from explorer.figures.base import labels

Parts = Callable[[], tuple[Look, dict[str, SectionContents]]]
"""Computes the sections for the state of this moment."""

_SEVERAL = frozenset(("projections", "products", "sum", "matrix", "heads"))
"""Sections with several figures: the choice between them takes a line more."""
_OUTSIDE = (
    "The same attention lets any text look into another. In reading comprehension, each word of the text "
    "asks the question: the text makes the queries, and the question the keys and values."
)
_NO_ROOT = (
    "A = KᵀQ names the product alone. The root is a constant: dividing every number of $W^q$ and its bias by "
    "$\\sqrt{d_k}$ gives exactly the weights that the division gives. So a lecture can leave it out and lose "
    "nothing of what a head can compute. What changes is where training starts: with the usual starting "
    "values, scores that are not divided are $\\sqrt{d_k}$ times as large, and the softmax starts out "
    "saturated. "
)


def draw(name: str, look: Look, parts: Parts) -> None:
    """Draws one of `SECTIONS`."""
    _DRAWN[name](look, parts)


def _input(look: Look, parts: Parts) -> None:
    called = look.opened.translation.config.norm_name
    reads = rf"\mathrm{{{called}}}(\mathrm{{stream}})" if look.view.norm == "pre" else r"\mathrm{stream}"
    more = _outside if look.kind == "cross" else None
    with _section("input", parts, rf"{look.symbols.x} = {reads}", more=more):
        slot("input.figures")


def _projections(look: Look, parts: Parts) -> None:
    with _section("projections", parts, *_projected(look, look.sizes[:2])):
        slot("projections.matrices")
        slot("projections.figures")


def _products(look: Look, parts: Parts) -> None:
    symbols = look.symbols
    entry = "k^j_i" if symbols.columns else "k_{j,i}"
    with _section("products", parts, rf"q \cdot {symbols.indexed('k')} = \sum_i q_i\, {entry}"):
        slot("products.figures")


def _heads(look: Look, parts: Parts) -> None:
    with _section(
        "heads",
        parts,
        *formulas.joined(look.symbols, look.opened.translation.config.biases),
        more=lambda: _seven(look),
    ):
        slot("heads.joined")
        slot("heads.matrices")
        slot("heads.figures")


def _stream(look: Look, parts: Parts) -> None:
    reads = "stream" if look.view.norm == "post" else "read"
    total = r"\mathrm{sum} = \mathrm{stream} + \mathrm{update}"
    called = look.opened.translation.config.norm_name
    with _section("stream", parts, total, rf"\mathrm{{{reads}}}' = \mathrm{{{called}}}(\mathrm{{sum}})"):
        slot("stream.figures")


def _block(look: Look, parts: Parts) -> None:
    config = look.opened.translation.config
    sublayers = config.stacks[look.site.query_side].sublayers
    names = points(len(sublayers))
    queries, _ = runs.lengths(look.opened.translation, look.kind)
    chain = formulas.chain(names, (queries, config.d_model))
    with _section("block", parts, chain, formulas.steps(names, sublayers, config.norm, short_norm(config))):
        slot("block.figures")


def _values(name: str) -> Callable[[Look, Parts], None]:
    def drawn(look: Look, parts: Parts) -> None:
        with _section(name, parts, _summed(look)):
            slot(f"{name}.figures")

    return drawn


@contextmanager
def _section(
    name: str,  # which of `SECTIONS`
    parts: Parts,  # computes what the export offers
    *latex: str,  # formulas
    more: Callable[[], None] | None = None,  # draws explanations that are one click away
) -> Iterator[None]:
    """Draws a numbered section: words, formulas and export at the left, the figures at the right."""
    number = labels.count(list(SECTIONS).index(name))
    with st.container(key=f"inside-section-{name}"):
        left, right = st.columns([1, 2], gap="medium")
        with left:
            st.markdown(f"##### {number} · {SECTIONS[name].title}")
            for formula in latex:
                st.latex(formula)
            slot(f"{name}.text")
            with st.container(horizontal=True, gap="small", key=f"inside-more-{name}"):
                if more is not None:
                    more()
                _export(name, parts)
        with right:
            yield


@part
def _export(name: str, parts: Parts) -> None:
    """One button for the figures of a section, as they are at the moment when it is opened."""
    with export.popover(f"export.inside-{name}", 260 if name in _SEVERAL else 170) as opened:
        if opened:
            look, found = parts()
            choice = {each.name: each.exported(look) for each in found[name].drawings}
            export.offer(f"inside-{name}", choice, session.current())


def _explained(title: str) -> st.delta_generator.DeltaGenerator:
    return st.popover(title, type="tertiary", icon=":material/help:")


def _outside() -> None:
    with _explained("What else attention reads"):
        st.markdown(_OUTSIDE)


def _projected(look: Look, sizes: tuple[int, ...]) -> list[str]:
    symbols, (d_model, d_k) = look.symbols, sizes
    k, v, source = (symbols.indexed(each) for each in ("k", "v", symbols.source))
    named = (("q", symbols.x, "Q"), (k, source, "K"), (v, source, "V"))
    return [symbols.product(small, of, name, (d_model, d_k)) for small, of, name in named]


def _summed(look: Look) -> str:
    symbols = look.symbols
    return rf"{symbols.latex_output} = \sum_j {symbols.latex_weight}_j\, {symbols.indexed('v')}"


def _weights(look: Look, parts: Parts) -> None:
    symbols, terms = look.symbols, formulas.terms_of(look)
    weight = terms.row(symbols.latex_weight)
    if symbols.columns:
        weight = terms.column(symbols.latex_weight, symbols.latex_score)

    def more() -> None:
        divides = look.site.score == "scaled_dot"
        with _explained(f"Why divide by √{look.sizes[1]}?" if divides else "Why is nothing divided by √d_k?"):
            slot("weights.divide")
        with _explained("Why subtract the maximum?"):
            st.latex(asides.shifted(symbols.latex_score))
            slot("weights.subtract")

    with _section("weights", parts, weight, *terms.defined(), more=more):
        slot("weights.figures")


def _matrix(look: Look, parts: Parts) -> None:
    def more() -> None:
        with _explained("Why has A = KᵀQ no √d_k?"):
            divides = look.site.score == "scaled_dot"
            st.markdown(_NO_ROOT + ("This model divides." if divides else formulas.UNDIVIDED))

    queries, keys = runs.lengths(look.opened.translation, look.kind)
    d_k = look.sizes[1]
    told = (
        f"({queries} × {keys}) · ({keys} × {d_k}) = {queries} × {d_k}; rows of weights sum to 1",
        f"({d_k} × {keys}) · ({keys} × {queries}) = {d_k} × {queries}; columns of weights sum to 1",
    )
    written = formulas.rows(look), formulas.columns(look)
    with _section("matrix", parts, *formulas.terms_of(look).defined(), more=more):
        for column, latex in zip(st.columns(2), written, strict=True):
            with column:
                for formula in latex:
                    st.latex(formula)
        for column, name, shape in zip(st.columns(2), FORMS, told, strict=True):
            with column:
                st.caption(shape)
                slot(f"matrix.{name}")


def _seven(look: Look) -> None:
    with _explained("Two heads are seven matrices"):
        asides.seven_matrices(look.sizes[0], look.sizes[2], look.sizes[1])


_DRAWN: dict[str, Callable[[Look, Parts], None]] = {
    "input": _input,
    "projections": _projections,
    "path": _values("path"),
    "products": _products,
    "weights": _weights,
    "sum": _values("sum"),
    "matrix": _matrix,
    "heads": _heads,
    "stream": _stream,
    "block": _block,
}
"""What draws each section."""
