"""Mean outputs of heads, which an ablation by "mean" puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from transformer.config import AttentionKind


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """The mean output of every head, before W_O, over all rows of a sample of sentences."""

    outputs: Mapping[AttentionKind, Tensor]  # by kind, (layers, heads, d_head) float32
    about: Mapping[str, str]  # what was measured: data, command, date

    def of(self, kind: AttentionKind, layer: int, heads: tuple[int, ...]) -> Tensor:
        """(heads, d_head): the mean outputs of some heads of a layer, all from 0."""
        return self.outputs[kind][layer, list(heads)]
