"""The page Language model: its sections."""

from __future__ import annotations

from ui.views.language_model import generation, lengths, surprisal
from ui.views.language_model.opening import Section, Study, open_page
from ui.views.language_model.study import agreement, cost, induction, pretraining, space

SECTIONS: dict[str, Section | Study] = {
    "generation": Section(
        "generation",
        "The model goes on with your text, one token after the other.",
        generation.EXAMPLES,
        whole=False,
        first=generation.first,
        show=generation.show,
        note=generation.told,
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
        note=lengths.told,
    ),
    "induction": Study(
        "induction",
        "Heads that find what followed the same token before, and what the model loses without them.",
        induction.show,
    ),
    "agreement": Study(
        "agreement",
        "Which of two sentences is more probable: the one in which subject and verb agree?",
        agreement.show,
        agreement.FIRSTS,
    ),
    "space": Study(
        "words in space",
        "Words that share contexts move together while the model learns.",
        space.show,
    ),
    "pretraining": Study(
        "pretraining",
        "A translator whose encoder has read English before it saw a pair.",
        pretraining.show,
    ),
    "cost": Study(
        "cost",
        "What attention costs against the length of a text, and writing against reading.",
        cost.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def show() -> None:
    """Draws the page."""
    open_page(SECTIONS)
