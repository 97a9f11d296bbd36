"""A recording of one sentence: named tensors, and every map that follows from them.

A trace keeps what attention consumed and produced, and the mask as a rule, so its memory grows with
n·d. Scores and weights are computed from these on demand, for each head and window. (A run's own
note on what a translation leaves out may be the first to ask: see ``transformer.requests``.)
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.attention import SCALED_DOT, LocalWindow, ScoreRule, attention_weights
from transformer.config import AttentionKind, ModelConfig, Place, Side, Sublayer
from transformer.encodings import ALL_HEADS, BIASES, BiasRule, Heads
from transformer.hooks import (
    CONSTANTS,
    UNFUSED,
    At,
    Capture,
    Edit,
    HookFunctions,
    Hooks,
    function_edits,
)
from transformer.interventions.edits import Change, edits
from transformer.layers import StreamNorm, make_norm, shift
from transformer.view import Array, AuditReport, HeadLabels, Window

REPLACED = 1e-5
"""Difference from its own weights from which on a row of a hooked attention counts as replaced."""


class AttentionMap(NamedTuple):
    """Equation 1 step by step: (queries, keys) of one head, or (heads, queries, keys)."""

    bias: Any  # what positions add to the scores; None if they add nothing
    scores: Any  # scaled, with bias, before the mask
    mask: Any  # (queries, keys) bool, True = may attend
    weights: Any  # softmax over all keys


@dataclass(frozen=True, repr=False)
class LayerTrace:
    """One attention sub-layer for one sentence; every tensor is float32 on the CPU."""

    kind: AttentionKind
    number: int  # of the layer, from 0
    query: Tensor  # (heads, queries, d_head), after rotation if any
    key: Tensor  # (heads, keys, d_head), after rotation if any
    value: Tensor  # (heads, keys, d_head)
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

    def mask(self, rows: slice | None = None) -> Tensor:
        """(rows, keys) bool of some queries, by default all, True = may attend; interventions are
        in it."""
        rows = rows or slice(0, self.shape[1])
        if self.used_mask is not None:
            return self.used_mask[rows]
        places = torch.arange(rows.start, rows.stop)[:, None]
        keys = torch.arange(self.key.shape[1])
        mask = (
            keys <= places if self.causal else torch.ones(len(places), len(keys), dtype=torch.bool)
        )
        if self.focus is not None:
            mask = mask & self.focus.cells(len(keys), rows)[0]
        if self.key_padding is not None:
            mask = mask & self.key_padding
        for edit in self.edits.get("mask", ()):
            mask = edit(mask, At(rows.start))
        return mask

    def map(self, heads: Heads = ALL_HEADS, window: Window | None = None) -> AttentionMap:
        """One head or several, as the model computed them and as changes made them."""
        if not self.edits.keys().isdisjoint(("scores", "weights")) and heads != ALL_HEADS:
            bias, scores, mask, weights = self.map(ALL_HEADS, window)
            return AttentionMap(
                None if bias is None else bias[heads], scores[heads], mask, weights[heads]
            )
        rows = slice(0, self.query.shape[1]) if window is None else window.queries
        keys = torch.arange(self.key.shape[1])
        bias = None
        query = self.query[heads, rows]
        positions = torch.arange(rows.start, rows.stop)
        scores = self.score.scores(query, self.key[heads], heads)
        if self.bias is not None:
            bias = self.bias.scores(query, positions, keys, heads)
            scores = scores + bias
        mask = self.mask(rows)
        at = At(rows.start, mask, None if self.bias is None or self.bias.divided else bias)
        for edit in self.edits.get("scores", ()):
            scores = edit(scores, at)
        factors = None if self.focus is None else self.focus.cells(len(keys), rows)[1]
        weights = attention_weights(scores, mask, factors)
        for edit in self.edits.get("weights", ()):
            weights = edit(weights, at)
        if self.used_weights is not None:
            used = self.used_weights[heads, rows]
            weights = torch.where(
                (weights - used).abs().amax(-1, keepdim=True) > REPLACED, used, weights
            )
        parts = (bias, scores, mask, weights)
        cut = ALL_HEADS if window is None else window.keys
        return AttentionMap(*(None if part is None else part[..., cut] for part in parts))


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
    # what the sub-layer reads: LayerNorm(before) with pre-norm, ``before`` with post-norm
    read: Tensor
    output: Tensor  # what the sub-layer adds
    stream: Tensor  # the stream after the sub-layer
    own_output: Tensor | None = None  # what the sub-layer returned, if something else is added
    own_stream: Tensor | None = None  # the stream before something was put in; None if nothing was


@dataclass(frozen=True, repr=False)
class TokenTrace:
    """Tokens that a stack read or that were written, which the labels of every picture must
    name."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # their names
    text: str = ""  # the text that they stand for
    first: int = 0  # position of the first


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
        changed = edits(self.changes, self.config) if self.changes else {}
        found = dict[AttentionKind, tuple[LayerTrace, ...]]()
        get = self.tensors.get
        for kind, site in self.config.sites.items():
            for layer in range(site.n_layers):
                path = site.sublayer(layer).path
                parts: dict[str, Any] = {
                    name: get(f"{path}.{part}") for name, part in LAYER_PARTS.items()
                }
                if parts["query"] is None:
                    break
                table, vector, centres = (
                    get(f"{path}.{part}") for part in ("bias", "vector", "centres")
                )
                if table is not None:
                    rule = next(rule for rule, axes in BIASES.items() if axes == table.dim())
                    parts["bias"] = BiasRule(rule, table)
                if centres is not None:
                    parts["focus"] = LocalWindow(centres, self.config.reach)
                parts["score"], parts["causal"] = ScoreRule(site.score, vector), site.causal
                parts["changes"] = tuple(
                    change
                    for change in self.changes
                    if change.value.heads_of(kind, layer, self.config.n_heads)
                )
                names = {part: f"{path}.{part}" for part in UNFUSED}
                parts["edits"] = {
                    part: changed[name] for part, name in names.items() if name in changed
                }
                found[kind] = (*found.get(kind, ()), LayerTrace(kind, layer, **parts))
        return found

    @cached_property
    def embeddings(self) -> dict[Side, EmbeddingTrace]:
        """One ``EmbeddingTrace`` per side that ran."""
        traces = dict[Side, EmbeddingTrace]()
        get = self.tensors.get
        for side in self.config.stacks:
            tokens, entered, own = (
                get(f"{side}.{name}") for name in ("tokens", "input", "input.own")
            )
            gain = get(f"{side}.input.gain")
            norm = None
            if gain is not None:
                norm = make_norm(self.config).requires_grad_(False)
                norm.weight.copy_(gain)
                shift(norm).copy_(self.tensors[f"{side}.input.shift"])
            if tokens is not None and entered is not None:
                traces[side] = EmbeddingTrace(tokens, get(f"{side}.positions"), entered, own, norm)
        return traces

    @cached_property
    def residuals(self) -> dict[Sublayer, ResidualTrace]:
        """One ``ResidualTrace`` per sub-layer; empty unless the residual stream was requested."""
        traces = dict[Sublayer, ResidualTrace]()
        for side, stack in self.config.stacks.items():
            before = self.tensors.get(f"{side}.input")
            for sublayer in stack.passed():
                names = ("read", "output", "stream", "output.own", "stream.own")
                parts: list[Any] = [self.tensors.get(f"{sublayer.path}.{name}") for name in names]
                if before is None or parts[2] is None:
                    break
                traces[sublayer] = ResidualTrace(before, *parts)
                before = parts[2]
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
    ) -> AttentionMap:
        """Equation 1 of one head, or of all, as arrays."""
        found = self.layer(kind, layer, head).map(ALL_HEADS if head is None else head, window)
        return AttentionMap(*(None if part is None else part.numpy() for part in found))

    def weights(
        self, kind: Kind, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array:
        """Weights: (queries, keys) of one head, or (heads, queries, keys) of all.

        Rows sum to 1; in local attention, whose weights a Gaussian multiplies, to less.
        """
        weights: Array = self.map(kind, layer, head, window).weights
        return weights

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
        report: AuditReport = self.once(places, lambda: self.auditor(self, places or self.places))
        return report

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A value that is made when this trace is asked for it first."""
        return self._memo[key] if key in self._memo else self._memo.setdefault(key, make())

    @property
    def nbytes(self) -> int:
        """Bytes held by the records of attention."""
        parts = {"query", "key", "value", "heads", "padding", "weights", "mask"}
        names = {name: name.removesuffix(".own").rpartition(".")[2] for name in self.tensors}
        return sum(each.nbytes for name, each in self.tensors.items() if names[name] in parts)


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
    recorded = dict[str, Tensor]()
    types = set[torch.dtype]()
    for name, parts in hooks.recorded.items():
        value = hooks.values(name)
        part = name.removesuffix(".own").rpartition(".")[2]
        if part in ("query", "tokens"):
            types.add(value.dtype)
        if part not in CONSTANTS - {"padding"} | {"positions"}:  # the others are alike in all rows
            value = value[min(row, len(value) - 1)]
        if part in ("centres", "mask"):  # alike in all heads
            value = value[0]
        value = (value if value.dtype == torch.bool else value.float()).detach().cpu()
        # a part alone may be the model's, or a view of a cache
        recorded[name] = (
            value.clone(memory_format=torch.contiguous_format) if len(parts) == 1 else value
        )
    if not types:
        return None
    dtype = max(types, key=lambda dtype: torch.finfo(dtype).eps)
    return AttentionTrace(
        recorded, config, dtype, auditor, tuple(changes), tokens or {}, tuple(functions)
    )


def hooks_of(
    config: ModelConfig,
    capture: Capture | None = None,  # what to record; None for nothing
    changes: Sequence[Change] = (),  # interventions, with what they put in
    functions: Mapping[str, HookFunctions]
    | None = None,  # a user's functions by name; they act last
) -> Hooks | None:
    """The hooks of one pass; None if nobody looks. ValueError if the model has no place of a
    function."""
    by_name = edits(changes, config) if changes else {}
    record = set() if capture is None else {*capture.parts}
    for name, added in function_edits(functions, config).items() if functions else ():
        by_name.setdefault(name, []).extend(added)
        place, _, part = name.rpartition(".")
        if part in UNFUSED and capture is not None:
            record |= {
                f"{place}.weights",
                *([name] if part == "mask" else []),
            }  # which only this run knows
    return Hooks(record, by_name) if record or by_name else None
