"""The logit lens: the next-token distribution computed from the decoder's stream after every layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.parts import embedding_trace
from transformer.audit import LOG_PROB_LIMIT
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Check


@dataclass(frozen=True)
class Guess:
    """A token with its probability, from 0 to 1."""

    token_id: int
    probability: float


@dataclass(frozen=True)
class LensRow:
    """The distribution that the output matrix gives after some layers (nostalgebraist 2020)."""

    layers: int  # number of decoder layers that the stream has passed; 0 at the decoder's input
    best: tuple[Guess, ...]  # the most probable tokens, best first
    chosen: float  # probability of the token that the model finally chose
    rank: int  # rank of that token in the distribution, from 1


def logit_lens(
    model: Network,  # the model
    translation: Translation,  # a translation with the residual stream recorded
    step: int,  # decode step, from 0
    count: int = 5,  # number of tokens per row
) -> tuple[tuple[LensRow, ...], tuple[Check, ...]]:
    """The next-token distribution of the decoder's input and of its stream after every layer, and the checks.

    The final norm (pre-norm only) and the output matrix are applied to each layer's stream as if that
    layer were the last. Only the last row is the model's own distribution; the check compares it with the
    decoded one.
    """
    decoder, written = model.stack("decoder"), translation.steps[step]
    stack = translation.config.stacks["decoder"]
    streams = [embedding_trace(translation, "decoder").input[step]]
    streams += [translation.stream(end).stream[step] for end in stack.ends()]
    with torch.inference_mode():
        stacked = torch.stack(streams).to(device=model.embedding.weight.device, dtype=decoder.dtype)
        log_probs = model.logits(decoder.final_norm(stacked)).float().log_softmax(-1).cpu()
    rows = tuple(_lens_row(i, row, written.token_id, count) for i, row in enumerate(log_probs))
    own = [(written.token_id, written.log_prob), *((a.token_id, a.log_prob) for a in written.alternatives)]
    worst = max(abs(float(log_probs[-1, token]) - value) for token, value in own)
    limit = LOG_PROB_LIMIT[model.embedding.weight.dtype]
    return rows, (Check("last row of the lens", worst, limit),)


def _lens_row(layers: int, log_probs: Tensor, chosen: int, count: int) -> LensRow:
    values, ids = log_probs.topk(min(count, len(log_probs)))
    best = tuple(
        Guess(token, float(np.exp(value))) for token, value in zip(ids.tolist(), values.tolist(), strict=True)
    )
    rank = int((log_probs > log_probs[chosen]).sum()) + 1
    return LensRow(layers, best, float(log_probs[chosen].exp()), rank)
