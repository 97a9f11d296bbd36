"""Beam search as an iterator of steps (Wu et al. 2016, simplified; scores as in the transformers library).

Its tree is everything that it looked at, and what became of it. It is kept only if somebody asks. Then a
search of n steps with a beam of k keeps at most 2 n k nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import torch

from transformer.decoding import (
    FREE,
    NEVER,
    Decoding,
    DecodingState,
    Limit,
    Node,
    NodeState,
    SearchRules,
    Step,
    finish,
    largest,
    look,
)
from transformer.text.brief import Brief


class _Beam:
    """The beam of one sentence: running and finished hypotheses, and whether the search may end."""

    def __init__(self, beam_size: int, limit: int, rules: SearchRules, state: DecodingState) -> None:
        self.beam_size, self.limit, self.rules, self.eos_id = beam_size, limit, rules, state.config.eos_id
        self.running = [Node(state.config.bos_id)]
        self.finished, self.done = list[Node](), False

    def rows(self, width: int) -> list[Node]:
        """The running hypotheses, filled up to the beam's width with dummies of probability 0."""
        spare = Node(self.eos_id, NEVER, 0, NEVER, 1)
        return self.running + [spare] * (width - len(self.running))

    def extend(
        self,
        # total, log-probability of the new token, and the token's place in (row, token) flattened; rows after
        # the running ones only fill the beam's width, and a forbidden token has a total of -inf
        candidates: Iterable[tuple[float, float, float]],
        vocab_size: int,  # length of a row
        length: int,  # tokens of every continuation
    ) -> list[Node]:
        """Takes the best 2 × beam_size continuations, best first, and returns those that can be."""
        rules, nodes = self.rules, list[Node]()
        for total, log_prob, place in candidates:
            row, token = divmod(int(place), vocab_size)
            if row < len(self.running) and total > NEVER:
                ended, score = token == self.eos_id or length == self.limit, rules.score(total, length)
                before = self.running[row]
                nodes.append(Node(token, log_prob, row, total, length, before, score, ended))
        for node in (ended := [node for node in nodes[: self.beam_size] if node.ended]):
            node.state = NodeState.FINISHED if node.token_id == self.eos_id else NodeState.CUT
        ranked = sorted(self.finished + ended, key=lambda node: -node.score)
        self.finished = ranked[: self.beam_size]
        self.running = [node for node in nodes if not node.ended][: self.beam_size]
        self.done = self._done(length)
        for node in self.running:
            node.state = NodeState.DISPLACED if self.done else NodeState.KEPT
        for node in ranked[self.beam_size :]:
            node.state = NodeState.DISPLACED
        return nodes

    def _done(self, length: int) -> bool:
        """True if the search may end: see ``SearchRules.early_stopping``."""
        rules, when = self.rules, self.rules.early_stopping
        if not self.running or when is True or len(self.finished) < self.beam_size:
            return not self.running or len(self.finished) == self.beam_size
        length = self.limit if when == "never" and rules.length_penalty > 0 else length
        return rules.score(self.running[0].total, length) <= self.finished[-1].score


def beam_search(
    state: DecodingState,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    beam_size: int,  # hypotheses kept per sentence; 1 equals greedy search
    rules: SearchRules = FREE,  # how to score, when to stop, and forbidden or forced tokens
    history: list[Node]
    | None = None,  # gets all that was looked at for the first sentence, for ``search_tree``
) -> Decoding:
    """Keeps the ``beam_size`` best hypotheses by ``SearchRules.score``; ValueError if not from 1 to 64."""
    if not 1 <= beam_size <= 64:
        raise ValueError(f"beam_size is {beam_size}; it must be from 1 to 64.")
    limits = [max_length] * state.sentences if isinstance(max_length, int) else max_length
    beams = [_Beam(beam_size, limit, rules, state) for limit in limits]
    tokens, width, length = state.start, 1, 0
    while not all(beam.done for beam in beams):
        length += 1
        rows = [node for beam in beams for node in beam.rows(width)]
        row_limits = [beam.limit for beam in beams for _ in range(width)]
        distribution, left, candidates = look(state, tokens, rows, row_limits, rules, length)
        totals = torch.tensor([node.total for node in rows], device=state.device)
        sums = (left + totals[:, None]).view(state.sentences, -1)
        best, places = largest(sums, min(2 * beam_size, sums.shape[1]))
        values = distribution.view_as(sums).gather(1, places)
        table = torch.stack([best.double(), values.double(), places.double()], dim=-1).tolist()
        for beam, continuations in zip(beams, table, strict=True):
            if not beam.done:
                nodes = beam.extend(continuations, distribution.shape[1], length)
                if history is not None and beam is beams[0]:
                    history += nodes
        step = Step(tuple(node for beam in beams for node in beam.rows(beam_size)), candidates)
        yield step
        parents = [i // beam_size * width + node.parent_row for i, node in enumerate(step.nodes)]
        state.select(torch.tensor(parents, device=state.device), same_source=length > 1)
        tokens = torch.tensor([node.token_id for node in step.nodes], device=state.device)
        width = beam_size
    return tuple(beam.finished[0].hypothesis() for beam in beams)


@dataclass(frozen=True)
class TokenNode:
    """A token of a tree of outputs."""

    token: str  # the piece
    token_id: int  # its id
    step: int  # the step of the output, from 0
    parent: int | None  # place in the tree of the token before it; None at the first step
    log_prob: float  # log-probability of the token under the model, in nats
    # what the search summed up to here: Σ log p, unless the model's rules rescale or force a token
    total: float


N = TypeVar("N", bound=TokenNode)


@dataclass(frozen=True, eq=False, repr=False)
class TokenTree(Brief, Generic[N]):
    """Outputs of one text as a tree of their tokens."""

    nodes: tuple[N, ...]  # step by step

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


@dataclass(frozen=True)
class TreeNode(TokenNode):
    """One continuation that a step looked at."""

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
class SearchTree(TokenTree[TreeNode]):
    """A beam search: the 2 × ``beam_size`` best continuations of every step, best first.

    A step that found fewer, or whose rules allowed fewer, has fewer.
    """

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


def search_tree(
    history: Sequence[Node],  # all that a finished search looked at
    beam_size: int,
    rules: SearchRules,
    pieces: Callable[[Sequence[int]], Sequence[str]],  # the pieces of ids
    run_greedy: Callable[[], Generator[str, None, Output]],
) -> SearchTree:
    """The tree of a search."""
    places = {id(node): place for place, node in enumerate(history)}
    finished = (node for node in history if node.state in (NodeState.FINISHED, NodeState.CUT))
    won = {id(node) for node in max(finished, key=lambda node: node.score).chain()}
    nodes = tuple(
        TreeNode(
            piece,
            node.token_id,
            node.length - 1,
            places.get(id(node.before)),
            node.log_prob,
            node.total,
            node.score,
            node.state,
            node.ended,
            id(node) in won,
        )
        for node, piece in zip(history, pieces([node.token_id for node in history]), strict=True)
    )
    return SearchTree(nodes, beam_size, rules, run_greedy)
