"""The next-token distribution of every step under temperature, top-k and top-p."""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer import interventions as do
from transformer.decoding import SearchRules, constrained
from transformer.requests import Request
from transformer.run import Translation
from transformer.sampling import Sampling
from transformer.translator import Translator

LISTED = 12
"""Most tokens listed for a step."""


class Filtered(NamedTuple):
    """One token of a step, before and after."""

    token: str  # the piece
    token_id: int  # its id
    before: float  # its probability under the model
    after: float  # the probability with which it is drawn


class FilteredStep(NamedTuple):
    """The distribution of one step, before and after."""

    tokens: tuple[
        Filtered, ...
    ]  # the most probable tokens and the token written, most probable first
    left: int  # how many tokens can be drawn at all
    mass: float  # the model's probability of all of these together


def most_probable(shares: Tensor, most: int, token_id: int) -> list[int]:
    """The ids of the largest probabilities (vocabulary,), in order; one of them is that of a
    token."""
    best: list[int] = shares.topk(min(most, len(shares))).indices.tolist()
    return best if token_id in best else [*best[:-1], token_id]


def _limit_and_rules(translator: Translator, translation: Translation) -> tuple[int, SearchRules]:
    """Most tokens of the output, and the rules of its search without its changes."""
    if translator.continues:
        return translator.config.max_positions, translator.rules
    dropped = [change for change in translation.interventions if isinstance(change, do.DropSource)]
    request = Request(translator, translation.source_text, interventions=dropped)
    return request.limit, request.rules


@torch.inference_mode()
def filtered_steps(
    translator: Translator, translation: Translation, sampling: Sampling
) -> tuple[FilteredStep, ...]:
    """The distributions from which a sampler draws at each step, without what rules and changes
    forbid."""
    assert translation.distributions is not None
    log_probs = translation.distributions()
    ids = (*translation.read_ids, *translation.target_ids[-1:])
    changes = translation.interventions
    limit, own = _limit_and_rules(translator, translation)
    rules = constrained(own, changes, translator.token_id, translator.config.eos_id)
    allowed = [
        rules.choices(row[None], [ids[: step + 1]], [step + 1 >= limit], step)[1]
        for step, row in enumerate(log_probs)
    ]
    steps = []
    together = zip(
        log_probs.exp(), sampling.filtered(torch.cat(allowed)), translation.target_ids, strict=True
    )
    for before, after, written in together:
        listed = most_probable(before, LISTED, written)
        left = after > 0
        shares = before[listed].tolist(), after[listed].tolist()
        tokens = tuple(map(Filtered, translator.pieces(listed), listed, *shares))
        steps.append(FilteredStep(tokens, int(left.sum()), float(before[left].sum())))
    return tuple(steps)
