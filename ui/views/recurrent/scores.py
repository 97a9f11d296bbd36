"""The score of the chosen twin as a formula, and as real numbers for one query and one key."""

from __future__ import annotations

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.captions import quote
from transformer.model.config import RecurrentConfig
from transformer.model.sites import AttentionKind
from transformer.trace.terms import ScoreTerms, score_terms
from ui.address import session
from ui.controls import options, pickers
from ui.controls.text import plain
from ui.views.recurrent.twins import Side

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


def show(
    one: Side,  # the recurrent twin and its run
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
        _key(one, key)
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


def _key(one: Side, key: int) -> None:
    names = options.rows("key", one.run.source_tokens)
    pickers.choose("recurrent.key", "Key", names, key, lambda i: session.change(source=i), texts=True)


def _told(one: Side, row: int, key: int, terms: ScoreTerms, weight: float) -> str:
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
