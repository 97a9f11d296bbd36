"""A recording of one sentence: named tensors, and every map that follows from them.

A trace keeps what attention consumed and produced, and the mask as a rule, so its memory grows with
n·d. Scores and weights are computed from these on demand, for each head and window. (A run's own
note on what a translation leaves out may be the first to ask: see ``transformer.requests``.)
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from transformer.attention import SCALED_DOT, LocalWindow, ScoreRule, attention_weights
from transformer.config import AttentionKind, ModelConfig, Place, Side, Site, Sublayer
from transformer.encodings import ALL_HEADS, BIASES, BiasRule, Heads
from transformer.hooks import (
    CONSTANTS,
    UNFUSED,
    At,
    Capture,
    Edit,
    HookFunctions,
    HookName,
    Hooks,
    function_edits,
)
from transformer.interventions.edits import Change, edits
from transformer.layers import StreamNorm, make_norm, shift
from transformer.view import Array, AuditReport, BoolArray, HeadLabels, Window

REPLACED = 1e-5
"""Difference from its own weights from which on a row of a hooked attention counts as replaced."""


class AttentionMap(NamedTuple):
    """Equation 1 step by step: (queries, keys) of one head, or (heads, queries, keys)."""

    bias: Tensor | None  # what positions add to the scores; None if they add nothing
    scores: Tensor  # scaled, with bias, before the mask
    mask: Tensor  # (queries, keys) bool, True = may attend
    weights: Tensor  # softmax over all keys


class AttentionArrays(NamedTuple):
    """The same as arrays."""

    bias: Array | None
    scores: Array
    mask: BoolArray
    weights: Array


@dataclass(frozen=True, repr=False)
class LayerTrace:
    """One attention sub-layer for one sentence; every tensor is float32 on the CPU."""

    kind: AttentionKind
    number: int  # of the layer, from 0
    query: Tensor  # (heads, queries, d_head), after rotation if any
    # (key heads, keys, d_head), after rotation if any; each is read by a group of heads, often one
    key: Tensor
    value: Tensor  # (key heads, keys, d_head)
    output: Tensor  # (heads, queries, d_head), what attention really returned, and what W_O read
    key_padding: Tensor | None  # (keys,) bool, True for tokens; None if nothing is padded
    causal: bool  # whether query i sees only keys 0 to i
    bias: BiasRule | None = None  # rule for numbers added to the scores, or None
    # (heads, queries, keys) the weights that were used, if a user's function changed this attention
    used_weights: Tensor | None = None
    used_mask: Tensor | None = None  # (queries, keys) bool, if it changed the mask
    value_norms: Tensor | None = (
        None  # (heads, keys) ‖v_j W_O^h‖, if a file gives them; otherwise None
    )
    changes: tuple[Change, ...] = ()  # the interventions that act here
    edits: Mapping[str, Sequence[Edit]] = field(
        default_factory=dict
    )  # these, by part that fusing hides
    # (heads, queries, d_head) the output before something changed it; None if nothing did
    own_output: Tensor | None = None
    score: ScoreRule = SCALED_DOT  # how scores come from queries and keys
    focus: LocalWindow | None = None  # where each query looks, centres (queries,); None if anywhere

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def group(self) -> int:
        """Heads that read the same keys and values: heads h with the same h // group."""
        return self.query.shape[0] // self.key.shape[0]

    def keys(self, heads: Heads = ALL_HEADS) -> Tensor:
        """(keys, d_head) that a head reads, or (heads, keys, d_head) of several."""
        return self._of_heads(self.key, heads)

    def values(self, heads: Heads = ALL_HEADS) -> Tensor:
        """(keys, d_head) that a head reads, or (heads, keys, d_head) of several."""
        return self._of_heads(self.value, heads)

    def _of_heads(self, shared: Tensor, heads: Heads) -> Tensor:
        if self.group == 1:
            return shared[heads]
        return shared[torch.arange(self.shape[0])[heads] // self.group]

    def mask(self, rows: slice | None = None) -> Tensor:
        """(rows, keys) bool of some queries, by default all, True = may attend; interventions are
        in it."""
        rows = rows or slice(0, self.shape[1])
        if self.used_mask is not None:
            return self.used_mask[rows]
        n_keys = self.key.shape[1]
        if self.causal:
            positions = torch.arange(rows.start, rows.stop)[:, None]
            mask = torch.arange(n_keys) <= positions
        else:
            mask = torch.ones(rows.stop - rows.start, n_keys, dtype=torch.bool)
        if self.focus is not None:
            (near, _) = self.focus.cells(n_keys, rows)
            mask = mask & near
        if self.key_padding is not None:
            mask = mask & self.key_padding
        for edit in self.edits.get("mask", ()):
            mask = edit(mask, At(rows.start))
        return mask

    def map(self, heads: Heads = ALL_HEADS, window: Window | None = None) -> AttentionMap:
        """One head or several, as the model computed them and as changes made them."""
        edited = not self.edits.keys().isdisjoint(("scores", "weights"))
        if edited and heads != ALL_HEADS:  # edits act on all heads at once
            (bias, scores, mask, weights) = self.map(ALL_HEADS, window)
            bias = None if bias is None else bias[heads]
            return AttentionMap(bias=bias, scores=scores[heads], mask=mask, weights=weights[heads])
        rows = slice(0, self.query.shape[1]) if window is None else window.queries
        mask = self.mask(rows)
        (bias, scores) = self._scores(heads, rows, mask)
        weights = self._weights(heads, rows, scores, mask)
        if window is not None:
            bias = None if bias is None else bias[..., window.keys]
            scores = scores[..., window.keys]
            mask = mask[..., window.keys]
            weights = weights[..., window.keys]
        return AttentionMap(bias=bias, scores=scores, mask=mask, weights=weights)

    def _scores(self, heads: Heads, rows: slice, mask: Tensor) -> tuple[Tensor | None, Tensor]:
        """Bias and scores of some rows."""
        query = self.query[heads, rows]
        scores = self.score.scores(query, self.keys(heads), heads)
        bias = None
        undivided = None
        if self.bias is not None:
            positions = torch.arange(rows.start, rows.stop)
            bias = self.bias.scores(query, positions, torch.arange(self.key.shape[1]), heads)
            scores = scores + bias
            if not self.bias.divided:
                undivided = bias
        for edit in self.edits.get("scores", ()):
            scores = edit(scores, At(rows.start, mask, undivided))
        return bias, scores

    def _weights(self, heads: Heads, rows: slice, scores: Tensor, mask: Tensor) -> Tensor:
        """Weights of some rows from their scores."""
        factors = None
        if self.focus is not None:
            (_, factors) = self.focus.cells(self.key.shape[1], rows)
        weights = attention_weights(scores, mask, factors)
        for edit in self.edits.get("weights", ()):
            weights = edit(weights, At(rows.start, mask))
        if self.used_weights is not None:
            used = self.used_weights[heads, rows]
            replaced = (weights - used).abs().amax(-1, keepdim=True) > REPLACED
            weights = torch.where(replaced, used, weights)
        return weights


LAYER_PARTS = {
    "query": "query",
    "key": "key",
    "value": "value",
    "output": "heads",
    "own_output": "heads.own",
    "key_padding": "padding",
    "used_weights": "weights",
    "used_mask": "mask",
    "value_norms": "value_norms",
}
"""Fields of a ``LayerTrace`` that are tensors, with their names in a recording."""


@dataclass(frozen=True, repr=False)
class EmbeddingTrace:
    """The input of a stack for one sentence (sections 3.4 and 3.5)."""

    tokens: Tensor  # (length, d_model) token embeddings × √d_model
    positions: Tensor | None  # (length, d_model) encoding that was added; None if none was added
    input: Tensor  # (length, d_model) what the first layer received: the sum, or its norm
    own_input: Tensor | None = (
        None  # (length, d_model) before something was put in; None if nothing was
    )
    norm: StreamNorm | None = None  # what normalised the sum; None if nothing did

    @property
    def sum(self) -> Tensor:
        """(length, d_model) token embeddings + encoding."""
        return self.tokens if self.positions is None else self.tokens + self.positions


@dataclass(frozen=True, repr=False)
class ResidualTrace:
    """A sub-layer and the residual stream around it; each tensor is (length, d_model)."""

    before: Tensor  # the stream before the sub-layer
    # what the sub-layer reads: LayerNorm(source) with pre-norm, ``source`` with post-norm
    read: Tensor
    output: Tensor  # what the sub-layer adds
    stream: Tensor  # the stream after the sub-layer
    own_output: Tensor | None = None  # what the sub-layer returned, if something else is added
    own_stream: Tensor | None = None  # the stream before something was put in; None if nothing was
    entered: Tensor | None = None  # the stream that it reads, if it is another one than ``before``

    @property
    def source(self) -> Tensor:
        """The stream that the sub-layer reads: that before it, or the one that entered its layer."""
        return self.before if self.entered is None else self.entered


@dataclass(frozen=True, repr=False)
class TokenTrace:
    """Tokens that a stack read or that were written, which the labels of every picture must
    name."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # their names
    text: str = ""  # the text that they stand for
    first: int = 0  # position of the first


Made = TypeVar("Made")
Auditor = Callable[["AttentionTrace", tuple[Place, ...]], AuditReport]
Kind = AttentionKind | str


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTrace:
    """Everything that was recorded of one sentence."""

    tensors: Mapping[
        str, Tensor
    ]  # by the names of ``transformer.hooks``, float32 on the CPU, no batch
    config: ModelConfig  # the model's config
    dtype: torch.dtype  # that the model computed in; the coarser type if encoder and decoder differ
    auditor: Auditor = field(repr=False)  # runs the checks on the given sub-layers
    changes: tuple[Change, ...] = ()  # the interventions of the run, with what they put in
    # what was read by side, and what was "written"; empty if the trace does not know it
    tokens: Mapping[str, TokenTrace] = field(default_factory=dict)
    functions: tuple[str, ...] = ()  # names at which a user's functions changed the run
    _memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def layers(self) -> dict[AttentionKind, tuple[LayerTrace, ...]]:
        """One ``LayerTrace`` per kind and layer that was recorded."""
        by_name = edits(self.changes, self.config) if self.changes else {}
        layers = dict[AttentionKind, tuple[LayerTrace, ...]]()
        for kind, site in self.config.sites.items():
            of_kind = list[LayerTrace]()
            for number, path in enumerate(site.paths):
                if f"{path}.query" not in self.tensors:
                    break
                of_kind.append(self._layer(site, number, by_name))
            if of_kind:
                layers[kind] = tuple(of_kind)
        return layers

    def _layer(self, site: Site, number: int, by_name: Mapping[str, Sequence[Edit]]) -> LayerTrace:
        """The recording of one attention; ``by_name`` has the edits of the whole run."""
        path = site.paths[number]
        tensors = {field: self.tensors.get(f"{path}.{part}") for field, part in LAYER_PARTS.items()}
        table = self.tensors.get(f"{path}.bias")
        bias = None
        if table is not None:
            rule = next(rule for rule, axes in BIASES.items() if axes == table.dim())
            bias = BiasRule(rule, table)
        centres = self.tensors.get(f"{path}.centres")
        focus = None if centres is None else LocalWindow(centres, self.config.reach)
        changes = tuple(
            change
            for change in self.changes
            if change.value.heads_of(site.kind, number, self.config.n_heads)
        )
        acting = {
            part: by_name[f"{path}.{part}"] for part in UNFUSED if f"{path}.{part}" in by_name
        }
        return LayerTrace(
            kind=site.kind,
            number=number,
            causal=site.causal,
            bias=bias,
            changes=changes,
            edits=acting,
            score=ScoreRule(site.score, self.tensors.get(f"{path}.vector")),
            focus=focus,
            **tensors,  # type: ignore[arg-type]  # a recording with queries has keys and values
        )

    @cached_property
    def embeddings(self) -> dict[Side, EmbeddingTrace]:
        """One ``EmbeddingTrace`` per side that ran."""
        traces = dict[Side, EmbeddingTrace]()
        for side in self.config.stacks:
            tokens = self.tensors.get(f"{side}.tokens")
            entered = self.tensors.get(f"{side}.input")
            if tokens is not None and entered is not None:
                traces[side] = EmbeddingTrace(
                    tokens=tokens,
                    positions=self.tensors.get(f"{side}.positions"),
                    input=entered,
                    own_input=self.tensors.get(f"{side}.input.own"),
                    norm=self._embedding_norm(side),
                )
        return traces

    def _embedding_norm(self, side: Side) -> StreamNorm | None:
        gain = self.tensors.get(f"{side}.input.gain")
        if gain is None:
            return None
        norm = make_norm(self.config).requires_grad_(False)
        norm.weight.copy_(gain)
        shift(norm).copy_(self.tensors[f"{side}.input.shift"])
        return norm

    @cached_property
    def residuals(self) -> dict[Sublayer, ResidualTrace]:
        """One ``ResidualTrace`` per sub-layer; empty unless the residual stream was requested."""
        traces = dict[Sublayer, ResidualTrace]()
        for side, stack in self.config.stacks.items():
            before = self.tensors.get(f"{side}.input")
            entered = None  # the present layer
            for sublayer in stack.passed():
                stream = self.tensors.get(f"{sublayer.path}.stream")
                if before is None or stream is None:
                    break
                first = sublayer.name == stack.sublayers[0]
                if first:
                    entered = before
                traces[sublayer] = ResidualTrace(
                    before=before,
                    read=self.tensors[f"{sublayer.path}.read"],
                    output=self.tensors[f"{sublayer.path}.output"],
                    stream=stream,
                    own_output=self.tensors.get(f"{sublayer.path}.output.own"),
                    own_stream=self.tensors.get(f"{sublayer.path}.stream.own"),
                    entered=entered if self.config.parallel and not first else None,
                )
                before = stream
        return traces

    def layer(self, kind: Kind, layer: int, head: int | None = None) -> LayerTrace:
        """One attention sub-layer; IndexError if there is none, or no such head in it (both from
        0)."""
        layers = self.layers.get(AttentionKind(kind), ())
        if not 0 <= layer < len(layers):
            count = f"this trace has {len(layers)}, counted from 0"
            raise IndexError(f"There is no {kind} layer {layer}; {count}.")
        record = layers[layer]
        if head is not None and not 0 <= head < record.shape[0]:
            raise IndexError(
                f"There is no head {head}; a layer has {record.shape[0]}, counted from 0."
            )
        return record

    def map(
        self, kind: Kind, layer: int, head: int | None = None, window: Window | None = None
    ) -> AttentionArrays:
        """Equation 1 of one head, or of all, as arrays."""
        record = self.layer(kind, layer, head)
        (bias, scores, mask, weights) = record.map(ALL_HEADS if head is None else head, window)
        return AttentionArrays(
            bias=None if bias is None else bias.numpy(),
            scores=scores.numpy(),
            mask=mask.numpy(),
            weights=weights.numpy(),
        )

    def weights(
        self, kind: Kind, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array:
        """Weights: (queries, keys) of one head, or (heads, queries, keys) of all.

        Rows sum to 1; in local attention, whose weights a Gaussian multiplies, to less.
        """
        return self.map(kind, layer, head, window).weights

    def labels(self, kind: Kind) -> HeadLabels | None:
        """The tokens along the maps of a kind, as they were read and written; None if they are not
        known."""
        if not self.tokens:
            return None
        site = self.config.sites[AttentionKind(kind)]
        written = self.tokens["written"].pieces if site.query_side == "decoder" else None
        return HeadLabels(
            self.tokens[site.query_side].pieces, written, self.tokens[site.key_side].pieces
        )

    @property
    def places(self) -> tuple[Place, ...]:
        """Every attention sub-layer of the trace."""
        return tuple(
            (kind, layer) for kind, layers in self.layers.items() for layer in range(len(layers))
        )

    def audit(self, *places: Place) -> AuditReport:
        """Runs the checks of ``transformer.audit`` on the given sub-layers, by default all;
        cached."""
        return self.once(places, lambda: self.auditor(self, places or self.places))

    @property
    def is_audited(self) -> bool:
        """Whether an audit was made, so that the checks of the whole run need not be made again."""
        return any(isinstance(value, AuditReport) for value in [*self._memo.values()])

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """A value that is made when this trace is asked for it first."""
        if key not in self._memo:
            self._memo.setdefault(key, make())
        value: Made = self._memo[key]
        return value

    @property
    def nbytes(self) -> int:
        """Bytes held by the records of attention."""
        parts = {"query", "key", "value", "heads", "padding", "weights", "mask"}
        return sum(
            tensor.nbytes
            for name, tensor in self.tensors.items()
            if HookName.of(name).part in parts
        )


def trace_of(
    hooks: Hooks,
    config: ModelConfig,
    auditor: Auditor,
    row: int = 0,  # the row of the batch
    changes: Sequence[Change] = (),  # the interventions that acted
    tokens: Mapping[str, TokenTrace] | None = None,  # what was read and written
    functions: Sequence[str] = (),  # names at which a user's functions acted
) -> AttentionTrace | None:
    """What hooks recorded of one row of the batch; None if it was no attention."""
    tensors = dict[str, Tensor]()
    dtypes = set[torch.dtype]()
    for name, calls in hooks.recorded.items():
        value = hooks.values(name)
        part = HookName.of(name).part
        if part in ("query", "tokens"):
            dtypes.add(value.dtype)
        tensor = _of_row(value, part, row)
        if len(calls) == 1:  # which may be the model's own, or a view of a cache
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        tensors[name] = tensor
    if not dtypes:
        return None
    return AttentionTrace(
        tensors=tensors,
        config=config,
        dtype=max(dtypes, key=lambda dtype: torch.finfo(dtype).eps),
        auditor=auditor,
        changes=tuple(changes),
        tokens=tokens or {},
        functions=tuple(functions),
    )


def _of_row(value: Tensor, part: str, row: int) -> Tensor:
    """What a batch recorded of one of its rows, on the CPU, in float32 or bool."""
    if part not in CONSTANTS - {"padding"} | {"positions"}:  # the others are alike in all rows
        value = value[min(row, len(value) - 1)]
    if part in ("centres", "mask"):  # alike in all heads
        value = value[0]
    if value.dtype != torch.bool:
        value = value.float()
    return value.detach().cpu()


def hooks_of(
    config: ModelConfig,
    capture: Capture | None = None,  # what to record; None for nothing
    changes: Sequence[Change] = (),  # interventions, with what they put in
    # a user's functions by name, which act last
    functions: Mapping[str, HookFunctions] | None = None,
) -> Hooks | None:
    """The hooks of one pass; None if nobody looks. ValueError if the model has no place of a
    function."""
    by_name = edits(changes, config) if changes else {}
    record = set() if capture is None else {*capture.parts}
    of_user = function_edits(functions, config) if functions else {}
    for text, added in of_user.items():
        by_name.setdefault(text, []).extend(added)
        name = HookName.of(text)
        if name.part in UNFUSED and capture is not None:  # which only this run knows
            record.add(f"{name.path}.weights")
            if name.part == "mask":
                record.add(text)
    return Hooks(record, by_name) if record or by_name else None
