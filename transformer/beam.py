"""Beam search as an iterator of steps (Wu et al. 2016, simplified; scores as in the transformers
library).

Its tree is everything that it looked at, and what became of it. It is kept only if somebody asks.
Then a search of n steps with a beam of k keeps at most 2 n k nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from transformer.decoding import (
    FREE,
    NEVER,
    Decoding,
    DecodingState,
    Hypothesis,
    Limit,
    Node,
    NodeState,
    SearchRules,
    candidates_of,
    given_nodes,
    largest,
    limits_of,
)


class _Beam:
    """The beam of one sentence: running and finished hypotheses, and whether the search may end."""

    def __init__(
        self, *, beam_size: int, limit: int, rules: SearchRules, eos_id: int, start: int
    ) -> None:
        self.beam_size = beam_size
        self.limit = limit
        self.rules = rules
        self.eos_id = eos_id
        self.ends = {eos_id, *rules.other_ends}
        self.running = [Node(start)]
        self.finished = list[Node]()
        self.done = False
        self.given = 0.0  # Σ log p of a prompt, which counts in no score, nor do its tokens

    def rows(self, width: int) -> list[Node]:
        """The running hypotheses, filled up to the beam's width with dummies of probability 0."""
        spare = Node(self.eos_id, 0, NEVER, NEVER)
        return self.running + [spare] * (width - len(self.running))

    def extend(self, table: Iterable[Sequence[float]], pieces: int, step: int) -> list[Node]:
        """Takes the best 2 × beam_size continuations, best first, and returns those that can be.

        Each is a total, the log-probability of the new token, and its place in (row, piece)
        flattened. Rows after the running ones only fill the beam's width; a forbidden token has a
        total of -inf.
        """
        nodes = list[Node]()
        length = step + 1
        for total, log_prob, place in table:
            row, token = divmod(int(place), pieces)
            if row < len(self.running) and total > NEVER:
                ends = step >= self.rules.n_given and token in self.ends
                ended = ends or length == self.limit
                score = self._score(total, length)
                nodes.append(
                    Node(
                        token_id=token,
                        step=step,
                        log_prob=log_prob,
                        total=total,
                        before=self.running[row],
                        parent_row=row,
                        ended=ended,
                        score=score,
                    )
                )
        newly = [node for node in nodes[: self.beam_size] if node.ended]
        for node in newly:
            node.state = NodeState.FINISHED if node.token_id in self.ends else NodeState.CUT
        ranked = sorted(self.finished + newly, key=lambda node: -node.score)
        self.finished = ranked[: self.beam_size]
        for node in ranked[self.beam_size :]:
            node.state = NodeState.DISPLACED
        self.running = [node for node in nodes if not node.ended][: self.beam_size]
        if length == self.rules.n_given:
            self.given = self.running[0].total
        self.done = self._is_done(length)
        for node in self.running:
            node.state = NodeState.DISPLACED if self.done else NodeState.KEPT
        return nodes

    def _is_done(self, length: int) -> bool:
        """Whether no running hypothesis can rank above a finished one any more."""
        when = self.rules.early_stopping
        if not self.running:
            return True
        if len(self.finished) < self.beam_size:
            return False
        if when is True:
            return True
        longest = when == "never" and self.rules.length_penalty > 0
        at = self.limit if longest else length
        return self._score(self.running[0].total, at) <= self.finished[-1].score

    def _score(self, total: float, length: int) -> float:
        """The score of an output, of what was written after a prompt."""
        written = length - self.rules.n_given
        if written < 1:  # within the prompt, where nothing ends
            return total
        return self.rules.score(total - self.given, written)


def _extend(
    beams: Sequence[_Beam], state: DecodingState, tokens: Tensor, rules: SearchRules, step: int
) -> list[Node]:
    """Extends every beam by one step; what it looks at for the first sentence."""
    width = len(tokens) // state.sentences
    rows = [node for beam in beams for node in beam.rows(width)]
    distribution = state.log_probs(tokens)
    endings = [node.ending(rules.lookback) for node in rows]
    last = [step + 1 >= beam.limit for beam in beams for _ in range(width)]
    (allowed, left) = rules.choices(distribution, endings, last, step)
    candidates = candidates_of(distribution, allowed, left)
    table = _continuations(beams[0].beam_size, state, distribution, left, rows)
    nodes_of = list[list[Node]]()
    for i, (beam, continuations) in enumerate(zip(beams, table, strict=True)):
        nodes = [] if beam.done else beam.extend(continuations, distribution.shape[1], step)
        for node in nodes:
            node.candidates = candidates[i * width + node.parent_row]
        nodes_of.append(nodes)
    return nodes_of[0]


def _continuations(
    beam_size: int, state: DecodingState, distribution: Tensor, left: Tensor, rows: Sequence[Node]
) -> list[list[list[float]]]:
    """Of each sentence, the best continuations as ``_Beam.extend`` takes them."""
    totals = torch.tensor([[node.total] for node in rows], device=state.device)
    sums = (left + totals).view(state.sentences, -1)
    (best, places) = largest(sums, min(2 * beam_size, sums.shape[1]))
    log_probs = distribution.view_as(sums).gather(1, places)
    columns = [best.double(), log_probs.double(), places.double()]
    table: list[list[list[float]]] = torch.stack(columns, dim=-1).tolist()
    return table


def beam_search(
    state: DecodingState,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    beam_size: int,  # hypotheses kept per sentence; 1 equals greedy search
    rules: SearchRules = FREE,  # how to score, when to stop, and forbidden or forced tokens
    history: list[Node] | None = None,  # gets all that it looks at for the first sentence
) -> Decoding:
    """Keeps the ``beam_size`` best hypotheses by ``SearchRules.score``; ValueError if not from 1 to
    64."""
    if not 1 <= beam_size <= 64:
        raise ValueError(f"beam_size is {beam_size}; it must be from 1 to 64.")
    limits = limits_of(max_length, state.sentences)
    eos_id = state.config.eos_id
    beams = [
        _Beam(beam_size=beam_size, limit=limit, rules=rules, eos_id=eos_id, start=start)
        for limit, start in zip(limits, state.start.tolist(), strict=True)
    ]
    tokens = state.start
    step = 0
    for node in given_nodes(state, rules):
        beams[0].running = [node]
        beams[0].given = node.total
        tokens = torch.tensor([node.token_id], device=state.device)
        step += 1
        if history is not None:
            history.append(node)
        yield (node,)
    while True:
        width = len(tokens) // state.sentences
        first_nodes = _extend(beams, state, tokens, rules, step)
        if history is not None:
            history += first_nodes
        if any(beam.done and not beam.finished for beam in beams):
            raise ValueError(
                f"Nothing can be written at step {step + 1}: all that is allowed has probability 0."
            )
        if all(beam.done for beam in beams):
            yield tuple(beam.finished[0] for beam in beams)
            return
        rows = [node for beam in beams for node in beam.rows(beam_size)]
        yield tuple(rows)
        parents = [i // beam_size * width + node.parent_row for i, node in enumerate(rows)]
        state.select(torch.tensor(parents, device=state.device), same_source=step > 0)
        tokens = torch.tensor([node.token_id for node in rows], device=state.device)
        step = step + 1


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """A token of a tree of outputs."""

    token_id: int
    token: str  # its piece
    step: int  # of the output, from 0
    parent: int | None  # place in the tree of the token before it; None at the first step
    log_prob: float  # in nats, under the model
    total: float  # what the search summed up to here, see ``Node``
    score: float = 0.0  # what finished hypotheses are ranked by; else ``total``
    parent_row: int = 0  # the row of the search that it was appended to
    ended: bool = False  # whether the output ends here, with ``</s>`` or at the length limit
    state: NodeState = NodeState.OUTRANKED  # what became of it in a beam
    won: bool = False  # whether it belongs to the best hypothesis
    samples: tuple[int, ...] = ()  # in a tree of samples, which of them have it, from 0


@dataclass(frozen=True, eq=False, repr=False)
class TokenTree:
    """Outputs of one text as a tree of their tokens."""

    nodes: tuple[TreeNode, ...]  # step by step

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first step to this one."""
        path = list[int]()
        place: int | None = node
        while place is not None:
            path.append(place)
            place = self.nodes[place].parent
        return tuple(reversed(path))

    def token_ids(self, node: int) -> tuple[int, ...]:
        """The output up to a node."""
        return tuple(self.nodes[i].token_id for i in self.path(node))

    def along(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """The nodes along an output, as far as the tree has it."""
        places = {(node.parent, node.token_id): i for i, node in enumerate(self.nodes)}
        path = list[int]()
        for token_id in token_ids:
            place = places.get((path[-1] if path else None, token_id))
            if place is None:
                break
            path.append(place)
        return tuple(path)


@dataclass(frozen=True, eq=False, repr=False)
class SearchTree(TokenTree):
    """A beam search: the 2 × ``beam_size`` best continuations of every step, best first.

    A step that found fewer, or whose rules allowed fewer, has fewer.
    """

    beam_size: int  # hypotheses that the search kept
    rules: SearchRules  # how hypotheses were scored
    # runs greedy search on the same sentence, with the same rules and changes; yields its tokens,
    # each with its piece
    run_greedy: Callable[[], Iterator[tuple[Node, str]]] = field(repr=False)

    @cached_property
    def greedy(self) -> Hypothesis:
        """Output of greedy search, which runs when first asked for and may leave the tree."""
        nodes, pieces = zip(*self.run_greedy(), strict=True)
        return nodes[-1].hypothesis(pieces)

    def stream_greedy(self) -> Iterator[str]:
        """Runs greedy search piece by piece, so that a caller can leave it; `greedy` then keeps
        it."""
        if "greedy" in vars(self):
            return
        pieces = list[str]()
        for node, piece in self.run_greedy():
            pieces.append(piece)
            yield piece
            if node.ended:
                vars(self)["greedy"] = node.hypothesis(pieces)

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
    run_greedy: Callable[[], Iterator[tuple[Node, str]]],
) -> SearchTree:
    """The tree of a search, made of its nodes."""
    finished = (node for node in history if node.state in (NodeState.FINISHED, NodeState.CUT))
    won = {id(node) for node in max(finished, key=lambda node: node.score).chain()}
    places = {id(node): place for place, node in enumerate(history)}
    names = pieces([node.token_id for node in history])
    nodes = tuple(
        TreeNode(
            token_id=node.token_id,
            token=name,
            step=node.step,
            parent=places.get(id(node.before)),
            log_prob=node.log_prob,
            total=node.total,
            score=node.score,
            parent_row=node.parent_row,
            ended=node.ended,
            state=node.state,
            won=id(node) in won,
        )
        for node, name in zip(history, names, strict=True)
    )
    return SearchTree(nodes, beam_size, rules, run_greedy)
