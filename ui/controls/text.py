"""Plain text: escaped for Markdown, and vectors in words."""

from __future__ import annotations

import numpy as np

from figures.base.strips import Strip


def plain(text: str) -> str:
    """Escapes Markdown and LaTeX, so that the visitor's text appears as typed."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$:<>^&" else c for c in text)


def norm(vector: np.ndarray) -> str:
    """The length of a vector, as a note at the end of its strip."""
    return f"‖·‖ = {np.linalg.norm(vector):.2f}"


def alt(rows: list[Strip]) -> str:
    """A text alternative for strips."""
    return "Strips: " + ", ".join(f"{row.name} ({len(row.values)} numbers)" for row in rows)
