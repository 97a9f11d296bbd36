"""Shares of source and prefix: the product of all blocks from the top, and rows of them by plain formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from lenses.again.carried import read_by_keys
from lenses.again.cells import FEW, compared, equal
from lenses.again.plain import exactly
from lenses.inside.weights import multi_head
from lenses.measures.alti import Shares
from lenses.measures.stream import recorded
from transformer.model.network import Network
from transformer.model.norms import centred, shift, spread
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, Window

LIMIT = 1e-4


def audit_shares(
    model: Network, run: Translation, found: Shares, count: int | None = FEW // 2
) -> AuditReport:
    """Whether shares are those of their tokens: all blocks multiplied, some of their cells computed again."""
    sizes = {kind: site.n_layers for kind, site in model.config.sites.items()}
    layers = {kind: len(found.blocks.get(kind, ())) for kind in sizes}
    if layers != sizes:
        return equal("blocks", np.array([*layers.values()]), np.array([*sizes.values()]), 0.0)
    drawn = np.concatenate([found.source, found.prefix], 1)
    product = equal("shares as products of all blocks", drawn, _product(found.blocks), LIMIT)
    blocks = [
        (kind, layer, each) for kind, all_of in found.blocks.items() for layer, each in enumerate(all_of)
    ]
    starts = np.cumsum([0, *(each.size for *_, each in blocks)])
    values = np.concatenate([each.ravel() for *_, each in blocks])
    row = cache(lambda kind, layer, query: _row(model, run, kind, layer, query))

    def again(cells: list[int]) -> list[float]:
        made = []
        for cell in cells:
            at = int(np.searchsorted(starts, cell, side="right")) - 1
            kind, layer, block = blocks[at]
            query, key = divmod(cell - int(starts[at]), block.shape[1])
            made.append(float(row(kind, layer, query)[key]))
        return made

    seed = recorded(run).hash
    cells = range(len(values))
    return product.joined(compared("shares within a block", cells, values, again, seed, LIMIT, count))


def audit_rollout(run: Translation, source: Array) -> AuditReport:
    """Whether (steps,) source shares are those of attention rollout, half residual and half mean weights."""
    blocks = {}
    for kind, site in run.config.sites.items():
        means = [recorded(run).weights(kind, layer).mean(0) / 2 for layer in range(site.n_layers)]
        half = [np.eye(len(mean)) / 2 if site.own_keys else np.full((len(mean), 1), 0.5) for mean in means]
        join = np.add if site.own_keys else lambda a, b: np.concatenate([a, b], 1)
        blocks[kind] = tuple(join(a, b) for a, b in zip(half, means, strict=True))
    expected = _product(blocks)[:, : len(run.source_tokens)].sum(1)
    return equal("rollout", source, expected, LIMIT)


def _product(blocks: Mapping[AttentionKind, Sequence[Array]]) -> Array:
    """(steps, source + steps): each step's shares, carried from the top block down to the inputs."""
    steps, source = blocks[AttentionKind.CROSS][0].shape
    own, memory = np.eye(steps), np.zeros((steps, source - 1))
    pairs = zip(blocks[AttentionKind.DECODER], blocks[AttentionKind.CROSS], strict=True)
    for before, across in reversed([*pairs]):
        memory = memory + own @ across[:, 1:]
        own = own * across[:, 0] @ before
    for block in reversed(blocks[AttentionKind.ENCODER]):
        memory = memory @ block
    return np.concatenate([memory, own], 1)


def _row(model: Network, run: Translation, kind: AttentionKind, layer: int, query: int) -> Array:
    """(inputs,) shares of one query's inputs (Ferrando et al. 2022, equations 5 to 8), input by input."""
    site, attention = model.config.sites[kind], multi_head(model, kind, layer)
    sublayer, pre = site.sublayer(layer), model.config.norm == "pre"
    stream, norm = run.stream(sublayer), model.residual(sublayer).norm
    read = read_by_keys(run, kind, layer)
    weights = recorded(run).weights(kind, layer, None, Window(query, query + 1, 0, len(read)))[:, 0]
    if pre and site.own_keys:
        read = read - exactly(shift(norm))
    values = (read @ exactly(attention.v_proj.weight).T).reshape(len(read), attention.n_heads, -1)
    mixed = np.einsum("hk,khd->khd", weights, values).reshape(len(read), -1)
    inputs = mixed @ exactly(attention.out_proj.weight).T
    residual, output = exactly(stream.stream[query]), exactly(stream.output[query])
    own = query if site.own_keys else 0
    inputs = inputs if site.own_keys else np.concatenate([np.zeros((1, len(residual))), inputs])
    inputs[own] += residual
    if not pre:
        entered = residual + exactly(stream.update[query])
        inputs = exactly(norm.weight) * centred(norm, inputs) / spread(norm, entered)
    near = np.abs(output).sum() - np.abs(output - inputs).sum(1)
    near = np.where(near > 0, near, 0.0)
    return near / near.sum() if near.any() else np.eye(len(inputs))[own]
