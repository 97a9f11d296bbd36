"""The parts of a running model at one token: embedding, LayerNorm, feed-forward, residual stream, output.

Everything comes from the model and from a trace with ``Capture(residual=True)``. Each part has checks that
compare it with what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from explorer.lenses.inside.inside import Floats, as_array, as_double, difference, layer_norm, worst
from transformer.audit import OUTPUT_LIMIT
from transformer.config import Side, Sublayer
from transformer.layers import StreamNorm, shift, spread
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.trace import EmbeddingTrace
from transformer.view import Array, Check, read_only


@dataclass(frozen=True, eq=False)
class EmbeddingPart:
    """A token's way into a stack (sections 3.4 and 3.5); each (d_model,)."""

    row: Array  # the token's row of the embedding table
    scaled: Array  # that row times the model's factor, √d_model in the paper
    position: Array | None  # the vector added for the token's position; None if nothing is added
    normed: NormPart | None  # the norm of the sum; None if nothing normalises it
    input: Array  # the input of the first layer
    factor: float  # the model's factor
    checks: tuple[Check, ...]  # checks against the recorded arrays


@dataclass(frozen=True, eq=False)
class NormPart:
    """One norm at one token: γ (x − μ) / √(σ² + ε) + β; vectors are (d_model,). RMSNorm has no μ and no β."""

    before: Array  # x
    mean: float | None  # μ; None for RMSNorm, which takes no mean
    deviation: float  # σ; the root of the mean square for RMSNorm
    epsilon: float  # ε
    weight: Array  # γ
    bias: Array | None  # β; None if nothing is added
    after: Array  # the output
    checks: tuple[Check, ...]  # checks against the recorded arrays

    @property
    def normalised(self) -> Array:
        """(x − μ) / √(σ² + ε): mean 0, variance 1. RMSNorm: x / √(mean x² + ε), a mean square of 1."""
        spread = np.sqrt(self.deviation**2 + self.epsilon)
        return ((self.before - (self.mean or 0.0)) / spread).astype(np.float32)


@dataclass(frozen=True, eq=False)
class FeedForwardPart:
    """The feed-forward network at one token (equation 2)."""

    read: Array  # (d_model,) the input of the network
    units: Array  # (d_ff,) inner units as the outer map reads them: activated, and times their gate if gated
    gates: Array | None  # (d_ff,) the activated gates of a gated network; None without
    added: Array  # (d_ff,) norm of the vector that each unit adds to the update
    update: Array  # (d_model,) the output of the network
    checks: tuple[Check, ...]  # checks against the recorded arrays

    def most_active(self, count: int = 8) -> tuple[int, ...]:
        """The units that add most to the update, counted from 0, largest first."""
        return tuple(int(unit) for unit in np.argsort(-self.added, kind="stable")[:count])


@dataclass(frozen=True)
class StreamPoint:
    """The norm of a token's vector at one point of the residual stream."""

    sublayer: Sublayer | None  # the sub-layer that the stream has passed; None at the input of the stack
    norm: float  # ‖x‖


@dataclass(frozen=True)
class Neighbour:
    """A row of the embedding table that is close to another row, with their cosine similarity."""

    token_id: int
    cosine: float


def embedding_part(
    model: Network, translation: Translation, side: Side, position: int, token_id: int
) -> EmbeddingPart:
    """The embedding of the token at a position (from 0), as it enters the encoder or the decoder."""
    table, factor = embedding_table(model, side), model.config.embedding_scale
    row = as_array(table[token_id])
    trace = embedding_trace(translation, side)
    scaled, received = trace.tokens[position], trace.input[position]
    encoding = None if trace.positions is None else read_only(trace.positions[position])
    total = trace.sum[position].double().numpy()
    normed = None if trace.norm is None else _normed(trace.norm, trace.sum[position], read_only(received))
    entering = total if trace.norm is None else layer_norm(trace.norm, total)
    limit = OUTPUT_LIMIT[model.embedding.weight.dtype]
    checks = (
        _check("embedding row", [(row.astype(np.float64) * factor, read_only(scaled))], limit),
        _check("embedding sum", [(entering, read_only(received))], limit),
        *(() if normed is None else normed.checks),
    )
    return EmbeddingPart(row, read_only(scaled), encoding, normed, read_only(received), factor, checks)


def norm_part(model: Network, translation: Translation, sublayer: Sublayer, position: int) -> NormPart:
    """The LayerNorm of a sub-layer at a token: before the sub-layer (pre-norm) or after it (post-norm)."""
    trace = translation.stream(sublayer)
    norm = model.residual(sublayer).norm
    if model.config.norm == "pre":
        return _normed(norm, trace.before[position], read_only(trace.read[position]))
    return _normed(norm, trace.before[position] + trace.output[position], read_only(trace.stream[position]))


def final_norm_part(model: Network, translation: Translation, side: Side, position: int) -> NormPart | None:
    """The LayerNorm at the end of a pre-norm stack; None for post-norm, which has none there."""
    norm = model.stack(side).final_norm
    if not isinstance(norm, StreamNorm):
        return None
    stream = leaves(translation, side)[position]
    with torch.inference_mode():
        after = norm(stream.to(norm.weight)).float().cpu()
    return _normed(norm, stream, as_array(after))


def _normed(norm: StreamNorm, before: Tensor, after: Array) -> NormPart:
    x = as_array(before)
    part = NormPart(
        before=x,
        mean=None if isinstance(norm, nn.RMSNorm) else float(x.mean(dtype=np.float64)),
        deviation=float((spread(norm, x.astype(np.float64))[0] ** 2 - float(norm.eps or 0.0)).clip(0) ** 0.5),
        epsilon=float(norm.eps or 0.0),
        weight=as_array(norm.weight),
        bias=as_array(norm.bias) if isinstance(norm, nn.LayerNorm) else None,
        after=after,
        checks=(),
    )
    return proved_norm(part, norm)


def proved_norm(part: NormPart, norm: StreamNorm) -> NormPart:
    """The part with a check that the formula turns its numbers into the recorded output."""
    by_hand = part.weight.astype(np.float64) * part.normalised + (0.0 if part.bias is None else part.bias)
    pairs = [(by_hand, part.after), (layer_norm(norm, part.before), part.after)]
    checks = (_check("LayerNorm", pairs, OUTPUT_LIMIT[norm.weight.dtype]),)
    return replace(part, checks=checks)


def feed_forward_part(
    model: Network, translation: Translation, side: Side, layer: int, position: int
) -> FeedForwardPart:
    """The feed-forward network of a layer (from 0) at a token, unit by unit."""
    sublayer = Sublayer(side, layer, "feed_forward")
    trace, network = translation.stream(sublayer), model.layer(side, layer).feed_forward
    with torch.inference_mode():
        read = trace.read[position]
        gates = _mapped(network.gate, read) if network.gate is not None else None
        values = _mapped(network.inner, read)
        units = network.activation(values) if gates is None else network.activation(gates) * values
        lengths = network.outer.weight.float().cpu().norm(dim=0)
    update = read_only(trace.output[position])
    outer, bias = as_double(network.outer.weight), as_double(shift(network.outer))
    total = units.double().numpy() @ outer.T + bias
    checks = (_check("feed-forward", [(total, update)], OUTPUT_LIMIT[network.inner.weight.dtype]),)
    return FeedForwardPart(
        read_only(read),
        as_array(units),
        None if gates is None else as_array(network.activation(gates)),
        as_array(units.abs() * lengths),
        update,
        checks,
    )


def _mapped(linear: nn.Linear, read: Tensor) -> Tensor:
    """x W + b in float32 on the CPU."""
    return read @ linear.weight.float().cpu().T + shift(linear).float().cpu()


def addition_check(
    model: Network, translation: Translation, sublayer: Sublayer, position: int, total: Array
) -> tuple[Check, ...]:
    """Compares the sum of stream and update (d_model,) with the stream that left the sub-layer."""
    output = read_only(translation.stream(sublayer).stream[position])
    norm = model.residual(sublayer).norm
    leaves_as = total if model.config.norm == "pre" else layer_norm(norm, total)
    return (_check("residual stream", [(leaves_as, output)], OUTPUT_LIMIT[norm.weight.dtype]),)


def stream_norms(
    translation: Translation, side: Side, position: int
) -> tuple[tuple[StreamPoint, ...], tuple[Check, ...]]:
    """The norm of a token's vector from the input of a stack to its end, sub-layer by sub-layer.

    The check compares what a sub-layer reads with the stream (post-norm), or the stream after it with the sum
    (pre-norm).
    """
    before = embedding_trace(translation, side).input[position]
    points, joints = [StreamPoint(None, float(before.norm()))], []
    for sublayer in translation.config.stacks[side].passed():
        trace = translation.stream(sublayer)
        total = trace.before[position] + trace.output[position]
        after = trace.stream if trace.own_stream is None else trace.own_stream
        pre = translation.config.norm == "pre"
        pair = (after[position], total) if pre else (trace.read[position], trace.before[position])
        joints.append((read_only(pair[0]), read_only(pair[1])))
        before = trace.stream[position]
        points.append(StreamPoint(sublayer, float(before.norm())))
    return tuple(points), (_check("joints of the stream", joints, OUTPUT_LIMIT[torch.float32]),)


def neighbours(model: Network, side: Side, token_id: int, count: int = 8) -> tuple[Neighbour, ...]:
    """The rows of the embedding table with the largest cosine to a token's row, without that row."""
    table = embedding_table(model, side).float()
    with torch.inference_mode():
        cosines = F.cosine_similarity(table, table[token_id][None], dim=1, eps=1e-12)
        cosines[token_id] = -torch.inf
        values, ids = cosines.topk(min(count, len(cosines) - 1))
    return tuple(Neighbour(i, v) for i, v in zip(ids.tolist(), values.tolist(), strict=True))


def embedding_table(model: Network, side: Side) -> Tensor:
    """The embedding table of one side (pieces, d_model)."""
    return model.table(side).weight.detach()


def leaves(translation: Translation, side: Side) -> Tensor:
    """The stream that leaves the last layer of a stack (length, d_model)."""
    return translation.stream(translation.config.stacks[side].ends()[-1]).stream


def embedding_trace(translation: Translation, side: Side) -> EmbeddingTrace:
    """Record of the input of a stack; NotCapturedError if nothing was recorded."""
    if translation.attention is None:
        raise NotCapturedError("Nothing was recorded; translate with capture=Capture(residual=True).")
    return translation.attention.embeddings[side]


def _check(name: str, pairs: Sequence[tuple[Floats, Floats]], limit: float) -> Check:
    return Check(name, worst([difference(shown, true) for shown, true in pairs]), limit)
