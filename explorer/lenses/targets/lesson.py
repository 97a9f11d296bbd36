"""A pair in training: a target shifted right, with its losses, and the model's own output."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.lenses.targets.filters import most_probable
from transformer.config import Side
from transformer.run import Translation
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
    # (target, d_model) the decoder's output at these positions, before the projection
    features: Tensor
    free: tuple[str, ...]  # pieces of the greedy translation, which reads what it wrote before
    free_ids: tuple[int, ...]  # their ids
    loss: float  # cross-entropy per token, in nats
    # the first step, from 0, at which that translation is not the target; or None
    parting: int | None


@torch.no_grad()
def lesson(
    translator: Translator,
    text: str,  # the source; empty for a language model
    target: Sequence[int],  # ids that it should predict
    first: int | None = None,  # the id that is read before them; None for the start token
) -> TrainingView:
    """Shows a model a pair, or a text, as training does, without dropout.

    InputError for an empty or too long source.
    """
    config = translator.config
    shifted = (config.bos_id if first is None else first, *target[:-1])
    ids: dict[Side, Sequence[int]] = {"decoder": shifted}
    if not translator.continues:
        ids["encoder"] = (*translator.ids(text), config.eos_id)
    batch = {side: torch.tensor([row], device=translator.device) for side, row in ids.items()}
    features = translator.model.read(batch)[0]
    log_probs = translator.model.logits(features).float().log_softmax(-1)
    losses = -log_probs[range(len(target)), list(target)]
    best, guesses = log_probs.max(-1)
    fields = {
        "read": translator.pieces(shifted),
        "token": translator.pieces(target),
        "token_id": target,
        "loss": losses.tolist(),
        "guess": translator.pieces(guesses.tolist()),
        "share": best.exp().tolist(),
    }
    positions = [
        Position(**dict(zip(fields, values, strict=True)))
        for values in zip(*fields.values(), strict=True)
    ]
    free = _alone(translator, text, len(target), first)
    return TrainingView(
        positions=tuple(positions),
        features=features,
        free=free.target_tokens,
        free_ids=free.target_ids,
        loss=float(losses.double().mean()),
        parting=_parting(target, free.target_ids),
    )


def _alone(translator: Translator, text: str, n_target: int, first: int | None) -> Translation:
    """What the model writes by greedy search; without a source, as many tokens as the target.

    Without a start token, after the text's own first token, as far as that can be typed.
    """
    if not translator.continues:
        return translator.translate(text, beam_size=1, capture=False)
    begins = ""
    if not translator.config.starts_with_token:
        begins = translator.text([first or 0]) or " "
    return translator.translate(begins, beam_size=1, capture=False, max_length=n_target)


def _parting(target: Sequence[int], written: Sequence[int]) -> int | None:
    """The first step at which two targets differ; None if they do not."""
    pairs = enumerate(zip_longest(target, written))
    return next((step for step, (wanted, wrote) in pairs if wanted != wrote), None)


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
    # the right piece and the largest gradients, most probable first
    entries: tuple[SmoothedPiece, ...]
    right: int  # place of the right piece among them
    rest: SmoothedPiece  # all other pieces together
    # the least loss that any prediction can have, in nats: the entropy of the smoothed target
    floor: float


@torch.no_grad()
def smoothed(
    translator: Translator, lesson: TrainingView, position: int, epsilon: float
) -> SmoothedPosition:
    """The loss of a position (from 0) under a smoothing.

    ValueError unless that is from 0 to below 1.
    """
    PART.check("The smoothing", epsilon)
    features = lesson.features[position : position + 1]
    right = lesson.positions[position].token_id
    weight, bias = translator.model.projection
    read = features * translator.model.config.output_scale
    loss = projected_loss(read, weight, torch.tensor([right], device=weight.device), epsilon, bias)
    log_probs = translator.model.logits(features).float().log_softmax(-1)[0]
    n_pieces = len(log_probs)
    listed = most_probable(log_probs.exp(), LISTED, right)
    spread = epsilon / n_pieces  # of the target, on every piece
    rows = _smoothed_rows(log_probs.exp(), listed, right, epsilon)
    named = zip((*translator.pieces(listed), ""), rows, strict=True)
    *entries, rest = (_entry(token, *row) for token, row in named)
    top = 1 - epsilon + spread
    return SmoothedPosition(
        epsilon=epsilon,
        pieces=n_pieces,
        loss=float(loss),
        bare_loss=-float(log_probs[right]),
        spread=-float(log_probs.mean()),
        entries=tuple(entries),
        right=listed.index(right),
        rest=rest,
        floor=-(n_pieces - 1) * spread * math.log(spread or 1) - top * math.log(top),
    )


def _smoothed_rows(
    shares: Tensor, listed: Sequence[int], right: int, epsilon: float
) -> list[list[float]]:
    """The model's probability and the target's, with and without smoothing, of the listed pieces.

    The last row is that of all other pieces together.
    """
    spread = epsilon / len(shares)
    rows = []
    for token_id in listed:
        hit = float(token_id == right)
        rows.append([float(shares[token_id]), spread + (1 - epsilon) * hit, hit])
    rest = [max(0.0, 1 - math.fsum(column)) for column in zip(*rows, strict=True)]
    return [*rows, rest]


def _entry(token: str, share: float, target: float, bare: float) -> SmoothedPiece:
    """A piece with the gradients of its logit."""
    return SmoothedPiece(
        token=token,
        share=share,
        target=target,
        bare=bare,
        gradient=share - target,
        bare_gradient=share - bare,
    )
