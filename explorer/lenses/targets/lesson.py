"""A pair in training: a target shifted right, with its losses, also smoothed, and the model's own
output."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.lenses.targets.filters import most_probable
from transformer.text.kinds import PART
from transformer.training.loss import projected_loss
from transformer.translator import Translator


class Position(NamedTuple):
    """One position of a target."""

    read: str  # the piece that the decoder reads here: the target, shifted right by one
    token: str  # the piece that it should predict
    token_id: int  # its id
    loss: float  # −log p of that piece, in nats
    guess: str  # the most probable piece
    share: float  # its probability, from 0 to 1


class TrainingView(NamedTuple):
    """A pair as training shows it, and what the model writes on its own."""

    positions: tuple[Position, ...]  # the positions of the target, all from one pass
    features: (
        Tensor  # (target, d_model) The decoder's output at these positions, before the projection
    )
    free: tuple[str, ...]  # pieces of the greedy translation, which reads what it wrote before
    free_ids: tuple[int, ...]  # their ids
    loss: float  # cross-entropy per token, in nats
    parting: (
        int | None
    )  # the first step, from 0, at which that translation is not the target; or None


@torch.no_grad()
def lesson(translator: Translator, text: str, target: Sequence[int]) -> TrainingView:
    """Shows a model a pair as training does, without dropout; InputError for an empty or too long
    source."""
    config, model, device = translator.config, translator.model, translator.device
    source = torch.tensor([[*translator.ids(text), config.eos_id]], device=device)
    shifted = (config.bos_id, *target[:-1])
    features = model.features(source, torch.tensor([shifted], device=device))[0]
    log_probs = model.logits(features).float().log_softmax(-1)
    losses = -log_probs[range(len(target)), list(target)]
    best, guesses = log_probs.max(-1)
    read, tokens, guessed = (translator.pieces(ids) for ids in (shifted, target, guesses.tolist()))
    columns = read, tokens, target, losses.tolist(), guessed, best.exp().tolist()
    free = translator.translate(text, beam_size=1, capture=False)
    parting = next(
        (i for i, (a, b) in enumerate(zip_longest(target, free.target_ids)) if a != b), None
    )
    own = (free.target_tokens, free.target_ids)
    loss = float(losses.double().mean())
    return TrainingView(tuple(map(Position, *columns)), features, *own, loss, parting)


LISTED = 8
"""Most pieces listed for a position."""


class SmoothedPiece(NamedTuple):
    """One piece, or all others together, at a position."""

    token: str  # the piece; empty for all others
    share: float  # the model's probability p
    target: float  # the smoothed target's probability q
    bare: float  # the target's probability without smoothing
    gradient: float  # of the loss with respect to the logit: p − q
    bare_gradient: float  # the same without smoothing


class SmoothedPosition(NamedTuple):
    """The loss of one position with label smoothing."""

    epsilon: float  # share of the target that is spread over the vocabulary
    pieces: int  # size of the vocabulary V
    loss: float  # (1 − ε) · (−log p_y) + ε · spread, in nats, as the training step computes it
    bare_loss: float  # −log p_y, the loss without smoothing
    spread: float  # mean of −log p over the vocabulary
    entries: tuple[
        SmoothedPiece, ...
    ]  # the right piece and the largest gradients, most probable first
    right: int  # place of the right piece among them
    rest: SmoothedPiece  # all other pieces together
    # the least loss that any prediction can have, in nats: the entropy of the smoothed target
    floor: float


@torch.no_grad()
def smoothed(
    translator: Translator, lesson: TrainingView, position: int, epsilon: float
) -> SmoothedPosition:
    """The loss of a position (from 0) under a smoothing; ValueError unless it is from 0 to below
    1."""
    PART.check("The smoothing", epsilon)
    features = lesson.features[position : position + 1]
    right = lesson.positions[position].token_id
    weight, bias = translator.model.projection
    read = features * translator.model.config.output_scale
    loss = projected_loss(read, weight, torch.tensor([right], device=weight.device), epsilon, bias)
    log_probs = translator.model.logits(features).float().log_softmax(-1)[0]
    shares = log_probs.exp()
    pieces = len(log_probs)
    listed = most_probable(shares, LISTED, right)
    spread = epsilon / pieces  # of the target, on every piece
    hits = ((each, float(each == right)) for each in listed)
    rows = [[float(shares[each]), spread + (1 - epsilon) * hit, hit] for each, hit in hits]
    rows.append(
        [max(0.0, 1 - math.fsum(each)) for each in zip(*rows, strict=True)]
    )  # of all others
    named = zip((*translator.pieces(listed), ""), rows, strict=True)
    *entries, rest = (
        SmoothedPiece(token, p, q, bare, p - q, p - bare) for token, (p, q, bare) in named
    )
    losses = float(loss), -float(log_probs[right]), -float(log_probs.mean())
    top = 1 - epsilon + spread
    floor = -(pieces - 1) * spread * math.log(spread or 1) - top * math.log(top)
    return SmoothedPosition(
        epsilon, pieces, *losses, tuple(entries), listed.index(right), rest, floor
    )
