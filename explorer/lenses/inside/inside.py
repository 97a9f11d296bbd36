"""One query of one head, from the residual stream and back into it (section 3.2).

Vectors are rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from explorer.lenses.inside.parts import (
    Doubles,
    Floats,
    Product,
    as_array,
    compared,
    head_map,
    layer_norm,
    leaving,
    multi_head,
    output_rows,
    rotated,
)
from transformer.attention import MultiHeadAttention
from transformer.audit import OUTPUT_LIMIT, merged
from transformer.config import ENCODINGS, AttentionKind, PlacedHead, Site, Sublayer
from transformer.model import Network
from transformer.run import Translation
from transformer.trace import AttentionTrace, LayerTrace
from transformer.view import Array, AuditReport, Check, HeadView, Window, read_only


class Projection(NamedTuple):
    """A head's share of one linear map, x W + b."""

    # (in, out) float32; W_Q, W_K, W_V are (d_model, d_head), W_O is (d_head, d_model)
    weight: Array
    bias: Array  # (out,) float32

    def __call__(self, x: Array) -> Doubles:
        """x W + b in float64."""
        return x.astype(np.float64) @ self.weight.astype(np.float64) + self.bias


class ProductSpread(NamedTuple):
    """Variances of one head over one sentence: the reason for ÷ √d_k (section 3.2.1, note 4)."""

    products: float  # variance of q·k over all pairs of a query and a key that it may attend to
    pairs: int  # how many pairs these are
    query: float  # variance of the entries of all queries
    key: float  # variance of the entries of all keys
    d_head: int  # d_k


def product_spread(record: LayerTrace, head: int) -> ProductSpread:
    """Measures a head (from 0), recorded with unscaled queries and keys."""
    query = record.query[head].double()
    key = record.keys(head).double()
    products = (query @ key.T)[record.mask()]
    return ProductSpread(
        products=_variance(products),
        pairs=len(products),
        query=_variance(query),
        key=_variance(key),
        d_head=query.shape[-1],
    )


def _variance(numbers: Tensor) -> float:
    """Of all numbers; 0 if there are none."""
    return float(numbers.var(correction=0)) if numbers.numel() else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class InsideHead:
    """Everything that one head does for one query; float32, positions from 0."""

    row: int  # the position of the query
    view: HeadView  # the head, cut to the row of the query and all keys
    stream: Array  # (d_model,) the residual stream that arrives at the sub-layer
    read: Array  # (d_model,) x, the input that the sub-layer reads from the stream
    sources: Array  # (keys, d_model) the inputs from which keys and values are computed
    w_q: Projection  # W_Q and b_Q of this head
    w_k: Projection  # W_K and b_K
    w_v: Projection  # W_V and b_V
    w_o: Projection  # this head's rows of W_O, with the bias that all heads share
    # (d_head,) x W_Q + b_Q, normalised if the head does so, before any rotation
    query: Array
    key: Array  # (keys, d_head) before any rotation
    products: Array  # (keys,) q·k, of the rotated vectors if the encoding rotates
    divisor: float  # what the model divides q·k by: √d_k (equation 1), or 1 if it does not
    scaled: Array  # (keys,) q·k / √d_k (equation 1), or q·k where the model does not divide
    bias: Array | None  # (keys,) what the encoding adds to the scaled products; None if nothing
    rule: str  # name of the rule of that bias, such as ``alibi``; empty without one
    rotates: bool  # whether the encoding rotates queries and keys
    spread: ProductSpread  # variances of this head's products over the sentence
    outputs: Array  # (heads, d_head) the output of every head of the layer
    contributions: Array  # (heads, d_model) the part of the update that each head adds
    update: Array  # (d_model,) the output of the sub-layer
    added: Array  # (d_model,) stream + update
    # (d_model,) the stream that leaves: the sum, or with post-norm its LayerNorm
    next_stream: Array
    # what was recorded, compared with the same numbers computed from the weights
    audit: AuditReport


def look_inside(
    model: Network,
    translation: Translation,
    which: tuple[AttentionKind | str, int, int],
    row: int,
    decoded: Translation | None = None,
) -> InsideHead:
    """Opens one query of one head; NotCapturedError if no stream was recorded, IndexError if out of
    range."""
    place = (AttentionKind(which[0]), which[1], which[2])
    record = translation.trace.layer(*place)
    view = translation.head(*place, Window(row, row + 1, 0, record.shape[2]))
    opened = _Opened(model=model, translation=translation, place=place, row=row, view=view)
    inputs = _inputs(opened)
    vectors = _projected(opened, inputs)
    scores = _scored(opened)
    heads = _weighted(opened)
    leaving = _joined(opened, inputs, heads)
    checks = [*view.audit.checks]
    checks += [
        opened.check(name, pair)
        for step in (inputs, vectors, heads, leaving, scores)
        for name, pair in step.pairs.items()
    ]
    if decoded is not None:
        checks.append(_same_as(opened, decoded))
    return InsideHead(
        row=row,
        view=view,
        stream=inputs.stream,
        read=inputs.read,
        sources=inputs.sources,
        w_q=vectors.w_q,
        w_k=vectors.w_k,
        w_v=vectors.w_v,
        w_o=leaving.w_o,
        query=vectors.query,
        key=vectors.key,
        products=scores.products.astype(np.float32),
        divisor=scores.divisor,
        scaled=scores.scaled.astype(np.float32),
        bias=scores.bias,
        rule=scores.rule,
        rotates=vectors.rotates,
        spread=product_spread(record, view.head),
        outputs=heads.outputs,
        contributions=leaving.contributions.astype(np.float32),
        update=leaving.update,
        added=leaving.added.astype(np.float32),
        next_stream=leaving.next_stream,
        audit=merged(checks),
    )


# --- its steps, as the page walks through them ---------------------------------------------------

Pairs = Mapping[str, tuple[Floats, Floats]]
"""By the name of a check, what was computed from the weights and what was recorded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Opened:
    """The head and the query that are opened."""

    model: Network
    translation: Translation
    place: PlacedHead
    row: int  # the position of the query, from 0
    view: HeadView  # the head, cut to the row of the query and all keys

    @cached_property
    def record(self) -> LayerTrace:
        """What the sub-layer recorded."""
        return self.translation.trace.layer(*self.place)

    @property
    def site(self) -> Site:
        """Where its kind of attention reads and writes."""
        return self.model.config.sites[self.place[0]]

    @property
    def sublayer(self) -> Sublayer:
        """Its sub-layer of the stack."""
        return self.site.sublayer(self.place[1])

    @property
    def attention(self) -> MultiHeadAttention:
        """The module of its layer."""
        return multi_head(self.model, *self.place[:2])

    def check(self, name: str, *pairs: Sequence[Floats]) -> Check:
        """Compares pairs (computed, recorded) within the limit of the model's number type."""
        return compared(OUTPUT_LIMIT[self.attention.q_proj.weight.dtype], name, *pairs)

    def normed(self, x: Floats) -> Doubles:
        """The norm of the sub-layer, in float64."""
        return layer_norm(self.model.residual(self.sublayer).norm, x)

    @property
    def pre_norm(self) -> bool:
        """Whether the norm stands before the sub-layer."""
        return self.model.residual(self.sublayer).pre_norm


@dataclass(frozen=True, kw_only=True, eq=False)
class _Inputs:
    """What the sub-layer reads."""

    stream: Array  # (d_model,)
    read: Array  # (d_model,)
    sources: Array  # (keys, d_model)
    pairs: Pairs


def _inputs(opened: _Opened) -> _Inputs:
    """The residual stream that arrives, and the inputs of queries, keys and values."""
    trace = opened.translation.stream(opened.sublayer)
    stream = as_array(trace.before[opened.row])
    read = as_array(trace.read[opened.row])
    if opened.site.own_keys:
        sources = as_array(trace.read)
    else:
        sources = as_array(memory(opened.model, opened.translation))
    computed = opened.normed(stream) if opened.pre_norm else stream
    pairs = {"sub-layer input": (computed, read)}
    return _Inputs(stream=stream, read=read, sources=sources, pairs=pairs)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Vectors:
    """The query, the keys and the values, with what makes them."""

    w_q: Projection
    w_k: Projection
    w_v: Projection
    query: Array  # (d_head,) before any rotation
    key: Array  # (keys, d_head) before any rotation
    rotates: bool
    pairs: Pairs


def _projected(opened: _Opened, inputs: _Inputs) -> _Vectors:
    """The inputs through W_Q, W_K and W_V of the head."""
    head = opened.view.head
    attention = opened.attention
    w_q = _share(attention, "query", head)
    w_k = _share(attention, "key", head)
    w_v = _share(attention, "value", head)
    query = _head_normed(attention.q_norm, w_q(inputs.read).astype(np.float32))
    key = _head_normed(attention.k_norm, w_k(inputs.sources).astype(np.float32))
    positions = None
    if opened.site.own_keys:
        positions = opened.model.stack(opened.sublayer.side).positions
    turned_query = rotated(positions, torch.from_numpy(query)[None, None], opened.row)[0].numpy()
    turned_key = rotated(positions, torch.from_numpy(key)[None])[0].numpy()
    record = opened.record
    row = slice(opened.row, opened.row + 1)
    acts = ENCODINGS[opened.model.config.positions].acts
    return _Vectors(
        w_q=w_q,
        w_k=w_k,
        w_v=w_v,
        query=query,
        key=key,
        rotates=positions is not None and acts == "rotation",
        pairs={
            "queries": (turned_query, record.query[head, row].numpy()),
            "keys": (turned_key, record.keys(head).numpy()),
            "values": (w_v(inputs.sources), record.values(head).numpy()),
        },
    )


def _share(attention: MultiHeadAttention, product: Product, head: int) -> Projection:
    """The share of a head of W_Q, W_K or W_V."""
    weight, bias = head_map(attention, product, head)
    return Projection(as_array(weight.T), as_array(bias))


def _head_normed(norm: nn.RMSNorm | None, vectors: Array) -> Array:
    """(…, d_head) queries or keys of a head after its norm, if it has one."""
    return vectors if norm is None else layer_norm(norm, vectors).astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scores:
    """The products of the query with the keys, and what becomes of them before the softmax."""

    products: Doubles  # (keys,)
    divisor: float
    scaled: Doubles  # (keys,)
    bias: Array | None  # (keys,)
    rule: str
    pairs: Pairs


def _scored(opened: _Opened) -> _Scores:
    """Products, their quotients, and what the encoding adds to those."""
    view = opened.view
    products = view.key.astype(np.float64) @ view.query[0]
    divisor = opened.record.score.divisor(view.query.shape[1])
    scaled = products / divisor
    bias = None
    rule = ""
    pairs: Pairs = {}
    if opened.record.bias is None:
        pairs = {"products": (scaled, view.scores[0])}
    else:
        bias = (view.scores[0] - scaled).astype(np.float32)
        rule = opened.record.bias.name
    return _Scores(
        products=products, divisor=divisor, scaled=scaled, bias=bias, rule=rule, pairs=pairs
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Heads:
    """The weighted sums of the values."""

    outputs: Array  # (heads, d_head) of every head of the layer
    pairs: Pairs


def _weighted(opened: _Opened) -> _Heads:
    """What every head of the layer puts out for the query."""
    view = opened.view
    outputs = as_array(opened.record.output[:, opened.row])
    weighted_sum = view.weights[0].astype(np.float64) @ view.value
    return _Heads(outputs=outputs, pairs={"heads": (weighted_sum, outputs[view.head])})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Leaving:
    """What all heads together write into the stream."""

    w_o: Projection
    contributions: Doubles  # (heads, d_model)
    update: Array  # (d_model,)
    added: Doubles  # (d_model,)
    next_stream: Array  # (d_model,)
    pairs: Pairs


def _joined(opened: _Opened, inputs: _Inputs, heads: _Heads) -> _Leaving:
    """The heads through W_O, and the stream with their sum."""
    trace = opened.translation.stream(opened.sublayer)
    update = as_array(trace.output[opened.row])
    next_stream = as_array(trace.stream[opened.row])
    by_head, bias = output_rows(opened.model, *opened.place[:2])
    contributions = np.einsum("hd,hdm->hm", heads.outputs, by_head.numpy())
    added = inputs.stream.astype(np.float64) + update
    leaves = added if opened.pre_norm else opened.normed(added)
    return _Leaving(
        w_o=Projection(as_array(by_head[opened.view.head]), as_array(bias)),
        contributions=contributions,
        update=update,
        added=added,
        next_stream=next_stream,
        pairs={
            "sub-layer output": (contributions.sum(0) + bias.numpy(), update),
            "residual stream": (leaves, next_stream),
        },
    )


def _same_as(opened: _Opened, decoded: Translation) -> Check:
    """Compares the vectors of the layer with those of the run that was decoded step by step."""
    layer = decoded.trace.layer(*opened.place[:2])
    pairs = [
        (getattr(opened.record, name).numpy(), getattr(layer, name).numpy())
        for name in ("query", "key", "value", "output")
    ]
    return opened.check("same as decoded", *pairs)


def memory(model: Network, translation: Translation) -> Tensor:
    """(source, d_model) float32 encoder output that cross-attention reads; NotCapturedError if
    unrecorded."""
    last = translation.stream(model.config.stacks["encoder"].passed()[-1]).stream
    return leaving(model, "encoder", last).float().cpu()


# --- one score, number by number -----------------------------------------------------------------


class ScoreTerms(NamedTuple):
    """The sum behind one score, and what becomes of it."""

    query: Array  # (d_head,) q
    key: Array  # (d_head,) k
    vector: Array | None  # (d_head,) v of additive scores; otherwise None
    terms: Array  # (d_head,) what each dimension adds: q k, over √d_k if scaled; or v tanh(q + k)
    score: float  # their sum
    log_total: float  # logarithm of Σ exp(score) over the keys that the query sees
    factor: float  # the Gaussian of local attention, which multiplies the softmax; else 1
    centre: float | None  # where the query looks in local attention, counted from 0; otherwise None
    weight: float  # the weight that the score becomes, for a key that the query sees
    order: list[int]  # the dimensions, from 0: the one that adds or takes away most first


def score_terms(trace: AttentionTrace, place: PlacedHead, query: int, key: int) -> ScoreTerms:
    """The terms of one score of a head to whose scores positions add nothing."""
    layer = trace.layer(*place)
    head = place[2]
    q = read_only(layer.query[head, query])
    k = read_only(layer.keys(head)[key])
    if layer.score.vector is None:
        vector = None
        divisor = math.sqrt(len(q)) if layer.score.name == "scaled_dot" else 1.0
        terms = q * k / divisor
    else:
        vector = read_only(layer.score.vector[head])
        terms = vector * np.tanh(q + k)
    cells = trace.map(*place)
    visible = cells.scores[query][cells.mask[query]].astype(np.float64)
    log_total = float(np.logaddexp.reduce(visible))
    factor = 1.0
    centre = None
    if layer.focus is not None:
        factor = float(layer.focus.cells(layer.shape[2])[1][query, key])
        centre = float(layer.focus.centres[query])
    score = float(terms.sum())
    return ScoreTerms(
        query=q,
        key=k,
        vector=vector,
        terms=terms,
        score=score,
        log_total=log_total,
        factor=factor,
        centre=centre,
        weight=math.exp(score - log_total) * factor,
        order=np.argsort(-np.abs(terms), kind="stable").tolist(),
    )
