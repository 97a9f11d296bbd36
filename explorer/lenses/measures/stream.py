"""Who wrote a residual stream, and why two of its vectors have their score.

Every norm's σ is held fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from explorer.lenses.inside.inside import memory
from explorer.lenses.inside.parts import exact, multi_head, output_rows, projected, rotated
from transformer.attention import AttentionMask, shared
from transformer.config import AttentionKind, RecurrentConfig, Side, Sublayer
from transformer.hooks import At, Hooks
from transformer.layers import StreamNorm, shift, spread
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.trace import AttentionArrays, AttentionTrace, Kind, ResidualTrace
from transformer.view import Array, AuditReport, Check, HeadMap, read_only, sealed

TOKEN, POSITION, BIASES = "token", "position", "biases"
Tell = Callable[[float], object]
"""Hears what share of a measurement is done; it may raise, to end it."""


def silent(share: float) -> None:
    """Tells nobody."""


class UnmeasuredError(ValueError):
    """A measure is not defined for a run or a model; the message says why in one sentence."""


def recorded(run: Translation) -> AttentionTrace:
    """The trace of a run.

    NotCapturedError if there is none, UnmeasuredError if the run is changed or no Transformer's.
    """
    if isinstance(run.config, RecurrentConfig):
        reason = "a recurrent model has no sub-layers that write to a stream"
        raise UnmeasuredError(f"This measure needs a Transformer: {reason}.")
    if run.attention is None:
        raise NotCapturedError(
            "Attention was not recorded; translate with capture=Capture(residual=True)."
        )
    if run.interventions:
        raise UnmeasuredError("This measure takes a run without changes: remove them first.")
    return run.attention


def needs_step(run: Translation, step: int | None) -> None:
    """IndexError if a run has no such step, from 0; in an encoder's text, no such masked token."""
    if step is None or step in run.predictions:
        return
    if not run.config.writes:
        raise IndexError(f"The token {step}, from 0, is not masked in this text.")
    raise IndexError(f"There is no step {step}; this run has {len(run.steps)}, from 0.")


def needs_predictions(run: Translation) -> tuple[int, ...]:
    """The positions at which a run predicts a token; UnmeasuredError if it predicts none."""
    if not run.predictions:
        raise UnmeasuredError("No word is masked in this text, so none is predicted: mask one.")
    return tuple(run.predictions)


_SUMS = (
    "The parts sum to what the model computed: that proves their total, not which of them is whose."
)


def summed(name: str, missed: float, limit: float) -> AuditReport:
    """The audit of parts: by what share they miss their total, at most a limit, and what that
    proves."""
    return AuditReport((Check(name, missed, limit),), proofs=(_SUMS,), claim="sums up")


# --- what is linear once every σ is fixed --------------------------------------------------------


class FixedNorm(NamedTuple):
    """A norm with the σ of a run: linear, but for β. RMSNorm takes no mean, and has no β."""

    gain: Tensor  # γ (d_model,)
    shift: Tensor  # β (d_model,)
    spread: Tensor  # √(σ² + ε) (length, 1)
    centres: bool  # whether it takes the mean

    @classmethod
    def of(cls, norm: nn.Module | None, entered: Tensor) -> FixedNorm | None:
        """The norm for what entered it (length, d_model); None without one."""
        if not isinstance(norm, StreamNorm):
            return None
        return cls(
            gain=exact(norm.weight),
            shift=exact(shift(norm)),
            spread=spread(norm, entered.double()),
            centres=not isinstance(norm, nn.RMSNorm),
        )

    def centred(self, part: Tensor) -> Tensor:
        """(…, d_model) without its mean, if the norm takes it."""
        return part - part.mean(-1, keepdim=True) if self.centres else part

    def scaled(self, part: Tensor, spread: Tensor) -> Tensor:
        """(…, d_model) of a part of what entered where the divisor is ``spread``, without β."""
        return self.gain * self.centred(part) / spread


class Heads:
    """All heads of an attention of a run and what they write, in float64; errors as `recorded`."""

    def __init__(self, model: Network, run: Translation, kind: Kind, layer: int) -> None:
        self.kind = AttentionKind(kind)
        self._trace = recorded(run)
        self.layer = layer
        self.record = self._trace.layer(kind, layer)
        attention = multi_head(model, self.kind, layer)
        # (heads, d_head, d_model), (d_model,)
        self.w_o, self.b_o = output_rows(model, self.kind, layer)
        by_key_head = exact(shift(attention.v_proj)).view(attention.n_key_heads, 1, -1)
        self.b_v = shared(by_key_head, self.record.group)
        """(heads, 1, d_head), which every query gets whatever it reads, since weights sum to 1."""

    def weights(self) -> Tensor:
        """(heads, queries, keys)"""
        return torch.as_tensor(self._trace.weights(self.kind, self.layer)).double()

    def values(self, without: Tensor | float = 0.0) -> Tensor:
        """(heads, keys, d_model) (v − ``without``) W_O: what each key would write as a whole."""
        return (self.record.values().double() - without) @ self.w_o


class SublayerUpdate(NamedTuple):
    """A sub-layer of a run, as far as a stream is concerned."""

    sublayer: Sublayer
    kind: AttentionKind | None  # its attention; None if it is none
    record: ResidualTrace
    norm: FixedNorm | None  # the norm after its sum; None with pre-norm


def written(model: Network, run: Translation, side: Side) -> tuple[SublayerUpdate, ...]:
    """The sub-layers of a stack in their order; errors as for ``recorded``."""
    recorded(run)
    kinds = {(site.query_side, site.name): kind for kind, site in model.config.sites.items()}
    updates = []
    for sublayer in model.config.stacks[side].passed():
        record = run.stream(sublayer)
        residual = model.residual(sublayer)
        norm = None
        if not residual.pre_norm:
            norm = FixedNorm.of(residual.norm, record.before + record.output)
        kind = kinds.get((side, sublayer.name))
        updates.append(SublayerUpdate(sublayer=sublayer, kind=kind, record=record, norm=norm))
    return tuple(updates)


def final_norm(model: Network, run: Translation, side: Side) -> FixedNorm | None:
    """The norm at the end of a pre-norm stack; None with post-norm."""
    last = run.stream(model.config.stacks[side].passed()[-1]).stream
    return FixedNorm.of(model.stack(side).final_norm, last)


# --- writers, and the score of a query and a key -------------------------------------------------


class Writer(NamedTuple):
    """Something that wrote to a stream."""

    # `token`, `position`, `biases` (with every LayerNorm's β), or the name of a sub-layer
    what: str
    layer: int | None = None  # its layer, from 0
    head: int | None = None  # its head, from 0, if it is one

    def __str__(self) -> str:
        name = self.what.replace("_", "-")
        if self.layer is not None:
            name += f" L{self.layer + 1}"
        if self.head is not None:
            name += f" H{self.head + 1}"
        return name


def parts(
    model: Network, run: Translation, side: Side, place: int, reader: Sublayer | None = None
) -> tuple[tuple[Writer, ...], Tensor]:
    """Who wrote what a sub-layer reads at a place, or what leaves the stack; (writers, d_model)."""
    embedded = run.trace.embeddings[side]
    names = [Writer(BIASES), Writer(TOKEN)]
    rows = [embedded.tokens[place].double()]
    if embedded.positions is not None:
        names.append(Writer(POSITION))
        rows.append(embedded.positions[place].double())
    stream = torch.stack([torch.zeros_like(rows[0]), *rows])
    stream = _normed(stream, FixedNorm.of(embedded.norm, embedded.sum), place)
    for update in written(model, run, side):
        if update.sublayer == reader:
            residual = model.residual(update.sublayer)
            norm = None
            if residual.pre_norm:
                norm = FixedNorm.of(residual.norm, update.record.before)
            break
        writers, vectors, bias = _update(model, run, update, place)
        names += writers
        stream[0] += bias
        stream = _normed(torch.cat([stream, vectors]), update.norm, place)
    else:
        norm = final_norm(model, run, side)
    return tuple(names), _normed(stream, norm, place)


def _normed(rows: Tensor, norm: FixedNorm | None, place: int) -> Tensor:
    """Parts (writers, d_model) of a stream at a place after a norm; β belongs to the biases."""
    if norm is None:
        return rows
    scaled = norm.scaled(rows, norm.spread[place])
    scaled[0] += norm.shift
    return scaled


def _update(
    model: Network, run: Translation, update: SublayerUpdate, place: int
) -> tuple[list[Writer], Tensor, Tensor | float]:
    """Who wrote the update of a sub-layer at a place, (writers, d_model), and the bias beside."""
    name = update.sublayer.name
    layer = update.sublayer.layer
    if update.kind is None:
        return [Writer(name, layer)], update.record.output[[place]].double(), 0.0
    heads = Heads(model, run, update.kind, layer)
    vectors = torch.einsum("hd,hdm->hm", heads.record.output[:, place].double(), heads.w_o)
    return [Writer(name, layer, head) for head in range(len(vectors))], vectors, heads.b_o


class ScoreParts(NamedTuple):
    """The score of one query and one key as a sum."""

    score: float  # as the model computed it, with the bias of positions, before the mask
    queries: tuple[Writer, ...]  # who wrote the stream of the query
    keys: tuple[Writer, ...]  # who wrote the stream of the key
    values: Array  # (queries, keys) float32; with ``bias`` they sum to the score
    bias: float  # what the positional encoding adds to the scaled product
    audit: AuditReport  # whether the parts sum to the score


def score_parts(
    model: Network, run: Translation, which: tuple[Kind, int, int], query: int, key: int
) -> ScoreParts:
    """Splits one score q·k / √d_k over pairs of what wrote the two streams (Elhage et al. 2021,
    "QK").

    A rotation acts on each part before the product; a model that does not divide by √d_k has parts
    of q·k. Returns (queries' writers, keys' writers) parts, without unit; with the bias of
    positions they sum to the score. NotCapturedError and UnmeasuredError as ``recorded``;
    IndexError if there is no such cell.
    """
    kind = AttentionKind(which[0])
    layer = which[1]
    head = which[2]
    score, bias = _cell(recorded(run).map(kind, layer, head), query, key)
    attention = multi_head(model, kind, layer)
    site = model.config.sites[kind]
    sublayer = site.sublayer(layer)
    queries, of_query = parts(model, run, site.query_side, query, sublayer)
    positions = None
    reader = None
    if site.own_keys:
        positions = model.stack(site.query_side).positions
        reader = sublayer
    keys, of_key = parts(model, run, site.key_side, key, reader)
    left = projected(attention, "query", of_query[:, None], head)
    left = rotated(positions, left, query)[:, 0]
    right = projected(attention, "key", of_key[:, None], head)
    right = rotated(positions, right, key)[:, 0]
    values = left @ right.T / attention.score.divisor(left.shape[-1])
    missed = abs(float(values.sum()) + bias - score) / max(1.0, float(values.abs().max()))
    return ScoreParts(
        score=score,
        queries=queries,
        keys=keys,
        values=read_only(values.float()),
        bias=bias,
        audit=summed("parts sum to the score", missed, 1e-4),
    )


def _cell(view: AttentionArrays, query: int, key: int) -> tuple[float, float]:
    """The score of a cell, and its bias of positions; IndexError if there is no such cell."""
    shape = view.scores.shape
    if not (0 <= query < shape[0] and 0 <= key < shape[1]):
        raise IndexError(f"There is no cell ({query}, {key}); this head has {shape}.")
    bias = 0.0 if view.bias is None else float(view.bias[query, key])
    return float(view.scores[query, key]), bias


# --- what keys carried ---------------------------------------------------------------------------


class Carried(NamedTuple):
    """Vectors that the keys of one head carried to its queries, by their lengths."""

    norms: Array  # (queries, keys) ‖α_ij x_j W_V W_O‖
    values: Array  # (keys,) ‖x_j W_V W_O‖, what a key would carry with a weight of 1
    bias: float  # ‖b_V W_O‖, which every query gets as a whole
    audit: AuditReport  # whether Σ_j α_ij x_j W_V W_O + b_V W_O is what the head wrote


def carried(model: Network, run: Translation, kind: Kind, layer: int, head: int) -> Carried:
    """The length of what each key added to each query of a head: ‖α x W_V W_O‖ (Kobayashi et al.
    2020).

    Returns (queries, keys) lengths in the unit of the stream, the length of every value, and of b_V
    W_O. NotCapturedError and UnmeasuredError as ``recorded``; IndexError if there is no such head.
    """
    weights = torch.as_tensor(recorded(run).weights(kind, layer, head)).double()
    heads = Heads(model, run, kind, layer)
    values = heads.values(heads.b_v)[head]
    always = heads.b_v[head] @ heads.w_o[head]
    wrote = heads.record.output[head].double() @ heads.w_o[head]
    missed = weights @ values + weights.sum(-1, keepdim=True) * always - wrote
    gap = float(missed.norm(dim=-1).max() / wrote.norm(dim=-1).max().clamp(min=1e-2))
    lengths = values.norm(dim=-1)
    return Carried(
        norms=read_only((weights.abs() * lengths).float()),
        values=read_only(lengths.float()),
        bias=float(always.norm()),
        audit=summed("parts sum to the head's output", gap, 1e-3),
    )


def carried_together(model: Network, run: Translation, kind: Kind, layer: int) -> Array:
    """The length of what all heads of a layer added from a key: ‖Σ_h α_h x_j W_V W_O‖.

    Several heads may cancel each other, so it is not the sum of their lengths (Kobayashi et al.
    2020, 2.2). Returns (queries, keys) float32 lengths; NotCapturedError and UnmeasuredError as
    ``recorded``.
    """
    heads = Heads(model, run, kind, layer)
    values = heads.values(heads.b_v)
    rows = heads.weights().unbind(1)
    lengths = [torch.einsum("hk,hkd->kd", row, values).norm(dim=-1) for row in rows]
    return read_only(torch.stack(lengths).float())


def shares(norms: Array) -> Array:
    """(queries, keys) what each key carried, as a share of its row's sum; 0 if that is 0."""
    total = norms.sum(-1, keepdims=True)
    return np.divide(norms, total, out=np.zeros_like(norms), where=total > 0)


def carried_map(view: HeadMap, carried: Carried) -> HeadMap:
    """A map, or a window of one, with shares of what was carried for its weights (``carried``)."""
    cells = (view.window.queries, view.window.keys)
    weights = shares(carried.norms)[cells]
    lengths = carried.norms[cells]
    lens = replace(view, weights=weights, measure="carried", measured=lengths)
    return sealed(lens, view.audit.joined(carried.audit))


_AT_ONCE = 2**22
"""Numbers of the streams that run at once."""


@torch.inference_mode()
def value_zeroing(model: Network, run: Translation, kind: Kind, layer: int) -> Array:
    """Value zeroing (Mohebbi et al. 2023): 1 − cos of a layer's output with and without each key's
    value.

    The key's value is 0 in every head of the layer, for all queries; the layer runs again to its
    end. Shares of a row, as they are usually drawn, hide how small such distances can be. Returns
    (queries, keys) float32; NotCapturedError and UnmeasuredError as ``recorded``.
    """
    kind = AttentionKind(kind)
    n_keys = recorded(run).layer(kind, layer).shape[2]
    site = model.config.sites[kind]
    stack = model.stack(site.query_side)
    device = model.embedding.weight.device
    causal = site.causal or not site.own_keys
    source = None
    if causal and AttentionKind.CROSS in model.config.sites:
        source = memory(model, run)[None].to(device)
    blocks = [
        update.record
        for update in written(model, run, site.query_side)
        if update.sublayer.layer == layer
    ]
    entered = blocks[0].before[None].to(device=device, dtype=stack.dtype)
    left = blocks[-1].stream.double()[None]
    place = f"{site.sublayer(layer).path}.value"
    rule = stack.positions.rules(len(stack.layers))[layer]
    distances = []
    at_once = max(1, _AT_ONCE // entered.numel())
    for first in range(0, n_keys, at_once):
        count = min(at_once, n_keys - first)
        output = stack.layers[layer](
            entered.expand(count, -1, -1),
            AttentionMask(causal=causal),
            stack.positions,
            rule,
            memory=None if source is None else source.expand(count, -1, -1),
            memory_mask=AttentionMask(),
            hooks=Hooks((), {place: [partial(_zeroed, first)]}),
        )
        distances.append(1 - torch.cosine_similarity(left, output.double().cpu(), dim=-1))
    return torch.cat(distances).T.float().contiguous().numpy()


def _zeroed(first: int, original: Tensor, at: At) -> Tensor:
    """Takes from row r of a batch the value of key ``first`` + r, in every head."""
    value = original.clone()
    rows = torch.arange(len(original))
    value[rows, :, rows + first] = 0
    return value
