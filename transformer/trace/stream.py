"""The audit of a run's residual stream: what entered, was read, added and left each sub-layer.

Without the model, a file's stream is checked wherever no LayerNorm and no projection stands between two
recorded tensors; with the model, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer import interventions as do
from transformer.interventions import PatchPlace
from transformer.interventions.acting import Change
from transformer.model.config import ModelConfig
from transformer.model.encodings.positions import Rotary
from transformer.model.encodings.table import ENCODINGS
from transformer.model.network import Network
from transformer.model.norms import StreamNorm, centred, shift, spread
from transformer.model.sites import Side, Sublayer
from transformer.trace.equations import STREAM, patched_textbook
from transformer.trace.records import AttentionTrace, MemoryTrace, ResidualTrace
from transformer.trace.report import Check

SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""

Pair = tuple[Tensor | None, Tensor | None]
"""A recorded tensor, and what it must be; None on one side only is a contradiction."""


def audit_stream(
    trace: AttentionTrace,  # what was recorded
    basis: Network | ModelConfig,  # the model, or its config if there is no model
    limit: float,  # largest difference, as a share of the largest number
) -> list[Check]:
    """Compares a recorded stream with the model's equations, and with those of the run's changes.

    Returns:
        One check; none if the stream was not recorded, and nothing was changed that it must show.
    """
    stacks = (basis.config if isinstance(basis, Network) else basis).stacks
    unrecorded = not trace.residuals and any(stack.passed() for stack in stacks.values())
    if unrecorded or (trace.memory is None and "encoder" in stacks):
        needed = any(value.needs_stream for value in trace.interventions) or _marked(trace)
        return [Check(STREAM, math.inf, limit)] if needed else []
    worst = [_difference(*pair) for pair in _Stream(trace, basis).pairs()]
    return [Check(STREAM, math.nan if any(value != value for value in worst) else max(worst), limit)]


def _marked(trace: AttentionTrace) -> bool:
    """Whether the trace holds something from before a change of the stream."""
    inputs = [embedding.own_input for embedding in trace.embeddings.values()]
    streams = [x for each in trace.residuals.values() for x in (each.own_update, each.own_output)]
    memory = None if trace.memory is None else trace.memory.own
    return any(x is not None for x in (*inputs, *streams, memory))


class _Stream:
    """The equations of one run's stream."""

    def __init__(self, trace: AttentionTrace, basis: Network | ModelConfig) -> None:
        self.trace = trace
        self.model = basis if isinstance(basis, Network) else None
        self.config = basis.config if isinstance(basis, Network) else basis
        self.values = trace.interventions
        self.bare = {value.side for value in self.values if isinstance(value, do.NoPositions)}
        self.dropped = {value.sublayer for value in self.values if isinstance(value, do.DropSublayer)}
        self.unnormed = {value.place for value in self.values if isinstance(value, do.DropNorm)}

    def pairs(self) -> Iterator[Pair]:
        """Every pair of tensors that must be equal."""
        for side in self.trace.embeddings:
            yield from self._entering(side)
        before = {side: embedding.input for side, embedding in self.trace.embeddings.items()}
        for sublayer, residual in self.trace.residuals.items():
            yield residual.stream, before[sublayer.side]
            yield from self._passing(sublayer, residual)
            before[sublayer.side] = residual.output
        if self.trace.memory is not None:
            yield from self._memory(self.trace.memory, before["encoder"])

    def _entering(self, side: Side) -> Iterator[Pair]:
        embedding = self.trace.embeddings[side]
        yield from self._patched(do.Embeddings(side), embedding.own_input, embedding.input)
        added = ENCODINGS[self.config.positions].acts == "embeddings" and side not in self.bare
        yield _present(added), _present(embedding.positions is not None)
        if side not in self.bare:
            return
        for kind, site in self.config.sites.items():
            if site.own_keys and site.query_side == side:
                for layer, record in enumerate(self.trace.layers[kind]):
                    yield _present(record.bias is not None), None
                    yield from self._unrotated(site.sublayer(layer), record.query)

    def _unrotated(self, sublayer: Sublayer, query: Tensor) -> Iterator[Pair]:
        """q = x W_Q + b_Q, without a rotation; needs the model."""
        if self.model is None or not isinstance(self.model.stack(sublayer.side).positions, Rotary):
            return
        attention = getattr(self.model.layer(sublayer.side, sublayer.layer), sublayer.name)
        maps = attention.q_proj
        weight, bias = (part.detach().float().cpu() for part in (maps.weight, shift(maps)))
        made = self.trace.residuals[sublayer].read @ weight.T + bias
        yield query, made.view(len(made), len(query), -1).transpose(0, 1)

    def _passing(self, sublayer: Sublayer, residual: ResidualTrace) -> Iterator[Pair]:
        norm = None if self.model is None else self.model.residual(sublayer).norm
        total = residual.stream + residual.update
        after = residual.output if residual.own_output is None else residual.own_output
        if self.config.norm == "pre":
            yield from self._normed(sublayer, norm, residual.stream, residual.read)
            yield after, total
        else:
            yield residual.read, residual.stream
            yield from self._normed(sublayer, norm, total, after)
        dropped = torch.zeros_like(residual.update) if sublayer in self.dropped else residual.update
        yield residual.update, dropped
        yield None if residual.own_update is None else dropped, dropped if sublayer in self.dropped else None
        yield from self._patched(do.Stream(sublayer), residual.own_output, residual.output)

    def _memory(self, memory: MemoryTrace, last: Tensor) -> Iterator[Pair]:
        own = memory.used if memory.own is None else memory.own
        if self.config.stacks["encoder"].passed():  # a recurrent memory is no stream: see `audit_places`
            yield from self._left(own, last)
        yield from self._patched(do.EncoderOutput(), memory.own, memory.used)

    def _left(self, own: Tensor, last: Tensor) -> Iterator[Pair]:
        """Output of the encoder, computed from its last stream."""
        if self.config.norm == "pre":
            norm = None if self.model is None else self.model.stack("encoder").final_norm
            yield from self._normed("encoder", norm, last, own)
        else:
            yield own, last

    def _normed(
        self, place: Sublayer | Side, norm: nn.Module | None, before: Tensor, after: Tensor
    ) -> Iterator[Pair]:
        """After = norm(before), or before itself if the norm is left out."""
        if place in self.unnormed:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def _patched(self, place: PatchPlace, own: Tensor | None, used: Tensor) -> Iterator[Pair]:
        patches = [change for change in self.trace.changes if _patches(change, place)]
        if not patches:
            yield own, None
            return
        yield None if own is None else used, used
        expected = used if own is None else own
        for change in patches:
            assert isinstance(change.value, do.Patch)
            material = None if change.material is None else change.material.float().numpy()
            expected = torch.from_numpy(patched_textbook(expected.numpy(), change.value, material))
        yield used, expected


def _patches(change: Change, place: PatchPlace) -> bool:
    return isinstance(change.value, do.Patch) and change.value.place == place


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    x = x.double()
    weight, bias = (part.detach().double().cpu() for part in (norm.weight, shift(norm)))
    found: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return found


def _present(there: bool) -> Tensor | None:
    """A tensor if something is there, else None, so that presence can be compared."""
    return torch.zeros(1) if there else None


def _difference(found: Tensor | None, expected: Tensor | None) -> float:
    if found is None or expected is None:
        return 0.0 if found is expected else math.inf
    if found.shape != expected.shape:
        return math.inf
    scale = max(SMALLEST_SCALE, float(expected.abs().max()))
    return float((found.double() - expected.double()).abs().max()) / scale
