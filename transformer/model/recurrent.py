"""Recurrent translation with attention: GRUs read, another writes (Bahdanau et al. 2015, Luong et al. 2015).

Attention as in the global model of Luong et al. (2015, section 3.1), without their input feeding (section
3.3): the state h_t = GRU(h_{t−1}, y_t) does not depend on what attention found before. So a whole target runs
through the GRU at once in training, and all its queries attend at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from transformer.model.attention import Attention
from transformer.model.cache import FixedCache, KeyValue, StateCache
from transformer.model.config import RecurrentConfig
from transformer.model.masks import AttentionMask, Focus
from transformer.model.network import Cache, EncoderDecoder
from transformer.model.scores import Additive, Dot, ScoreRule
from transformer.model.sites import AttentionKind, Side
from transformer.model.watching.observer import UNWATCHED, AttentionInputs, Entered, Observer


class Comparison(nn.Module):
    """Comparison of a state of the decoder with the memory; the base compares them as they are.

    That is the "dot" of Luong et al. (2015): hᵀ m.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()

    @property
    def rule(self) -> ScoreRule:
        """Score of a query and a key."""
        return Dot()

    def query(self, states: Tensor) -> Tensor:
        """(batch, queries, d_model) states → queries of the same shape."""
        return states

    def key(self, memory: Tensor) -> Tensor:
        """(batch, source, d_model) memory → keys of the same shape."""
        return memory

    def focus(self, states: Tensor, lengths: Tensor) -> Focus | None:
        """Centres of the queries, if they are predicted; ``lengths`` (batch,) are those of the sources."""
        return None


class Bilinear(Comparison):
    """hᵀ W m, the "general" score of Luong et al. (2015): the query is h W."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.q_proj = _linear(config.d_model, config.d_model)

    def query(self, states: Tensor) -> Tensor:
        projected: Tensor = self.q_proj(states)
        return projected


class AdditiveComparison(Bilinear):
    """vᵀ tanh(W₁ h + W₂ m + b) (Bahdanau et al. 2015, appendix A.1.2): q = W₁ h, k = W₂ m + b."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.k_proj = _linear(config.d_model, config.d_model, bias=True)
        self.vector = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, config.d_model)))

    @property
    def rule(self) -> ScoreRule:
        return Additive(self.vector)

    def key(self, memory: Tensor) -> Tensor:
        projected: Tensor = self.k_proj(memory)
        return projected


class Local(Bilinear):
    """hᵀ W m near a predicted centre (Luong et al. 2015, section 3.2, "local-p").

    The centre is p_t = S · σ(v_pᵀ tanh(W_p h)), a position among the S tokens of the source, counted from 0.
    Before training, v_p is 0, so that every query looks at the middle. (From a random v_p, training drove all
    centres to the end of the source, where σ is flat, and most had not left it after 600 steps, *measured*.)
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.reach = config.reach
        self.inner = _linear(config.d_model, config.d_model)
        self.outer = nn.Linear(config.d_model, 1, bias=False)
        nn.init.zeros_(self.outer.weight)

    def focus(self, states: Tensor, lengths: Tensor) -> Focus:
        share = self.outer(self.inner(states).tanh()).float().sigmoid()  # (batch, queries, 1)
        return Focus((lengths[:, None, None] * share).transpose(1, 2), self.reach)


COMPARISONS: dict[str, Callable[[RecurrentConfig], Comparison]] = {
    "additive": AdditiveComparison,
    "bilinear": Bilinear,
    "dot": Comparison,
    "local": Local,
}
"""By the ``score`` of a config."""


class CrossAttention(Attention):
    """Attention of one head from the decoder's states to the memory, whose vectors are also the values."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind, self.layer, self.n_heads = AttentionKind.CROSS, 0, 1
        self.out_proj = _linear(config.d_model, config.d_model)
        self.compare = COMPARISONS[config.score](config)

    def forward(
        self,
        states: Tensor,  # (batch, queries, d_model) h_t
        memory: Tensor,  # (batch, source, d_model)
        mask: AttentionMask,  # the padding of the sources, and the position of the first query
        cache: FixedCache | None = None,  # the keys and values of earlier calls
        observer: Observer = UNWATCHED,  # who watches, and what changes the computation
    ) -> Tensor:
        """(batch, queries, d_model) W_c c_t for the contexts c_t = Σ_j α_tj m_j."""

        def project() -> KeyValue:
            return self.compare.key(memory)[:, None], memory[:, None]

        key, value = project() if cache is None else cache.update(project)
        focus = self.compare.focus(states, _lengths(mask, key))
        query = self.compare.query(states)[:, None]
        asked = AttentionInputs(self.kind, 0, query, key, value, mask, None, self.compare.rule, focus)
        context: Tensor = self.out_proj(observer.attention(asked).output[:, 0])
        return context


class BothWays(nn.Module):
    """A GRU that reads the source forwards, and one that reads it backwards: each gives half the memory."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.forwards = nn.GRU(config.d_model, config.d_model // 2, batch_first=True)
        self.backwards = nn.GRU(config.d_model, config.d_model // 2, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        """(batch, source, d_model) → the memory, (batch, source, d_model).

        Every row is turned round by its own length, so that its padding stays behind it in both directions.
        """
        turned = _turned(x, padding)
        ahead, back = self.forwards(x)[0], self.backwards(x.gather(1, turned.expand_as(x)))[0]
        return torch.cat([ahead, back.gather(1, turned.expand_as(back))], dim=-1)


class RecurrentDecoder(nn.Module):
    """The decoder: a GRU over the target, then attention, then h̃_t = tanh(W_c c_t + W_h h_t).

    Its first state is the tanh of a linear map of the state in which the backward GRU ends, at the first
    source token (Bahdanau et al. 2015, appendix A.2.2).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.start = nn.Linear(config.d_model // 2, config.d_model)
        self.gru = nn.GRU(config.d_model, config.d_model, batch_first=True)
        self.own = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor, memory: Tensor, cache: StateCache | None = None) -> Tensor:
        """(batch, target, d_model) inputs → (batch, target, d_model) states h_t, from the cached state on."""
        before = None if cache is None else cache.state
        if before is None:
            before = self.start(memory[:, 0, memory.shape[-1] // 2 :]).tanh()
        states, last = self.gru(x, before[None].contiguous())
        if cache is not None:
            cache.advance(last[0], x.shape[1])
        found: Tensor = states
        return found


class Recurrent(EncoderDecoder):
    """A recurrent encoder-decoder with attention, and one table of embeddings for both sides and the output.

    Twins that differ only in their score share a seed's draws for all other weights, and for dropout.
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

    def encode(
        self, src_ids: Tensor, src_padding: Tensor | None = None, observer: Observer = UNWATCHED
    ) -> Tensor:
        x = self.embed(src_ids, "encoder", 0, observer)
        return observer.memory(self.encoder(x, src_padding))

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor,
        src_padding: Tensor | None = None,
        *,
        cache: Cache | None = None,
        observer: Observer = UNWATCHED,
    ) -> Tensor:
        assert isinstance(cache, StateCache | None)
        first = 0 if cache is None else cache.length
        x = self.embed(tgt_ids, "decoder", first, observer)
        return self._written(x, memory, AttentionMask(src_padding, first_query=first), cache, observer)

    def _written(
        self, x: Tensor, memory: Tensor, mask: AttentionMask, cache: StateCache | None, observer: Observer
    ) -> Tensor:
        """The decoder's output (batch, target, d_model) for its inputs (batch, target, d_model)."""
        memory = memory.to(x.dtype)
        states = self.decoder(x, memory, cache)
        context = self.cross(states, memory, mask, None if cache is None else cache.cross, observer)
        mixed: Tensor = self.dropout((context + self.decoder.own(states)).tanh())
        return mixed

    def new_cache(self) -> StateCache:
        """An empty cache for one request."""
        return StateCache()

    def through(
        self, entered: Mapping[Side, Tensor], observer: Observer, src_padding: Tensor | None = None
    ) -> None:
        read = {side: inputs.to(_dtype(self._side(side))) for side, inputs in entered.items()}
        memory = observer.memory(self.encoder(read["encoder"], src_padding))
        self._written(read["decoder"], memory, AttentionMask(src_padding), None, observer)

    def embed(self, ids: Tensor, side: Side, first: int, observer: Observer) -> Tensor:
        scaled = self.embedding(ids).to(_dtype(self._side(side))) * self.config.embedding_scale
        return observer.embedding(Entered(side, first, scaled, None, self.dropout(scaled)))

    def _side(self, side: Side) -> nn.Module:
        return self.encoder if side == "encoder" else self.decoder

    def attention(self, kind: AttentionKind, layer: int) -> CrossAttention:
        """The only attention that it has."""
        self.config.sites[kind]
        return self.cross


def _linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    made = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(made.weight)
    if bias:
        nn.init.zeros_(made.bias)
    return made


def _dtype(module: nn.Module) -> torch.dtype:
    """The type that a module computes in."""
    return next(module.parameters()).dtype


def _lengths(mask: AttentionMask, key: Tensor) -> Tensor:
    """(batch,) or (1,): number of source tokens, without padding."""
    if mask.key_padding is None:
        return torch.tensor([key.shape[2]], device=key.device)
    return mask.key_padding.sum(-1)


def _turned(x: Tensor, padding: Tensor | None) -> Tensor:
    """(batch or 1, length, 1): for each place of a row, where its content stands before the row is turned."""
    places = torch.arange(x.shape[1], device=x.device)
    if padding is None:
        return places.flip(0)[None, :, None]
    lengths = padding.sum(-1, keepdim=True)
    turned = torch.where(places < lengths, lengths - 1 - places, places)  # (batch, length)
    return turned[..., None]
