"""One query of one head, from the residual stream and back into it (section 3.2).

Vectors are rows, as in the paper: q = x W_Q + b. Weights come from the model, everything else from a
trace with ``Capture(residual=True)``; ``audit_inside`` checks that they agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from explorer.lenses.inside.spread import ProductSpread, product_spread
from explorer.lenses.inside.weights import exact, multi_head, rotated
from transformer.attention import MultiHeadAttention
from transformer.audit import OUTPUT_LIMIT, merged
from transformer.config import AttentionKind
from transformer.encodings import PositionalEncoding
from transformer.layers import Residual, StreamNorm, centred, shift, spread
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.trace import LayerTrace, ResidualTrace
from transformer.view import Array, AuditReport, Check, HeadView, Window, read_only

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating]
SMALLEST_SCALE = 1e-2
"""Differences are divided by the largest number, or by this value if it is larger."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A head's share of one linear map, x W + b."""

    weight: Array  # (in, out) float32; W_Q, W_K, W_V are (d_model, d_head), W_O is (d_head, d_model)
    bias: Array  # (out,) float32

    def __call__(self, x: Array) -> Doubles:
        """x W + b in float64."""
        return x.astype(np.float64) @ self.weight.astype(np.float64) + self.bias.astype(np.float64)


@dataclass(frozen=True, eq=False)
class InsideHead:
    """Everything that one head does for one query; float32, positions from 0."""

    view: HeadView  # the head, cut to the row of the query and all keys
    row: int  # position of the query
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
    # (keys,) the bias that the encoding adds to the scaled products; None if it adds nothing
    bias: Array | None
    divisor: float  # what the model divides q·k by: √d_k (equation 1), or 1 if it does not
    rule: str  # name of the rule of that bias, such as ``alibi``; empty without one
    spread: ProductSpread  # variances of this head's products over the sentence
    outputs: Array  # (heads, d_head) the output of every head of the layer
    contributions: Array  # (heads, d_model) the part of the update that each head adds
    update: Array  # (d_model,) the output of the sub-layer
    added: Array  # (d_model,) stream + update
    next_stream: Array  # (d_model,) the stream that leaves: the sum, or with post-norm its LayerNorm
    rotates: bool  # whether the encoding rotates queries and keys
    audit: AuditReport  # checks of all these arrays

    @property
    def scaled(self) -> Array:
        """(keys,) q·k / √d_k (equation 1), or q·k where the model does not divide."""
        return _single(self.products / self.divisor)


@dataclass(frozen=True, eq=False)
class RecordedSublayer:
    """The modules of a sub-layer and its recorded arrays."""

    attention: MultiHeadAttention  # the attention module
    residual: Residual  # the module that adds the update to the stream
    positions: PositionalEncoding | None  # encoding that acts inside the attention; None in cross-attention
    record: LayerTrace  # queries, keys, values, outputs of all heads
    stream: ResidualTrace  # the residual stream before and after the sub-layer
    sources: Tensor  # (keys, d_model) the inputs from which keys and values are computed
    following: Tensor  # (queries, d_model) the stream that the next sub-layer receives


def look_inside(
    model: Network,  # the model that made the translation
    translation: Translation,  # a translation made with ``capture=Capture(residual=True)``
    which: tuple[AttentionKind | str, int, int],  # kind, layer and head, from 0
    row: int,  # the query, from 0
    # the same translation as originally decoded, if `translation` was traced afterwards; queries, keys,
    # values and outputs of both must agree
    decoded: Translation | None = None,
) -> InsideHead:
    """Opens one query of one head; NotCapturedError if no stream was recorded, IndexError if out of range."""
    kind, layer, head = AttentionKind(which[0]), which[1], which[2]
    whole = _record(translation, kind, layer, head)
    view = translation.head(kind, layer, head, Window(row, row + 1, 0, whole.shape[2]))
    with torch.inference_mode():
        found = recorded_sublayer(model, translation, kind, layer)
        inside = _opened(found, view)
        checks = [*view.audit.checks, *audit_inside(inside, found)]
    if decoded is not None:
        limit = OUTPUT_LIMIT[model.embedding.weight.dtype]
        checks.append(_same_run(_record(decoded, kind, layer), whole, limit))
    return replace(inside, audit=merged(checks))


def projections(attention: MultiHeadAttention, head: int) -> tuple[Projection, ...]:
    """W_Q, W_K, W_V and W_O of one head with their biases, as the paper writes them: x W + b."""
    d_head = attention.q_proj.out_features // attention.n_heads
    rows = slice(head * d_head, (head + 1) * d_head)
    read = [
        Projection(as_array(linear.weight[rows].T), as_array(shift(linear)[rows]))
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj)
    ]
    out = attention.out_proj
    return *read, Projection(as_array(out.weight[:, rows].T), as_array(shift(out)))


def recorded_sublayer(
    model: Network, translation: Translation, kind: AttentionKind, layer: int
) -> RecordedSublayer:
    """An attention sub-layer of the model with its recorded arrays."""
    site, stacks = model.config.sites[kind], model.config.stacks
    sublayer = site.sublayer(layer)
    following = stacks[sublayer.side].after(sublayer)
    assert following is not None  # every layer ends with its feed-forward network
    stream = translation.stream(sublayer)
    return RecordedSublayer(
        attention=multi_head(model, kind, layer),
        residual=model.residual(sublayer),
        positions=model.stack(sublayer.side).positions if site.own_keys else None,
        record=_record(translation, kind, layer),
        stream=stream,
        sources=stream.read if site.own_keys else memory(model, translation),
        following=translation.stream(following).before,
    )


def memory(model: Network, translation: Translation) -> Tensor:
    """(source, d_model) float32 encoder output that cross-attention reads; NotCapturedError if unrecorded."""
    last = translation.stream(model.config.stacks["encoder"].ends()[-1]).stream
    encoder = model.stack("encoder")
    with torch.inference_mode():
        stream = last.to(device=model.embedding.weight.device, dtype=encoder.dtype)
        return encoder.final_norm(stream).float().cpu()


def _record(translation: Translation, kind: AttentionKind, layer: int, head: int | None = None) -> LayerTrace:
    if translation.attention is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=Capture(residual=True).")
    return translation.attention.layer(kind, layer, head)


def _opened(sublayer: RecordedSublayer, view: HeadView) -> InsideHead:
    row = view.window.query_start
    w_q, w_k, w_v, w_o = projections(sublayer.attention, view.head)
    stream, outputs = sublayer.stream, sublayer.record.output[:, row]
    products = (view.query.astype(np.float64) @ view.key.astype(np.float64).T)[0]
    divisor = sublayer.record.score.divisor(view.query.shape[1])
    return InsideHead(
        view=view,
        row=row,
        stream=read_only(stream.before[row]),
        read=read_only(stream.read[row]),
        sources=read_only(sublayer.sources),
        w_q=w_q,
        w_k=w_k,
        w_v=w_v,
        w_o=w_o,
        query=_single(w_q(stream.read[row].numpy())),
        key=_single(w_k(sublayer.sources.numpy())),
        products=_single(products),
        bias=None if (rule := sublayer.record.bias) is None else _single(view.scores[0] - products / divisor),
        divisor=divisor,
        rule="" if rule is None else rule.name,
        spread=product_spread(sublayer.record, view.head),
        outputs=read_only(outputs),
        contributions=_contributions(sublayer.attention, outputs),
        update=read_only(stream.output[row]),
        added=as_array(stream.before[row] + stream.output[row]),
        next_stream=read_only(stream.stream[row]),
        rotates=sublayer.positions is not None and _rotates(sublayer.positions, view.query.shape[1]),
        audit=AuditReport(()),
    )


def _contributions(attention: MultiHeadAttention, outputs: Tensor) -> Array:
    """Each head's output times its own rows of W_O (heads, d_model)."""
    heads, d_head = outputs.shape
    weight = attention.out_proj.weight.float().cpu().view(-1, heads, d_head)
    return as_array(torch.einsum("hd,mhd->hm", outputs, weight))


def _rotates(positions: PositionalEncoding, d_head: int) -> bool:
    probe = torch.ones(1, 1, d_head)
    return not torch.equal(rotated(positions, probe, 1), probe.double())


def _rotated(positions: PositionalEncoding | None, x: Array, first: int) -> Doubles:
    """Queries or keys (length, d_head) after the rotation, if the encoding rotates."""
    return rotated(positions, torch.tensor(x)[None], first)[0].numpy()


# --- the proof ----------------------------------------------------------------------------------------------


def audit_inside(inside: InsideHead, sublayer: RecordedSublayer) -> list[Check]:
    """Checks every array of ``inside`` against the trace, with the textbook formulas in float64."""
    view, record, stream, row = inside.view, sublayer.record, sublayer.stream, inside.row
    head, limit = view.head, OUTPUT_LIMIT[sublayer.attention.q_proj.weight.dtype]
    recorded = record.output[:, row].numpy()
    scaled = inside.products / sublayer.record.score.divisor(view.query.shape[1])
    total = inside.stream.astype(np.float64) + inside.update
    concatenated = inside.outputs.reshape(-1).astype(np.float64)
    whole = sublayer.attention.out_proj
    comparisons: dict[str, list[tuple[Floats, Floats]]] = {
        "sub-layer input": [
            (inside.stream, stream.before[row].numpy()),
            (inside.read, stream.read[row].numpy()),
            (_before(sublayer.residual, inside.stream), inside.read),
            (inside.sources, sublayer.sources.numpy()),
        ],
        "queries": [
            (inside.w_q(inside.read), inside.query),
            (
                _rotated(sublayer.positions, inside.query[None], row),
                record.query[head, row : row + 1].numpy(),
            ),
        ],
        "keys": [
            (inside.w_k(inside.sources), inside.key),
            (_rotated(sublayer.positions, inside.key, 0), record.key[head].numpy()),
        ],
        "values": [(inside.w_v(inside.sources), record.value[head].numpy())],
        "products": [
            (inside.products, record.key[head].numpy() @ record.query[head, row].numpy()),
            (scaled if inside.bias is None else scaled + inside.bias, view.scores[0]),
        ],
        "heads": [
            (inside.outputs, recorded),
            (inside.contributions, _by_hand(whole, recorded)),
            (inside.w_o(inside.outputs[head]) - inside.w_o.bias, inside.contributions[head]),
        ],
        "sub-layer output": [
            (concatenated @ as_double(whole.weight).T + as_double(shift(whole)), stream.output[row].numpy()),
            (inside.contributions.sum(0, dtype=np.float64) + inside.w_o.bias, inside.update),
        ],
        "residual stream": [
            (inside.added, total),
            (_after(sublayer.residual, total), stream.stream[row].numpy()),
            (inside.next_stream, sublayer.following[row].numpy()),
        ],
    }
    return [
        Check(name, worst([difference(shown, true) for shown, true in pairs]), limit)
        for name, pairs in comparisons.items()
    ]


def _by_hand(linear: nn.Linear, outputs: Array) -> Doubles:
    blocks = as_double(linear.weight).T.reshape(*outputs.shape, -1)
    return np.stack(
        [output @ block for output, block in zip(outputs.astype(np.float64), blocks, strict=True)]
    )


def _before(residual: Residual, stream: Array) -> Doubles:
    return layer_norm(residual.norm, stream) if residual.pre_norm else stream.astype(np.float64)


def _after(residual: Residual, total: Doubles) -> Doubles:
    return total if residual.pre_norm else layer_norm(residual.norm, total)


def layer_norm(norm: StreamNorm, x: Floats) -> Doubles:
    """γ (x − μ) / √(σ² + ε) + β over the last axis, in float64 (Ba et al. 2016). RMSNorm: no μ, β."""
    x = x.astype(np.float64)
    found: Doubles = as_double(norm.weight) * centred(norm, x) / spread(norm, x) + as_double(shift(norm))
    return found


def _same_run(decoded: LayerTrace, replayed: LayerTrace, limit: float) -> Check:
    """Compares the arrays of the second pass with those recorded while decoding."""
    pairs = [
        (getattr(replayed, name).numpy(), getattr(decoded, name).numpy())
        for name in ("query", "key", "value", "output")
    ]
    return Check("same as decoded", worst([difference(a, b) for a, b in pairs]), limit)


def difference(shown: Floats, true: Floats) -> float:
    """Largest difference as a share of the largest true number; infinite if the shapes differ."""
    if shown.shape != true.shape:
        return float("inf")
    scale = max(SMALLEST_SCALE, float(np.abs(true.astype(np.float64)).max(initial=0.0)))
    return float(np.abs(shown.astype(np.float64) - true.astype(np.float64)).max(initial=0.0)) / scale


def worst(values: list[float]) -> float:
    """The largest number; NaN if any is NaN, because NaN is never within a limit."""
    return float("nan") if any(value != value for value in values) else max(values)


def as_array(tensor: Tensor) -> Array:
    """The same numbers in float32, read-only."""
    array: Array = tensor.detach().float().cpu().contiguous().numpy()
    array.flags.writeable = False
    return array


def as_double(parameter: Tensor) -> Doubles:
    """The same numbers in float64."""
    return exact(parameter).numpy()


def _single(array: Floats) -> Array:
    return array.astype(np.float32)
