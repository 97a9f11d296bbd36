"""Texts for vocabularies of published models, put together of what is hard to read."""

import numpy as np

PARTS = (
    "The old house", "\n\n", "    return x ** 2", "\t", "😀👍🏽", "日本語のテキスト", "naïve café", "12345.678",
    "it's they'll", "  ", "Привет", "नमस्ते", "</s>", "<tag attr='1'>", "\r\n", "e\u0301", "—“quotes”…", "שלום",
    "https://a.b/c?d=e", "ABCdefGHI", "a\u00a0b", "!!!???", "{[()]}", "\u2003x",
)  # fmt: skip
"""Texts of 300 are put together of these."""


def texts() -> list[str]:
    """300 texts, always the same ones."""
    generator = np.random.default_rng(7)
    counts = generator.integers(1, 6, 300)
    return ["".join(generator.choice(PARTS, count)) for count in counts]
