"""The attentions and sub-layers of a model: their names, and the tables that say how they fit together.

Whoever wants to know which tokens an attention reads, how deep it is or whether it is masked asks
``config.sites`` and ``config.stacks``. A model of a different shape has different tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Side = Literal["encoder", "decoder"]
"""A stack and the sequence it reads: the encoder reads the source, the decoder reads the target so far."""

SublayerName = Literal["self_attention", "cross_attention", "feed_forward"]

ScoreName = Literal["scaled_dot", "dot", "additive"]
"""Names of the rules by which scores come from queries and keys; ``transformer.model.scores`` has them."""


class AttentionKind(StrEnum):
    """The three attentions of an encoder-decoder (section 3.2.3)."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


@dataclass(frozen=True)
class Sublayer:
    """The name of a sub-layer: side "encoder" or "decoder", layer from 0, and its part of the layer."""

    side: Side
    layer: int
    name: SublayerName


Place = tuple[AttentionKind, int]
"""An attention sub-layer: its kind, and its layer from 0."""

Head = tuple[int, int]
"""A head of one kind of attention: its layer and its number there, both from 0."""

PlacedHead = tuple[AttentionKind, int, int]
"""A head of a model: its kind of attention, its layer and its number there, both from 0."""


@dataclass(frozen=True)
class Stack:
    """One stack of a model."""

    side: Side  # which stack
    n_layers: int  # its layers
    # the sub-layers of each layer, in the order in which the residual stream passes them
    sublayers: tuple[SublayerName, ...]

    def sublayer(self, layer: int, name: SublayerName) -> Sublayer:
        """One sub-layer of a layer, from 0."""
        return Sublayer(self.side, layer, name)

    def passed(self) -> tuple[Sublayer, ...]:
        """Every sub-layer, in the order in which the residual stream passes them."""
        return tuple(self.sublayer(layer, name) for layer in range(self.n_layers) for name in self.sublayers)

    def ends(self) -> tuple[Sublayer, ...]:
        """The last sub-layer of every layer."""
        return tuple(self.sublayer(layer, self.sublayers[-1]) for layer in range(self.n_layers))

    def after(self, sublayer: Sublayer) -> Sublayer | None:
        """The sub-layer that the stream passes next; None after the last."""
        passed = self.passed()
        following = passed.index(sublayer) + 1
        return passed[following] if following < len(passed) else None


@dataclass(frozen=True)
class Site:
    """Where a kind of attention sits in a model, and what it connects; alike in every layer."""

    kind: AttentionKind  # which attention
    query_side: Side  # the side whose sequence asks; the attention sits in this side's stack
    key_side: Side  # the side whose sequence is attended to
    name: SublayerName  # its sub-layer of each layer
    n_layers: int  # how many layers have it
    causal: bool  # whether query i sees keys 0 to i only
    score: ScoreName = "scaled_dot"  # how its scores come from queries and keys

    @property
    def own_keys(self) -> bool:
        """True if queries and keys come from one sequence: self-attention."""
        return self.query_side == self.key_side

    @property
    def predicts(self) -> bool:
        """True if each row predicts a token of the output beside the one it reads."""
        return self.query_side == "decoder"

    def sublayer(self, layer: int) -> Sublayer:
        """The sub-layer that it is in a layer, from 0."""
        return Sublayer(self.query_side, layer, self.name)


def paper_stacks(n_encoder_layers: int, n_decoder_layers: int) -> tuple[Stack, ...]:
    """Encoder and decoder (section 3.1)."""
    return (
        Stack("encoder", n_encoder_layers, ("self_attention", "feed_forward")),
        Stack("decoder", n_decoder_layers, ("self_attention", "cross_attention", "feed_forward")),
    )


def paper_sites(
    n_encoder_layers: int, n_decoder_layers: int, score: ScoreName = "scaled_dot"
) -> tuple[Site, ...]:
    """The three attentions of the paper's model (section 3.2.3)."""
    encoder, decoder = n_encoder_layers, n_decoder_layers
    return (
        Site(AttentionKind.ENCODER, "encoder", "encoder", "self_attention", encoder, False, score),
        Site(AttentionKind.DECODER, "decoder", "decoder", "self_attention", decoder, True, score),
        Site(AttentionKind.CROSS, "decoder", "encoder", "cross_attention", decoder, False, score),
    )
