"""Local attention: each position looks at itself and the few before it, computed in blocks.

A mask in full attention saves nothing: all n² scores are computed and most are thrown away. Cut into blocks
as wide as the reach, a block of queries needs its own block of keys and the one before it, nothing else. So
the work grows with n (the "restricted" self-attention of Vaswani et al. 2017, section 4, here causal; sliding
windows in Beltagy et al. 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from lab.cost.measuring import FITTED_FROM, measure_ways
from lab.measurement import Json

REACH = 64
"""Keys that a query sees, itself included."""
LENGTHS = (64, 128, 256, 512, 724, 1024, 1448, 2048, 2896, 4096)


def band(length: int, width: int) -> Tensor:
    """(length, length) bool: each query sees itself and the ``width`` − 1 positions before it."""
    rows = torch.arange(length)
    back = rows[:, None] - rows
    return (back >= 0) & (back < width)


def local_attention(query: Tensor, key: Tensor, value: Tensor, width: int) -> Tensor:
    """(batch, heads, n, d_head) attention under the mask ``band``; time and memory grow with n · width."""
    if width < 1:
        raise ValueError(f"The width is {width}; a query sees at least itself.")
    length = query.shape[2]
    queries, keys, values = (_blocks(each, width) for each in (query, key, value))
    rows, places = torch.arange(width), torch.arange(-width, width)
    back = (rows[:, None] - places).to(query.device)
    near = ((back >= 0) & (back < width)).repeat(queries.shape[2], 1, 1)
    near[0, :, :width] = False  # nothing lies before the first block
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


def ways(width: int) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """Ways to compute causal attention: ``whole``, under the band as a mask (``masked``), and in blocks."""
    return {
        "whole": partial(F.scaled_dot_product_attention, is_causal=True),
        "masked": lambda query, key, value: F.scaled_dot_product_attention(
            query, key, value, attn_mask=band(query.shape[2], width)
        ),
        "local": partial(local_attention, width=width),
    }


def measure_attention(
    lengths: Sequence[int], heads: int, d_head: int, repeats: int, width: int = REACH
) -> Json:
    """Processor time of one attention on random numbers, by way and rising length."""
    generator = torch.Generator().manual_seed(1)
    drawn = {n: torch.randn(3, 1, heads, n, d_head, generator=generator) for n in lengths}
    works = {name: lambda n, way=way: partial(way, *drawn[n]) for name, way in ways(width).items()}
    return {
        "lengths": list(lengths),
        "reach": width,
        "heads": heads,
        "d_head": d_head,
        "fitted_from": FITTED_FROM,
        "ways": measure_ways(works, lengths, repeats, FITTED_FROM),
    }
