"""Equation 1, fused and written out: scores, then weights. Fused attention is checked against these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.model.encodings.biases import ALL_HEADS, BiasRule, Heads
from transformer.model.masks import AttentionMask, Focus
from transformer.model.sites import ScoreName

MOST_KEPT = 1 << 18
"""Most numbers of a bias that a rule keeps for the next layer."""
MOST_SUMS = 1 << 24
"""Most sums of query and key, number by number, that additive scores hold at a time."""


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: AttentionMask,
    bias: Tensor | None,
    scale: float | None = None,
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + bias) V, without the weights in memory (equation 1).

    ``scale`` stands in place of 1 / √d_k, if it is given.
    """
    queries, keys = query.shape[2], key.shape[2]
    if mask.is_causal_alone and bias is None and queries == keys > 1:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    dense = mask.dense(queries, keys, query.device)
    if bias is not None:
        dense = bias if dense is None else bias.masked_fill(~dense, -torch.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=dense, scale=scale)


def bias_matrix(rule: BiasRule, query: Tensor, key: Tensor, first_query: int) -> Tensor:
    """(batch or 1, heads, queries, keys): the rule's bias for these queries and all keys."""
    place = query.dtype, query.device, torch.is_inference_mode_enabled()
    asked = first_query, query.shape[2], key.shape[2], *place
    last = rule.last
    if last is not None and last[0] == asked:  # the layers of a stack share the rule
        return last[1]
    rows = torch.arange(first_query, first_query + query.shape[2], device=query.device)
    bias = rule.scores(query, rows, torch.arange(key.shape[2], device=query.device)).to(query.dtype)
    bias = bias if bias.dim() == 4 else bias[None]  # the fused kernel takes no mask of three dimensions
    if not rule.divided and not bias.requires_grad and bias.numel() <= MOST_KEPT:
        rule.last = asked, bias
    return bias


def attention_scores(query: Tensor, key: Tensor, bias: Tensor | None = None) -> Tensor:
    """(…, queries, keys): Q Kᵀ / √d_k + bias, before the mask (equation 1); the bias is broadcast."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return scores if bias is None else scores + bias


def attention_weights(
    scores: Tensor,  # (…, queries, keys)
    mask: Tensor | None = None,  # bool, True = may attend, broadcast to the scores
    # factors on the weights, after which a row sums to less than 1; None for none
    focus: Focus | None = None,
) -> Tensor:
    """(…, queries, keys) softmax of the unmasked scores, exactly 0 elsewhere; zeros if a row sees no key."""
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights if focus is None else weights * focus.factors(scores.shape[-1]).to(weights.dtype)


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """Scores from queries and keys, before the bias and the mask.

    A rule works on what an attention has already projected. The base is scaled dot-product attention.
    """

    name: ClassVar[ScoreName] = "scaled_dot"

    def scores(
        self,
        query: Tensor,  # (…, queries, d_head) of one head or (…, heads, queries, d_head) of several
        key: Tensor,  # (…, keys, d_head), likewise
        heads: Heads = ALL_HEADS,  # the heads that they hold
    ) -> Tensor:
        """(…, queries, keys) scores without bias."""
        return attention_scores(query, key)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, bias: Tensor | None
    ) -> Tensor:
        """(batch, heads, queries, d_head): softmax(scores + bias) V."""
        return fused_attention(query, key, value, mask, bias)

    def divisor(self, d_head: int) -> float:
        """What divides q · k: √d_k."""
        return math.sqrt(d_head)

    def arrays(self) -> dict[str, Tensor]:
        """The arrays that a file needs so that ``score_rule`` can rebuild the rule."""
        return {}

    def kept(self) -> ScoreRule:
        """A copy of the rule in float32 on the CPU, for a trace."""
        return self


@dataclass(frozen=True, eq=False)
class Dot(ScoreRule):
    """q · k, not divided: the "dot" of Luong et al. (2015, section 3.1), and their "general" if q is h W."""

    name = "dot"

    def divisor(self, d_head: int) -> float:
        return 1.0

    def scores(self, query: Tensor, key: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        return query @ key.transpose(-1, -2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, bias: Tensor | None
    ) -> Tensor:
        return fused_attention(query, key, value, mask, bias, scale=1.0)


@dataclass(frozen=True, eq=False)
class Additive(ScoreRule):
    """vᵀ tanh(q + k), for q = W₁ h and k = W₂ m (Bahdanau et al. 2015, appendix A.1.2).

    No fused kernel computes it: the sum of each query and key passes through a tanh before it is a number.
    """

    vector: Tensor  # (heads, d_head) v
    name = "additive"

    def divisor(self, d_head: int) -> float:
        return 1.0

    def scores(self, query: Tensor, key: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        vector = self.vector[heads][..., None, :, None]
        size = max(1, key.shape[:-2].numel() * key.shape[-2:].numel())
        blocks = torch.split(query, max(1, MOST_SUMS // size), dim=-2)
        parts = [(block[..., None, :] + key[..., None, :, :]).tanh() @ vector for block in blocks]
        return torch.cat(parts, dim=-3)[..., 0]

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, bias: Tensor | None
    ) -> Tensor:
        scores = self.scores(query, key)
        visible = mask.dense(query.shape[2], key.shape[2], query.device)
        return attention_weights(scores if bias is None else scores + bias, visible).to(value.dtype) @ value

    def arrays(self) -> dict[str, Tensor]:
        return {"vector": self.vector}

    def kept(self) -> ScoreRule:
        return Additive(self.vector.detach().float().cpu())


SCALED_DOT = ScoreRule()
"""q · k / √d_k (Vaswani et al. 2017, equation 1)."""


PLAIN_RULES: dict[str, ScoreRule] = {rule.name: rule for rule in (SCALED_DOT, Dot())}
"""The rules that need no arrays, by name."""


def score_rule(name: str, arrays: dict[str, Tensor], n_heads: int, d_head: int) -> ScoreRule:
    """Rebuilds a rule from ``ScoreRule.arrays``; ValueError if it is unknown, or the arrays do not fit."""
    if name == Additive.name and set(arrays) == {"vector"}:
        if arrays["vector"].shape != (n_heads, d_head):
            raise ValueError(f"The vector of additive scores must have the shape {(n_heads, d_head)}.")
        return Additive(arrays["vector"])
    if name not in PLAIN_RULES or arrays:
        raise ValueError(f"There is no rule {name!r:.40} for scores with the arrays {sorted(arrays)!s:.80}.")
    return PLAIN_RULES[name]
