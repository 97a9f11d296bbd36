"""Twins as people call them. No PyTorch."""

from __future__ import annotations

from transformer.model.encodings.table import ENCODINGS

_TITLES = {name: each.called for name, each in ENCODINGS.items()} | {"postnorm": "sinusoidal (post-norm)"}


def title(name: str) -> str:
    """What people call a twin or an encoding: `shaw-seed2` is "relative keys, seed 2"."""
    first, seed, number = name.partition("-seed")
    return f"{_TITLES.get(first, first)}, seed {number}" if seed else _TITLES.get(first, first)
