"""Guided alignment: one head of cross-attention learns from links between words (Garg et al. 2019).

The row of a head that *reads* a target token is asked to look at the source tokens that this token is linked
to: a cross-entropy, added to the loss of the translation. Unlike the other heads of a model, such a head does
not show what translation alone has taught it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.sites import AttentionKind
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.text.links import GoldPair
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.text.words import piece_words
from transformer.training.batches import EncodedPairs


@dataclass(frozen=True)
class GuidedHead:
    """A head of cross-attention."""

    layer: int  # its layer, from 0
    head: int  # its number in the layer, from 0

    @classmethod
    def read(cls, text: str, config: ModelConfig) -> GuidedHead:
        """Reads `LAYER.HEAD`, from 1; ValueError if it has another form, or the model has no such head."""
        layers, heads = config.sites[AttentionKind.CROSS].n_layers, config.n_heads
        for layer in range(layers):
            for head in range(heads):
                if text == f"{layer + 1}.{head + 1}":
                    return cls(layer, head)
        raise ValueError(
            f"guided_alignment is {text!r}; write LAYER.HEAD, from 1.1 to {layers}.{heads} for this model."
        )


class Guide(Bystander):
    """Watches one head of cross-attention, and keeps where it looks."""

    def __init__(self, guided: GuidedHead) -> None:
        self._guided = guided
        # (batch, queries, keys) natural logarithms of its weights, with their gradient; −∞ where the mask
        # hides a key; None before the head was asked
        self.log_weights: Tensor | None = None

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention."""
        if (asked.kind, asked.layer) == (AttentionKind.CROSS, self._guided.layer):
            one = slice(self._guided.head, self._guided.head + 1)
            bias, visible = asked.bias(), asked.visible()
            scores = asked.score.scores(asked.query[:, one], asked.key[:, one], one)
            scores = scores if bias is None else scores + bias[:, one]
            if visible is not None:
                scores = scores.masked_fill(~visible, -torch.inf)
            self.log_weights = scores.float().log_softmax(-1)[:, 0]
        return super().attention(asked)


def guided_loss(log_weights: Tensor, links: Tensor) -> Tensor:
    """The cross-entropy of where a head looks against `Batch.links`, summed over rows with links."""
    return -(links * log_weights.masked_fill(links == 0, 0.0)).sum()


def with_links(
    data: EncodedPairs,  # the pairs as ids
    pairs: Sequence[SentencePair],  # the same pairs as text
    # Links between the words of some of these pairs. Spaces do not matter when a pair is looked up.
    linked: Iterable[GoldPair],
    tokenizer: Tokenizer,  # the vocabulary of the ids
) -> EncodedPairs:
    """Adds links between pieces: each piece of a word is linked to each piece of the linked words."""
    known = {_key("".join(each.source), "".join(each.target)): each for each in linked}
    links = []
    for pair, source, target in zip(pairs, data.source, data.target, strict=True):
        gold = known.get(_key(pair.source, pair.target))
        links.append(array("i") if gold is None else _pieces_linked(gold, source, target, tokenizer))
    return replace(data, links=links)


def _key(source: str, target: str) -> tuple[str, str]:
    return "".join(source.split()), "".join(target.split())


def _pieces_linked(
    gold: GoldPair, source: array[int], target: array[int], tokenizer: Tokenizer
) -> array[int]:
    """Target and source piece of every link; empty if pieces and words do not spell the same text."""
    sources = piece_words(tokenizer.pieces(source), gold.source)
    targets = piece_words(tokenizer.pieces(target), gold.target)
    if sources is None or targets is None:
        return array("i")
    words = np.zeros((len(gold.target), len(gold.source)), np.float32)
    for i, j in gold.sure:
        words[j, i] = 1
    return array("i", np.argwhere(targets.T @ words @ sources).ravel().tolist())
