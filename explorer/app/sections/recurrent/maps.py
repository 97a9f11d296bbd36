"""Two alignments: a recurrent twin's cross-attention beside the Transformer's, and its score in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.parameters import link
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.sections.recurrent import twins
from explorer.app.sections.recurrent.twins import NAMES, TwinRun
from explorer.app.server import catalogue, models
from explorer.app.shell.fitting import fit_position, noticed
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.bars import percent
from explorer.figures.base.captions import quote
from explorer.figures.pages.recurrent import with_centres
from explorer.lenses.inside.terms import ScoreTerms, score_terms
from explorer.lenses.what_if.two_runs import align_tokens
from explorer.linked.view import window_around
from transformer import Window
from transformer.config import AttentionKind, RecurrentConfig
from transformer.view import HeadView

_SIZE, _CELLS = 440, 40
_SEEING = (
    "Each row is a token that a model predicts, each column a source token that it may read; both maps share "
    "one scale. The recurrent decoder has one state and one head: the row is its whole look at the source. "
    "The Transformer has many heads, and one of them is shown. Purple strokes are centres that local "
    "attention predicts."
)
_CAVEAT = (
    "Data, pieces, batches and steps of both were the same; the recurrent twins were trained with bfloat16 "
    "products, the Transformer with float32, each with one seed."
)
_SHOWN = 6
"""Dimensions that the table names; the others are added up."""
_FORMULAS = {
    "additive": r"s_{tj} = v^{\top} \tanh(W_1 h_t + W_2 m_j + b)",
    "bilinear": r"s_{tj} = h_t^{\top} W m_j",
    "dot": r"s_{tj} = h_t^{\top} m_j",
    "local": r"s_{tj} = h_t^{\top} W m_j",
}
_WEIGHT = r"\alpha_{tj} = \frac{\exp(s_{tj})}{\sum_{j'} \exp(s_{tj'})}"
_LOCAL = (
    r"\alpha_{tj} = \frac{\exp(s_{tj})}{\sum_{|j' - p_t| \le D} \exp(s_{tj'})}\;"
    r"\exp\!\left(-\frac{(j - p_t)^2}{2\sigma^2}\right)"
)
_PAPERS = {
    "additive": "Bahdanau et al. 2015, appendix A.1.2, with a trained bias $b$. Their query is the previous "
    "state $s_{t-1}$; here it is $h_t$, as in Luong et al. 2015.",
    "bilinear": "“general” in Luong et al. 2015, section 3.1",
    "dot": "Luong et al. 2015, section 3.1",
    "local": "“local-p” in Luong et al. 2015, section 3.2: $p_t$ is predicted from $h_t$, and $σ = D / 2$",
}


def show(now: State) -> None:
    score = twins.score_of(now)
    if score is None:
        twins.missing()
        return
    _part(score)


@part
def _part(score: str) -> None:
    now = session.current()
    score = twins.score_of(now) or score
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        twins.pick(score)
        seen(_SEEING)
        st.page_link(
            "app.py",
            label="Open this twin on Translate",
            icon=":material/translate:",
            query_params=link(now, model=f"{catalogue.RECURRENT}/{score}"),
        )
    one = twins.side(now, models.find(f"{catalogue.RECURRENT}/{score}"))
    reference = models.known(twins.REFERENCE)
    other = None if reference is None else twins.side(now, reference)
    step = noticed(fit_position("step", now.step, len(one.run.target_tokens)))
    row = one.opened.first_step if step is None else step
    sides = [one] if other is None else [one, other]
    st.markdown("  \n".join(f"{title(each)}: **{plain(each.run.text)}**" for each in sides))
    rows: list[int | None] = [row]
    rows += [] if other is None else [counterpart(one.run.target_tokens, other.run.target_tokens, row)]
    st.markdown(looks([(each, at) for each, at in zip(sides, rows, strict=False)]))
    with st.container(horizontal=True, gap="medium"):
        for each, at in zip(sides, rows, strict=False):
            with st.container(width=_SIZE, gap="xsmall"):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    st.markdown(f"**{plain(title(each))}**", width="stretch")
                    with st.container(width=220):
                        if each is one:
                            pickers.row_picker(each.opened, "cross", at or 0)
                        else:
                            pickers.head_picker("cross", each.head, each.opened.source)
                _map(each, at)
    st.caption(_CAVEAT)
    _score(one, row, now.source)


def counterpart(
    first: Sequence[str],  # the tokens of one translation
    second: Sequence[str],  # those of the other
    row: int,  # the place in the first, from 0
) -> int | None:
    """The place of the same token in another translation; None if there is none."""
    same = [i for i, token in enumerate(second) if token == first[row]]
    aligned = next((j for i, j in align_tokens(first, second) if i == row), None)
    return aligned if aligned in same else next(iter(same), None)


def view_of(each: TwinRun, row: int | None) -> HeadView:
    """The map of a side, in a window around a row."""
    lengths = len(each.run.target_tokens), len(each.run.source_tokens)
    window = Window(*window_around(lengths[0], row or 0, _CELLS), *window_around(lengths[1], 0, _CELLS))
    return each.run.head("cross", *each.head, window=window)


def _map(each: TwinRun, row: int | None) -> None:
    view = view_of(each, row)
    lengths = len(each.run.target_tokens), len(each.run.source_tokens)
    name = "recurrent" if view.reach or view.score != "scaled_dot" else "transformer"
    panel(
        f"cross {name}",
        partial(_drawing, view),
        f"{captions.place(view)} · {name_of(each)} · weights, colour from 0 to 1"
        f"{captions.window_note(view.window, lengths)} · {each.model}",
        audit=view.audit,
        width="content",
        scrolls=True,
        row=None if row is None else row - view.window.query_start,
    )


def _drawing(view: HeadView) -> go.Figure:
    """A map with the centres of local attention marked."""
    figure = heatmap(view, _SIZE)
    if view.centres is None:
        return figure
    return with_centres(figure, np.asarray(view.centres), view.window.key_start, view.weights.shape[1])


def name_of(each: TwinRun) -> str:
    """Name of a model on the page."""
    config = each.run.config
    if isinstance(config, RecurrentConfig):
        return f"recurrent twin ({NAMES[config.score]})"
    return f"Transformer ({labels.head_phrase(*each.head)})"


def title(each: TwinRun) -> str:
    """The same as a title; which head of the Transformer is shown stands beside it."""
    config = each.run.config
    return f"Recurrent twin ({NAMES[config.score]})" if isinstance(config, RecurrentConfig) else "Transformer"


def looks(sides: Sequence[tuple[TwinRun, int | None]]) -> str:
    """Where each model looks for the token of the cursor."""
    (one, row), *others = sides
    assert row is not None
    token = f"**{plain(quote(one.run.target_tokens[row]))}**"
    told = [f"Predicting {token}, the {plain(name_of(one))} puts {_look(one, row)}."]
    for each, at in others:
        has = f"puts {_look(each, at)}" if at is not None else "does not write this token"
        told.append(f"The {plain(name_of(each))} {has}.")
    return " ".join(told)


def _look(each: TwinRun, row: int) -> str:
    weights = each.run.weights("cross", *each.head)[row]
    best = int(np.argmax(weights))
    on = plain(quote(each.run.source_tokens[best]))
    return f"{percent(float(weights[best]))} of its weight on **{on}**{_rest(float(weights.sum()))}"


def _rest(total: float) -> str:
    """Weight that a row of local attention, which a Gaussian multiplies, does not give out."""
    return "" if total > 0.995 else f" (its row sums to {total:.2f}: the Gaussian takes the rest)"


def _score(
    one: TwinRun,  # the recurrent twin and its run
    row: int,  # the query, from 0
    source: int | None,  # the key that the visitor chose; None for the one with the largest weight
) -> None:
    """Draws the formula and its numbers."""
    config, trace = one.run.config, one.run.attention
    if not isinstance(config, RecurrentConfig) or trace is None:
        return
    weights = one.run.weights("cross", *one.head)[row]
    key = int(np.argmax(weights)) if source is None else min(source, len(weights) - 1)
    st.markdown("##### The score, in numbers")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"), st.container(width=260):
        names = options.rows("key", one.run.source_tokens)
        pickers.choose("recurrent.key", "Key", names, key, "source", texts=True)
    terms = score_terms(trace, (AttentionKind.CROSS, *one.head), row, key)
    left, right = st.columns([1, 1.15], gap="large")
    with left:
        st.latex(_FORMULAS[config.score])
        st.latex(_LOCAL if terms.centre is not None else _WEIGHT)
        st.caption(_PAPERS[config.score])
    with right:
        st.markdown(_told(one, row, key, terms, float(weights[key])))
        with st.container(key="recurrent-terms"):
            st.markdown(table(terms))


def _told(one: TwinRun, row: int, key: int, terms: ScoreTerms, weight: float) -> str:
    tokens = one.run.target_tokens[row], one.run.source_tokens[key]
    told, read = (plain(quote(token)) for token in tokens)
    start = f"Query: the state that predicts **{told}**. Key: **{read}**. Score **{_n(terms.score)}**"
    if terms.centre is None:
        total = labels.number(terms.log_total)
        return f"{start}, weight exp({_n(terms.score)} − {total}) = **{weight:.3f}**: {total} is log Σ exp."
    centre = f"its centre is position {labels.number(terms.centre + 1, '.1f')}"
    if weight == 0:
        place = f"position {labels.count(key)}"
        return f"{start}; {centre}, so this key ({place}) lies outside the window: weight 0."
    share = np.exp(terms.score - terms.log_total)
    return f"{start}; {centre}. Softmax {share:.3f} × Gaussian {terms.factor:.3f} = weight **{weight:.3f}**."


def table(terms: ScoreTerms) -> str:
    """The dimensions that add or take away most, the sum of the others, and the score, in Markdown."""
    shown, rest = terms.order[:_SHOWN], terms.order[_SHOWN:]
    additive = terms.vector is not None
    head = (
        ("dimension", "q", "k", "tanh(q + k)", "v", "v · tanh")
        if additive
        else ("dimension", "q", "k", "q · k")
    )
    rows = [_row(terms, i) for i in shown]
    empty = [""] * (len(head) - 2)
    rows.append([f"the other {len(rest)}", *empty, _n(float(terms.terms[rest].sum()), ".3f")])
    rows.append(["**sum = score**", *empty, f"**{_n(terms.score, '.3f')}**"])
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(terms: ScoreTerms, i: int) -> list[str]:
    q, k = float(terms.query[i]), float(terms.key[i])
    middle = (
        [] if terms.vector is None else [_n(float(np.tanh(q + k)), ".3f"), _n(float(terms.vector[i]), ".3f")]
    )
    return [f"{labels.count(i)}", _n(q, ".3f"), _n(k, ".3f"), *middle, _n(float(terms.terms[i]), ".3f")]


def _n(value: float, form: str = ".2f") -> str:
    return labels.number(value, form)
