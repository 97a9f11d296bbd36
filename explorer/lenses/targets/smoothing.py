"""The loss of one position under label smoothing, and its gradient (section 5.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.lenses.targets.lesson import TrainingView
from transformer.text.kinds import PART
from transformer.training.loss import projected_loss
from transformer.translator import Translator

LISTED = 8
"""Most pieces listed for a position."""


@dataclass(frozen=True)
class SmoothedPiece:
    """One piece, or all others together, at a position."""

    token: str  # the piece; empty for all others
    share: float  # the model's probability p
    target: float  # the smoothed target's probability q
    bare: float  # the target's probability without smoothing

    @property
    def gradient(self) -> float:
        """The gradient of the loss with respect to the logit: p − q."""
        return self.share - self.target

    @property
    def bare_gradient(self) -> float:
        """The same without smoothing."""
        return self.share - self.bare


@dataclass(frozen=True)
class SmoothedPosition:
    """The loss of one position with label smoothing."""

    epsilon: float  # share of the target that is spread over the vocabulary
    pieces: int  # size of the vocabulary V
    loss: float  # (1 − ε) · (−log p_y) + ε · spread, in nats, as the training step computes it
    bare_loss: float  # −log p_y, the loss without smoothing
    spread: float  # mean of −log p over the vocabulary
    # the right piece, and the largest entries of the gradient, most probable first
    entries: tuple[SmoothedPiece, ...]
    right: int  # place of the right piece among them
    rest: SmoothedPiece  # all other pieces together

    @property
    def floor(self) -> float:
        """The least loss that any prediction can have, in nats: the entropy of the smoothed target."""
        other = self.epsilon / self.pieces
        right = 1 - self.epsilon + other
        others = -(self.pieces - 1) * other * math.log(other) if other else 0.0
        return others - right * math.log(right)


@torch.no_grad()
def smoothed(translator: Translator, lesson: TrainingView, position: int, epsilon: float) -> SmoothedPosition:
    """The loss of a position (from 0) under a smoothing; ValueError unless it is from 0 to below 1."""
    PART.check("The smoothing", epsilon)
    features, right = lesson.features[position : position + 1], lesson.positions[position].token_id
    weight, bias = translator.model.projection
    read = features * translator.model.config.output_scale
    loss = projected_loss(read, weight, torch.tensor([right], device=weight.device), epsilon, bias)
    log_probs = translator.model.logits(features).float().log_softmax(-1)[0]
    target = torch.full_like(log_probs, epsilon / len(log_probs))
    target[right] += 1 - epsilon
    listed = _listed(log_probs.exp(), right)
    entries = _entries(translator, log_probs.exp(), target, listed, right)
    sums = [math.fsum(getattr(each, name) for each in entries) for name in ("share", "target", "bare")]
    return SmoothedPosition(
        epsilon,
        len(log_probs),
        float(loss),
        -float(log_probs[right]),
        -float(log_probs.mean()),
        entries,
        listed.index(right),
        SmoothedPiece("", *(max(0.0, 1 - each) for each in sums)),
    )


def _listed(shares: Tensor, right: int) -> list[int]:
    """Ids of the most probable pieces and of the right one, most probable first."""
    best: list[int] = shares.topk(min(LISTED, len(shares))).indices.tolist()
    return best if right in best else [*best[:-1], right]


def _entries(
    translator: Translator, shares: Tensor, target: Tensor, listed: list[int], right: int
) -> tuple[SmoothedPiece, ...]:
    return tuple(
        SmoothedPiece(piece, float(shares[i]), float(target[i]), float(i == right))
        for piece, i in zip(translator.pieces(listed), listed, strict=True)
    )
