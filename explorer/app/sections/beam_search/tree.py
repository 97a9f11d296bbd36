"""The tree of a beam search: its picture, its numbers, and what became of each token, in sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from explorer.app.address import State, session
from explorer.app.controls import Table, panel, pickers, plain
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.search import KEPT, LOST, STEPS, WON, Beside, Branch, search_tree
from transformer.beam import SearchTree
from transformer.decoding import Hypothesis, Node, NodeState
from transformer.run import Translation

_LEGEND = {WON: "the best", KEPT: "kept", LOST: "given up"}
_FATES = {
    NodeState.KEPT: KEPT,
    NodeState.FINISHED: KEPT,
    NodeState.CUT: KEPT,
    NodeState.OUTRANKED: LOST,
    NodeState.DISPLACED: LOST,
}
Text = Callable[[Sequence[int]], str]
"""Ids of an output → its text."""
_OPENING = 3
"""Steps of a tree that are drawn while a lesson asks where it ends."""
FATES = {
    NodeState.KEPT: "kept: the next step extends it",
    NodeState.FINISHED: "finished",
    NodeState.OUTRANKED: "outranked: better continuations filled the beam",
    NodeState.DISPLACED: "displaced by better finished hypotheses",
    NodeState.CUT: "cut by the length limit",
}
"""Fate of a continuation."""


def picture(
    search: Translation,  # the search
    tree: SearchTree,  # its tree
    chosen: int,  # the node with a frame around it
    text: Text,  # writes ids as text
    now: State,  # the state, which says where the window of a long tree begins
    seeing: str,  # the explanation
) -> None:
    """Draws the tree, its caption and its export."""
    steps = max(tree.steps, len(tree.greedy.tokens))
    first = pickers.window(now.first, STEPS, steps, "steps")
    branches = _branches(tree, text, first)
    greedy = tree.greedy
    inside = tree.along(greedy.token_ids)
    beside = beside_greedy(greedy.tokens, greedy.log_probs, inside, "greedy search, outside the beam")
    if session.silent() is not None:
        branches = [replace(each, fate=KEPT) for each in branches if each.step < _OPENING]
        beside, chosen, first = Beside("greedy search", []), 0, 0
    panel(
        "search tree",
        partial(search_tree, branches, _LEGEND, beside, chosen, first, search.decoder_input_tokens[0]),
        f"Beam search, {tree.beam_size} hypotheses, {score(tree)}: the best "
        f"{2 * tree.beam_size} continuations of every step · columns are steps · thickness = probability "
        f"of the output so far, relative to the most probable one · {search.model}",
        lambda: table(tree),
        seeing=seeing,
        take=lambda place: choose(tree.nodes, place),
        scrolls=True,
        inked=True,
    )


def choose(nodes: Sequence[Node], place: int) -> None:
    """Takes a node that the visitor clicked, and moves the cursor to its step."""
    if 0 <= place < len(nodes):
        session.change(node=place, step=nodes[place].step, source=None)


def beside_greedy(
    tokens: Sequence[str], log_probs: Sequence[float], inside: Sequence[int], outside: str
) -> Beside:
    """The greedy output beside a tree: the nodes that it shares, and its other tokens with what they are."""
    notes = [
        f"{labels.piece(token)} · step {labels.count(step)}\n{outside}\nlog p {labels.number(log_prob)}"
        for step, (token, log_prob) in enumerate(zip(tokens, log_probs, strict=True))
    ]
    return Beside("greedy search", list(inside), tokens[len(inside) :], notes[len(inside) :])


def node_rows(
    nodes: Sequence[Node],
    more: Mapping[str, Sequence[object]],  # further columns by their names
) -> Table:
    """Every node as a row of numbers, for CSV; programs count from 0."""
    names = ("node", "step", "token", "token id", "parent", "log p", "sum of log p", *more)
    rows = [
        (i, each.step, each.token, each.token_id, "" if each.parent is None else each.parent, each.log_prob)
        for i, each in enumerate(nodes)
    ]
    totals = [each.total for each in nodes]
    columns = zip(rows, totals, *more.values(), strict=True)
    return [names, *((*row, total, *last) for row, total, *last in columns)]


def _branches(tree: SearchTree, text: Text, first: int) -> list[Branch]:
    """The nodes as they are drawn; only those in the window have a hover text."""
    leaders = list(_leaders(tree))
    return [
        Branch(
            each.token,
            each.step,
            each.parent,
            math.exp(min(0.0, each.total - leaders[each.step])),
            WON if each.won else _FATES[each.state],
            each.ended,
            note(tree, i, text) if first <= each.step < first + STEPS else "",
        )
        for i, each in enumerate(tree.nodes)
    ]


def _leaders(tree: SearchTree) -> Iterator[float]:
    """For each step, the largest sum among its continuations and the hypotheses finished before."""
    finished = -math.inf
    for _, group in itertools.groupby(tree.nodes, lambda each: each.step):
        here = list(group)
        yield max(finished, *(each.total for each in here))
        finished = max(
            [finished, *(each.total for each in here if (each.state in (NodeState.FINISHED, NodeState.CUT)))]
        )


def table(tree: SearchTree) -> Table:
    """Every node of the search, for CSV."""
    nodes = tree.nodes
    states = [each.state.value for each in nodes]
    scores, won = [each.score for each in nodes], [each.won for each in nodes]
    return node_rows(nodes, {"score": scores, "state": states, "won": won})


def divisor(offset: int) -> str:
    """Divisor of Σ log p, for a k of the score."""
    return f"(({offset} + |y|) ÷ {offset + 1}) to the power α" if offset else "|y| to the power α"


def score(tree: SearchTree) -> str:
    """The score of a tree: its name, what divides Σ log p if that is not the length, and α."""
    offset = tree.rules.length_offset
    form = f" with {divisor(offset)}" if offset else ""
    return f"score{form}, α = {tree.rules.length_penalty:g}"


def found_sentence(tree: SearchTree, text: Text) -> str:
    """Findings of beam search that greedy search lacks, for one sentence, as Markdown."""
    best, greedy = tree.nodes[tree.winner], tree.greedy
    ids = tree.token_ids(tree.winner)
    if ids == greedy.token_ids:
        same = f"Beam search finds nothing better here than greedy search{_second(tree, text)}."
        return f"{_line('both', text(ids), best.score)}  \n{same}"
    parting = next(
        (i for i, pair in enumerate(zip(ids, greedy.token_ids, strict=False)) if pair[0] != pair[1]),
        min(len(ids), len(greedy.token_ids)),
    )
    lines = (
        _line("beam search", text(ids), best.score),
        _line("greedy search", text(greedy.token_ids), greedy.score),
        _parted(tree, parting) + _verdict(best, greedy),
    )
    return "  \n".join(lines)


def _line(name: str, text: str, score: float) -> str:
    return f":gray[{name}:] **{plain(text) or '◌'}** :gray[(score {labels.number(score, '.3f')})]"


def _second(tree: SearchTree, text: Text) -> str:
    """The runner-up, if another hypothesis ended."""
    if len(tree.hypotheses) < 2:
        return ""
    second = tree.hypotheses[1]
    score = labels.number(tree.nodes[second].score, ".3f")
    return f"; second comes “{plain(text(tree.token_ids(second)))}” (score {score})"


def _parted(tree: SearchTree, step: int) -> str:
    """Where the two part, and how probable each token was there."""
    path, greedy = tree.path(tree.winner), tree.greedy
    if step >= len(path) or step >= len(greedy.tokens):
        return f"They part at step {labels.count(step)}, where one of them has ended. "
    own = tree.nodes[path[step]]
    return (
        f"They part at step {labels.count(step)}: greedy search takes “{_word(greedy.tokens[step])}” "
        f"({_share(greedy.log_probs[step])}), the beam also keeps “{_word(own.token)}” "
        f"({_share(own.log_prob)}). "
    )


def _verdict(best: Node, greedy: Hypothesis) -> str:
    """Which of the two is more probable, and which has the better score."""
    sums = f"Σ log p is {labels.number(best.total)} against {labels.number(greedy.total)}"
    if best.score <= greedy.score:
        return f"The greedy path fell out of the beam, although it ends with the better score: {sums}."
    if best.total < greedy.total:
        return f"As a whole, the beam's output is less probable, but its score is better: {sums}."
    return f"The tokens after that step make up for it: {sums}."


def _word(token: str) -> str:
    return plain(labels.piece(token))


def _share(log_prob: float) -> str:
    return percent(min(1.0, math.exp(log_prob)))


def note(tree: SearchTree, node: int, text: Text) -> str:
    """The hover text of a node."""
    each = tree.nodes[node]
    return (
        f"{labels.piece(each.token)} · step {labels.count(each.step)}\n"
        f"{FATES[each.state]}\n"
        f"probability here {_share(each.log_prob)} (log p {labels.number(each.log_prob)})\n"
        f"Σ log p {labels.number(each.total)} · score {labels.number(each.score, '.3f')}\n"
        f"{labels.shorten(text(tree.token_ids(node)), 60)}"
    )


def headline(tree: SearchTree, node: int, text: Text) -> str:
    """The chosen node in one line of Markdown."""
    each = tree.nodes[node]
    so_far = plain(text(tree.token_ids(node)))
    best = " · the best output" if node == tree.winner else ""
    return (
        f"##### Step {labels.count(each.step)}: “{_word(each.token)}”{best}\n"
        f"{so_far} · {FATES[each.state]} · probability here {_share(each.log_prob)} · "
        f"Σ log p {labels.number(each.total)} · score {labels.number(each.score, '.3f')}"
    )
