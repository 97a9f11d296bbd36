"""Beam search: its settings, its tree, the run of a chosen node, and the ranking of what it finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import BEAM
from explorer.app.address.state import KINDS
from explorer.app.controls import pickers, say
from explorer.app.maps import next_token_choice
from explorer.app.sections.beam_search import node
from explorer.app.sections.beam_search.node import Branched
from explorer.app.sections.beam_search.tree import (
    FATES,
    Text,
    choose,
    divisor,
    found_sentence,
    headline,
    picture,
    score,
)
from explorer.app.server import per_run, runs
from explorer.app.server.hosted import Bounds
from explorer.app.server.opened import Opened
from explorer.app.shell import waiting
from explorer.figures.base import labels
from transformer.beam import SearchTree
from transformer.decoding import SearchRules
from transformer.run import Translation

_USUAL_BEAM = 4
_NEAR = 5
"""Number of steps around the chosen one that the list of tokens reaches."""
_FORMULA = r"\mathrm{score}(y) = \frac{1}{%s} \sum_{t=1}^{|y|} \log p(y_t \mid y_{<t}, x)"
_SEEING = (
    "At each step, every hypothesis in the beam is continued with every token. The best {most} continuations "
    "are shown; the best {beam} that have not ended are kept. No log p is positive, so every further token "
    "lowers the sum, and short outputs would win. So finished hypotheses are ranked by this score:"
)


def show(opened: Opened, now: State) -> None:
    rules = opened.source.translator().rules
    beam_size = _beam_size(now, rules)
    scored = rules.with_penalty(now.penalty, now.length_offset)
    _settings(beam_size, scored, rules)
    asked = replace(opened.asked, target=None, decode=f"{BEAM}{beam_size}", drawing=runs.USUAL)
    with waiting.Teller(asked.source, f"Searching with {beam_size} hypotheses") as teller:
        search = per_run.searched(asked, scored, teller)
    tree, chosen = search.tree, now.node
    assert tree is not None
    if chosen is not None and chosen >= len(tree.nodes):
        st.info(f"The tree has {len(tree.nodes):,} tokens; the last one of the best output is taken.")
        chosen = None
    chosen = tree.winner if chosen is None else chosen
    text = asked.source.translator().text
    say(found_sentence(tree, text))
    seeing = _SEEING.format(most=2 * beam_size, beam=beam_size)
    explained = f"{seeing}\n\n$${_FORMULA % _divisor(scored.length_offset)}$$\n\n{_rule(rules)}"
    picture(search, tree, chosen, text, now, explained)
    if session.silent() is not None:  # what follows names the outputs
        return
    _chosen(Opened(asked, search, None), tree, chosen, text)
    ranking(tree, text)


def _beam_size(now: State, rules: SearchRules) -> int:
    """The beam of the way of decoding; if that has none, the model's own, or else 4."""
    if now.decode.startswith(BEAM):
        return int(now.decode.removeprefix(BEAM))
    return min(rules.beam_size if rules.beam_size > 1 else _USUAL_BEAM, _most())


def _most() -> int:
    return int(Bounds.from_environment().beam)


def _settings(beam_size: int, scored: SearchRules, rules: SearchRules) -> None:
    penalty, offset = scored.length_penalty, scored.length_offset
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="search-settings"):
        with st.container(width=160):
            pickers.slide(
                "beam", "Hypotheses in the beam", beam_size, _take_beam, ends=(2, max(_most(), beam_size))
            )
        with st.container(width=160):
            low, high = KINDS["penalty"].ends or (0.0, 2.0)
            pickers.slide(
                "penalty",
                "Length penalty α",
                penalty,
                lambda value: _take_penalty(round(value, 2), rules.length_penalty),
                ends=(min(low, penalty), max(high, penalty)),
            )
        pickers.switch(
            "length_offset",
            "Divide Σ log p by",
            {each: divisor(each) for each in sorted({*KINDS["length_offset"].choices, offset})},
            offset,
            lambda value: session.change(
                length_offset=None if value == rules.length_offset else value, node=None
            ),
            labelled=True,
        )


def _take_beam(size: int) -> None:
    session.change(**{**session.RUN, "decode": f"{BEAM}{size}", "target": None})


def _take_penalty(value: float, usual: float) -> None:
    session.change(penalty=None if value == usual else value, node=None)


def _divisor(offset: int) -> str:
    """Divisor of Σ log p, in LaTeX."""
    return rf"\left(\frac{{{offset} + |y|}}{{{offset + 1}}}\right)^{{\alpha}}" if offset else r"|y|^{\alpha}"


def _rule(rules: SearchRules) -> str:
    """The model's own rule, in words."""
    when = {
        True: "as soon as the beam is full of finished hypotheses",
        False: "when no open hypothesis, at its present length, beats the worst finished one",
        "never": "when no open hypothesis could still beat the worst finished one at the greatest length",
    }[rules.early_stopping]
    own = f"This model's own rule: {divisor(rules.length_offset)} with α = {rules.length_penalty:g}"
    keeps = f"It allows {' and '.join(rules.in_words)}. " if rules.in_words else ""
    return (
        f"{own}; the search ends {when}. {keeps}α = 0 normalises nothing. The paper's α = 0.6 belongs to "
        f"{divisor(5)} (Wu et al. 2016)."
    )


def _chosen(search: Opened, tree: SearchTree, chosen: int, text: Text) -> None:
    run = per_run.branched(search, chosen)
    st.markdown(headline(tree, chosen, text))
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
    place = f"{score(tree)}\0{chosen}"
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
        pickers.choose(
            "node",
            "Token of the tree",
            names,
            chosen,
            lambda place: choose(tree.nodes, int(place)),
            texts=True,
        )


def _continue(run: Translation, decode: str) -> None:
    step = len(run.steps) - 1
    values = {
        "changes": next_token_choice.changes(run, step, run.steps[step].token_id),
        "target": None,
        "step": step,
    }
    session.change(**{**session.RUN, **values, "decode": decode})


def ranking(tree: SearchTree, text: Text) -> None:
    """Lists the outputs that ended in the beam, with and without normalisation, and the greedy one."""
    ended = tree.hypotheses
    rows = [
        (
            text(tree.token_ids(i)),
            tree.nodes[i].step + 1,
            tree.nodes[i].total,
            tree.nodes[i].score,
            _fate(tree, i),
        )
        for i in ended
    ]
    greedy = tree.greedy
    if all(tree.token_ids(i) != greedy.token_ids for i in ended):
        rows.append((text(greedy.token_ids), len(greedy.tokens), greedy.total, greedy.score, "greedy search"))
    st.markdown("##### The ranking, with normalisation and without")
    st.dataframe(
        {
            "rank by score": _ranks([row[3] for row in rows]),
            "rank by Σ log p": _ranks([row[2] for row in rows]),
            "output": [row[0] for row in rows],
            "tokens": [row[1] for row in rows],
            "Σ log p": [row[2] for row in rows],
            score(tree): [row[3] for row in rows],
            "what became of it": [row[4] for row in rows],
        },
        hide_index=True,
        key="search.ranking",
        on_select=lambda: session.on_pick("search.ranking", lambda row: _choose_row(tree, int(row))),
        selection_mode="single-row",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f") for name in ("Σ log p", score(tree))
        },
        alt="The outputs that ended, ranked by score and by the sum of log-probabilities",
    )


def _fate(tree: SearchTree, i: int) -> str:
    same = " · greedy search writes it, too" if tree.token_ids(i) == tree.greedy.token_ids else ""
    return ("the best" if tree.nodes[i].won else FATES[tree.nodes[i].state]) + same


def _ranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values, reverse=True)
    return [labels.count(ordered.index(value)) for value in values]


def _choose_row(tree: SearchTree, row: int) -> None:
    if row < len(tree.hypotheses):
        choose(tree.nodes, tree.hypotheses[row])
