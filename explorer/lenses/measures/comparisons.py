"""Two measures often used for the same questions as ALTI+: attention rollout, and value zeroing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.inside import memory
from explorer.lenses.measures.stream import UnmeasuredError, recorded, written
from transformer.attention import AttentionMask
from transformer.config import AttentionKind
from transformer.hooks import At, Edit, Hooks
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array

_AT_ONCE = 2**22
"""Numbers of the streams that run at once."""


def rollout(run: Translation) -> tuple[Array, Array]:
    """Attention rollout (Abnar and Zuidema 2020): ½ for the residual of every block, ½ by mean weights.

    The half is an assumption. As every row of weights sums to 1, the source gets 1 − 2⁻ᴸ of every step of a
    decoder with L layers, whatever the sentence is: this cannot say how much the source mattered.

    Returns:
        (steps, source) and (steps, steps) float32 shares, as those of ``alti``.

    Raises:
        NotCapturedError: Attention was not recorded.
        UnmeasuredError: The decoder has no self-attention, or something was changed in the run.
    """
    trace, half = recorded(run), np.float32(0.5)
    if set(run.config.sites) != set(AttentionKind):
        raise UnmeasuredError("Rollout needs an encoder and a decoder with self-attention.")

    def mean(kind: AttentionKind, layer: int) -> Array:
        found: Array = trace.weights(kind, layer).mean(0)
        return found

    encoder: Array = np.eye(len(run.source_tokens), dtype=np.float32)
    for layer in range(run.config.sites[AttentionKind.ENCODER].n_layers):
        encoder = half * (encoder + mean(AttentionKind.ENCODER, layer) @ encoder)
    steps = len(run.decoder_input_tokens)
    source: Array = np.zeros((steps, len(encoder)), dtype=np.float32)
    prefix: Array = np.eye(steps, dtype=np.float32)
    for layer in range(run.config.sites[AttentionKind.CROSS].n_layers):
        own = mean(AttentionKind.DECODER, layer)
        source, prefix = half * (source + own @ source), half * (prefix + own @ prefix)
        source, prefix = half * (source + mean(AttentionKind.CROSS, layer) @ encoder), half * prefix
    return source, prefix


def _zeroed(first: int) -> Edit:
    """Takes from row r of a batch the value of key ``first`` + r, in every head."""

    def edit(own: Tensor, at: At) -> Tensor:
        value, rows = own.clone(), torch.arange(len(own))
        value[rows, :, rows + first] = 0
        return value

    return edit


@torch.inference_mode()
def value_zeroing(model: Network, run: Translation, kind: AttentionKind | str, layer: int) -> Array:
    """Value zeroing (Mohebbi et al. 2023): 1 − cos of a layer's output with and without each key's value.

    The key's value is 0 in every head of the layer, for all queries; the layer runs again to its end. Shares
    of a row, as they are usually drawn, hide how small such distances can be.

    Returns:
        (queries, keys) float32.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
    """
    kind, _ = AttentionKind(kind), recorded(run)
    site = model.config.sites[kind]
    side, causal = site.query_side, site.query_side == "decoder"
    blocks = [each for each in written(model, run, side) if each.sublayer.layer == layer]
    whole = blocks[-1].record.stream.double()
    mask, memories = AttentionMask(causal=causal), None
    if side == "decoder" and AttentionKind.CROSS in model.config.sites:
        memories = memory(model, run)[None].to(model.embedding.weight.device)
    stack, entered = model.stack(side), blocks[0].record.before
    entered = entered.to(device=model.embedding.weight.device, dtype=stack.dtype)
    keys = recorded(run).layer(kind, layer).shape[2]
    found, at_once = [], max(1, _AT_ONCE // entered.numel())
    for first in range(0, keys, at_once):
        count = min(at_once, keys - first)
        hooks = Hooks((), {f"{site.sublayer(layer).path}.value": [_zeroed(first)]})
        read = None if memories is None else memories.expand(count, -1, -1)
        rule = stack.positions.bias(layer)
        part = stack.layers[layer]
        rows = entered.expand(count, -1, -1)
        output = part(rows, mask, stack.positions, rule, read, AttentionMask(), hooks=hooks)
        found.append(1 - torch.cosine_similarity(whole[None], output.double().cpu(), dim=-1))
    distances: Array = torch.cat(found).T.float().contiguous().numpy()
    return distances
