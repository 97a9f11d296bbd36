"""Beam search as an iterator of steps (Wu et al. 2016, simplified; scores as in the transformers library)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch

from transformer.config import ModelConfig
from transformer.decode.request import DecodeRequest
from transformer.decode.rules import FREE, SearchRules
from transformer.decode.steps import (
    Decoding,
    Hypothesis,
    Limit,
    Step,
    alternatives,
    as_limits,
    excluded,
    forced_rows,
    largest,
)


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
        tokens = [node.token_id for node in islice(self.chain(), count)]
        return tuple(reversed(tokens))

    def finish(self, rules: SearchRules) -> Hypothesis:
        """The hypothesis as a search returns it."""
        chain = [node for node in self.chain() if node.length][::-1]
        return Hypothesis(
            tuple(node.token_id for node in chain),
            tuple(node.log_prob for node in chain),
            tuple(node.parent_row for node in chain),
            rules.score(self.total, self.length),
        )


class Watcher(Protocol):
    """Is told what the beam of one sentence looks at."""

    def step(
        self,
        # the continuations that the step chose from, at most 2 × beam_size, best first
        offered: Sequence[Node],
        running: Sequence[Node],  # those that the next step extends
        finished: Sequence[Node],  # the best finished hypotheses so far, best first
    ) -> None:
        """One step is done."""


class Unwatched:
    """The watcher that keeps nothing."""

    def step(self, offered: Sequence[Node], running: Sequence[Node], finished: Sequence[Node]) -> None:
        """Keeps nothing."""


class _Beam:
    """The beam of one sentence: running and finished hypotheses, and when to stop."""

    def __init__(
        self, beam_size: int, limit: int, rules: SearchRules, config: ModelConfig, watcher: Watcher
    ) -> None:
        self.beam_size, self.limit, self.rules, self.eos_id = beam_size, limit, rules, config.eos_id
        self.watcher = watcher
        self.running = [Node(config.bos_id, 0.0, 0, 0.0, 0, None)]
        self.finished: list[Node] = []

    def endings(self, width: int) -> list[tuple[int, ...]]:
        """The last tokens of each row, as many as the rules need; rows that only fill the beam have none."""
        known = [node.ending(self.rules.lookback) for node in self.running]
        return known + [()] * (width - len(known))

    def extend(
        self,
        # total, log-probability of the new token, and the token's place in (row, token) flattened; rows after
        # the running ones only fill the beam's width, and a forbidden token has a total of -inf
        candidates: Iterable[tuple[float, float, int]],
        vocab_size: int,  # length of a row
        last: bool,  # whether the length limit ends every continuation
    ) -> None:
        """Takes the best 2 × beam_size continuations, best first."""
        offered = list(self._offered(candidates, vocab_size))
        ended = [node for node in offered[: self.beam_size] if last or node.token_id == self.eos_id]
        going_on = [node for node in offered if not last and node.token_id != self.eos_id]
        self.running = going_on[: self.beam_size]
        found = sorted(self.finished + ended, key=lambda node: -self._score(node))
        self.finished = found[: self.beam_size]
        self.watcher.step(offered, self.running, self.finished)

    def _offered(self, candidates: Iterable[tuple[float, float, int]], vocab_size: int) -> Iterator[Node]:
        for total, log_prob, place in candidates:
            row, token_id = divmod(place, vocab_size)
            if row < len(self.running) and total > -math.inf:
                parent = self.running[row]
                yield Node(token_id, log_prob, row, total, parent.length + 1, parent)

    @property
    def done(self) -> bool:
        """True if the search may end: see ``SearchRules.early_stopping``."""
        if not self.running:
            return True
        if len(self.finished) < self.beam_size:
            return False
        rules, when, best = self.rules, self.rules.early_stopping, self.running[0]
        length = self.limit if when == "never" and rules.length_penalty > 0 else best.length
        return when is True or rules.score(best.total, length) <= self._score(self.finished[-1])

    def _score(self, node: Node) -> float:
        return self.rules.score(node.total, node.length)


def beam_search(
    request: DecodeRequest,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    beam_size: int,  # hypotheses kept per sentence; 1 equals greedy search
    rules: SearchRules = FREE,  # how to score, when to stop, and forbidden or forced tokens
    watchers: Sequence[Watcher] = (),  # one for each sentence, or none at all
) -> Decoding:
    """Keeps the ``beam_size`` best hypotheses by ``SearchRules.score``; ValueError if not from 1 to 64."""
    if not 1 <= beam_size <= 64:
        raise ValueError(f"beam_size is {beam_size}; it must be from 1 to 64.")
    limits = as_limits(max_length, request.sentences)
    told = watchers or [Unwatched()] * request.sentences
    pairs = zip(limits, told, strict=True)
    beams = [_Beam(beam_size, limit, rules, request.config, watcher) for limit, watcher in pairs]
    tokens, totals = request.start(), torch.zeros(request.sentences, 1, device=request.device)
    for length in range(1, max(limits) + 1):
        distribution = request.log_probs(tokens)
        width, vocab_size = len(distribution) // request.sentences, distribution.shape[-1]
        endings = [ending for beam in beams for ending in beam.endings(width)]
        last = [length >= beam.limit for beam in beams for _ in range(width)]
        own = rules.allowed(distribution, endings, last, length - 1)
        allowed = rules.steered(own, distribution, length - 1)
        sums = (allowed.view(request.sentences, -1, vocab_size) + totals[:, :, None]).flatten(1)
        best, places = largest(sums, min(2 * beam_size, sums.shape[1]))
        chosen = distribution.view_as(sums).gather(1, places)
        table = torch.stack([best.double(), chosen.double(), places.double()], dim=-1).tolist()
        for beam, candidates in zip(beams, table, strict=True):
            if length == 1 or not beam.done:
                triples = ((total, log_prob, int(place)) for total, log_prob, place in candidates)
                beam.extend(triples, vocab_size, last=length == beam.limit)
        found = alternatives(distribution)
        forced, barred = forced_rows(distribution, allowed, found[0]), excluded(distribution, own, found[0])
        step = _beam_step(beams, beam_size, found, forced, barred)
        yield step
        if all(beam.done for beam in beams):
            break
        rows = torch.tensor(step.parents, device=tokens.device)
        request.select(rows, same_source=length > 1)
        tokens = torch.tensor(step.token_ids, device=tokens.device)
        totals = torch.tensor(_totals(beams, beam_size), device=tokens.device)
    return tuple(beam.finished[0].finish(rules) for beam in beams)


def _padded(beam: _Beam, beam_size: int) -> list[Node]:
    """The running hypotheses, filled up to the beam's width with dummies of probability 0."""
    spare = Node(beam.eos_id, -math.inf, 0, -math.inf, 1, None)
    return beam.running + [spare] * (beam_size - len(beam.running))


def _totals(beams: Iterable[_Beam], beam_size: int) -> list[list[float]]:
    return [[node.total for node in _padded(beam, beam_size)] for beam in beams]


def _beam_step(
    beams: Sequence[_Beam],
    beam_size: int,
    best: tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]],
    forced: tuple[bool, ...],
    barred: tuple[tuple[bool, ...], ...],
) -> Step:
    rows_before = len(best[0]) // len(beams)
    nodes = [(s, node) for s, beam in enumerate(beams) for node in _padded(beam, beam_size)]
    return Step(
        token_ids=tuple(node.token_id for _, node in nodes),
        log_probs=tuple(node.log_prob for _, node in nodes),
        parents=tuple(s * rows_before + node.parent_row for s, node in nodes),
        scores=tuple(node.total for _, node in nodes),
        alternative_ids=best[0],
        alternative_log_probs=best[1],
        forced=forced,
        excluded=barred,
    )
