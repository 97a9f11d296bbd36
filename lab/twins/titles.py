"""Twins as people call them. No PyTorch."""

from __future__ import annotations

_TITLES = {
    "shaw": "relative keys",
    "t5": "T5 buckets",
    "alibi": "ALiBi",
    "postnorm": "sinusoidal (post-norm)",
}


def title(name: str) -> str:
    """What people call a twin or an encoding: `shaw-seed2` is "relative keys, seed 2"."""
    first, seed, number = name.partition("-seed")
    return f"{_TITLES.get(first, first)}, seed {number}" if seed else _TITLES.get(first, first)
