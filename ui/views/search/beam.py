"""Beam search: its settings, its tree, the ranking of what it finished, and the run of a chosen node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from figures.base import labels
from transformer.decode.rules import SearchRules
from transformer.decode.tree import SearchTree
from transformer.runs.search import with_penalty
from transformer.runs.translation import Translation
from ui.address import session
from ui.address.state import State
from ui.address.values import BEAM, LARGEST_BEAM, LENGTH_OFFSETS, PENALTIES
from ui.controls import pickers
from ui.maps import going_on
from ui.server import catalogue, computed, runs
from ui.server.opened import Opened
from ui.shell import waiting
from ui.views.search import node, told
from ui.views.search.node import Branched
from ui.views.search.ranking import ranking
from ui.views.search.tree import choose, picture

_USUAL_BEAM = 4
_NEAR = 5
"""How many steps around the chosen one the list of tokens reaches."""
_FORMULA = r"\mathrm{score}(y) = \frac{1}{%s} \sum_{t=1}^{|y|} \log p(y_t \mid y_{<t}, x)"
_SEEING = (
    "At each step, every hypothesis in the beam is continued with every token. The best {most} continuations "
    "are shown; the best {beam} that have not ended are kept. No log p is positive, so every further token "
    "lowers the sum, and short outputs would win. So finished hypotheses are ranked by this score:"
)


def show(opened: Opened, now: State) -> None:
    """Draws the section."""
    rules = catalogue.translator(opened.asked.model).rules
    beam_size = _beam_size(now, rules)
    scored = with_penalty(rules, now.penalty, now.length_offset)
    _settings(beam_size, scored, rules)
    asked = replace(opened.asked, target=None, decode=f"{BEAM}{beam_size}", drawing=runs.USUAL)
    teller = waiting.Teller(asked.model, f"Searching with {beam_size} hypotheses")
    search = computed.searched(asked, scored, teller)
    teller.end()
    tree, chosen = search.tree, now.node
    assert tree is not None
    if chosen is not None and chosen >= len(tree.nodes):
        st.info(f"The tree has {len(tree.nodes):,} tokens; the last one of the best output is taken.")
        chosen = None
    chosen = tree.winner if chosen is None else chosen
    text = catalogue.translator(asked.model).text
    st.markdown(told.found(tree, text))
    picture(search, tree, chosen, text, now, lambda: _explained(beam_size, scored, rules))
    _chosen(Opened(asked, search, None), tree, chosen, text)
    ranking(tree, text)


def _beam_size(now: State, rules: SearchRules) -> int:
    """The beam of the way of decoding; if that has none, the model's own, or else 4."""
    if now.decode.startswith(BEAM):
        return int(now.decode.removeprefix(BEAM))
    return min(rules.beam_size, LARGEST_BEAM) if rules.beam_size > 1 else _USUAL_BEAM


def _settings(beam_size: int, scored: SearchRules, rules: SearchRules) -> None:
    penalty, offset = scored.length_penalty, scored.length_offset
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="search-settings"):
        with st.container(width=160):
            st.slider("Hypotheses in the beam", 2, LARGEST_BEAM, beam_size, **_beam_control(beam_size))
        with st.container(width=160):
            low, high = min(PENALTIES[0], penalty), max(PENALTIES[1], penalty)
            st.slider("Length penalty α", low, high, penalty, 0.1, **_penalty_control(penalty, rules))
        st.segmented_control(
            "Divide Σ log p by",
            sorted({*LENGTH_OFFSETS, offset}),
            default=offset,
            format_func=told.divisor,
            **_offset_control(offset, rules),
        )


def _explained(beam_size: int, scored: SearchRules, rules: SearchRules) -> None:
    with st.popover("What am I seeing?", type="tertiary", icon=":material/help:"):
        st.markdown(_SEEING.format(most=2 * beam_size, beam=beam_size))
        st.latex(_FORMULA % _divisor(scored.length_offset))
        st.markdown(_rule(rules))


def _beam_control(beam_size: int) -> dict[str, Any]:
    def take(size: int) -> None:
        session.change(**{**session.RUN, "decode": f"{BEAM}{size}", "target": None})

    return pickers.control("beam", beam_size, take)


def _penalty_control(penalty: float, rules: SearchRules) -> dict[str, Any]:
    def take(value: float) -> None:
        chosen = round(value, 2)
        session.change(penalty=None if chosen == rules.length_penalty else chosen, node=None)

    return pickers.control("penalty", penalty, take)


def _offset_control(offset: int, rules: SearchRules) -> dict[str, Any]:
    def take(value: int | None) -> None:
        if value is not None:
            session.change(length_offset=None if value == rules.length_offset else value, node=None)

    return pickers.control("length_offset", offset, take)


def _divisor(offset: int) -> str:
    """What divides Σ log p, in LaTeX."""
    return rf"\left(\frac{{{offset} + |y|}}{{{offset + 1}}}\right)^{{\alpha}}" if offset else r"|y|^{\alpha}"


def _rule(rules: SearchRules) -> str:
    """The model's own rule, in words."""
    when = {
        True: "as soon as the beam is full of finished hypotheses",
        False: "when no open hypothesis, at its present length, beats the worst finished one",
        "never": "when no open hypothesis could still beat the worst finished one at the greatest length",
    }[rules.early_stopping]
    own = f"This model's own rule: {told.divisor(rules.length_offset)} with α = {rules.length_penalty:g}"
    return (
        f"{own}; the search ends {when}. α = 0 normalises nothing. The paper's α = 0.6 belongs to "
        f"{told.divisor(5)} (Wu et al. 2016)."
    )


# --- the chosen node ----------------------------------------------------------------------------------------


def _chosen(search: Opened, tree: SearchTree, chosen: int, text: told.Text) -> None:
    run = computed.branched(search.asked, search.translation, chosen)
    st.markdown(told.headline(tree, chosen, text))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _token_picker(tree, chosen)
        if not tree.nodes[chosen].ended:
            st.button(
                "Continue from here",
                key="search.continue",
                icon=":material/alt_route:",
                help="Keeps these tokens, and continues the search from there",
                on_click=_continue,
                args=(run, search.asked.decode),
            )
    place = f"{told.score(tree)}\0{chosen}"
    node.view(Branched(search.asked, run, None, place))


def _token_picker(tree: SearchTree, chosen: int) -> None:
    """Chooses a token without the mouse: one near the chosen step, or the last of the best output."""
    here = tree.nodes[chosen].step
    near = [i for i, each in enumerate(tree.nodes) if abs(each.step - here) <= _NEAR or i == tree.winner]
    names = {
        i: f"{labels.count(i)} · step {labels.count(each.step)}: {labels.piece(each.token)}"
        for i, each in ((i, tree.nodes[i]) for i in near)
    }
    with st.container(width=300):
        st.selectbox(
            "Token of the tree",
            near,
            index=near.index(chosen),
            format_func=names.__getitem__,
            label_visibility="collapsed",
            **pickers.control("node", chosen, lambda place: choose(tree, int(place)), names.values()),
        )


def _continue(run: Translation, decode: str) -> None:
    step = len(run.steps) - 1
    values = {"changes": going_on.changes(run, step, run.steps[step].token_id), "target": None, "step": step}
    session.change(**{**session.RUN, **values, "decode": decode})
