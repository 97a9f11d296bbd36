"""Each head's part of W^O, which turns the head's values into their contribution to the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transformer.model.sites import AttentionKind

if TYPE_CHECKING:
    from transformer.model.network import Network

Floats = NDArray[np.float32]
Projections = Callable[[AttentionKind, int], Floats]
"""A function that returns each head's part of W^O in a layer: (heads, d_head, d_model)."""


def output_projections(model: Network) -> Projections:
    """W^O of a model by kind and layer, cut into its heads (section 3.2.2)."""

    def part(kind: AttentionKind, layer: int) -> Floats:
        attention = model.attention(kind, layer)
        weight = attention.out_proj.weight.detach().float().cpu()
        found: Floats = weight.T.reshape(attention.n_heads, -1, weight.shape[0]).numpy()
        return found

    return part
