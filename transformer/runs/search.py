"""The search of one call of a translator: greedy, with a beam, or by drawing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from transformer.decode.beam import beam_search
from transformer.decode.request import DecodeRequest
from transformer.decode.rules import SearchRules
from transformer.decode.sampling import Sampling
from transformer.decode.search import decode, most_probable
from transformer.decode.steps import Decoding, Limit
from transformer.decode.tree import Growing, Output, SearchTree
from transformer.runs.wording import Wording
from transformer.text.kinds import number

STEEPEST = 100.0
"""Largest magnitude of α, and largest k."""


class Search:
    """A way of looking for an output.

    Raises:
        ValueError: The options contradict each other.
    """

    def __init__(
        self,
        beam_size: int,  # 1 for greedy search, more for beam search
        sample: Sampling | None,  # draws tokens instead; only with a ``beam_size`` of 1
        rules: SearchRules,  # how to score, when to stop, and forbidden or forced tokens
        tree: bool,  # whether to keep the tree of the search
    ) -> None:
        if sample is not None and beam_size != 1:
            raise ValueError("Sampling follows one hypothesis; use it with beam_size=1.")
        if sample is not None and tree:
            raise ValueError("Sampling builds no tree; leave out tree=True or the sample.")
        self.beam_size, self.sample, self.rules, self._keeps = beam_size, sample, rules, tree
        self._watchers: tuple[Growing, ...] = ()

    @property
    def has_beam(self) -> bool:
        """Whether hypotheses change rows, so that only the best one is recorded, after the search."""
        return self.beam_size > 1 or self._keeps

    @property
    def method(self) -> str:
        """The name of the way: "greedy", "beam-4", "sample-7"."""
        if self.sample is not None:
            return f"sample-{self.sample.seed}"
        return "greedy" if self.beam_size == 1 else f"beam-{self.beam_size}"

    def decoding(self, request: DecodeRequest, limit: Limit) -> Decoding:
        """The steps, one after another."""
        if self._keeps:
            assert isinstance(limit, int)
            self._watchers = (Growing(limit, request.config.eos_id),)
        if self.has_beam or self.beam_size < 1:  # a beam refuses what is below 1
            return beam_search(request, limit, self.beam_size, self.rules, self._watchers)
        choose = most_probable if self.sample is None else self.sample.chooser()
        return decode(request, limit, choose, self.rules)

    def tree(
        self,
        again: Callable[[], DecodeRequest],  # makes the same request once more
        limit: int,  # most tokens of the output
        wording: Wording,  # the vocabulary
    ) -> SearchTree | None:
        """The tree of the finished search; None if nobody asked for it."""
        rules = self.rules

        def greedy() -> Generator[str, None, Output]:
            decoding = decode(again(), limit, rules=rules)
            while True:
                try:
                    yield wording.pieces(next(decoding).token_ids)[0]
                except StopIteration as stop:
                    (found,) = stop.value
                    break
            score = rules.score(sum(found.log_probs), len(found.log_probs))
            return Output(wording.pieces(found.token_ids), found.token_ids, found.log_probs, score)

        for watcher in self._watchers:
            return watcher.tree(self.beam_size, rules, wording.pieces, greedy)
        return None


def with_penalty(
    rules: SearchRules,  # the rules
    length_penalty: float | None = None,  # α of the score
    length_offset: int | None = None,  # k of the score, see ``SearchRules``
) -> SearchRules:
    """The rules with another score; None keeps that of the rules.

    Raises:
        ValueError: α or k is out of range.
    """
    penalty = rules.length_penalty if length_penalty is None else length_penalty
    offset = rules.length_offset if length_offset is None else length_offset
    number(-STEEPEST, STEEPEST).check("length_penalty", penalty)
    number(0, STEEPEST).check("length_offset", offset)
    return replace(rules, length_penalty=penalty, length_offset=offset)
