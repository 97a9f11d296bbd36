"""The page Language model: its sections."""

from __future__ import annotations

from ui.views.language_model import generation, lengths, surprisal
from ui.views.language_model.opening import Reading, Study, open_page
from ui.views.language_model.study import agreement, cost, induction, pretraining, space

SECTIONS: dict[str, Reading | Study] = {
    "generation": Reading(
        "generation",
        "The model continues your text, one token at a time.",
        generation.show,
        generation.EXAMPLES,
        whole=False,
        first=generation.first,
        note=generation.told,
    ),
    "surprisal": Reading(
        "surprisal",
        "The model reads your text: how many bits does each token cost, given those before it?",
        surprisal.show,
        surprisal.EXAMPLES,
        whole=True,
        first=surprisal.first,
    ),
    "lengths": Reading(
        "same length in and out",
        "Every position predicts its next token from what came before.",
        lengths.show,
        lengths.EXAMPLES,
        whole=True,
        first=lengths.first,
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
        "A translator whose encoder read English text before it saw any sentence pairs.",
        pretraining.show,
    ),
    "cost": Study(
        "cost",
        "What attention costs as texts get longer, and what writing costs compared with reading.",
        cost.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def show() -> None:
    """Draws the page."""
    open_page(SECTIONS)
