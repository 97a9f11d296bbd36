"""The question of a step, measured on the sentence that is shown, and kept."""

from __future__ import annotations

from figures.base import labels
from lenses.what_if.questions.question import Measured, Question, Viewpoint
from transformer.runs.translation import Translation
from ui.address.state import State
from ui.server import catalogue, runs
from ui.server.opened import Opened
from ui.server.stores import kept


def place(
    run: Translation,
    now: State,  # heads and step are chosen
) -> Viewpoint:
    """The cell that the cursor marks; without a chosen source token, the one most attended at the step."""
    heads = {kind: getattr(now, kind) for kind in map(str, run.config.sites)}
    step = min(now.step or 0, len(run.steps) - 1)
    source = now.source
    if source is None:
        source = runs.followed(run, heads["cross"])[step] if "cross" in heads else 0
    return Viewpoint(step, min(source, len(run.source_tokens) - 1), heads)


def answer(opened: Opened, question: Question, at: Viewpoint) -> Measured:
    """The question with its answer.

    Raises:
        UnmeasuredError: It cannot be asked here; the message says why.
    """
    from lenses.what_if.questions.quantities import measure  # loads PyTorch

    model = catalogue.translator(opened.asked.model) if catalogue.has_model(opened.asked.model) else None
    where = at.step, at.source, tuple(sorted(at.heads.items()))

    def make() -> Measured:
        return measure(question, opened.translation, at, model, labels.piece)

    found: Measured = kept("questions").get((opened.asked, id(opened.translation), question, where), make)
    return found
