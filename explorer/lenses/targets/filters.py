"""The next-token distribution of every step under temperature, top-k and top-p."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer import interventions as do
from transformer.decoding import constrained
from transformer.requests import Request
from transformer.run import Translation
from transformer.sampling import Sampling
from transformer.translator import Translator

LISTED = 12
"""Most tokens listed for a step."""


@dataclass(frozen=True)
class Filtered:
    """One token of a step, before and after."""

    token: str  # the piece
    token_id: int  # its id
    before: float  # its probability under the model
    after: float  # the probability with which it is drawn


@dataclass(frozen=True)
class FilteredStep:
    """The distribution of one step, before and after."""

    tokens: tuple[Filtered, ...]  # the most probable tokens and the token written, most probable first
    left: int  # how many tokens can be drawn at all
    mass: float  # the model's probability of all of these together


@torch.inference_mode()
def filtered_steps(
    translator: Translator, translation: Translation, sampling: Sampling
) -> tuple[FilteredStep, ...]:
    """The distributions from which a sampler draws at each step, without what rules and changes forbid."""
    assert translation.distributions is not None
    log_probs = translation.distributions()
    ids, changes = (translator.config.bos_id, *translation.target_ids), translation.interventions
    dropped = [each for each in changes if isinstance(each, do.DropSource)]
    request = Request(translator, translation.source_text, interventions=dropped)
    rules = constrained(request.rules, changes, translator.token_id, translator.config.eos_id)
    allowed = torch.cat(
        [
            rules.choices(row[None], [ids[: step + 1]], [step + 1 >= request.limit], step)[1]
            for step, row in enumerate(log_probs)
        ]
    )
    after = sampling.filtered(allowed)
    return tuple(
        _step(translator, before, drawn, token_id)
        for before, drawn, token_id in zip(log_probs.exp(), after, translation.target_ids, strict=True)
    )


def _step(translator: Translator, before: Tensor, after: Tensor, written: int) -> FilteredStep:
    best = before.topk(min(LISTED, len(before))).indices.tolist()
    listed = best if written in best else [*best[:-1], written]
    left = after > 0
    pieces = translator.pieces(listed)
    tokens = tuple(
        Filtered(piece, token_id, float(before[token_id]), float(after[token_id]))
        for piece, token_id in zip(pieces, listed, strict=True)
    )
    return FilteredStep(tokens, int(left.sum()), float(before[left].sum()))
