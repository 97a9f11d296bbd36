"""Two measures often used for the same questions, which mislead in these models: see each function."""

from __future__ import annotations

import numpy as np
import torch

from transformer.lenses.measures.stream import FixedNorm, UnmeasuredError, recorded, values_written, written
from transformer.model.network import Network
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.trace.view import Array


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


def value_zeroing(model: Network, run: Translation, kind: AttentionKind | str, layer: int) -> Array:
    """Value zeroing (Mohebbi et al. 2023): 1 − cos of a block's stream with and without each key's value.

    Here the distances are of the order of 0.001, with pre-norm and post-norm alike (median of the encoder's
    maps of one sentence: 0.0009 to 0.0014 in en-de, 0.0005 in its post-norm twin): the residual keeps the
    direction whatever is removed. Shares of a row, as they are usually drawn, do not show that.

    Returns:
        (queries, keys) float32.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
    """
    kind = AttentionKind(kind)
    block = next(
        each for each in written(model, run, run.config.sites[kind].query_side)
        if each.kind is kind and each.sublayer.layer == layer
    )  # fmt: skip
    weights = torch.as_tensor(recorded(run).weights(kind, layer)).double()
    heads, entered = values_written(model, run, kind, layer), block.record.stream + block.record.update
    found = []
    for query, whole in enumerate(entered.double()):
        without = whole - torch.einsum("hk,hkd->kd", weights[:, query], heads)
        stream = torch.cat([whole[None], without])
        if block.norm is not None:
            norm = model.residual(block.sublayer).norm
            stream = FixedNorm.of(norm, stream)(stream) + block.norm.shift
        found.append(1 - torch.cosine_similarity(stream[:1], stream[1:], dim=-1))
    distances: Array = torch.stack(found).float().numpy()
    return distances
