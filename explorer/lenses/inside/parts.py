"""The parts of a running model at one token, each checked; the logit lens."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention
from transformer.audit import LOG_PROB_LIMIT, OUTPUT_LIMIT
from transformer.config import AttentionKind, Side, Sublayer
from transformer.encodings import PositionalEncoding
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, Check, difference, read_only, worst

Checks = tuple[Check, ...]
MOST_ACTIVE = 8


class NormPart(NamedTuple):
    """One norm at one token: γ (x − μ) / √(σ² + ε) + β; vectors are (d_model,).

    RMSNorm has no μ and no β.
    """

    before: Array  # x
    mean: float | None  # μ; None for RMSNorm, which takes no mean
    deviation: float  # σ; the root of the mean square for RMSNorm
    epsilon: float  # ε
    # (x − μ) / √(σ² + ε), of variance 1; RMSNorm: x / √(mean x² + ε), of mean square 1
    normalised: Array
    weight: Array  # γ
    bias: Array | None  # β; None if nothing is added
    after: Array  # the output
    checks: Checks  # checks against the recorded arrays


class EmbeddingPart(NamedTuple):
    """A token's way into a stack (sections 3.4 and 3.5); each (d_model,)."""

    row: Array  # the token's row of the embedding table
    scaled: Array  # that row times the model's factor, √d_model in the paper
    position: Array | None  # the vector added for the token's position; None if nothing is added
    normed: NormPart | None  # the norm of the sum; None if nothing normalises it
    input: Array  # the input of the first layer
    factor: float  # the model's factor
    checks: Checks  # checks against the recorded arrays


class FeedForwardPart(NamedTuple):
    """The feed-forward network at one token (equation 2)."""

    read: Array  # (d_model,) the input of the network
    # (d_ff,) inner units as the outer map reads them: activated, and times their gate if gated
    units: Array
    gates: Array | None  # (d_ff,) the activated gates of a gated network; None without
    added: Array  # (d_ff,) norm of the vector that each unit adds to the update
    update: Array  # (d_model,) the output of the network
    best: list[int]  # the `MOST_ACTIVE` units that add most to the update, from 0, largest first
    checks: Checks  # checks against the recorded arrays


def embedding_part(
    model: Network, translation: Translation, side: Side, position: int, token_id: int
) -> EmbeddingPart:
    """The embedding of the token at a position (from 0), as it enters a stack."""
    factor = model.config.embedding_scale
    same = partial(compared, OUTPUT_LIMIT[model.embedding.weight.dtype])
    row = as_array(model.table(side).weight[token_id])
    trace = translation.trace.embeddings[side]
    scaled = as_array(trace.tokens[position])
    total = as_array(trace.sum[position])
    received = as_array(trace.input[position])
    encoding = None if trace.positions is None else as_array(trace.positions[position])
    checks = [same("embedding row", (row.astype(np.float64) * factor, scaled))]
    normed = None
    if trace.norm is None:
        checks.append(same("embedding sum", (total, received)))
    else:
        normed = _normed(trace.norm, total, received)
        checks += normed.checks
    return EmbeddingPart(
        row=row,
        scaled=scaled,
        position=encoding,
        normed=normed,
        input=received,
        factor=factor,
        checks=tuple(checks),
    )


def neighbours(model: Network, side: Side, token_id: int, count: int) -> list[tuple[int, float]]:
    """The ids of tokens whose embeddings point most like a token's, nearest first, with cosines."""
    table = F.normalize(model.table(side).weight.detach().float(), dim=-1)
    cosines = table @ table[token_id]
    cosines[token_id] = -torch.inf
    best = cosines.topk(min(count, len(cosines) - 1))
    return [*zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def norm_part(
    model: Network, translation: Translation, sublayer: Sublayer, position: int
) -> NormPart:
    """The LayerNorm of a sub-layer at a token: before it (pre-norm) or after it (post-norm)."""
    trace = translation.stream(sublayer)
    norm = model.residual(sublayer).norm
    if model.config.norm == "pre":
        return _normed(norm, as_array(trace.source[position]), as_array(trace.read[position]))
    total = trace.before[position] + trace.output[position]
    return _normed(norm, as_array(total), as_array(trace.stream[position]))


def final_norm_part(
    model: Network, translation: Translation, side: Side, position: int
) -> NormPart | None:
    """The LayerNorm at the end of a pre-norm stack; None for post-norm, which has none there."""
    norm = model.stack(side).final_norm
    last = translation.config.stacks[side].passed()[-1]
    if not isinstance(norm, StreamNorm):
        return None
    stream = translation.stream(last).stream[position]
    return _normed(norm, as_array(stream), as_array(leaving(model, side, stream)))


def _normed(norm: StreamNorm, x: Array, after: Array) -> NormPart:
    """A norm with a check that the formula turns its numbers into the recorded output."""
    mean = None if isinstance(norm, nn.RMSNorm) else float(x.mean(dtype=np.float64))
    epsilon = float(norm.eps or 0)
    root = float(spread(norm, x.astype(np.float64))[0])
    normalised = ((x - (mean or 0.0)) / root).astype(np.float32)
    weight = as_array(norm.weight)
    bias = as_array(norm.bias) if isinstance(norm, nn.LayerNorm) else None
    by_hand = weight.astype(np.float64) * normalised + (0.0 if bias is None else bias)
    pairs = ((by_hand, after), (layer_norm(norm, x), after))
    deviation = max(root**2 - epsilon, 0.0) ** 0.5
    check = compared(OUTPUT_LIMIT[norm.weight.dtype], "LayerNorm", *pairs)
    return NormPart(
        before=x,
        mean=mean,
        deviation=deviation,
        epsilon=epsilon,
        normalised=normalised,
        weight=weight,
        bias=bias,
        after=after,
        checks=(check,),
    )


def feed_forward_part(
    model: Network, translation: Translation, side: Side, layer: int, position: int
) -> FeedForwardPart:
    """The feed-forward network of a layer (from 0) at a token, unit by unit."""
    trace = translation.stream(Sublayer(side, layer, "feed_forward"))
    network: Any = model.stack(side).layers[layer].feed_forward
    read = trace.read[position]
    gates = None
    with torch.inference_mode():
        inner = _linear(network.inner, read)
        if network.gate is None:
            units = network.activation(inner)
        else:
            active = network.activation(_linear(network.gate, read))
            units = active * inner
            gates = as_array(active)
        added = units.abs() * exact(network.outer.weight).float().norm(dim=0)
    total = (units.double() @ exact(network.outer.weight).T + exact(shift(network.outer))).numpy()
    update = as_array(trace.output[position])
    check = compared(OUTPUT_LIMIT[network.inner.weight.dtype], "feed-forward", (total, update))
    return FeedForwardPart(
        read=as_array(read),
        units=as_array(units),
        gates=gates,
        added=as_array(added),
        update=update,
        best=added.argsort(descending=True, stable=True)[:MOST_ACTIVE].tolist(),
        checks=(check,),
    )


def _linear(linear: nn.Linear, vector: Tensor) -> Tensor:
    """A map of the network, with weights in float32."""
    return F.linear(vector, exact(linear.weight).float(), exact(shift(linear)).float())


def addition_check(
    model: Network, translation: Translation, sublayer: Sublayer, position: int, total: Array
) -> Checks:
    """Compares the sum of stream and update (d_model,) with the stream that left the sub-layer."""
    norm = model.residual(sublayer).norm
    leaves = total if model.config.norm == "pre" else layer_norm(norm, total)
    output = as_array(translation.stream(sublayer).stream[position])
    return (compared(OUTPUT_LIMIT[norm.weight.dtype], "residual stream", (leaves, output)),)


def stream_norms(
    translation: Translation, side: Side, position: int
) -> tuple[dict[Sublayer | None, float], Checks]:
    """‖x‖ of a token at a stack's input (None) and after each sub-layer, with checks between."""
    norms: dict[Sublayer | None, float] = {
        None: float(translation.trace.embeddings[side].input[position].norm())
    }
    joints = []
    for sublayer in translation.config.stacks[side].passed():
        trace = translation.stream(sublayer)
        if translation.config.norm == "pre":
            after = trace.stream if trace.own_stream is None else trace.own_stream
            pair = (after, trace.before + trace.output)
        else:
            pair = (trace.read, trace.source)
        joints.append([read_only(side[position]) for side in pair])
        norms[sublayer] = float(trace.stream[position].norm())
    return norms, (compared(OUTPUT_LIMIT[torch.float32], "joints of the stream", *joints),)


def leaving(model: Network, side: Side, stream: Tensor) -> Tensor:
    """What leaves a stack whose last layer wrote (…, d_model): its final norm, if it has one."""
    stack = model.stack(side)
    with torch.inference_mode():
        return stack.final_norm(stream.to(device=model.embedding.weight.device, dtype=stack.dtype))


# --- the logit lens ------------------------------------------------------------------------------


class Guess(NamedTuple):
    """A token with its probability, from 0 to 1."""

    token_id: int
    probability: float


class LensRow(NamedTuple):
    """The distribution that the output matrix gives after some layers (nostalgebraist 2020)."""

    layers: int  # number of layers that the stream has passed; 0 at the stack's input
    best: tuple[Guess, ...]  # the most probable tokens, best first
    chosen: float  # probability of the token that the model finally chose
    rank: int  # rank of that token in the distribution, from 1


def logit_lens(
    model: Network, translation: Translation, step: int, count: int = 5
) -> tuple[tuple[LensRow, ...], Checks]:
    """What the stream of a step, or of a masked token (from 0), predicts at the stack's input and
    after each layer.

    Each is read as if it were the last. A row names ``count`` tokens; the check compares the last
    one with the decoded distribution. IndexError if nothing was predicted there.
    """
    if step not in translation.predictions:
        raise IndexError(f"Nothing is predicted at position {step}, from 0.")
    written = translation.predictions[step]
    log_probs = _lens(model, translation, step)
    rows = tuple(
        _lens_row(layers, row, written.token_id, count) for layers, row in enumerate(log_probs)
    )
    decoded = {written.token_id: written.log_prob}
    decoded |= {token.token_id: token.log_prob for token in written.alternatives}
    gap = max(abs(float(log_probs[-1, token]) - log_prob) for token, log_prob in decoded.items())
    limit = LOG_PROB_LIMIT[model.embedding.weight.dtype]
    return rows, (Check("last row of the lens", gap, limit),)


def _lens(model: Network, translation: Translation, step: int) -> Tensor:
    """(layers + 1, vocabulary) log-probabilities of the stack's input and of each layer."""
    side = translation.config.cursor_side
    stack = translation.config.stacks[side]
    streams = [translation.trace.embeddings[side].input[step]]
    for sublayer in stack.passed():
        if sublayer.name == stack.sublayers[-1]:
            streams.append(translation.stream(sublayer).stream[step])
    with torch.inference_mode():
        left = leaving(model, side, torch.stack(streams))
        return model.logits(left).float().log_softmax(-1).cpu()


def _lens_row(layers: int, log_probs: Tensor, token_id: int, count: int) -> LensRow:
    """The most probable tokens, and how probable the chosen one is."""
    largest, ids = log_probs.topk(min(count, len(log_probs)))
    chosen = log_probs[token_id]
    return LensRow(
        layers=layers,
        best=tuple(map(Guess, ids.tolist(), largest.double().exp().tolist())),
        chosen=float(chosen.exp()),
        rank=int((log_probs > chosen).sum()) + 1,
    )


Doubles = NDArray[np.float64]
Floats = NDArray[np.floating]


def compared(limit: float, name: str, *pairs: Sequence[Floats]) -> Check:
    """The worst difference of pairs (computed, recorded), over the largest recorded number.

    Of 0.01, if that is larger.
    """
    gaps = [difference(computed, recorded, 1e-2) for computed, recorded in pairs]
    return Check(name, worst(*gaps), limit)


def multi_head(model: Network, kind: AttentionKind, layer: int) -> MultiHeadAttention:
    """An attention sub-layer of a Transformer."""
    attention = model.attention(kind, layer)
    assert isinstance(attention, MultiHeadAttention)
    return attention


def exact(parameter: Tensor) -> Tensor:
    """The same numbers in float64."""
    return parameter.detach().double().cpu()


def as_array(tensor: Tensor) -> Array:
    """The same numbers in float32, read-only."""
    array: Array = tensor.detach().float().cpu().contiguous().numpy()
    array.flags.writeable = False
    return array


def layer_norm(norm: StreamNorm, x: Floats) -> Doubles:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64; RMSNorm has no μ and no β."""
    exactly = x.astype(np.float64)
    gain = exact(norm.weight).numpy()
    bias = exact(shift(norm)).numpy()
    normed: Doubles = gain * centred(norm, exactly) / spread(norm, exactly) + bias
    return normed


Product = Literal["query", "key", "value"]


def head_map(attention: MultiHeadAttention, product: Product, head: int) -> tuple[Tensor, Tensor]:
    """W (d_head, d_model) and b (d_head,) float64 of a head's queries, keys or values.

    Heads of a group share those of keys and values.
    """
    linear = {
        "query": attention.q_proj,
        "key": attention.k_proj,
        "value": attention.v_proj,
    }[product]
    group = attention.n_heads // attention.n_key_heads
    number = head if product == "query" else head // group
    rows = slice(number * attention.d_head, (number + 1) * attention.d_head)
    return exact(linear.weight)[rows], exact(shift(linear))[rows]


def output_rows(model: Network, kind: AttentionKind, layer: int) -> tuple[Tensor, Tensor]:
    """W_O by head (heads, d_head, d_model) and b_O (d_model,)."""
    attention = multi_head(model, kind, layer)
    weight = exact(attention.out_proj.weight)
    by_head = weight.T.reshape(attention.n_heads, -1, weight.shape[0])
    return by_head, exact(shift(attention.out_proj))


def projected(attention: MultiHeadAttention, product: Product, parts: Tensor, head: int) -> Tensor:
    """(writers, …, d_head) of parts (writers, …, d_model); the first, the biases, gets the bias.

    A norm of the head divides all parts by what it divides their sum by.
    """
    weight, bias = head_map(attention, product, head)
    vectors = parts @ weight.T
    vectors[0] += bias
    norm = {"query": attention.q_norm, "key": attention.k_norm}.get(product)
    if norm is None:
        return vectors
    return vectors * exact(norm.weight) / spread(norm, vectors.sum(0))


def rotated(positions: PositionalEncoding | None, vectors: Tensor, first: int = 0) -> Tensor:
    """(…, length, d_head) float64, turned by position if the encoding of the head rotates."""
    if positions is None:
        return vectors.double()
    device = next(iter(positions.buffers()), torch.empty(0)).device
    return positions.rotate(vectors.float()[:, None].to(device), first)[:, 0].double().cpu()
