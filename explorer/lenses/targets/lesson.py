"""A pair in training: a target shifted right, with its losses, and the model's own output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.translator import Translator


@dataclass(frozen=True)
class Position:
    """One position of a target."""

    read: str  # the piece that the decoder reads here: the target, shifted right by one
    token: str  # the piece that it should predict
    token_id: int  # its id
    loss: float  # −log p of that piece, in nats
    guess: str  # the most probable piece
    share: float  # its probability, from 0 to 1


@dataclass(frozen=True, eq=False)
class TrainingView:
    """A pair as training shows it, and what the model writes on its own."""

    positions: tuple[Position, ...]  # the positions of the target, all from one pass
    features: Tensor  # (target, d_model) The decoder's output at these positions, before the projection
    # pieces of the greedy translation, each step of which reads what the step before wrote
    free: tuple[str, ...]
    free_ids: tuple[int, ...]  # their ids

    @property
    def loss(self) -> float:
        """Cross-entropy per token, in nats."""
        return sum(each.loss for each in self.positions) / len(self.positions)

    @property
    def parting(self) -> int | None:
        """The first step (from 0) at which the greedy translation is not the target; or None."""
        target = tuple(each.token_id for each in self.positions)
        if target == self.free_ids:
            return None
        pairs = zip(target, self.free_ids, strict=False)
        shorter = min(len(target), len(self.free_ids))
        return next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)


@torch.no_grad()
def lesson(translator: Translator, text: str, target: Sequence[int]) -> TrainingView:
    """Shows a model a pair as training does, without dropout; InputError for an empty or too long source."""
    config, model, device = translator.config, translator.model, translator.device
    source = torch.tensor([[*translator.ids(text), config.eos_id]], device=device)
    shifted = (config.bos_id, *target[:-1])
    features = model.features(source, torch.tensor([shifted], device=device))[0]
    log_probs = model.logits(features).float().log_softmax(-1)
    losses = -log_probs[range(len(target)), list(target)]
    best, guesses = log_probs.max(-1)
    read, tokens, guessed = (translator.pieces(ids) for ids in (shifted, target, guesses.tolist()))
    columns = (read, tokens, target, losses.tolist(), guessed, best.exp().tolist())
    free = translator.translate(text, beam_size=1, capture=False)
    positions = tuple(Position(*each) for each in zip(*columns, strict=True))
    return TrainingView(positions, features, free.target_tokens, free.target_ids)
