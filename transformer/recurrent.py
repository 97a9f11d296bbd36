"""Recurrent translation with attention: GRUs read, another writes (Bahdanau et al. 2015, Luong et
al. 2015).

Attention as in the global model of Luong et al. (2015, section 3.1), without their input feeding
(section 3.3): the state h_t = GRU(h_{t−1}, y_t) does not depend on what attention found before. So
a whole target runs through the GRU at once in training, and all its queries attend at once.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.attention import (
    NO_MASK,
    Attention,
    AttentionMask,
    Cache,
    LayerCache,
    LocalWindow,
    ScoreRule,
    attend,
)
from transformer.config import SCORE_RULES, AttentionKind, RecurrentConfig, Side
from transformer.hooks import At, Hooks
from transformer.model import EncoderDecoder


class Comparing(NamedTuple):
    """What states compare with keys."""

    query: Tensor  # (batch, queries, d_model)
    rule: ScoreRule  # the score of a query and a key
    window: LocalWindow | None  # where the queries look, if that is predicted


class Comparison(nn.Module):
    """How a state of the decoder is compared with the memory, by the ``score`` of the config.

    "dot": hᵀ m (Luong et al. 2015). "bilinear": hᵀ W m, their "general"; the query is h W.
    "additive": vᵀ tanh(W₁ h + W₂ m + b) (Bahdanau et al. 2015, appendix A.1.2), q = W₁ h, k = W₂ m
    + b. "local": "bilinear" near a predicted centre p_t = S · σ(v_pᵀ tanh(W_p h)), a position among
    the S tokens of the source, from 0 (Luong et al. 2015, section 3.2, "local-p"). Before training,
    v_p is 0, so that every query looks at the middle. (From a random v_p, training drove all
    centres to the end of the source, where σ is flat, and most had not left it after 600 steps,
    *measured*.)
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        width = config.d_model
        self.score = config.score
        self.half_width = config.reach
        if config.score != "dot":
            self.q_proj = _linear(width, width)
        if config.score == "additive":
            self.k_proj = _linear(width, width, bias=True)
            self.vector = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, width)))
        if config.score == "local":
            self.inner = _linear(width, width)
            self.outer = nn.Linear(width, 1, bias=False)
            nn.init.zeros_(self.outer.weight)

    def key(self, memory: Tensor) -> Tensor:
        """(batch, source, d_model) memory → keys of the same shape."""
        if self.score == "additive":
            keys: Tensor = self.k_proj(memory)
            return keys
        return memory

    def forward(self, states: Tensor, lengths: Tensor) -> Comparing:
        """Of (batch, queries, d_model) states, over sources of ``lengths`` (batch,)."""
        query = states if self.score == "dot" else self.q_proj(states)
        rule = ScoreRule(SCORE_RULES[self.score], self.vector if self.score == "additive" else None)
        if self.score != "local":
            return Comparing(query, rule, None)
        share = self.outer(self.inner(states).tanh()).float().sigmoid()  # (batch, queries, 1)
        centres = (lengths[:, None, None] * share).transpose(1, 2)
        return Comparing(query, rule, LocalWindow(centres, self.half_width))


class CrossAttention(Attention):
    """Attention of one head from the decoder's states to the memory, whose vectors are also the
    values."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind = AttentionKind.CROSS
        self.layer = 0
        self.n_heads = 1
        self.name = config.sites[self.kind].paths[0]
        self.out_proj = _linear(config.d_model, config.d_model)
        self.compare = Comparison(config)

    def forward(
        self,
        states: Tensor,  # (batch, queries, d_model) h_t
        memory: Tensor,  # (batch, source, d_model)
        mask: AttentionMask,  # the padding of the sources, and the position of the first query
        cache: LayerCache | None = None,  # the keys and values of earlier calls
        hooks: Hooks | None = None,  # who looks, and what changes the computation
    ) -> Tensor:
        """(batch, queries, d_model) W_c c_t for the contexts c_t = Σ_j α_tj m_j."""
        if cache is not None and cache.fixed is not None:
            key, value = cache.fixed
        else:
            key = self.compare.key(memory)[:, None]
            value = memory[:, None]
            if cache is not None:
                key, value = cache.update(key, value)
        padding = mask.key_padding
        if padding is None:
            lengths = torch.tensor([key.shape[2]], device=key.device)
        else:
            lengths = padding.sum(-1)
        query, rule, window = self.compare(states, lengths)
        query = query[:, None]
        if hooks is not None:
            at = At(mask.first_query)
            hooks.constants(self.name, padding=padding, vector=rule.vector)
            if window is not None:
                window = replace(window, centres=hooks(f"{self.name}.centres", window.centres, at))
            query = hooks(f"{self.name}.query", query, at)
            key = hooks(f"{self.name}.key", key)
            value = hooks(f"{self.name}.value", value)
        heads = attend(
            query, key, value, mask, score=rule, window=window, hooks=hooks, name=self.name
        )
        if hooks is not None:
            heads = hooks(f"{self.name}.heads", heads, at)
        context: Tensor = self.out_proj(heads[:, 0])
        return context


class BothWays(nn.Module):
    """A GRU that reads the source forwards, and one that reads it backwards: each gives half the
    memory."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.forwards = nn.GRU(config.d_model, config.d_model // 2, batch_first=True)
        self.backwards = nn.GRU(config.d_model, config.d_model // 2, batch_first=True)

    def forward(
        self, x: Tensor, mask: AttentionMask = NO_MASK, hooks: Hooks | None = None
    ) -> Tensor:
        """(batch, source, d_model) → the memory, (batch, source, d_model); no hook looks between.

        Every row is turned round by its own length, so that its padding stays behind it in both
        directions.
        """
        places = torch.arange(x.shape[1], device=x.device)
        if mask.key_padding is None:
            turned = places.flip(0)[None, :, None]
        else:
            lengths = mask.key_padding.sum(-1, keepdim=True)
            turned = torch.where(places < lengths, lengths - 1 - places, places)[..., None]
        ahead = self.forwards(x)[0]
        back = self.backwards(x.gather(1, turned.expand_as(x)))[0]
        return torch.cat([ahead, back.gather(1, turned.expand_as(back))], dim=-1)


class RecurrentDecoder(nn.Module):
    """The decoder: a GRU over the target, then attention, then h̃_t = tanh(W_c c_t + W_h h_t).

    Its first state is the tanh of a linear map of the state in which the backward GRU ends, at the
    first source token (Bahdanau et al. 2015, appendix A.2.2).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.start = nn.Linear(config.d_model // 2, config.d_model)
        self.gru = nn.GRU(config.d_model, config.d_model, batch_first=True)
        self.own = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor, memory: Tensor, cache: Cache | None = None) -> Tensor:
        """(batch, target, d_model) inputs → (batch, target, d_model) states h_t, from the cached
        state on."""
        before = None if cache is None else cache.state
        if before is None:
            before = self.start(memory[:, 0, memory.shape[-1] // 2 :]).tanh()
        states, last = self.gru(x, before[None].contiguous())
        if cache is not None:
            cache.advance(x.shape[1], last[0])
        return states


class Recurrent(EncoderDecoder):
    """A recurrent encoder-decoder with attention, and one table of embeddings for both sides and
    the output.

    Twins that differ only in their score share a seed's draws for all other weights, and for
    dropout.
    """

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.target_embedding = self.output = self.output_bias = None
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = BothWays(config)
        self.decoder = RecurrentDecoder(config)
        self.initialise()
        with torch.random.fork_rng(devices=[]):
            self.cross = CrossAttention(config)

    def embed(self, ids: Tensor, side: Side, first: int, hooks: Hooks | None = None) -> Tensor:
        stack = self.encoder if side == "encoder" else self.decoder
        at = At(first)
        x = self.embedding(ids).to(next(stack.parameters()).dtype) * self.config.embedding_scale
        if hooks is not None:
            hooks.check(self.config)
            x = hooks(f"{side}.tokens", x, at)
        x = self.dropout(x)
        if hooks is not None:
            x = hooks(f"{side}.input", x, at)
        return x

    def run_decoder(
        self,
        x: Tensor,
        memory: Tensor,
        mask: AttentionMask,
        cache: Cache | None,
        hooks: Hooks | None,
    ) -> Tensor:
        states = self.decoder(x, memory, cache)
        context = self.cross(states, memory, mask, None if cache is None else cache.cross[0], hooks)
        mixed: Tensor = self.dropout((context + self.decoder.own(states)).tanh())
        return mixed

    def attention(self, kind: AttentionKind, layer: int) -> CrossAttention:
        """The only attention that it has."""
        self.config.sites[kind]  # KeyError for another kind
        return self.cross


def _linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear
