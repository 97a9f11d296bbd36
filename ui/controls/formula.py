"""The formula of attention as the running model computes it: with its mask, its bias and its rotation."""

from __future__ import annotations

BIASED = ("shaw", "t5", "alibi")
"""Encodings that add a number to every score: a matrix of queries × keys."""
_SIDES = {"encoder": ("", ""), "decoder": ("", ""), "cross": (r"_{\text{decoder}}", r"_{\text{encoder}}")}


def attention(kind: str, positions: str, masked: bool) -> str:
    r"""LaTeX of softmax(QKᵀ/√d_k) V, with everything that this model adds to it.

    Args:
        kind: encoder, decoder or cross.
        positions: the model's encoding; in cross-attention no encoding acts.
        masked: whether M is written; without a mask that hides something, M is 0.
    """
    queries, keys = _SIDES[kind]
    own = kind != "cross"
    turned = r"^{\prime}" if own and positions == "rotary" else ""
    added = (" + B" if own and positions in BIASED else "") + (" + M" if masked else "")
    above = r"^{\prime\top}" if turned else r"^{\top}"
    transposed = keys + above
    scores = rf"\frac{{Q{turned}{queries}K{transposed}}}{{\sqrt{{d_k}}}}{added}"
    return rf"\mathrm{{softmax}}\!\left({scores}\right)V{keys}"


def explained(kind: str, positions: str) -> str:
    """A sentence on B, or on Q' and K', if the formula has them; empty otherwise."""
    if kind == "cross":
        return ""
    if positions == "rotary":
        return "Q′ and K′ are the queries and keys, turned by their positions."
    if positions in BIASED:
        return "B is what this model's positions add to the scores."
    return ""
