"""Runs without steps, whose tokens are all there from the start: of an encoder, a decoder, or
both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer.config import AttentionKind, ModelConfig, Site, Stack
from transformer.exports.maps import MappedRun

N_LAYERS, N_HEADS = 2, 3


@dataclass(frozen=True, kw_only=True, repr=False)
class StillConfig(ModelConfig):
    """A model of some kinds of attention."""

    vocab_size: int = 10
    n_heads: int = N_HEADS
    d_model: int = 4 * N_HEADS
    kinds: tuple[str, ...] = ("encoder",)

    @cached_property
    def sites(self) -> Mapping[AttentionKind, Site]:
        """By kind, in the order in which they are named."""
        return {AttentionKind(kind): _site(kind) for kind in self.kinds}

    @cached_property
    def stacks(self) -> Mapping[str, Stack]:
        """Those that the kinds connect."""
        sides = {side for site in self.sites.values() for side in (site.query_side, site.key_side)}
        return {
            side: Stack(side, N_LAYERS, ("self_attention",))
            for side in ("encoder", "decoder")
            if side in sides
        }


def _site(kind: str) -> Site:
    rows = "encoder" if kind == "encoder" else "decoder"
    columns = "decoder" if kind == "decoder" else "encoder"
    return Site(
        kind=AttentionKind(kind),
        query_side=rows,
        key_side=columns,
        name="self_attention" if rows == columns else "cross_attention",
        n_layers=N_LAYERS,
        own_keys=rows == columns,
        causal=kind == "decoder",
    )


def still_run(
    kinds: Sequence[str], source: Sequence[str] = (), target: Sequence[str] = ()
) -> MappedRun:
    """A run of random weights, whose decoder read `target` and wrote nothing."""
    rng = np.random.default_rng(0)
    config = StillConfig(kinds=tuple(kinds))
    tokens = {"encoder": tuple(source), "decoder": tuple(target)}
    arrays = {}
    checks = {}
    for kind, site in config.sites.items():
        rows, columns = len(tokens[site.query_side]), len(tokens[site.key_side])
        mask = np.tril(np.ones((rows, columns), bool)) if site.causal else np.ones((rows, columns))
        scores = rng.normal(size=(N_LAYERS, N_HEADS, rows, columns)).astype(np.float32)
        weights = np.exp(scores) * mask
        arrays[f"{kind}.scores"] = scores
        arrays[f"{kind}.mask"] = mask.astype(bool)
        arrays[f"{kind}.weights"] = weights / weights.sum(-1, keepdims=True)
        checks[str(kind)] = [[[["row sums", 0.0, 1e-5]]] * N_HEADS] * N_LAYERS
    return MappedRun(
        source_text=" ".join(source),
        text=" ".join(target),
        source_tokens=tuple(source),
        decoder_input_tokens=tuple(target),
        target_tokens=tuple(target),
        log_probs=(),
        steps=(),
        method="forced",
        model="still",
        config=config,
        arrays=arrays,
        checks=checks,
    )
