"""The page "Is attention an explanation?": its sections."""

from __future__ import annotations

from ui.address import session
from ui.server.opened import Opened
from ui.shell import sections
from ui.shell.sections import Section
from ui.views.explanation import drafts, reasons, scores, sentences, sources, weights

_SECTIONS = {
    "weights": Section(
        "weight and effect",
        "A weight says how a head mixes values. What the mixture carried, and what became of it, are other "
        "questions with other answers.",
        weights.show,
    ),
    "why": Section(
        "why this token?",
        "The model prefers one token to another by a difference of logits. It splits exactly over what wrote "
        "the decoder's stream.",
        reasons.show,
    ),
    "score": Section(
        "why this score?",
        "A head looks where q·k is large. Who wrote what it compares?",
        scores.show,
    ),
    "sources": Section(
        "source or prefix?",
        "Each token is predicted from the source and from what is written already. How much from which?",
        sources.show,
    ),
    "faithful": Section(
        "over many sentences",
        "Which measure names the source tokens that the model needs? Tokens are hidden, log p is watched.",
        sentences.show,
    ),
    "drafts": Section(
        "drafts",
        "What the decoder would write if the encoder, or the decoder itself, had fewer layers.",
        drafts.show,
    ),
}


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    sections.switch(_SECTIONS, now).draw(opened, now)
