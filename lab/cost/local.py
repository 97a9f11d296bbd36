"""Local attention: each position looks at itself and the few before it, computed in blocks.

A mask in full attention saves nothing: all n² scores are computed and most are thrown away. Cut into blocks
as wide as the reach, a block of queries needs its own block of keys and the one before it, nothing else. So
the work grows with n (the "restricted" self-attention of Vaswani et al. 2017, section 4, here causal; sliding
windows in Beltagy et al. 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lab.cost.fitting import exponent
from lab.cost.measuring import FITTED_FROM, least_and_median
from transformer.lenses.scores.bootstrap import rounded

Json = dict[str, Any]
REACH = 64
"""Keys that a query sees, itself included."""
LENGTHS = (64, 128, 256, 512, 724, 1024, 1448, 2048, 2896, 4096)


def band(length: int, width: int) -> Tensor:
    """(length, length) bool: each query sees itself and the ``width`` − 1 positions before it."""
    rows = torch.arange(length)
    back = rows[:, None] - rows
    return (back >= 0) & (back < width)


def local_attention(
    query: Tensor,  # (batch, heads, n, d_head)
    key: Tensor,  # (batch, heads, n, d_head)
    value: Tensor,  # (batch, heads, n, d_head)
    width: int,  # keys that a query sees, itself included
) -> Tensor:
    """Attention under the mask ``band``, in time and memory that grow with n · width.

    Returns:
        (batch, heads, n, d_head).

    Raises:
        ValueError: The width is below 1.
    """
    if width < 1:
        raise ValueError(f"The width is {width}; a query sees at least itself.")
    length = query.shape[2]
    queries, keys, values = (_blocks(each, width) for each in (query, key, value))
    near = _near(queries.shape[2], width, query.device)
    output = F.scaled_dot_product_attention(queries, _pairs(keys), _pairs(values), attn_mask=near)
    return output.flatten(2, 3)[:, :, :length]


def _blocks(rows: Tensor, width: int) -> Tensor:
    """(batch, heads, n, d) → (batch, heads, blocks, width, d), filled up with zeros at the end."""
    filled = F.pad(rows, (0, 0, 0, -rows.shape[2] % width))
    return filled.view(*rows.shape[:2], -1, width, rows.shape[3])


def _pairs(blocks: Tensor) -> Tensor:
    """(…, blocks, width, d) → (…, blocks, 2 width, d): each block after the one before it."""
    before = F.pad(blocks, (0, 0, 0, 0, 1, 0))[..., :-1, :, :]
    return torch.cat([before, blocks], dim=-2)


def _near(blocks: int, width: int, device: torch.device) -> Tensor:
    """(blocks, width, 2 width) bool: what the queries of each block see; nothing lies before the first."""
    rows, keys = torch.arange(width, device=device), torch.arange(-width, width, device=device)
    back = rows[:, None] - keys
    near = ((back >= 0) & (back < width)).repeat(blocks, 1, 1)
    near[0, :, :width] = False
    return near


def ways(width: int) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """Ways to compute causal attention: ``whole``, under the band as a mask (``masked``), and in blocks."""

    def whole(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    def masked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=band(query.shape[2], width))

    def local(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return local_attention(query, key, value, width)

    return {"whole": whole, "masked": masked, "local": local}


def measure_attention(
    lengths: Sequence[int],  # values of n, rising
    heads: int,  # heads
    d_head: int,  # dimensions of a head
    repeats: int,  # runs of each, after one that does not count
    width: int = REACH,  # keys that a query sees, itself included
) -> Json:
    """Processor time of one attention on random numbers, by way and length.

    Returns:
        ``lengths``, ``reach``, ``heads``, ``d_head``, ``fitted_from`` and by way ``milliseconds`` (least),
        ``medians`` and the exponent of n (``time``).
    """
    generator = torch.Generator().manual_seed(1)
    drawn = {n: torch.randn(3, 1, heads, n, d_head, generator=generator) for n in lengths}
    works = {(name, n): _work(way, drawn[n]) for name, way in ways(width).items() for n in lengths}
    seconds = least_and_median(works, repeats)
    sizes = {"reach": width, "heads": heads, "d_head": d_head, "fitted_from": FITTED_FROM}
    found = {name: _costs(lengths, [seconds[name, n] for n in lengths]) for name in ways(width)}
    return {"lengths": list(lengths), **sizes, "ways": found}


def _work(way: Callable[[Tensor, Tensor, Tensor], Tensor], drawn: Tensor) -> Callable[[], Tensor]:
    return lambda: way(drawn[0], drawn[1], drawn[2])


def _costs(lengths: Sequence[int], times: Sequence[tuple[float, float]]) -> Json:
    least = [rounded(1000 * low, 4) for low, _ in times]
    start = next((i for i, n in enumerate(lengths) if n >= FITTED_FROM), 0)
    return {
        "milliseconds": least,
        "medians": [rounded(1000 * middle, 4) for _, middle in times],
        "time": exponent(lengths[start:], least[start:]),
    }
