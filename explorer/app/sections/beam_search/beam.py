"""Beam search: its settings, its tree, the run of a chosen token, and the ranking of what it
finished."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import BEAM
from explorer.app.address.page_values import OFFSETS, PENALTIES, BeamSearch, Tree
from explorer.app.controls import pickers, plain, say
from explorer.app.maps.explorer import changes
from explorer.app.sections.beam_search.tree import (
    Branched,
    choose,
    first_step,
    outputs,
    picture,
    view,
)
from explorer.app.server import per_run
from explorer.app.server.hosted import Bounds
from explorer.app.server.view import View
from explorer.app.shell import waiting
from explorer.figures.base import labels
from explorer.figures.base.labels import chance, count, number, piece
from explorer.figures.pages.search import KEPT, LOST, STEPS, WON, Branch
from transformer.beam import SearchTree
from transformer.decoding import NodeState, SearchRules

USUAL_BEAM = 4
NEAR = 5  # steps around the chosen one that the list of tokens reaches
OPENING = 3  # steps of a tree that are drawn while a lesson asks where it ends
FATES = {
    NodeState.KEPT: (KEPT, "kept: the next step extends it"),
    NodeState.FINISHED: (KEPT, "finished"),
    NodeState.OUTRANKED: (LOST, "outranked: better continuations filled the beam"),
    NodeState.DISPLACED: (LOST, "displaced by better finished hypotheses"),
    NodeState.CUT: (KEPT, "cut by the length limit"),
}
STOPS = {
    True: "as soon as the beam is full of finished hypotheses",
    False: "when no open hypothesis, at its present length, beats the worst finished one",
    "never": "when no open hypothesis could still beat the worst finished one at the greatest length",
}
SEEING = r"""
Every hypothesis in the beam is continued with every token. The best {most} continuations are shown; the best
{beam} that have not ended are kept. Every further token lowers the sum of log p, so finished hypotheses are
ranked by this score:

$$\mathrm{{score}}(y) = \frac{{1}}{{{below}}} \sum_{{t=1}}^{{|y|}} \log p(y_t \mid y_{{<t}}, x)$$

{what}This model's own rule: {own} with α = {alpha:g}; the search ends {stops}. {keeps}α = 0 normalises nothing. The
paper's α = 0.6 belongs to {paper} (Wu et al. 2016)."""
AFTER = "y is what is written after the text x, whose own tokens count in no score. "
Text = Callable[[Sequence[int]], str]
"""Ids of an output → its text."""


def show(opened: View, now: State) -> None:
    values = now.values(BeamSearch)
    model = opened.source.load()
    rules = model.rules
    start_id = opened.translation.start_id

    def text(ids: Sequence[int]) -> str:
        return model.text(model.whole(ids, start_id)).strip()

    most = int(Bounds.from_environment().beam)
    beam = min(rules.beam_size if rules.beam_size > 1 else USUAL_BEAM, most)
    if now.decode.startswith(BEAM):
        beam = int(now.decode.removeprefix(BEAM))
    scored = rules.with_penalty(values.penalty, values.length_offset)
    settings(beam, max(beam, most), scored, rules)
    run_key = opened.run_key.writing(f"{BEAM}{beam}")
    with waiting.telling(f"Searching with {beam} hypotheses") as progress:
        search = per_run.searched(run_key, scored, progress)
    tree = search.tree
    chosen = now.values(Tree).node
    assert tree is not None
    if chosen is not None and chosen >= len(tree.nodes):
        st.info(
            f"The tree has {len(tree.nodes):,} tokens; the last one of the best output is taken."
        )
        chosen = None
    if chosen is None:
        chosen = tree.winner
    say(comparison(tree, text))

    greedy, nodes = tree.greedy, tree.nodes
    first = pickers.window(
        first_step(opened, now), STEPS, max(tree.nodes[-1].step + 1, len(greedy.tokens)), "steps"
    )
    branches = branches_of(tree, text, range(first, first + STEPS))
    if session.visit().silent is not None:
        branches = [replace(branch, fate=KEPT) for branch in branches if branch.step < OPENING]
    below = rf"\left(\frac{{{scored.length_offset} + |y|}}{{{scored.length_offset + 1}}}\right)^{{\alpha}}"
    picture(
        "search tree",
        branches,
        names={WON: "the best", KEPT: "kept", LOST: "given up"},
        tree=tree,
        greedy=(greedy.token_ids, greedy.tokens, greedy.log_probs),
        lost="greedy search, outside the beam",
        chosen=chosen,
        first=first,
        run=search,
        caption=f"Beam search, {beam} hypotheses, {score_name(tree.rules)}: the best {2 * beam} "
        "continuations of every step · columns are steps · thickness = probability of the output "
        "so far, relative to the most probable one",
        more={
            "score": [node.score for node in nodes],
            "state": [node.state.value for node in nodes],
            "won": [node.won for node in nodes],
        },
        seeing=SEEING.format(
            most=2 * beam,
            beam=beam,
            what=AFTER if tree.rules.n_given else "",
            below=below if scored.length_offset else r"|y|^{\alpha}",
            own=divisor(rules.length_offset),
            alpha=rules.length_penalty,
            stops=STOPS[rules.early_stopping],
            keeps=f"It allows {' and '.join(rules.in_words)}. " if rules.in_words else "",
            paper=divisor(5),
        ),
    )
    if session.visit().silent is not None:  # what follows names the outputs
        return
    node(View(run_key, search, None), tree, chosen, text)
    ranking(tree, text)


def settings(beam: int, most: int, scored: SearchRules, rules: SearchRules) -> None:
    """How many hypotheses, and how they are scored.

    What is the model's own stays out of the address.
    """

    def take(name: str, value: float, usual: float) -> None:
        session.change(**{name: None if value == usual else value, "node": None})

    alpha, offset = scored.length_penalty, scored.length_offset
    low, high = PENALTIES.ends or (0.0, 2.0)
    ends = min(low, alpha), max(high, alpha)

    def size(n: int) -> None:
        session.change(**{**session.RUN, "decode": f"{BEAM}{n}", "target": None})

    def chosen(value: float) -> None:
        take("penalty", round(value, 2), rules.length_penalty)

    def divide(value: float) -> None:
        take("length_offset", value, rules.length_offset)

    forms = {value: divisor(value) for value in sorted({*OFFSETS.choices, offset})}
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="search-settings"
    ):
        pickers.slide("beam", "Hypotheses in the beam", beam, size, ends=(2, most), width=160)
        pickers.slide("penalty", "Length penalty α", alpha, chosen, ends=ends, width=160)
        pickers.switch("length_offset", "Divide Σ log p by", forms, offset, divide, labelled=True)


def divisor(offset: int) -> str:
    """What a sum of log p is divided by, in words."""
    if not offset:
        return "|y| to the power α"
    return f"(({offset} + |y|) ÷ {offset + 1}) to the power α"


def score_name(rules: SearchRules) -> str:
    """The score: what divides Σ log p if that is not the length, and α."""
    form = f" with {divisor(rules.length_offset)}" if rules.length_offset else ""
    return f"score{form}, α = {rules.length_penalty:g}"


def comparison(tree: SearchTree, text: Text) -> str:
    """What beam search finds that greedy search does not, and where the two part, as Markdown."""

    def line(name: str, ids: Sequence[int], score: float) -> str:
        return (
            f":gray[{name}:] **{plain(text(ids)) or '◌'}** :gray[(score {number(score, '.3f')})]  "
            "\n"
        )

    best = tree.nodes[tree.winner]
    greedy = tree.greedy
    path = tree.path(tree.winner)
    ids = tree.token_ids(tree.winner)
    if ids == greedy.token_ids:
        second = ""
        if len(tree.hypotheses) > 1:
            place = tree.hypotheses[1]
            score = number(tree.nodes[place].score, ".3f")
            second = f"; second comes “{plain(text(tree.token_ids(place)))}” (score {score})"
        same = f"Beam search finds nothing better here than greedy search{second}."
        return line("both", ids, best.score) + same
    step = next(i for i, (a, b) in enumerate(zip_longest(ids, greedy.token_ids)) if a != b)
    parted = f"They part at step {count(step)}"
    if step < min(len(path), len(greedy.tokens)):
        node = tree.nodes[path[step]]
        greedy_token = plain(piece(greedy.tokens[step]))
        parted += f": greedy search takes “{greedy_token}” ({chance(greedy.log_probs[step])}), "
        parted += f"the beam also keeps “{plain(piece(node.token))}” ({chance(node.log_prob)}). "
    else:
        parted += ", where one of them has ended. "
    verdict = "The tokens after that step make up for it"
    if best.score <= greedy.score:
        verdict = "The greedy path fell out of the beam, although it ends with the better score"
    elif best.total < greedy.total:
        verdict = "As a whole, the beam's output is less probable, but its score is better"
    sums = f"Σ log p is {number(best.total)} against {number(greedy.total)}."
    lines = line("beam search", ids, best.score) + line(
        "greedy search", greedy.token_ids, greedy.score
    )
    return f"{lines}{parted}{verdict}: {sums}"


def branches_of(tree: SearchTree, text: Text, steps: range) -> list[Branch]:
    """The nodes as they are drawn; only those of the drawn steps have a hover text."""
    branches = list[Branch]()
    finished = -math.inf
    for step, group in groupby(tree.nodes, lambda each: each.step):
        here = list(group)
        leader = max(
            finished, *(sibling.total for sibling in here)
        )  # a finished hypothesis stays the measure
        ended = (
            sibling.total
            for sibling in here
            if sibling.state in (NodeState.FINISHED, NodeState.CUT)
        )
        finished = max([finished, *ended])
        for sibling in here:
            fate = WON if sibling.won else FATES[sibling.state][0]
            width = math.exp(min(0.0, sibling.total - leader))
            text_of_step = note(tree, len(branches), text) if step in steps else ""
            branches.append(
                Branch(
                    token=sibling.token,
                    step=step,
                    parent=sibling.parent,
                    share=width,
                    fate=fate,
                    ended=sibling.ended,
                    note=text_of_step,
                )
            )
    return branches


def sums(tree: SearchTree, place: int) -> tuple[str, str]:
    """The probability of a token in its step, and the sums of its output, in words."""
    node_at = tree.nodes[place]
    here = f"probability here {chance(node_at.log_prob)}"
    return here, f"Σ log p {number(node_at.total)} · score {number(node_at.score, '.3f')}"


def note(tree: SearchTree, place: int, text: Text) -> str:
    each = tree.nodes[place]
    (here, total) = sums(tree, place)
    return (
        f"{piece(each.token)} · step {count(each.step)}\n{FATES[each.state][1]}\n"
        f"{here} (log p {number(each.log_prob)})\n{total}\n"
        f"{labels.shorten(text(tree.token_ids(place)), 60)}"
    )


def node(search: View, tree: SearchTree, chosen: int, text: Text) -> None:
    """The chosen token: its numbers, its run, and the way to go on from it."""
    run = per_run.branched(search, chosen)
    chosen_node = tree.nodes[chosen]
    nodes = tree.nodes
    best = tree.winner
    won = " · the best output" if chosen == best else ""
    st.markdown(
        f"##### Step {count(chosen_node.step)}: “{plain(piece(chosen_node.token))}”{won}\n"
        f"{plain(text(tree.token_ids(chosen)))} · "
        f"{' · '.join((FATES[chosen_node.state][1], *sums(tree, chosen)))}"
    )

    def go_on() -> None:
        step = len(run.steps) - 1
        also = {
            "changes": changes(run, step, run.steps[step].token_id),
            "target": None,
            "step": step,
            "decode": search.run_key.decode,
        }
        session.change(**session.RUN | also)

    near = [i for i, n in enumerate(nodes) if abs(n.step - chosen_node.step) <= NEAR or i == best]
    names = {i: f"{count(i)} · step {count(nodes[i].step)}: {piece(nodes[i].token)}" for i in near}

    def take(place: int) -> None:
        choose(nodes, int(place))

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        pickers.choose("node", "Token of the tree", names, chosen, take, texts=True, width=300)
        if not chosen_node.ended:
            icon, does = (
                ":material/alt_route:",
                "Keeps these tokens, and continues the search from there",
            )
            st.button("Continue from here", "search.continue", does, icon=icon, on_click=go_on)
    view(Branched(search.run_key, run, None, f"{score_name(tree.rules)}\0{chosen}"))


def ranking(tree: SearchTree, text: Text) -> None:
    """The outputs that ended in the beam, with and without normalisation, and the greedy one."""
    greedy = tree.greedy
    n_given = tree.rules.n_given  # tokens of a text that is continued, which count in no score
    given = sum(greedy.log_probs[:n_given])
    rows = list[tuple[str, int, float, float, str]]()
    for i in tree.hypotheses:
        node_at = tree.nodes[i]
        ids = tree.token_ids(i)
        also = " · greedy search writes it, too" if ids == greedy.token_ids else ""
        fate = "the best" if node_at.won else FATES[node_at.state][1]
        length = node_at.step + 1 - n_given
        total = node_at.total - given
        rows.append((text(ids), length, total, node_at.score, fate + also))
    if all(tree.token_ids(i) != greedy.token_ids for i in tree.hypotheses):
        ids = greedy.token_ids
        length = len(greedy.tokens) - n_given
        total = greedy.total - given
        rows.append((text(ids), length, total, greedy.score, "greedy search"))
    texts, lengths, totals, scores, fates = zip(*rows, strict=True)

    def take(row: int) -> None:
        if row < len(tree.hypotheses):
            choose(tree.nodes, tree.hypotheses[row])

    st.markdown("##### The ranking, with normalisation and without")
    columns = {
        "rank by score": [sorted(scores, reverse=True).index(score) + 1 for score in scores],
        "rank by Σ log p": [sorted(totals, reverse=True).index(total) + 1 for total in totals],
        "output": texts,
        "tokens": lengths,
        "Σ log p": totals,
        score_name(tree.rules): scores,
        "what became of it": fates,
    }
    outputs(
        "search.ranking", columns, take, "The outputs that ended, ranked by score and by Σ log p"
    )
