"""Table 1 of the paper: kinds of layers, what they cost, and how far information travels. No PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

KERNEL = 3
"""k, the width of the convolution's kernel."""
BLOCK = 64
"""Tokens of a block of restricted attention."""
NEIGHBOURHOOD = 3 * BLOCK
"""r: a token attends to its own block and to those before and after it."""


@dataclass(frozen=True)
class LayerCost:
    """A kind of layer, as in Table 1; n tokens of d dimensions, in LaTeX."""

    name: str  # the kind
    complexity: str  # operations per layer
    sequential: str  # fewest operations that must follow one another
    path: str  # longest way between two positions
    operations: Callable[[float, float], float]  # the complexity in numbers, by n and d


LAYERS = {
    "attention": LayerCost("self-attention", r"O(n^2 \cdot d)", "O(1)", "O(1)", lambda n, d: n * n * d),
    "recurrent": LayerCost("recurrent", r"O(n \cdot d^2)", "O(n)", "O(n)", lambda n, d: n * d * d),
    "convolutional": LayerCost(
        "convolutional", r"O(k \cdot n \cdot d^2)", "O(1)", r"O(\log_k n)", lambda n, d: KERNEL * n * d * d
    ),
    "restricted": LayerCost(
        "restricted self-attention",
        r"O(r \cdot n \cdot d)",
        "O(1)",
        "O(n / r)",
        lambda n, d: min(NEIGHBOURHOOD, n) * n * d,
    ),
}
"""The rows of Table 1, by the names that `cost.json` uses."""
WRITTEN = "written"
"""Self-attention once more, with its n × n weights in memory instead of fused; measured as well."""
