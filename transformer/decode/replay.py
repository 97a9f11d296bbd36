"""A given output, run through the decoder once more."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.attention import Cache
from transformer.decode.request import numbers
from transformer.hooks import Hooks
from transformer.model import EncoderDecoder


@torch.inference_mode()
def replay(
    model: EncoderDecoder,
    memory: Tensor,
    token_ids: Sequence[int],
    *,
    cache: Cache | None = None,
    hooks: Hooks | None = None,
) -> Tensor:
    """(target, vocab_size) log-probabilities at every position of a given output; arguments as ``reread``.

    OverflowedError if the model's numbers overflow.
    """
    features = reread(model, memory, token_ids, cache=cache, hooks=hooks)
    return numbers(model.logits(features).float().log_softmax(-1))


@torch.inference_mode()
def reread(
    model: EncoderDecoder,  # the model
    memory: Tensor,  # (1, source, d_model) encoder output of the sentence, unpadded
    token_ids: Sequence[int],  # the output; the decoder reads it shifted right
    *,
    # a new cache, which may already hold the sentence's cross-attention keys and values
    cache: Cache | None = None,
    hooks: Hooks | None = None,  # who watches
) -> Tensor:
    """(target, d_model) the decoder's output for a given output, in one teacher-forced pass.

    Because of the causal mask, every step gets the same attention as in step-by-step decoding.
    """
    inputs = torch.tensor([[model.config.bos_id, *token_ids[:-1]]], device=memory.device)
    return model.decode(inputs, memory, cache=cache, hooks=hooks)[0]
