"""Names of a model's attentions and sub-layers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Side = Literal["encoder", "decoder"]


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
    name: Literal["self_attention", "cross_attention", "feed_forward"]


Place = tuple[AttentionKind, int]
"""An attention sub-layer: its kind, and its layer from 0."""
