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
from transformer.interventions.edits import names
from transformer.layers import StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.trace import AttentionTrace, ResidualTrace
from transformer.view import Check

STREAM = "residual stream"
SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""
Pair = tuple[Tensor | None, Tensor | None]
"""A recorded tensor, and what it must be; None on one side only is a contradiction."""


def audit_stream(trace: AttentionTrace, basis: Network | ModelConfig, limit: float) -> list[Check]:
    """Compares a recorded stream with the model's equations, and with those of the run's changes.

    Without the model, a file's stream is checked wherever no LayerNorm and no projection stands between two
    recorded tensors; with the model, everywhere.

    Returns:
        One check; none if the stream was not recorded, and nothing was changed that it must show.
    """
    stacks = (basis.config if isinstance(basis, Network) else basis).stacks
    unrecorded = not trace.residuals and any(stack.passed() for stack in stacks.values())
    if unrecorded or (trace.memory is None and "encoder" in stacks):
        marked = any(name.endswith((".input.own", ".output.own", ".stream.own")) for name in trace.tensors)
        needed = marked or any(value.part == "stream" for value in trace.interventions)
        return [Check(STREAM, math.inf, limit)] if needed else []
    differences = (difference(*pair, SMALLEST_SCALE) for pair in _Stream(trace, basis).pairs())
    return [Check(STREAM, worst(0.0, *differences), limit)]


class _Stream:
    """The equations of one run's stream."""

    def __init__(self, trace: AttentionTrace, basis: Network | ModelConfig) -> None:
        self.trace = trace
        self.model = basis if isinstance(basis, Network) else None
        self.config = basis.config if isinstance(basis, Network) else basis
        self.values = trace.interventions
        self.bare = {value.side for value in self.values if isinstance(value, do.NoPositions)}
        left_out = (value for value in self.values if isinstance(value, do.DropSublayer | do.DropNorm))
        self.left_out = {name for value in left_out for name in names(value, self.config)}

    def pairs(self) -> Iterator[Pair]:
        """Every pair of tensors that must be equal."""
        for side, embedding in self.trace.embeddings.items():
            yield from self._patched(f"{side}.input", embedding.own_input, embedding.input)
            added = ENCODINGS[self.config.positions].acts == "embeddings" and side not in self.bare
            yield _present(added), _present(embedding.positions is not None)
            if side in self.bare:
                yield from self._bare(side)
        before = {side: embedding.input for side, embedding in self.trace.embeddings.items()}
        for sublayer, residual in self.trace.residuals.items():
            yield from self._passing(sublayer, residual)
            before[sublayer.side] = residual.output
        if (memory := self.trace.memory) is not None:
            own = self.trace.tensors.get("encoder.output.own")
            if self.config.stacks["encoder"].passed():  # a recurrent memory is no stream: see `audit_places`
                yield from self._left(memory if own is None else own, before["encoder"])
            yield from self._patched("encoder.output", own, memory)

    def _bare(self, side: Side) -> Iterator[Pair]:
        """No bias, and q = x W_Q + b_Q without a rotation, which needs the model."""
        for kind, site in self.config.sites.items():
            for layer, record in enumerate(self.trace.layers[kind]):
                if not site.own_keys or site.query_side != side:
                    continue
                yield _present(record.bias is not None), None
                if self.model is None or not isinstance(self.model.stack(side).positions, Rotary):
                    continue
                maps = getattr(self.model.layer(side, layer), site.name).q_proj
                weight, bias = (part.detach().float().cpu() for part in (maps.weight, shift(maps)))
                queries = self.trace.residuals[site.sublayer(layer)].read @ weight.T + bias
                yield record.query, queries.view(len(queries), len(record.query), -1).transpose(0, 1)

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
        drops = f"{sublayer.path}.output" in self.left_out
        dropped = torch.zeros_like(residual.update) if drops else residual.update
        yield residual.update, dropped
        yield None if residual.own_update is None else dropped, dropped if drops else None
        yield from self._patched(f"{sublayer.path}.stream", residual.own_output, residual.output)

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
        if f"{place if isinstance(place, str) else place.path}.norm" in self.left_out:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def _patched(self, name: str, own: Tensor | None, used: Tensor) -> Iterator[Pair]:
        patches = [
            (change.value, change.material)
            for change in self.trace.changes
            if isinstance(change.value, do.Patch) and do.placed(change.value.place)["hook"] == name
        ]
        if not patches:
            yield own, None
            return
        yield None if own is None else used, used
        expected = (used if own is None else own).numpy()
        for patch, material in patches:
            array = None if material is None else material.float().numpy()
            expected = equations.patched_textbook(expected, patch, array)
        yield used, torch.from_numpy(expected)


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    x = x.double()
    weight, bias = (part.detach().double().cpu() for part in (norm.weight, shift(norm)))
    normed: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return normed


def _present(there: bool) -> Tensor | None:
    """A tensor if something is there, else None, so that presence can be compared."""
    return torch.zeros(1) if there else None


def difference(recorded: Tensor | None, expected: Tensor | None, smallest: float) -> float:
    """Largest difference as a share of the largest number, or of ``smallest`` if it is larger."""
    if recorded is None or expected is None:
        return 0.0 if recorded is expected else math.inf
    if recorded.shape != expected.shape:
        return math.inf
    scale = max(smallest, float(expected.abs().max()))
    return float((recorded.double() - expected.double()).abs().max()) / scale


def worst(*values: float) -> float:
    """The largest value; NaN if any value is NaN, because NaN is never within a limit."""
    return math.nan if any(value != value for value in values) else max(values)
