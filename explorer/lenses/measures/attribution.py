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
        """The largest parts, from what spoke most for the logit to what spoke most against; others
        as one."""
        order = np.argsort(-np.abs(self.values), kind="stable").tolist()
        shown = sorted(order[:count], key=lambda at: -self.values[at])
        found = [(str(self.writers[at]), float(self.values[at])) for at in shown]
        rest = float(self.values[order[count:]].sum())
        return [*found, (f"{len(order) - count} others", rest)] if len(order) > count else found


def attribution(
    model: Network, run: Translation, step: int, token: int, against: int | None = None
) -> Attribution:
    """Splits z_A at a step, or z_A − z_B, over what wrote the decoder's stream, σ held fixed
    (direct path).

    Returns parts in nats (writers,), and those of heads by key (layers, heads, keys); they sum to
    the logit. NotCapturedError and UnmeasuredError as ``recorded``; IndexError if there is no such
    step or token.
    """
    direction, total, bias = _direction(model, run, step, token, against)
    writers, wrote = stream.parts(model, run, "decoder", step)
    numbers = wrote @ direction
    keys = dict[AttentionKind, list[Tensor]]()
    numbers[0] += bias
    for heads, here in _read(model, run, step, direction):
        keys.setdefault(heads.kind, []).insert(
            0, heads.weights()[:, step] * (heads.values() @ here)
        )
    by_key = {kind: read_only(torch.stack(layers).float()) for kind, layers in keys.items()}
    missed = abs(float(numbers.sum()) - total) / max(1.0, float(numbers.abs().max()))
    audit = stream.summed("parts sum to the logit", missed, 1e-4)
    return Attribution(total, writers, read_only(numbers.float()), by_key, audit)


def by_source(
    model: Network, run: Translation, step: int, token: int, against: int | None = None
) -> Array:
    """What all heads of cross-attention add to z_A, or z_A − z_B, through each source token (direct
    path).

    Without b_V, which every query gets whatever it reads. Returns (source,) parts in nats;
    NotCapturedError, UnmeasuredError and IndexError as ``attribution``.
    """
    direction, _, _ = _direction(model, run, step, token, against)
    found = torch.zeros(len(run.source_tokens), dtype=torch.float64)
    for heads, here in _read(model, run, step, direction):
        if heads.kind is CROSS:
            found += (heads.weights()[:, step] * (heads.values(heads.b_v) @ here)).sum(0)
    return read_only(found.float())


def _direction(
    model: Network, run: Translation, step: int, token: int, against: int | None
) -> tuple[Tensor, float, float]:
    """A direction of the output matrix (d_model,), the logit as the model computes it, and its
    bias."""
    recorded(run)
    weight, bias = model.projection
    ids = [token] if against is None else [token, against]
    if not all(0 <= each < len(weight) for each in ids):
        raise IndexError(f"There is no target token {max(ids)}; there are {len(weight):,}, from 0.")
    stream.needs_step(run, step)
    last = run.stream(model.config.stacks["decoder"].passed()[-1]).stream[step]
    with torch.inference_mode():
        logits = model.logits(leaving(model, "decoder", last))[ids].double().cpu()
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)[: len(ids)]
    constant = 0.0 if bias is None else float(signs @ exact(bias[ids]))
    return signs @ exact(weight[ids]) * model.config.output_scale, float(signs @ logits), constant


def _read(
    model: Network, run: Translation, step: int, direction: Tensor
) -> Iterator[tuple[Heads, Tensor]]:
    """The attentions from the decoder's end, each with the direction there, which reads the same
    number."""
    norm = stream.final_norm(model, run, "decoder")
    for each in reversed(stream.written(model, run, "decoder")):
        for passed in (norm, each.norm):
            if passed is not None:
                direction = passed.centred(passed.gain * direction) / passed.spread[step]
        norm = None
        if each.kind is not None:
            yield Heads(model, run, each.kind, each.sublayer.layer), direction


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
    for each in (*stream.written(model, run, "encoder"), *stream.written(model, run, "decoder")):
        if each.kind is not None:
            mixed, missed = _mixed(model, each, Heads(model, run, each.kind, each.sublayer.layer))
            blocks.setdefault(each.kind, []).append(mixed)
            worst = max(worst, missed)
    encoder, prefix = (
        torch.eye(len(tokens)).double() for tokens in (run.source_tokens, run.decoder_input_tokens)
    )
    for block in blocks[
        ENCODER
    ]:  # shares of a stack are those of its blocks, multiplied layer by layer
        encoder = block @ encoder
    source = torch.zeros(len(prefix), len(encoder)).double()
    for own, cross in zip(blocks[DECODER], blocks[CROSS], strict=True):
        source, prefix = (cross[:, :1] * (own @ each) for each in (source, prefix))
        source = source + cross[:, 1:] @ encoder
    audit = stream.summed(
        "transformed vectors and biases sum to what each block wrote", worst, 1e-3
    )
    within = {
        kind: tuple(layer.float().numpy() for layer in layers) for kind, layers in blocks.items()
    }
    return Shares(source.float().numpy(), prefix.float().numpy(), audit, within)


def _mixed(model: Network, update: stream.SublayerUpdate, heads: Heads) -> tuple[Tensor, float]:
    """(queries, inputs) shares of a block, in cross-attention the residual first; how far parts
    miss it."""
    across = heads.kind is CROSS
    norm = update.norm
    always = heads.b_v
    if norm is None and not across:  # with pre-norm, every value holds something of β
        matrix = exact(multi_head(model, heads.kind, heads.layer).v_proj.weight)
        always = always + (matrix @ exact(shift(model.residual(update.sublayer).norm))).view_as(
            always
        )
    # (heads, keys, d_model)
    weights = heads.weights()
    values = heads.values(always)
    residual = update.record.before.double()
    wrote = update.record.stream.double()
    constant = torch.einsum("hqk,hd->qd", weights, (always @ heads.w_o)[:, 0]) + heads.b_o
    found = []
    worst = 0.0
    size = max(1, AT_ONCE // values[0].numel())
    for start in range(0, len(residual), size):
        here = slice(start, start + size)
        own = residual[here]
        whole = wrote[here]
        rest = constant[here]
        count = torch.arange(len(own))
        at = torch.zeros_like(count) if across else count + start  # the place of the residual
        moved = torch.einsum("hqk,hkd->qkd", weights[:, here], values)
        if across:
            moved = torch.cat([torch.zeros_like(own)[:, None], moved], 1)
        moved[count, at] += own
        if norm is not None:
            moved = norm.scaled(moved, norm.spread[here][:, None])
            rest = norm.scaled(rest, norm.spread[here]) + norm.shift
        missed = (moved.sum(1) + rest - whole).norm(dim=-1)
        worst = max(worst, float((missed / whole.norm(dim=-1).clamp(min=1e-6)).max()))
        near = whole.abs().sum(-1, keepdim=True) - (whole[:, None] - moved).abs().sum(-1)
        near = near.clamp(min=0)
        alone = near.sum(-1) == 0  # a block that nothing brings nearer is given to its residual
        near[alone, at[alone]] = 1.0
        found.append(near / near.sum(-1, keepdim=True))
    return torch.cat(found), worst
