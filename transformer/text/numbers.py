"""Numbers as people read them in a sentence."""

from __future__ import annotations


def number(value: float, form: str = ".2f") -> str:
    """A number with a true minus sign; one that is rounded to zero has no sign."""
    text = format(value, form)
    return text.replace("-", "−") if text.strip("+-0.%") else text.lstrip("+-")
