"""ALTI and ALTI+ (Ferrando et al. 2022 a, b): shares of source and prefix in what the decoder predicts from.

Each attention block writes a vector that is a sum over its inputs, Σ_j T_i(x_j) + biases: the values that the
heads weigh, and the residual. An input's share is how much nearer it brings the sum, by L1 distances:
max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), divided by their sum. Shares of the layers are multiplied. Every LayerNorm
is linear with the σ of the run; with pre-norm it stands inside T, at each key. Feed-forward networks and the
encoder's final LayerNorm act on each token by itself and mix none; biases get no share. The residual of
cross-attention is the decoder's own stream, so it counts as prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.lenses.inside.weights import exact, multi_head, output_rows
from explorer.lenses.measures.stream import SublayerUpdate, UnmeasuredError, recorded, written
from transformer.config import AttentionKind, Side
from transformer.layers import shift
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, Check

LIMIT = 1e-3
"""Share of the longest output by which Σ T + biases may miss it."""
_SUMS = "In every block, the parts and the biases sum to what the model wrote: that proves their total."
_AT_ONCE = 2**20
"""Numbers of a chunk of rows: memory does not grow with the square of the length."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of what was read, for every step; those of a step sum to 1."""

    source: Array  # (steps, source) shares of the source tokens
    prefix: Array  # (steps, steps) shares of the tokens that the decoder read
    audit: AuditReport  # whether Σ_j T_i(x_j) + biases is what each block wrote
    # by kind and layer, (queries, inputs) shares within a block; ``source`` and ``prefix`` are products
    blocks: dict[AttentionKind, tuple[Array, ...]]


def alti(model: Network, run: Translation) -> Shares:
    """Shares of the source tokens and of the tokens already written in the stream that predicts each token.

    ALTI+ (Ferrando et al. 2022): no unit; negative shares are cut, feed-forward networks and biases get none.

    Args:
        model: The model of the run.
        run: Made with ``capture=Capture(residual=True)``, without changes.

    Returns:
        (steps, source) and (steps, steps) shares, with the audit of every block.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The decoder has no self-attention, the model is no Transformer, or something was
            changed in the run.
    """
    recorded(run)
    if set(run.config.sites) != set(AttentionKind):
        raise UnmeasuredError("These shares need an encoder and a decoder with self-attention.")
    worst, blocks = [0.0], dict[AttentionKind, list[Tensor]]()

    def mixed(each: SublayerUpdate) -> Tensor:
        assert each.kind is not None
        blocks.setdefault(each.kind, []).append(_mixed(model, run, each, worst))
        return blocks[each.kind][-1]

    encoder = torch.eye(len(run.source_tokens), dtype=torch.float64)
    for each in _blocks(model, run, "encoder"):
        encoder = mixed(each) @ encoder
    steps = len(run.decoder_input_tokens)
    source, prefix = torch.zeros(steps, len(encoder)).double(), torch.eye(steps, dtype=torch.float64)
    for each in _blocks(model, run, "decoder"):
        block = mixed(each)
        if each.kind is AttentionKind.CROSS:
            own, read = block[:, :1], block[:, 1:]
            source, prefix = own * source + read @ encoder, own * prefix
        else:
            source, prefix = block @ source, block @ prefix
    checks = (Check("transformed vectors and biases sum to what each block wrote", max(worst), LIMIT),)
    return Shares(
        source.float().numpy(),
        prefix.float().numpy(),
        AuditReport(checks, told=(_SUMS,), claim="sums up"),
        {kind: tuple(each.float().numpy() for each in found) for kind, found in blocks.items()},
    )


def _blocks(model: Network, run: Translation, side: Side) -> Iterator[SublayerUpdate]:
    return (each for each in written(model, run, side) if each.kind is not None)


def _mixed(model: Network, run: Translation, each: SublayerUpdate, worst: list[float]) -> Tensor:
    """(queries, inputs) shares of a block's inputs: its keys; in cross-attention first the residual."""
    assert each.kind is not None
    kind, layer = each.kind, each.sublayer.layer
    trace, (rows, bias) = recorded(run), output_rows(model, each.kind, layer)
    record, weights = trace.layer(kind, layer), torch.as_tensor(trace.weights(kind, layer)).double()
    always = _constant(model, each)
    heads = (record.value.double() - always[:, None]) @ rows  # (heads, keys, d_model)
    residual, wrote = each.record.before.double(), each.record.stream.double()
    constant = torch.einsum("hqk,hd->qd", weights, (always[:, None] @ rows)[:, 0]) + bias
    across = kind is AttentionKind.CROSS
    found = []
    step = max(1, _AT_ONCE // heads[0].numel())
    for start in range(0, len(residual), step):
        here = slice(start, start + step)
        parts = torch.einsum("hqk,hkd->qkd", weights[:, here], heads)
        own = residual[here]
        if across:
            parts = torch.cat([own[:, None], parts], 1)
        else:
            queries = torch.arange(len(own))
            parts[queries, queries + start] += own
        whole, rest = wrote[here], constant[here]
        if each.norm is not None:
            spread = each.norm.spread[here]
            parts = each.norm.gain * each.norm.centred(parts) / spread[:, None]
            rest = each.norm.gain * each.norm.centred(rest) / spread + each.norm.shift
        missed = (parts.sum(1) + rest - whole).norm(dim=-1)
        worst.append(float((missed / whole.norm(dim=-1).clamp(min=1e-6)).max()))
        near = whole.abs().sum(-1, keepdim=True) - (whole[:, None] - parts).abs().sum(-1)
        near = near.clamp(min=0)
        # A block that nothing brings nearer is given to its residual.
        alone = near.sum(-1) == 0
        at = torch.zeros(len(own), dtype=torch.long) if across else torch.arange(start, start + len(own))
        near[alone, at[alone]] = 1.0
        found.append(near / near.sum(-1, keepdim=True))
    return torch.cat(found)


def _constant(model: Network, each: SublayerUpdate) -> Tensor:
    """(heads, d_head) what every value holds of biases: b_V, and with pre-norm self-attention W_V β."""
    assert each.kind is not None
    attention = multi_head(model, each.kind, each.sublayer.layer)
    found = exact(shift(attention.v_proj))
    if each.norm is None and each.kind is not AttentionKind.CROSS:
        found = found + exact(attention.v_proj.weight) @ exact(shift(model.residual(each.sublayer).norm))
    return found.view(attention.n_heads, -1)
