"""Explicit attention, whose mask, scores and weights may be altered on the way."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from transformer.model.masks import Focus
from transformer.model.scores import attention_weights
from transformer.model.watching.observer import AttentionInputs


class Alteration:
    """Alterations inside one attention, in the order of equation 1; the base alters nothing.

    Tensors end in (heads or 1, queries, keys); ``first`` is the position of the first query, from 0.
    """

    def masked(self, own: Tensor | None, like: Tensor, first: int) -> Tensor | None:
        """The mask, True = may attend; None if nothing is masked. ``like`` are the scores to be masked."""
        return own

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        """The scores that the softmax receives; ``bias`` is what positions add to them undivided by √d_k."""
        return own

    def on_weights(self, own: Tensor, mask: Tensor | None, first: int) -> Tensor:
        """The weights that average the values."""
        return own


UNALTERED = Alteration()


@dataclass(frozen=True, eq=False)
class Explicit:
    """Attention on its way to an output: scores and mask are there, weights are not."""

    scores: Tensor  # (batch, heads, queries, keys), as altered
    mask: Tensor | None  # (batch or 1, 1, queries, keys) bool, as altered; None if nothing is masked
    alteration: Alteration  # what is altered
    first: int  # position of the first query, from 0
    focus: Focus | None = None  # factors on the weights; None for none

    def weigh(self, scores: Tensor) -> Tensor:
        """(batch, heads, queries, keys): the weights that some scores give under mask and alteration."""
        own = attention_weights(scores, self.mask, self.focus)
        return self.alteration.on_weights(own, self.mask, self.first)


def explicit_attention(asked: AttentionInputs, alteration: Alteration = UNALTERED) -> Explicit:
    """Scores and mask of an attention, altered."""
    undivided = None if asked.rule is None or asked.rule.divided else asked.bias()
    scores = alteration.on_scores(asked.scores(), undivided, asked.query.shape[-1])
    mask = alteration.masked(asked.visible(), scores, asked.first)
    return Explicit(scores, mask, alteration, asked.first, asked.focus)
