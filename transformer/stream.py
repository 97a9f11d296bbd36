"""The audit of a run's residual stream: what entered, was read, added and left each sub-layer."""

import math
from collections.abc import Iterator

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from transformer import equations
from transformer.attention import MultiHeadAttention
from transformer.config import ENCODINGS, ModelConfig, Side, Sublayer
from transformer.encodings import Rotary
from transformer.hooks import HookName
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
    model = basis if isinstance(basis, Network) else None
    config = basis.config if isinstance(basis, Network) else basis
    has_stream = any(stack.passed() for stack in config.stacks.values())
    lacks_stream = has_stream and not trace.residuals
    lacks_memory = "encoder" in config.stacks and "encoder.output" not in trace.tensors
    if lacks_stream or lacks_memory:
        needed = any(change.value.part == "stream" for change in trace.changes)
        needed |= any(_shows_change(HookName.of(name)) for name in trace.tensors)
        return [Check(STREAM, math.inf, limit)] if needed else []
    pairs = _Pairs(trace, config, model)
    differences = (difference(*pair, SMALLEST_SCALE) for pair in pairs.all())
    return [Check(STREAM, worst(0.0, *differences), limit)]


def _shows_change(name: HookName) -> bool:
    """Whether a recording is the value of the stream before something changed it."""
    return name.original and name.part in ("input", "output", "stream")


class _Pairs:
    """Every pair that must be equal; whether something is there, and whether it must be, are such a
    pair."""

    def __init__(self, trace: AttentionTrace, config: ModelConfig, model: Network | None) -> None:
        self.trace = trace
        self.config = config
        self.model = model
        self.acting = dict[str, list[Change]]()  # changes by the name at which they act
        for change in trace.changes:
            for name in change.value.hooks(config):
                self.acting.setdefault(name, []).append(change)

    def all(self) -> Iterator[Pair]:
        """Those of what enters, of every sub-layer, and of the encoder's output."""
        for side in self.trace.embeddings:
            yield from self._entered(side)
        for sublayer in self.trace.residuals:
            yield from self._passed(sublayer)
        if "encoder.output" in self.trace.tensors:
            yield from self._memory()

    def _normed(
        self, path: str, norm: nn.Module | None, before: Tensor, after: Tensor
    ) -> Iterator[Pair]:
        """After = norm(before), or before itself if the norm is left out."""
        if f"{path}.norm" in self.acting:
            yield after, before
        elif isinstance(norm, StreamNorm):
            yield after, textbook_norm(norm, before)

    def _patched(self, name: str) -> Iterator[Pair]:
        """What is used = what was there, with what patches put in."""
        original = self.trace.tensors.get(f"{name}.own")
        used = self.trace.tensors[name]
        patches = self.acting.get(name, [])
        yield bool(patches), original is not None
        expected = (used if original is None else original).numpy()
        for change in patches:
            assert isinstance(change.value, Patch)
            material = None if change.material is None else change.material.float().numpy()
            expected = equations.patched_textbook(expected, change.value, material)
        yield used, expected  # without patches and an own value, the same

    def _entered(self, side: Side) -> Iterator[Pair]:
        """What entered a stack, and whether positions were added."""
        yield from self._patched(f"{side}.input")
        bare = f"{side}.encoding" in self.acting
        adds = ENCODINGS[self.config.positions].acts == "embeddings" and not bare
        yield adds, self.trace.embeddings[side].positions is not None
        if bare:
            yield from self._bare(side)

    def _passed(self, sublayer: Sublayer) -> Iterator[Pair]:
        """What a sub-layer read and added, and the stream after it."""
        residual = self.trace.residuals[sublayer]
        norm = None if self.model is None else self.model.residual(sublayer).norm
        total = residual.before + residual.output
        after = residual.stream if residual.own_stream is None else residual.own_stream
        if self.config.norm == "pre":
            yield from self._normed(sublayer.path, norm, residual.source, residual.read)
            yield after, total
        else:
            yield residual.read, residual.source
            yield from self._normed(sublayer.path, norm, total, after)
        dropped = f"{sublayer.path}.output" in self.acting
        yield dropped, residual.own_output is not None
        if dropped:
            yield residual.output, torch.zeros_like(residual.output)
        yield from self._patched(f"{sublayer.path}.stream")

    def _memory(self) -> Iterator[Pair]:
        """What cross-attention reads, from the last stream of the encoder."""
        used = self.trace.tensors["encoder.output"]
        original = self.trace.tensors.get("encoder.output.own", used)
        # a recurrent memory is no stream: see ``audit_places``
        if self.config.stacks["encoder"].passed():
            last = self._last("encoder")
            if self.config.norm == "post":
                yield original, last
            else:
                norm = None if self.model is None else self.model.stack("encoder").final_norm
                yield from self._normed("encoder", norm, last, original)
        yield from self._patched("encoder.output")

    def _last(self, side: Side) -> Tensor:
        """The stream after the last sub-layer of a stack; without any, its input."""
        stream = self.trace.embeddings[side].input
        for sublayer, residual in self.trace.residuals.items():
            if sublayer.side == side:
                stream = residual.stream
        return stream

    def _bare(self, side: Side) -> Iterator[Pair]:
        """Without positions: no bias, and q = x W_Q + b_Q without a rotation, which needs the
        model."""
        for sublayer, residual in self.trace.residuals.items():
            if sublayer.side != side or sublayer.name != "self_attention":
                continue
            record = self.trace.layer(side, sublayer.layer)
            yield record.bias is not None, False
            if self.model is not None and isinstance(self.model.stack(side).positions, Rotary):
                attention = self.model.attention(record.kind, sublayer.layer)
                assert isinstance(attention, MultiHeadAttention)
                weight = attention.q_proj.weight.detach().float().cpu()
                bias = shift(attention.q_proj).detach().float().cpu()
                queries = residual.read @ weight.T + bias
                n_heads = len(record.query)
                queries = queries.view(len(queries), n_heads, -1)
                if attention.q_norm is not None:
                    queries = textbook_norm(attention.q_norm, queries)
                yield record.query, queries.transpose(0, 1)


def textbook_norm(norm: StreamNorm, x: Tensor) -> Tensor:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016).

    RMSNorm has no μ and no β.
    """
    x = x.double()
    weight = norm.weight.detach().double().cpu()
    bias = shift(norm).detach().double().cpu()
    normed: Tensor = weight * centred(norm, x) / spread(norm, x) + bias
    return normed
