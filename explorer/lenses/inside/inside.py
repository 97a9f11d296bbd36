"""One query of one head, from the residual stream and back into it (section 3.2); vectors are
rows."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.inside.parts import (
    as_array,
    compared,
    head_rows,
    layer_norm,
    leaving,
    multi_head,
    output_rows,
    rotated,
)
from transformer.audit import OUTPUT_LIMIT, merged
from transformer.config import ENCODINGS, AttentionKind, PlacedHead
from transformer.layers import shift
from transformer.model import Network
from transformer.run import Translation
from transformer.trace import AttentionTrace, LayerTrace
from transformer.view import Array, AuditReport, HeadView, Window, read_only


class Projection(NamedTuple):
    """A head's share of one linear map, x W + b."""

    weight: (
        Array  # (in, out) float32; W_Q, W_K, W_V are (d_model, d_head), W_O is (d_head, d_model)
    )
    bias: Array  # (out,) float32

    def __call__(self, x: Array) -> Any:
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
    """Measures a head (from 0) of an attention sub-layer, recorded with unscaled queries and
    keys."""
    query = record.query[head].double()
    key = record.key[head].double()
    products = (query @ key.T)[record.mask()]
    spread = [
        float(each.var(correction=0)) if each.numel() else 0.0 for each in (products, query, key)
    ]
    return ProductSpread(spread[0], len(products), spread[1], spread[2], query.shape[-1])


class InsideHead(NamedTuple):
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
    query: Array  # (d_head,) x W_Q + b_Q, before any rotation
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
    next_stream: (
        Array  # (d_model,) the stream that leaves: the sum, or with post-norm its LayerNorm
    )
    audit: (
        AuditReport  # what was recorded, compared with the same numbers computed from the weights
    )


def look_inside(
    model: Network,
    translation: Translation,
    which: tuple[AttentionKind | str, int, int],
    row: int,
    decoded: Translation | None = None,
) -> InsideHead:
    """Opens one query of one head; NotCapturedError if no stream was recorded, IndexError if out of
    range."""
    kind = AttentionKind(which[0])
    layer = which[1]
    head = which[2]
    record = translation.trace.layer(kind, layer, head)
    site = model.config.sites[kind]
    view = translation.head(kind, layer, head, Window(row, row + 1, 0, record.shape[2]))
    sublayer = site.sublayer(layer)
    attention = multi_head(model, kind, layer)
    trace = translation.stream(sublayer)
    residual = model.residual(sublayer)
    n = attention.n_heads
    recorded = (trace.before, trace.read, trace.output, trace.stream)
    stream, read, update, next_stream = (as_array(each[row]) for each in recorded)
    sources = as_array(trace.read if site.own_keys else memory(model, translation))
    w_q, w_k, w_v = (
        Projection(as_array(head_rows(each, n, head).T), as_array(shift(each).view(n, -1)[head]))
        for each in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    by_head, bias = output_rows(model, kind, layer)
    query, key = (each.astype(np.float32) for each in (w_q(read), w_k(sources)))
    positions = model.stack(sublayer.side).positions if site.own_keys else None
    turned_query = rotated(positions, torch.from_numpy(query)[None, None], row)[0].numpy()
    turned_key = rotated(positions, torch.from_numpy(key)[None])[0].numpy()
    products = view.key.astype(np.float64) @ view.query[0]
    scaled = products / (divisor := record.score.divisor(view.query.shape[1]))
    outputs = as_array(record.output[:, row])
    contributions = np.einsum("hd,hdm->hm", outputs, by_head.numpy())
    added = stream.astype(np.float64) + update
    pre = residual.pre_norm
    norm = partial(layer_norm, residual.norm)
    pairs = {
        "sub-layer input": (norm(stream) if pre else stream, read),
        "queries": (turned_query, record.query[head, row : row + 1].numpy()),
        "keys": (turned_key, record.key[head].numpy()),
        "values": (w_v(sources), record.value[head].numpy()),
        "heads": (view.weights[0].astype(np.float64) @ view.value, outputs[head]),
        "sub-layer output": (contributions.sum(0) + bias.numpy(), update),
        "residual stream": (added if pre else norm(added), next_stream),
    } | ({"products": (scaled, view.scores[0])} if record.bias is None else {})
    same = partial(compared, OUTPUT_LIMIT[attention.q_proj.weight.dtype])
    checks = [*view.audit.checks, *(same(name, pair) for name, pair in pairs.items())]
    if decoded is not None:
        both = (record, decoded.trace.layer(kind, layer))
        names = ("query", "key", "value", "output")
        checks.append(
            same("same as decoded", *([getattr(x, name).numpy() for x in both] for name in names))
        )
    rotates = positions is not None and ENCODINGS[model.config.positions].acts == "rotation"
    rule = "" if record.bias is None else record.bias.name
    own_bias = None if record.bias is None else (view.scores[0] - scaled).astype(np.float32)
    spread = product_spread(record, head)
    w_o = Projection(as_array(by_head[head]), as_array(bias))
    products, scaled, parts, total = (
        each.astype(np.float32) for each in (products, scaled, contributions, added)
    )
    return InsideHead(
        *(
            row,
            view,
            stream,
            read,
            sources,
            w_q,
            w_k,
            w_v,
            w_o,
            query,
            key,
            products,
            divisor,
            scaled,
        ),
        *(
            own_bias,
            rule,
            rotates,
            spread,
            outputs,
            parts,
            update,
            total,
            next_stream,
            merged(checks),
        ),
    )


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
    q, k = (read_only(each[head, at]) for each, at in ((layer.query, query), (layer.key, key)))
    vector = None if layer.score.vector is None else read_only(layer.score.vector[head])
    terms = q * k / (math.sqrt(len(q)) if layer.score.name == "scaled_dot" else 1.0)
    if vector is not None:
        terms = vector * np.tanh(q + k)
    own = trace.map(*place)
    seen = own.scores[query][own.mask[query]].astype(np.float64)
    log_total = float(np.logaddexp.reduce(seen))
    factor = 1.0
    centre = None
    if layer.focus is not None:
        factor = float(layer.focus.cells(layer.shape[2])[1][query, key])
        centre = float(layer.focus.centres[query])
    weight = math.exp((score := float(terms.sum())) - log_total) * factor
    order = np.argsort(-np.abs(terms), kind="stable").tolist()
    return ScoreTerms(q, k, vector, terms, score, log_total, factor, centre, weight, order)
