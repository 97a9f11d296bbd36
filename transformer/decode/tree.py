"""The tree of a beam search: everything that it looked at, and what became of it.

Nothing is kept unless somebody asks. Then a search of n steps with a beam of k keeps at most 2 n k nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from transformer.decode.beam import Node
from transformer.decode.rules import SearchRules
from transformer.decode.steps import finish
from transformer.text.brief import Brief


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
        return tuple(reversed(list(self._back(node))))

    def token_ids(self, node: int) -> tuple[int, ...]:
        """The output up to a node."""
        return tuple(self.nodes[i].token_id for i in self.path(node))

    def along(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """The nodes along an output, as far as the search looked at it."""
        places = {(node.parent, node.token_id): i for i, node in enumerate(self.nodes)}
        found: list[int] = []
        for token_id in token_ids:
            place = places.get((found[-1] if found else None, token_id))
            if place is None:
                break
            found.append(place)
        return tuple(found)

    def _back(self, node: int) -> Iterator[int]:
        at: int | None = node
        while at is not None:
            yield at
            at = self.nodes[at].parent


class Growing:
    """Watches the beam of one sentence, and makes its tree at the end."""

    def __init__(self, limit: int, eos_id: int) -> None:
        self._limit, self._eos_id = limit, eos_id
        self._offered: list[Sequence[Node]] = []
        self._running: list[Sequence[Node]] = []
        self._finished: Sequence[Node] = ()

    def step(self, offered: Sequence[Node], running: Sequence[Node], finished: Sequence[Node]) -> None:
        """Keeps one step; see ``transformer.decode.beam.Watcher``."""
        self._offered.append(offered)
        self._running.append(running)
        self._finished = finished

    def tree(
        self,
        beam_size: int,  # hypotheses that it kept
        rules: SearchRules,  # how it scored
        pieces: Callable[[Sequence[int]], Sequence[str]],  # finds the pieces of ids
        run_greedy: Callable[[], Generator[str, None, Output]],  # runs greedy search
    ) -> SearchTree:
        """The tree of the search that was watched."""
        nodes = [node for offered in self._offered for node in offered]
        places: dict[int, int] = {id(node): place for place, node in enumerate(nodes)}
        states = list(self._states(beam_size))
        best = self._finished[0]
        won = {id(node) for node in best.chain()}
        tokens = pieces([node.token_id for node in nodes])
        found = (
            TreeNode(
                token,
                node.token_id,
                node.length - 1,
                places.get(id(node.before)),
                node.log_prob,
                node.total,
                rules.score(node.total, node.length),
                state,
                self._ended(node),
                id(node) in won,
            )
            for node, state, token in zip(nodes, states, tokens, strict=True)
        )
        return SearchTree(tuple(found), beam_size, rules, run_greedy)

    def _ended(self, node: Node) -> bool:
        return node.token_id == self._eos_id or node.length == self._limit

    def _states(self, beam_size: int) -> Iterator[NodeState]:
        best = {id(node) for node in self._finished}
        open_still = {id(node) for node in self._running[-1]}
        for offered, running in zip(self._offered, self._running, strict=True):
            kept = {id(node) for node in running}
            for rank, node in enumerate(offered):
                if self._ended(node):
                    yield self._ending(node, rank < beam_size, best)
                elif id(node) in kept:
                    yield NodeState.DISPLACED if id(node) in open_still else NodeState.KEPT
                else:
                    yield NodeState.OUTRANKED

    def _ending(self, node: Node, counted: bool, best: Collection[int]) -> NodeState:
        """Fate of a continuation that ended its output."""
        if not counted:
            return NodeState.OUTRANKED
        if id(node) not in best:
            return NodeState.DISPLACED
        return NodeState.FINISHED if node.token_id == self._eos_id else NodeState.CUT
