"""The question of a step, measured on the sentence that is shown, and kept."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from explorer.app.address import sitemap
from explorer.app.address.kinds import Moves
from explorer.app.address.parameters import parse
from explorer.app.address.state import State, read_by
from explorer.app.lessons.files import CHECKS, FACTS, Lesson, LessonError, Step, printable, read
from explorer.app.lessons.questions import Measured, Question, Viewpoint, measure
from explorer.app.server import examples, models, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import Source
from explorer.app.server.stores import Recent, remembered
from explorer.app.server.view import View
from explorer.figures.base import labels
from transformer.run import Translation

_CHECKS = Recent[Moves](256)


def place(
    run: Translation,
    now: State,  # heads and step are chosen
) -> Viewpoint:
    """The cell that the cursor marks.

    Without a chosen source token, the one most attended at the step.
    """
    heads = {kind: getattr(now, kind) for kind in map(str, run.config.sites)}
    step = min(now.step or 0, len(run.steps) - 1)
    source = now.source
    if source is None:
        source = runs.followed(run, heads["cross"])[step] if "cross" in heads else 0
    last = max(0, len(run.source_tokens) - 1)  # a model may read no source
    return Viewpoint(step, min(source, last), **heads)


@remembered(256)
def answer(opened: View, question: Question, at: Viewpoint) -> Measured:
    """The question with its answer.

    UnmeasuredError if it cannot be asked here; the message says why.
    """
    model = opened.source.load() if opened.source.has_model else None
    return measure(question, opened.translation, at, model, labels.piece)


def open_view(now: State, needs: Sequence[str]) -> tuple[View, Viewpoint]:
    """The sentence that a view names, or the first example, and the place where it opens.

    Without a model, it is the first one that has the kinds of attention that are needed.
    """
    if now.model:
        source = models.find(now.model)
    else:
        every = list(models.available().values())
        kinds = [kind for kind in needs if kind not in FACTS]
        source = next(
            (candidate for candidate in every if all(kind in candidate.sizes for kind in kinds)),
            every[0],
        )
    run_key = RunKey.of(now, source, examples.passage(source, now).sentence)
    opened = View(run_key, runs.translate(run_key, whole=True), None)
    heads: Moves = {k: getattr(now, k) or first for k, first in source.default_heads.items()}
    step = opened.opening.step if now.step is None else now.step
    return opened, place(opened.translation, State(step=step, source=now.source, **heads))


def of_check(source: Source, lesson: Lesson, step: Step) -> Moves:
    """Sentence, cursor and heads of a step of a check: values of the state.

    The checks share out the examples of a model, so that none is asked about twice. Of its own, a
    step takes the first, from its own place on, on which the question has an answer with a margin.
    """
    texts = list(examples.offered(source).values())[CHECKS.index(lesson.name) :: len(CHECKS)]
    number = lesson.steps.index(step)
    first = number % len(texts)

    def make() -> Moves:
        values = Moves()
        for text in texts[first:] + texts[:first]:
            named, _ = parse({name: [value] for name, value in step.params.items()})
            opened, at = open_view(replace(named, model=source.name, text=text), lesson.needs)
            values = {"text": text, **at.named()}
            assert step.question is not None
            if answer(opened, step.question, at).has_margin:
                break
        return values

    return _CHECKS.get(("check", source, lesson.name, number), make)


def check(path: Path) -> Iterator[str]:
    """What is wrong with a lesson's file, a sentence each.

    Questions are asked on their sentences.
    """
    try:
        lesson = read(path)
    except LessonError as error:
        yield str(error)
        return
    models.loading.wait()
    for number, step in enumerate(lesson.steps, start=1):
        for wrong in wrong_of(lesson, step):
            yield f"{printable(path.name)}: step {number}: {wrong}"


def wrong_of(lesson: Lesson, step: Step) -> Iterator[str]:
    """What nobody reads of a step's address, and why its question is not asked on its own
    sentence."""
    page = sitemap.PAGES[Path(step.page).stem]
    now, unreadable = parse({name: [value] for name, value in step.params.items()})
    for name in step.params:
        if name in unreadable or name not in read_by(page):
            yield f"the address's {name}={step.params[name]} cannot be read."
    if step.question is None:
        return
    try:
        opened, at = open_view(now, lesson.needs)
        measured = answer(opened, step.question, at)
        if not measured.has_margin:
            yield f"the question has no margin: the best is {measured.margin:.2f} from the next one."
    except KeyError:
        yield f"the question cannot be asked: there is no model {now.model!r:.60} that translates."
    except (ValueError, OSError) as error:
        yield f"the question cannot be asked: {error}"
