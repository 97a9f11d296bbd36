"""The audit of a run's residual stream: what entered, was read, added and left each sub-layer."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer import equations
from transformer import interventions as do
from transformer.config import ENCODINGS, ModelConfig, Side, Sublayer
from transformer.encodings import Rotary
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.trace import AttentionTrace
from transformer.view import Check, difference, worst

STREAM = "residual stream"
_LEAVING_OUT = (do.DropSublayer, do.DropNorm)
SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""
Pair = tuple[Tensor | None, Tensor | None]
"""A recorded tensor, and what it must be; None on one side only is a contradiction."""


def audit_stream(trace: AttentionTrace, basis: Network | ModelConfig, limit: float) -> list[Check]:
    """Compares a recorded stream with the model's equations, and with those of the run's changes.

    Without the model, a file's stream is checked wherever no LayerNorm and no projection stands between two
    recorded tensors; with the model, across LayerNorms, too. Projections are for ``audit_places``.

    Returns:
        One check; none if the stream was not recorded, and nothing was changed that it must show.
    """
    stacks = (basis.config if isinstance(basis, Network) else basis).stacks
    unrecorded = not trace.residuals and any(stack.passed() for stack in stacks.values())
    if unrecorded or (trace.memory is None and "encoder" in stacks):
        marked = any(name.endswith((".input.own", ".output.own", ".stream.own")) for name in trace.tensors)
        needed = marked or any(value.part == "stream" for value in trace.interventions)
        return [Check(STREAM, math.inf, limit)] if needed else []
    model, config = (basis, basis.config) if isinstance(basis, Network) else (None, basis)
    differences = (difference(*pair, SMALLEST_SCALE) for pair in _pairs(trace, config, model))
    return [Check(STREAM, worst(0.0, *differences), limit)]


def _pairs(trace: AttentionTrace, config: ModelConfig, model: Network | None) -> Iterator[Pair]:
    """Every pair of tensors that must be equal."""
    values, get = trace.interventions, trace.tensors.get
    left_out = {name for each in values if isinstance(each, _LEAVING_OUT) for name in each.hooks(config)}

    def normed(
        place: Sublayer | Side, norm: nn.Module | None, before: Tensor, after: Tensor
    ) -> Iterator[Pair]:
        """After = norm(before), or before itself if the norm is left out."""
        if f"{place if isinstance(place, str) else place.path}.norm" in left_out:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def patched(name: str) -> Iterator[Pair]:
        """What is used = what was there, with what patches put in."""
        own, used = get(f"{name}.own"), trace.tensors[name]
        patches = [(each.value, each.material) for each in trace.changes if isinstance(each.value, do.Patch)]
        patches = [each for each in patches if each[0].hook == name]
        yield _present(bool(patches)), _present(own is not None)
        expected = (used if own is None else own).numpy()
        for patch, material in patches:
            array = None if material is None else material.float().numpy()
            expected = equations.patched_textbook(expected, patch, array)
        yield used, torch.from_numpy(expected)  # without patches and an own value, the same

    before = {side: embedding.input for side, embedding in trace.embeddings.items()}
    for side, embedding in trace.embeddings.items():
        yield from patched(f"{side}.input")
        bare = do.NoPositions(side) in values
        added = ENCODINGS[config.positions].acts == "embeddings" and not bare
        yield _present(added), _present(embedding.positions is not None)
        if bare:
            yield from _bare(trace, config, model, side)
    for sublayer, each in trace.residuals.items():
        norm = None if model is None else model.residual(sublayer).norm
        total, after = each.before + each.output, each.stream if each.own_stream is None else each.own_stream
        if config.norm == "pre":
            yield from normed(sublayer, norm, each.before, each.read)
            yield after, total
        else:
            yield each.read, each.before
            yield from normed(sublayer, norm, total, after)
        dropped = f"{sublayer.path}.output" in left_out
        yield _present(dropped), _present(each.own_output is not None)
        if dropped:
            yield each.output, torch.zeros_like(each.output)
        yield from patched(f"{sublayer.path}.stream")
        before[sublayer.side] = each.stream
    if (memory := trace.memory) is not None:
        last = before["encoder"]
        own = memory if (own := get("encoder.output.own")) is None else own
        if not config.stacks["encoder"].passed():
            pass  # a recurrent memory is no stream: see ``audit_places``
        elif config.norm == "pre":
            final = None if model is None else model.stack("encoder").final_norm
            yield from normed("encoder", final, last, own)
        else:
            yield own, last
        yield from patched("encoder.output")


def _bare(trace: AttentionTrace, config: ModelConfig, model: Network | None, side: Side) -> Iterator[Pair]:
    """Without positions: no bias, and q = x W_Q + b_Q without a rotation, which needs the model."""
    for kind, site in config.sites.items():
        for layer, record in enumerate(
            trace.layers[kind] if site.own_keys and site.query_side == side else ()
        ):
            yield _present(record.bias is not None), None
            if model is not None and isinstance(model.stack(side).positions, Rotary):
                maps = getattr(model.layer(side, layer), site.name).q_proj
                weight, bias = (part.detach().float().cpu() for part in (maps.weight, shift(maps)))
                queries = trace.residuals[site.sublayer(layer)].read @ weight.T + bias
                yield record.query, queries.view(len(queries), len(record.query), -1).transpose(0, 1)


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    x = x.double()
    weight, bias = (part.detach().double().cpu() for part in (norm.weight, shift(norm)))
    normed: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return normed


def _present(there: bool) -> Tensor | None:
    """A tensor if something is there, else None, so that presence can be compared."""
    return torch.zeros(1) if there else None
