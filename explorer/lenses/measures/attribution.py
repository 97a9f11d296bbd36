"""What the decoder predicts from: a logit by what wrote it, and shares of source and prefix.

z_A − z_B = Σ_w part_w · (W_A − W_B) + biases, the σ of every norm held fixed: the direct path
(Elhage et al. 2021). In ALTI and ALTI+ (Ferrando et al. 2022 a, b), a block writes Σ_j T_i(x_j) +
biases; the share of x_j is max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), of their sum, multiplied through the
layers; the residual of cross-attention counts as prefix.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.parts import exact, leaving, multi_head
from explorer.lenses.measures import stream
from explorer.lenses.measures.stream import Heads, UnmeasuredError, Writer, recorded
from transformer.attention import shared
from transformer.config import AttentionKind
from transformer.layers import shift
from transformer.model import Network
from transformer.run import Translation
from transformer.view import Array, AuditReport, read_only

ENCODER, DECODER, CROSS = AttentionKind

# --- Logits --------------------------------------------------------------------------------------


class Attribution(NamedTuple):
    """Parts that writers add to a logit or to a difference of logits; in nats."""

    total: float  # the logit, or the difference, as the model computes it
    writers: tuple[Writer, ...]
    values: Array  # (writers,) float32; they sum to the total
    # by kind, (layers, heads, keys): the values of the heads, split over the keys that they read
    keys: dict[AttentionKind, Array]
    audit: AuditReport  # whether the parts sum to the total

    def largest(self, count: int) -> list[tuple[str, float]]:
        """The largest parts, from what spoke most for the logit to what spoke most against it.

        All others are one part.
        """
        order = np.argsort(-np.abs(self.values), kind="stable").tolist()
        ranked = sorted(order[:count], key=lambda place: -self.values[place])
        parts = [(str(self.writers[place]), float(self.values[place])) for place in ranked]
        if len(order) > count:
            rest = float(self.values[order[count:]].sum())
            parts.append((f"{len(order) - count} others", rest))
        return parts


def attribution(
    model: Network, run: Translation, step: int, token: int, against: int | None = None
) -> Attribution:
    """Splits z_A at a step, or z_A − z_B, over what wrote the stream that predicts, σ held fixed
    (direct path).

    Returns parts in nats (writers,), and those of heads by key (layers, heads, keys); they sum to
    the logit. NotCapturedError and UnmeasuredError as ``recorded``; IndexError if there is no such
    step or token.
    """
    direction, total, bias = _direction(model, run, step, token, against)
    writers, wrote = stream.parts(model, run, run.config.cursor_side, step)
    numbers = wrote @ direction
    numbers[0] += bias
    keys = dict[AttentionKind, list[Tensor]]()
    for heads, here in _read(model, run, step, direction):
        by_key = heads.weights()[:, step] * (heads.values() @ here)
        keys.setdefault(heads.kind, []).insert(0, by_key)
    missed = abs(float(numbers.sum()) - total) / max(1.0, float(numbers.abs().max()))
    return Attribution(
        total=total,
        writers=writers,
        values=read_only(numbers.float()),
        keys={kind: read_only(torch.stack(layers).float()) for kind, layers in keys.items()},
        audit=stream.summed("parts sum to the logit", missed, 1e-4),
    )


def by_key(
    model: Network, run: Translation, step: int, token: int, against: int | None = None
) -> Array:
    """What all heads of the run's last kind add to z_A, or z_A − z_B, through each key (direct
    path).

    Without b_V, which every query gets whatever it reads. Returns (keys,) parts in nats;
    NotCapturedError, UnmeasuredError and IndexError as ``attribution``.
    """
    direction, _, _ = _direction(model, run, step, token, against)
    kind = run.config.last_kind
    nats = torch.zeros(len(run.labels(kind).keys), dtype=torch.float64)
    for heads, here in _read(model, run, step, direction):
        if heads.kind is kind:
            nats += (heads.weights()[:, step] * (heads.values(heads.b_v) @ here)).sum(0)
    return read_only(nats.float())


def _direction(
    model: Network, run: Translation, step: int, token: int, against: int | None
) -> tuple[Tensor, float, float]:
    """A direction of the output matrix (d_model,), the logit as computed, and its bias."""
    recorded(run)
    if not run.config.linear_output:
        raise UnmeasuredError(
            "This model transforms its output before it predicts a token, so no logit is a sum of "
            "what its heads wrote."
        )
    weight, bias = model.projection
    ids = [token] if against is None else [token, against]
    if not all(0 <= token_id < len(weight) for token_id in ids):
        raise IndexError(f"There is no target token {max(ids)}; there are {len(weight):,}, from 0.")
    stream.needs_step(run, step)
    side = run.config.cursor_side
    last = run.stream(model.config.stacks[side].passed()[-1]).stream[step]
    with torch.inference_mode():
        logits = model.logits(leaving(model, side, last))[ids].double().cpu()
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)[: len(ids)]
    constant = 0.0 if bias is None else float(signs @ exact(bias[ids]))
    return signs @ exact(weight[ids]) * model.config.output_scale, float(signs @ logits), constant


def _read(
    model: Network, run: Translation, step: int, direction: Tensor
) -> Iterator[tuple[Heads, Tensor]]:
    """The attentions from the stack's end; the direction that reads the same number there."""
    side = run.config.cursor_side
    norm = stream.final_norm(model, run, side)
    for update in reversed(stream.written(model, run, side)):
        for passed in (norm, update.norm):
            if passed is not None:
                direction = passed.centred(passed.gain * direction) / passed.spread[step]
        norm = None
        if update.kind is not None:
            yield Heads(model, run, update.kind, update.sublayer.layer), direction


# --- Source and prefix ---------------------------------------------------------------------------

AT_ONCE = 2**20
"""Numbers of a chunk of rows: memory does not grow with the square of the length."""


class Shares(NamedTuple):
    """Shares of what was read, for every step; those of a step sum to 1."""

    source: Array  # (steps, source) shares of the source tokens
    prefix: Array  # (steps, steps) shares of the tokens that the decoder read
    audit: AuditReport  # whether Σ_j T_i(x_j) + biases is what each block wrote
    # by kind and layer, (queries, inputs) shares within a block; ``source`` and ``prefix`` are
    # products
    blocks: dict[AttentionKind, tuple[Array, ...]]


def alti(model: Network, run: Translation) -> Shares:
    """Shares of the source tokens and of the tokens already written in the stream that predicts
    each token.

    Returns (steps, source) and (steps, steps) shares, with the audit of every block.
    NotCapturedError and UnmeasuredError as ``recorded``; the latter also if the decoder has no
    self-attention.
    """
    recorded(run)
    if {*run.config.sites} != {*AttentionKind}:
        raise UnmeasuredError("These shares need an encoder and a decoder with self-attention.")
    worst = 0.0
    blocks = dict[AttentionKind, list[Tensor]]()
    updates = (*stream.written(model, run, "encoder"), *stream.written(model, run, "decoder"))
    for update in updates:
        if update.kind is not None:
            heads = Heads(model, run, update.kind, update.sublayer.layer)
            mixed, missed = _mixed(model, update, heads)
            blocks.setdefault(update.kind, []).append(mixed)
            worst = max(worst, missed)
    encoder = torch.eye(len(run.source_tokens)).double()
    prefix = torch.eye(len(run.decoder_input_tokens)).double()
    # shares of a stack are those of its blocks, multiplied layer by layer
    for block in blocks[ENCODER]:
        encoder = block @ encoder
    source = torch.zeros(len(prefix), len(encoder)).double()
    for block, cross in zip(blocks[DECODER], blocks[CROSS], strict=True):
        residual = cross[:, :1]
        source = residual * (block @ source) + cross[:, 1:] @ encoder
        prefix = residual * (block @ prefix)
    audit = stream.summed(
        "transformed vectors and biases sum to what each block wrote", worst, 1e-3
    )
    return Shares(
        source=source.float().numpy(),
        prefix=prefix.float().numpy(),
        audit=audit,
        blocks={
            kind: tuple(layer.float().numpy() for layer in layers)
            for kind, layers in blocks.items()
        },
    )


def _mixed(model: Network, update: stream.SublayerUpdate, heads: Heads) -> tuple[Tensor, float]:
    """(queries, inputs) shares of a block, and how far its parts miss what it wrote.

    In cross-attention, the residual is the first input.
    """
    always = _value_biases(model, update, heads)
    weights = heads.weights()
    values = heads.values(always)  # (heads, keys, d_model)
    wrote = update.record.stream.double()
    constant = torch.einsum("hqk,hd->qd", weights, (always @ heads.w_o)[:, 0]) + heads.b_o
    shares = []
    worst = 0.0
    size = max(1, AT_ONCE // values[0].numel())
    for start in range(0, len(wrote), size):
        rows = slice(start, start + size)
        moved = _moved(update, heads, weights[:, rows], values, rows)
        rest = constant[rows]
        if update.norm is not None:
            moved = update.norm.scaled(moved, update.norm.spread[rows][:, None])
            rest = update.norm.scaled(rest, update.norm.spread[rows]) + update.norm.shift
        total = wrote[rows]
        missed = (moved.sum(1) + rest - total).norm(dim=-1)
        worst = max(worst, float((missed / total.norm(dim=-1).clamp(min=1e-6)).max()))
        shares.append(_nearness(moved, total, _residuals(heads, rows, len(total))))
    return torch.cat(shares), worst


def _value_biases(model: Network, update: stream.SublayerUpdate, heads: Heads) -> Tensor:
    """What every query gets whatever it reads: b_V, and with pre-norm what values hold of β."""
    if update.norm is not None or heads.kind is CROSS:
        return heads.b_v
    attention = multi_head(model, heads.kind, heads.layer)
    beta = exact(shift(model.residual(update.sublayer).norm))
    of_beta = (exact(attention.v_proj.weight) @ beta).view(attention.n_key_heads, 1, -1)
    return heads.b_v + shared(of_beta, heads.record.group)


def _residuals(heads: Heads, rows: slice, count: int) -> Tensor:
    """Which input is the residual of each row: the first in cross-attention, else its own."""
    places = torch.arange(count)
    if heads.kind is CROSS:
        return torch.zeros_like(places)
    return places + rows.start


def _moved(
    update: stream.SublayerUpdate, heads: Heads, weights: Tensor, values: Tensor, rows: slice
) -> Tensor:
    """(rows, inputs, d_model) what each input gives to some rows, before any norm."""
    residual = update.record.before.double()[rows]
    moved = torch.einsum("hqk,hkd->qkd", weights, values)
    if heads.kind is CROSS:
        moved = torch.cat([torch.zeros_like(residual)[:, None], moved], 1)
    moved[torch.arange(len(residual)), _residuals(heads, rows, len(residual))] += residual
    return moved


def _nearness(moved: Tensor, total: Tensor, residuals: Tensor) -> Tensor:
    """(rows, inputs) how much nearer each input brings the sum of a row, as shares."""
    near = total.abs().sum(-1, keepdim=True) - (total[:, None] - moved).abs().sum(-1)
    near = near.clamp(min=0)
    alone = near.sum(-1) == 0  # a block that nothing brings nearer is given to its residual
    near[alone, residuals[alone]] = 1.0
    return near / near.sum(-1, keepdim=True)
