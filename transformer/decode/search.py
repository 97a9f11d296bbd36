"""Greedy search and sampling as iterators of steps. (Beam search: ``transformer.decode.beam``.)"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from torch import Tensor

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

Choose = Callable[[Tensor], Tensor]
"""(rows, vocab_size) log-probabilities → (rows,) tokens."""


def most_probable(log_probs: Tensor) -> Tensor:
    """Greedy search's choice: (rows, vocab_size) → (rows,)."""
    return largest(log_probs, 1)[1][:, 0]


def decode(
    request: DecodeRequest,  # the sentences
    max_length: Limit,  # most tokens per output, the end token included
    choose: Choose = most_probable,  # how to choose
    rules: SearchRules = FREE,  # forbidden or forced tokens
) -> Decoding:
    """Extends every sentence by one chosen token per step: greedy search or sampling."""
    tokens = request.start()
    ids: list[list[int]] = [[] for _ in tokens]
    log_probs: list[list[float]] = [[] for _ in tokens]
    limits = as_limits(max_length, request.sentences)

    def is_open(row: int) -> bool:
        return len(ids[row]) < limits[row] and request.config.eos_id not in ids[row][-1:]

    for count in itertools.count():
        open_rows = [row for row in range(len(ids)) if is_open(row)]
        if not open_rows:
            break
        distribution = request.log_probs(tokens)
        endings = [(request.config.bos_id, *row) for row in ids]
        last = [len(row) + 1 >= limit for row, limit in zip(ids, limits, strict=True)]
        own = rules.allowed(distribution, endings, last, count)
        allowed = rules.steered(own, distribution, count)
        tokens = choose(allowed)
        step = _step(distribution, own, allowed, tokens)
        for row in open_rows:
            ids[row].append(step.token_ids[row])
            log_probs[row].append(step.log_probs[row])
        yield step
    pairs = enumerate(zip(ids, log_probs, strict=True))
    return tuple(Hypothesis(tuple(w), tuple(v), (row,) * len(w), sum(v)) for row, (w, v) in pairs)


def _step(distribution: Tensor, own: Tensor, allowed: Tensor, tokens: Tensor) -> Step:
    chosen = tuple(distribution.gather(1, tokens[:, None])[:, 0].tolist())
    rows = tuple(range(len(tokens)))
    best = alternatives(distribution)
    forced, barred = forced_rows(distribution, allowed, best[0]), excluded(distribution, own, best[0])
    return Step(tuple(tokens.tolist()), chosen, rows, chosen, *best, forced, barred)
