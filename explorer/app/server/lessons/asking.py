"""The question of a step, measured on the sentence that is shown, and kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.app.address.parameters import parse
from explorer.app.address.state import KEYS, State, run_declarations
from explorer.app.server import examples, models, runs
from explorer.app.server.lessons.files import CHECKS, ROOT, Lesson, LessonError, Step, read
from explorer.app.server.source import Source
from explorer.app.server.stores import Recent
from explorer.app.server.view import View, per_run
from explorer.figures.base import labels
from explorer.lenses.what_if.questions import Measured, Question, Viewpoint
from transformer.config import Head
from transformer.run import Translation

_CHECKS = Recent[dict[str, Any]](256)


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


def answer(opened: View, question: Question, at: Viewpoint) -> Measured:
    """The question with its answer.

    UnmeasuredError if it cannot be asked here; the message says why.
    """
    return _answer(opened, question, at.step, at.source, tuple(sorted(at.heads.items())), at=at)


@per_run(256)
def _answer(
    opened: View,
    question: Question,
    _step: int,
    _source: int,
    _heads: tuple[tuple[str, Head], ...],
    *,
    at: Viewpoint,
) -> Measured:
    from explorer.lenses.what_if.questions import measure  # loads PyTorch

    model = opened.source.translator() if opened.source.has_model else None
    return measure(question, opened.translation, at, model, labels.piece)


def open_view(now: State, needs: Sequence[str]) -> tuple[View, State]:
    """The sentence that a view names, or the first example, and the place where it opens; heads are named.

    Without a model, it is the first one that has the kinds of attention that are needed.
    """
    source = models.find(now.model) if now.model else _fitting(needs)
    asked = runs.request(now, source, examples.passage(source, now).sentence)
    found = View(asked, runs.translate(asked, whole=True), None)
    heads: dict[str, Any] = {k: getattr(now, k) or first for k, first in source.default_heads.items()}
    step = found.opening.step if now.step is None else now.step
    return found, State(step=step, source=now.source, **heads)


def _fitting(needs: Sequence[str]) -> Source:
    """The first model with some kinds of attention; the first of all if none has them."""
    found = list(models.available().values())
    return next((each for each in found if all(kind in each.sizes for kind in needs)), found[0])


def of_check(source: Source, lesson: Lesson, step: Step) -> dict[str, Any]:
    """Sentence, cursor and heads of a step of a check: values of the state.

    The checks share out the examples of a model, so that none is asked about twice. Of its own, a step takes
    the first, from its own place on, on which the question has an answer with a margin.
    """
    own = list(examples.offered(source).values())[CHECKS.index(lesson.name) :: len(CHECKS)]
    first = lesson.steps.index(step) % len(own)

    def make() -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for text in own[first:] + own[:first]:
            named, _ = parse({name: [value] for name, value in step.params.items()})
            run, at = open_view(replace(named, model=source.name, text=text), lesson.needs)
            heads = {kind: getattr(at, kind) for kind in run.kinds}
            taken = {"text": text, "step": at.step, "source": at.source, **heads}
            assert step.question is not None
            if answer(run, step.question, place(run.translation, at)).has_margin:
                break
        return taken

    return _CHECKS.get(("check", source, lesson.name, step.line), make)


def check(path: Path) -> list[tuple[int, str]]:
    """Lines of a lesson's file, from 1, and what is wrong there; questions are asked on their sentences."""
    try:
        lesson = read(path)
    except LessonError as error:
        return list(error.found)
    models.loading.wait()
    return [
        (step.line, wrong)
        for step in lesson.steps
        for wrong in (*unreadable(step), unanswered(lesson, step))
        if wrong is not None
    ]


def unreadable(step: Step) -> list[str]:
    """What nobody reads of a step's address: it is neither a value of all pages nor one of this page."""
    run_declarations(ROOT / step.page)
    _, wrong = parse({name: [value] for name, value in step.params.items()})
    names = [name for name, value in step.params.items() if name in wrong or name not in KEYS]
    return [f"the address's {name}={step.params[name]} cannot be read." for name in names]


def unanswered(lesson: Lesson, step: Step) -> str | None:
    """Why a step's question is not asked on its own sentence; None if it is, or if there is none."""
    if step.question is None:
        return None
    now, _ = parse({name: [value] for name, value in step.params.items()})
    try:
        opened, now = open_view(now, lesson.needs)
        found = answer(opened, step.question, place(opened.translation, now))
    except KeyError:
        return f"the question cannot be asked: there is no model {now.model!r:.60} that translates."
    except (ValueError, OSError) as error:
        return f"the question cannot be asked: {error}"
    if found.has_margin:
        return None
    return f"the question has no margin: the best is {found.margin:.2f} from the next one."
