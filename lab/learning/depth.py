"""Norm of the gradient of every layer, with and without residual connections and LayerNorm."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lenses.what_if.untrained import fresh_model
from transformer.model.config import Norm as Placement
from transformer.model.config import TransformerConfig
from transformer.model.masks import padding_mask
from transformer.model.network import EncoderDecoder
from transformer.model.sites import Side, Sublayer
from transformer.model.watching.observer import UNWATCHED, Bystander, Norm, Observer, Passed
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Vocabulary
from transformer.training.batches import Batch, forced_pairs, make_batch

PAIRS, MOST_TOKENS = 16, 24
DEPTHS = (3, 6, 12)
VOCABULARY = 400
WIDTH, INNER, HEADS = 32, 64, 4
SEED = 1


@dataclass(frozen=True)
class Variant:
    """A way to build a layer."""

    norm: Placement  # where LayerNorm stands: "pre" or "post"
    residual: bool = True  # whether the residual connections are there
    layer_norm: bool = True  # whether any LayerNorm is there


VARIANTS = (
    Variant("pre"),
    Variant("post"),
    Variant("pre", residual=False),
    Variant("post", residual=False),
    Variant("post", layer_norm=False),
    Variant("post", residual=False, layer_norm=False),
)
"""All variants that differ: without LayerNorm, its place makes no difference."""


@dataclass(frozen=True)
class Gradients:
    """Pull of a loss at each layer."""

    encoder: tuple[float, ...]  # norm of the gradient of each encoder layer's weights
    decoder: tuple[float, ...]  # the same of the decoder
    loss: float  # the loss, in nats per token
    # mean cosine between two tokens of a sentence in the encoder's output; 1 if all are the same
    alike: float

    @property
    def spread(self) -> float:
        """Ratio of the largest to the smallest norm; infinite if a layer has none."""
        norms = (*self.encoder, *self.decoder)
        return max(norms) / min(norms) if min(norms) > 0 else float("inf")


class _Without(Bystander):
    """Takes residual connections and LayerNorms out of a pass; the model keeps them."""

    def __init__(self, model: EncoderDecoder, variant: Variant) -> None:
        self._model, self._variant = model, variant

    def norm(self, place: Sublayer | Side, own: Norm) -> Norm:
        return own if self._variant.layer_norm else nn.Identity()

    def residual(self, passed: Passed) -> Tensor:
        if self._variant.residual:
            return passed.output
        way = self._model.residual(passed.sublayer)
        return way.after(passed.update, self.norm(passed.sublayer, way.norm))


def sample_batch(pairs: Sequence[SentencePair], vocabulary: Vocabulary) -> Batch:
    """The first PAIRS pairs of at most MOST_TOKENS tokens a side, as one batch."""
    data = forced_pairs(pairs, vocabulary).within(MOST_TOKENS)
    return make_batch(data, range(min(PAIRS, len(data))))


def at_initialisation(
    batch: Batch, vocab_size: int, depth: int, variants: Sequence[Variant] = VARIANTS
) -> dict[Variant, Gradients]:
    """The gradients of untrained models of some layers a side that differ only in their variant."""
    sizes: dict[str, Any] = {"vocab_size": vocab_size, "d_model": WIDTH, "d_ff": INNER, "n_heads": HEADS}
    sizes |= {"n_encoder_layers": depth, "n_decoder_layers": depth}
    found = {}
    for variant in variants:
        model = fresh_model(TransformerConfig(**sizes, norm=variant.norm), SEED).double().eval()
        found[variant] = gradients(model, batch, _Without(model, variant))
    return found


def of_model(model: EncoderDecoder, batch: Batch) -> Gradients:
    """The gradients of a copy of a model, since others may use the model at the same time."""
    return gradients(copy.deepcopy(model).eval().requires_grad_(True), batch)


def gradients(model: EncoderDecoder, batch: Batch, observer: Observer = UNWATCHED) -> Gradients:
    """The norm of the gradient of every layer: of the weights and biases of its attention and feed-forward.

    The parameters of LayerNorms do not count, so that models with and without them are compared alike. The
    loss is the cross-entropy per token, without smoothing; the model is in evaluation mode, without dropout.
    """
    sides: tuple[Side, Side] = ("encoder", "decoder")
    layers = [_weights(layer) for side in sides for layer in model.stack(side).layers]
    padding = padding_mask(batch.src_ids, model.config.pad_id)
    memory = model.encode(batch.src_ids, padding, observer)
    features = model.decode(batch.tgt_input_ids, memory, padding, observer=observer)
    counted = batch.tgt_ids != model.config.pad_id
    loss = F.cross_entropy(model.logits(features[counted]), batch.tgt_ids[counted])
    found = iter(torch.autograd.grad(loss, [weight for layer in layers for weight in layer]))
    norms = [float(torch.stack([next(found).double().norm() for _ in layer]).norm()) for layer in layers]
    middle = len(model.stack("encoder").layers)
    return Gradients(
        tuple(norms[:middle]),
        tuple(norms[middle:]),
        float(loss.detach()),
        _alike(memory, batch.src_ids != model.config.pad_id),
    )


def _weights(layer: nn.Module) -> list[Tensor]:
    linear = (each for each in layer.modules() if isinstance(each, nn.Linear))
    return [parameter for each in linear for parameter in each.parameters()]


@torch.no_grad()
def _alike(memory: Tensor, tokens: Tensor) -> float:
    """Mean cosine over all pairs of different tokens (batch, source; False for padding) of a sentence."""
    unit = F.normalize(memory, dim=-1) * tokens[..., None]
    counts = tokens.sum(1)
    sums = unit.sum(1).pow(2).sum(-1) - counts  # a token's cosine with itself is 1
    return float(sums.sum() / (counts * (counts - 1)).sum())
