"""Losses of given translations with heads switched off, over many sentences, and the gradient measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lab.twins.twins import encoded, row_losses
from transformer.decode.request import TranslationRequest
from transformer.decode.search import decode
from transformer.decode.steps import finish
from transformer.model.masks import padding_mask
from transformer.model.sites import Place, PlacedHead
from transformer.model.watching.observer import UNWATCHED, Attended, AttentionInputs, Bystander, Observer
from transformer.runs.bootstrap import Floats
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair
from transformer.training.batches import Batch, group_by_length, make_batch
from transformer.training.data import pad

BATCH_POSITIONS = 2048


def all_heads(translator: Translator) -> list[PlacedHead]:
    """All heads of a model, kind by kind."""
    heads = range(translator.config.n_heads)
    return [
        (kind, layer, head)
        for kind, site in translator.config.sites.items()
        for layer in range(site.n_layers)
        for head in heads
    ]


@dataclass(frozen=True)
class Scaled(Bystander):
    """Multiplies what heads give out, and adds something to it."""

    factors: Mapping[Place, Tensor]  # (heads,) or (batch, heads), by kind and layer
    added: Mapping[Place, Tensor] = field(default_factory=dict)  # (heads, d_head)

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention, scaled."""
        output, place = asked.fused(), (asked.kind, asked.layer)
        if place in self.factors:
            output = output * self.factors[place][..., None, None].to(output)
        if place in self.added:
            output = output + self.added[place][:, None].to(output)
        return Attended(output)


def switched_off(translator: Translator, heads: Iterable[PlacedHead], by: str = "zero") -> Observer:
    """Replaces what some heads give out by zeros, or by their mean over many sentences."""
    size, width = translator.config.n_heads, translator.config.d_head
    factors: dict[Place, Tensor] = {}
    added: dict[Place, Tensor] = {}
    for kind, layer, head in heads:
        factors.setdefault((kind, layer), torch.ones(size))[head] = 0
        if by == "mean":
            assert translator.means is not None
            own = added.setdefault((kind, layer), torch.zeros(size, width))
            own[head] = translator.means.of(kind, layer, (head,))[0]
    return Scaled(factors, added)


class Forced:
    """Given translations of some pairs, in padded batches; the encoder's own output is kept."""

    def __init__(self, translator: Translator, pairs: Sequence[SentencePair]) -> None:
        self.translator, self.count = translator, len(pairs)
        data = encoded(translator, pairs)
        self._rows = list(group_by_length(data, range(len(data)), BATCH_POSITIONS))
        self._batches = [make_batch(data, rows) for rows in self._rows]
        with torch.inference_mode():
            self._memories = [self._encoded(batch, UNWATCHED) for batch in self._batches]

    def losses(self, observer: Observer = UNWATCHED, encoder: bool = True) -> Floats:
        """(pairs, 2): negative log-probability of each target in nats, and its tokens with ``</s>``.

        ``encoder`` says whether the observer changes the encoder too.
        """
        found = np.zeros((self.count, 2))
        with torch.inference_mode():
            for rows, batch, memory in zip(self._rows, self._batches, self._memories, strict=True):
                read = self._encoded(batch, observer) if encoder else memory
                found[rows] = self._scored(batch, read, observer).double().numpy()
        return found

    def sensitivity(self, heads: Sequence[PlacedHead], off: Iterable[PlacedHead] = ()) -> Floats:
        """(heads,) mean over sentences of |∂loss/∂ξ|, ξ = 1 a factor of a head's output (Michel et al. 2019).

        The loss is that of a token on average; heads in ``off`` stay switched off.
        """
        gone, sums = set(off), np.zeros(len(heads))
        for batch in self._batches:
            factors = self._ones(len(batch.src_ids), gone)
            with torch.enable_grad():
                observer = Scaled(factors)
                scored = self._scored(batch, self._encoded(batch, observer), observer)
                gradients = torch.autograd.grad((scored[:, 0] / scored[:, 1]).sum(), [*factors.values()])
            by_place = dict(zip(factors, gradients, strict=True))
            for at, (kind, layer, head) in enumerate(heads):
                sums[at] += float(by_place[kind, layer][:, head].abs().sum())
        return sums / self.count

    def _ones(self, rows: int, gone: set[PlacedHead]) -> dict[Place, Tensor]:
        found: dict[Place, Tensor] = {}
        for kind, layer, head in all_heads(self.translator):
            own = found.setdefault((kind, layer), torch.ones(rows, self.translator.config.n_heads))
            own[:, head] = 0 if (kind, layer, head) in gone else 1
        return {place: each.requires_grad_() for place, each in found.items()}

    def _encoded(self, batch: Batch, observer: Observer) -> Tensor:
        model = self.translator.model
        return model.encode(batch.src_ids, padding_mask(batch.src_ids, model.config.pad_id), observer)

    def _scored(self, batch: Batch, memory: Tensor, observer: Observer) -> Tensor:
        """(rows, 2) loss and number of tokens of each row."""
        model = self.translator.model
        padding = padding_mask(batch.src_ids, model.config.pad_id)
        features = model.decode(batch.tgt_input_ids, memory, padding, observer=observer)
        return row_losses(model, features, batch)


def translated(translator: Translator, texts: Sequence[str], observer: Observer) -> Iterator[str]:
    """Greedy translations of a few texts in one batch, with something changed."""
    rows = [(*translator.ids(text), translator.config.eos_id) for text in texts]
    batch = pad(rows, translator.config.pad_id).to(translator.device)
    limits = [translator.limit(len(row)) for row in rows]
    request = TranslationRequest(translator.model, batch, observer, observer)
    for hypothesis in finish(decode(request, limits, rules=translator.rules)):
        yield translator.text(hypothesis.token_ids)
