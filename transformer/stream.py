"""The audit of a run's residual stream: what entered, was read, added and left each sub-layer."""

import math
from collections.abc import Iterator

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from transformer import equations
from transformer.config import ENCODINGS, ModelConfig, Side
from transformer.encodings import Rotary
from transformer.interventions import Patch
from transformer.interventions.edits import Change
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.trace import AttentionTrace
from transformer.view import Check, difference, worst

STREAM = "residual stream"
SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""
Pair = tuple[ArrayLike | None, ArrayLike | None]
"""What was recorded, and what it must be; None on one side only is a contradiction."""


def audit_stream(trace: AttentionTrace, basis: Network | ModelConfig, limit: float) -> list[Check]:
    """Compares a recorded stream with the model's equations, and with those of the run's changes.

    Without the model, a file's stream is checked wherever no LayerNorm and no projection stands
    between two recorded tensors; with the model, across LayerNorms, too. Projections are for
    ``audit_places``. No check if the stream was not recorded, and nothing was changed that it must
    show.
    """
    stacks = (basis.config if isinstance(basis, Network) else basis).stacks
    unrecorded = not trace.residuals and any(stack.passed() for stack in stacks.values())
    if unrecorded or ("encoder.output" not in trace.tensors and "encoder" in stacks):
        marked = any(
            name.endswith((".input.own", ".output.own", ".stream.own")) for name in trace.tensors
        )
        needed = marked or any(change.value.part == "stream" for change in trace.changes)
        return [Check(STREAM, math.inf, limit)] if needed else []
    model, config = (basis, basis.config) if isinstance(basis, Network) else (None, basis)
    differences = (difference(*pair, SMALLEST_SCALE) for pair in _pairs(trace, config, model))
    return [Check(STREAM, worst(0.0, *differences), limit)]


def _pairs(trace: AttentionTrace, config: ModelConfig, model: Network | None) -> Iterator[Pair]:
    """Every pair that must be equal; whether something is there, and whether it must be, are such a
    pair."""
    get = trace.tensors.get
    acting = dict[str, list[Change]]()
    for change in trace.changes:
        for name in change.value.hooks(config):
            acting.setdefault(name, []).append(change)

    def normed(path: str, norm: nn.Module | None, before: Tensor, after: Tensor) -> Iterator[Pair]:
        """After = norm(before), or before itself if the norm is left out."""
        if f"{path}.norm" in acting:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def patched(name: str) -> Iterator[Pair]:
        """What is used = what was there, with what patches put in."""
        own = get(f"{name}.own")
        used = trace.tensors[name]
        patches = acting.get(name, [])
        yield bool(patches), own is not None
        expected = (used if own is None else own).numpy()
        for change in patches:
            assert isinstance(change.value, Patch)
            array = None if change.material is None else change.material.float().numpy()
            expected = equations.patched_textbook(expected, change.value, array)
        yield used, expected  # without patches and an own value, the same

    before = {side: embedding.input for side, embedding in trace.embeddings.items()}
    for side, embedding in trace.embeddings.items():
        yield from patched(f"{side}.input")
        bare = f"{side}.encoding" in acting
        added = ENCODINGS[config.positions].acts == "embeddings" and not bare
        yield added, embedding.positions is not None
        if bare:
            yield from _bare(trace, config, model, side)
    for sublayer, each in trace.residuals.items():
        norm = None if model is None else model.residual(sublayer).norm
        total = each.before + each.output
        after = each.stream if each.own_stream is None else each.own_stream
        if config.norm == "pre":
            yield from normed(sublayer.path, norm, each.before, each.read)
            yield after, total
        else:
            yield each.read, each.before
            yield from normed(sublayer.path, norm, total, after)
        dropped = f"{sublayer.path}.output" in acting
        yield dropped, each.own_output is not None
        if dropped:
            yield each.output, torch.zeros_like(each.output)
        yield from patched(f"{sublayer.path}.stream")
        before[sublayer.side] = each.stream
    if (memory := get("encoder.output")) is not None:
        own = memory if (own := get("encoder.output.own")) is None else own
        if config.stacks[
            "encoder"
        ].passed():  # a recurrent memory is no stream: see ``audit_places``
            last = before["encoder"]
            final = (
                None
                if model is None or config.norm == "post"
                else model.stack("encoder").final_norm
            )
            yield from (
                [(own, last)] if config.norm == "post" else normed("encoder", final, last, own)
            )
        yield from patched("encoder.output")


def _bare(
    trace: AttentionTrace, config: ModelConfig, model: Network | None, side: Side
) -> Iterator[Pair]:
    """Without positions: no bias, and q = x W_Q + b_Q without a rotation, which needs the model."""
    for sublayer in (sublayer for sublayer in trace.residuals if sublayer.side == side):
        if sublayer.name == "self_attention":
            record = trace.layer(side, sublayer.layer)
            yield record.bias is not None, False
            if model is not None and isinstance(model.stack(side).positions, Rotary):
                maps = getattr(model.stack(side).layers[sublayer.layer], sublayer.name).q_proj
                weight, bias = (part.detach().float().cpu() for part in (maps.weight, shift(maps)))
                queries = trace.residuals[sublayer].read @ weight.T + bias
                yield (
                    record.query,
                    queries.view(len(queries), len(record.query), -1).transpose(0, 1),
                )


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al.

    2016). RMSNorm: no μ, β.
    """
    x = x.double()
    weight, bias = (part.detach().double().cpu() for part in (norm.weight, shift(norm)))
    normed: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return normed
