"""Beam search as an iterator of steps (Wu et al. 2016, simplified; scores as in the transformers library).

Its tree is everything that it looked at, and what became of it. It is kept only if somebody asks. Then a
search of n steps with a beam of k keeps at most 2 n k nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import torch

from transformer.decoding import (
    FREE,
    Decoding,
    DecodingState,
    Hypothesis,
    Limit,
    SearchRules,
    Step,
    considered,
    finish,
    largest,
)
from transformer.text.brief import Brief


@dataclass(frozen=True, eq=False)
class Node:
    """A hypothesis as a chain of tokens, newest first."""

    token_id: int  # the newest token
    log_prob: float  # its log-probability under the model, in nats
    parent_row: int  # the row of the beam that it was appended to
    total: float  # what the search has summed so far: log-probabilities, as the rules allow them
    length: int  # number of tokens, without the start token
    before: Node | None  # the hypothesis without the newest token; None for the start token

    def chain(self) -> Iterator[Node]:
        """The nodes from the newest token back to the start token."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.before

    def ending(self, count: int) -> tuple[int, ...]:
        """The last ``count`` tokens at most, including the start token."""
        return tuple(node.token_id for node in islice(self.chain(), count))[::-1]

    def hypothesis(self, rules: SearchRules) -> Hypothesis:
        """The hypothesis as a search returns it."""
        chain = [node for node in self.chain() if node.length][::-1]
        return Hypothesis(
            tuple(node.token_id for node in chain),
            tuple(node.log_prob for node in chain),
            tuple(node.parent_row for node in chain),
            rules.score(self.total, self.length),
        )


class BeamStep(NamedTuple):
    """What one step of the beam of one sentence looked at."""

    offered: Sequence[Node]  # the continuations that it chose from, at most 2 × beam_size, best first
    running: Sequence[Node]  # those that the next step extends
    finished: Sequence[Node]  # the best finished hypotheses so far, best first


class _Beam:
    """The beam of one sentence: running and finished hypotheses, and when to stop."""

    def __init__(self, beam_size: int, limit: int, rules: SearchRules, state: DecodingState) -> None:
        self.beam_size, self.limit, self.rules, self.eos_id = beam_size, limit, rules, state.config.eos_id
        self.running = [Node(state.config.bos_id, 0.0, 0, 0.0, 0, None)]
        self.finished: list[Node] = []

    def rows(self, width: int) -> list[Node]:
        """The running hypotheses, filled up to the beam's width with dummies of probability 0."""
        spare = Node(self.eos_id, -math.inf, 0, -math.inf, 1, None)
        return self.running + [spare] * (width - len(self.running))

    def extend(
        self,
        # total, log-probability of the new token, and the token's place in (row, token) flattened; rows after
        # the running ones only fill the beam's width, and a forbidden token has a total of -inf
        candidates: Iterable[tuple[float, float, float]],
        vocab_size: int,  # length of a row
        last: bool,  # whether the length limit ends every continuation
    ) -> BeamStep:
        """Takes the best 2 × beam_size continuations, best first."""
        offered = []
        for total, log_prob, place in candidates:
            row, token_id = divmod(int(place), vocab_size)
            if row < len(self.running) and total > -math.inf:
                parent = self.running[row]
                offered.append(Node(token_id, log_prob, row, total, parent.length + 1, parent))
        ended = [node for node in offered[: self.beam_size] if last or node.token_id == self.eos_id]
        going_on = [node for node in offered if not last and node.token_id != self.eos_id]
        self.running = going_on[: self.beam_size]
        ranked = sorted(self.finished + ended, key=lambda node: -self.rules.score(node.total, node.length))
        self.finished = ranked[: self.beam_size]
        return BeamStep(offered, self.running, self.finished)

    @property
    def done(self) -> bool:
        """True if the search may end: see ``SearchRules.early_stopping``."""
        if not self.running:
            return True
        if len(self.finished) < self.beam_size:
            return False
        rules, when, best, worst = self.rules, self.rules.early_stopping, self.running[0], self.finished[-1]
        length = self.limit if when == "never" and rules.length_penalty > 0 else best.length
        return when is True or rules.score(best.total, length) <= rules.score(worst.total, worst.length)


def beam_search(
    state: DecodingState,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    beam_size: int,  # hypotheses kept per sentence; 1 equals greedy search
    rules: SearchRules = FREE,  # how to score, when to stop, and forbidden or forced tokens
    history: list[BeamStep] | None = None,  # gets every step of the first sentence, for ``search_tree``
) -> Decoding:
    """Keeps the ``beam_size`` best hypotheses by ``SearchRules.score``; ValueError if not from 1 to 64."""
    if not 1 <= beam_size <= 64:
        raise ValueError(f"beam_size is {beam_size}; it must be from 1 to 64.")
    limits = [max_length] * state.sentences if isinstance(max_length, int) else max_length
    beams = [_Beam(beam_size, limit, rules, state) for limit in limits]
    tokens, totals = state.start, torch.zeros(state.sentences, 1, device=state.device)
    for length in range(1, max(limits) + 1):
        distribution = state.log_probs(tokens)
        width, vocab_size = len(distribution) // state.sentences, distribution.shape[-1]
        endings = [node.ending(rules.lookback) for beam in beams for node in beam.rows(width)]
        last = [length >= beam.limit for beam in beams for _ in range(width)]
        own = rules.allowed(distribution, endings, last, length - 1)
        left = rules.restrict(own, distribution, length - 1)
        sums = (left.view(state.sentences, -1, vocab_size) + totals[:, :, None]).flatten(1)
        best, places = largest(sums, min(2 * beam_size, sums.shape[1]))
        values = distribution.view_as(sums).gather(1, places)
        table = torch.stack([best.double(), values.double(), places.double()], dim=-1).tolist()
        for beam, candidates in zip(beams, table, strict=True):
            if length == 1 or not beam.done:
                moment = beam.extend(candidates, vocab_size, last=length == beam.limit)
                if history is not None and beam is beams[0]:
                    history.append(moment)
        nodes = [(i * width, node) for i, beam in enumerate(beams) for node in beam.rows(beam_size)]
        step = Step(
            tuple(node.token_id for _, node in nodes),
            tuple(node.log_prob for _, node in nodes),
            tuple(first + node.parent_row for first, node in nodes),
            tuple(node.total for _, node in nodes),
            *considered(distribution, own, left),
        )
        yield step
        if all(beam.done for beam in beams):
            break
        state.select(torch.tensor(step.parents, device=state.device), same_source=length > 1)
        tokens = torch.tensor(step.token_ids, device=state.device)
        totals = torch.tensor(step.scores, device=state.device).view(state.sentences, -1)
    return tuple(beam.finished[0].hypothesis(rules) for beam in beams)


class NodeState(StrEnum):
    """Fate of a continuation that a step of the search looked at."""

    KEPT = "kept"
    """The next step extended it."""
    FINISHED = "finished"
    """It ended, and is among the best finished hypotheses."""
    OUTRANKED = "outranked"
    """Better continuations filled the beam."""
    DISPLACED = "displaced"
    """Better finished hypotheses took its place, or ended the search while it was still open."""
    CUT = "cut"
    """The length limit ended it; it is among the best hypotheses all the same."""


@dataclass(frozen=True)
class TreeNode:
    """One continuation that a step looked at."""

    token: str  # the piece
    token_id: int  # its id
    step: int  # the step of the output, from 0
    # place in ``SearchTree.nodes`` of the hypothesis that it extends; None at the first step
    parent: int | None
    log_prob: float  # log-probability of the token under the model, in nats
    # what the search summed up to here: Σ log p, unless the model's rules rescale or force a token
    total: float
    score: float  # what finished hypotheses are ranked by: see ``SearchRules.score``
    state: NodeState  # what became of it
    ended: bool  # whether the output ends here, with ``</s>`` or at the length limit
    won: bool  # whether it belongs to the best hypothesis


@dataclass(frozen=True)
class Output:
    """A whole output that another search wrote."""

    tokens: tuple[str, ...]  # the pieces
    token_ids: tuple[int, ...]  # their ids
    log_probs: tuple[float, ...]  # one per token, in nats, under the model
    score: float  # that of the tree

    @property
    def total(self) -> float:
        """Σ log p."""
        return sum(self.log_probs)


@dataclass(frozen=True, eq=False, repr=False)
class SearchTree(Brief):
    """A beam search, step by step."""

    # the 2 × ``beam_size`` best continuations of every step, best first; a step that found fewer, or whose
    # rules allowed fewer, has fewer
    nodes: tuple[TreeNode, ...]
    beam_size: int  # hypotheses that the search kept
    rules: SearchRules  # how hypotheses were scored
    # runs greedy search on the same sentence, with the same rules and changes; yields pieces
    run_greedy: Callable[[], Generator[str, None, Output]] = field(repr=False)

    @cached_property
    def greedy(self) -> Output:
        """Output of greedy search; it runs when first asked for, and may leave the tree."""
        return finish(self.run_greedy())

    def stream_greedy(self) -> Iterator[str]:
        """Runs greedy search piece by piece, so that a caller can leave it; `greedy` then keeps it."""
        if "greedy" not in vars(self):
            vars(self)["greedy"] = yield from self.run_greedy()

    @property
    def steps(self) -> int:
        """Number of steps that the search took."""
        return self.nodes[-1].step + 1

    @property
    def winner(self) -> int:
        """The last node of the best hypothesis."""
        return max(place for place, node in enumerate(self.nodes) if node.won)

    @property
    def hypotheses(self) -> tuple[int, ...]:
        """The last nodes of all outputs that ended in the beam, best score first."""
        lost = NodeState.OUTRANKED
        ended = [i for i, node in enumerate(self.nodes) if node.ended and node.state != lost]
        return tuple(sorted(ended, key=lambda i: -self.nodes[i].score))

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first step to this one."""
        at, backwards = self.nodes[node].parent, [node]
        while at is not None:
            backwards.append(at)
            at = self.nodes[at].parent
        return tuple(reversed(backwards))

    def token_ids(self, node: int) -> tuple[int, ...]:
        """The output up to a node."""
        return tuple(self.nodes[i].token_id for i in self.path(node))

    def along(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """The nodes along an output, as far as the search looked at it."""
        places = {(node.parent, node.token_id): i for i, node in enumerate(self.nodes)}
        path: list[int] = []
        for token_id in token_ids:
            place = places.get((path[-1] if path else None, token_id))
            if place is None:
                break
            path.append(place)
        return tuple(path)


def search_tree(
    history: Sequence[BeamStep],  # a finished search
    limit: int,  # most tokens of an output
    eos_id: int,
    beam_size: int,
    rules: SearchRules,
    pieces: Callable[[Sequence[int]], Sequence[str]],  # the pieces of ids
    run_greedy: Callable[[], Generator[str, None, Output]],
) -> SearchTree:
    """The tree of a search."""
    nodes = [node for moment in history for node in moment.offered]
    places = {id(node): place for place, node in enumerate(nodes)}
    finished, still_open = (
        {id(node) for node in part} for part in (history[-1].finished, history[-1].running)
    )
    won = {id(node) for node in history[-1].finished[0].chain()}

    def ended(node: Node) -> bool:
        return node.token_id == eos_id or node.length == limit

    def state(node: Node, in_beam: bool, extended: bool) -> NodeState:
        if not (in_beam if ended(node) else extended):
            return NodeState.OUTRANKED
        if ended(node):
            kept = NodeState.FINISHED if node.token_id == eos_id else NodeState.CUT
            return kept if id(node) in finished else NodeState.DISPLACED
        return NodeState.DISPLACED if id(node) in still_open else NodeState.KEPT

    states: list[NodeState] = []
    for moment in history:
        running = {id(node) for node in moment.running}
        states += [state(node, i < beam_size, id(node) in running) for i, node in enumerate(moment.offered)]
    tree = tuple(
        TreeNode(
            piece,
            node.token_id,
            node.length - 1,
            places.get(id(node.before)),
            node.log_prob,
            node.total,
            rules.score(node.total, node.length),
            fate,
            ended(node),
            id(node) in won,
        )
        for node, fate, piece in zip(nodes, states, pieces([each.token_id for each in nodes]), strict=True)
    )
    return SearchTree(tree, beam_size, rules, run_greedy)
