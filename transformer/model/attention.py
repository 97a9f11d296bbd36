"""Multi-head attention (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn

from transformer.model.cache import Cache, KeyValue
from transformer.model.config import ModelConfig
from transformer.model.encodings.positions import PositionalEncoding
from transformer.model.masks import AttentionMask
from transformer.model.scores import PLAIN_RULES
from transformer.model.sites import AttentionKind
from transformer.model.watching.observer import UNWATCHED, AttentionInputs, Observer

NO_MASK = AttentionMask()


class Joined(Protocol):
    """One product instead of those of several maps that read the same input."""

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out of all)."""

    def holds(self, weight: Tensor) -> bool:
        """Whether the first map's weight is still what the product multiplies by."""


class Attention(nn.Module):
    """Base of every attention of a model, whatever its scores."""

    kind: AttentionKind  # which attention of the model it is
    layer: int  # index of its layer, from 0
    n_heads: int  # its heads
    out_proj: nn.Linear  # W^O, which maps the heads' outputs, side by side, back to d_model


class MultiHeadAttention(Attention):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2)."""

    def __init__(self, config: ModelConfig, kind: AttentionKind, layer: int) -> None:
        super().__init__()
        self.kind, self.layer = kind, layer
        self.n_heads = config.n_heads
        self.score = PLAIN_RULES[config.sites[kind].score]
        heads = config.heads_width
        self.q_proj = nn.Linear(config.d_model, heads, config.biases)
        self.k_proj = nn.Linear(config.d_model, heads, config.biases)
        self.v_proj = nn.Linear(config.d_model, heads, config.biases)
        self.out_proj = nn.Linear(heads, config.d_model, config.biases)
        # queries, keys and values of self-attention in one product, (batch, length, d_model) →
        # (batch, length, 3 d_model); None while three products do it, as in training
        self.joined: Joined | None = None

    def forward(
        self,
        x: Tensor,  # (batch, queries, d_model)
        memory: Tensor | None = None,  # (batch, keys, d_model) for cross-attention; None for self-attention
        *,
        mask: AttentionMask = NO_MASK,  # who may attend to whom, and the position of the first query
        # encoding that rotates queries and keys or adds a bias to the scores
        positions: PositionalEncoding | None = None,
        cache: Cache | None = None,  # keys and values of earlier calls; this call adds its own
        observer: Observer = UNWATCHED,  # who watches, and what changes the computation
    ) -> Tensor:
        """(batch, queries, d_model): attends from ``x`` to ``memory``, or to ``x`` itself."""
        query, project_source = self._project(x, memory)
        rule = None
        if positions is not None:
            query, rule = positions.rotate(query, mask.first_query), positions.bias(self.layer)

        def project() -> KeyValue:
            key, value = project_source()
            return key if positions is None else positions.rotate(key, mask.first_query), value

        key, value = project() if cache is None else cache.update(project)
        asked = AttentionInputs(self.kind, self.layer, query, key, value, mask, rule, self.score)
        output = observer.attention(asked).output
        return self.out_proj(output.transpose(1, 2).flatten(2))  # (batch, queries, d_model)

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Callable[[], KeyValue]]:
        """Queries (batch, heads, queries, d_head), and a function that computes keys and values if needed."""
        own = self.q_proj.weight
        # gradients need the three, and so does a model that was moved or rounded after they were joined
        if self.joined is not None and not own.requires_grad and self.joined.holds(own):
            query, key, value = map(self._split, self.joined(x).chunk(3, dim=-1))
            return query, lambda: (key, value)
        source = x if memory is None else memory
        query = self._split(self.q_proj(x))
        return query, lambda: (self._split(self.k_proj(source)), self._split(self.v_proj(source)))

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)  # (batch, heads, length, d_head)
