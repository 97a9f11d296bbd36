"""The page Language model: its sections."""

from __future__ import annotations

from ui.views.language_model import generation, lengths, surprisal
from ui.views.language_model.opening import Section, open_page

SECTIONS = {
    "generation": Section(
        "generation",
        "The model goes on with your text, one token after the other.",
        generation.EXAMPLES,
        whole=False,
        first=generation.first,
        show=generation.show,
    ),
    "surprisal": Section(
        "surprisal",
        "The model reads your text: how many bits does each token cost, given those before it?",
        surprisal.EXAMPLES,
        whole=True,
        first=surprisal.first,
        show=surprisal.show,
    ),
    "lengths": Section(
        "same length in and out",
        "Every position predicts its next token from what came before.",
        lengths.EXAMPLES,
        whole=True,
        first=lengths.first,
        show=lengths.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def show() -> None:
    """Draws the page."""
    open_page(SECTIONS)
