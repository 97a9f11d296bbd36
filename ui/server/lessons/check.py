"""What is wrong with a lesson's file, line by line; its questions are measured on their sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ui.address.parameters import parse
from ui.address.state import State
from ui.server import catalogue, examples, runs
from ui.server.lessons import asking
from ui.server.lessons.files import Lesson, LessonError, Step, read
from ui.server.opened import Opened


def check(path: Path) -> list[tuple[int, str]]:
    """Lines of a lesson's file, from 1, and what is wrong there."""
    try:
        lesson = read(path)
    except LessonError as error:
        return list(error.found)
    asked = [step for step in lesson.steps if step.question is not None]
    return [(step.line, wrong) for step in asked if (wrong := unanswered(lesson, step)) is not None]


def unanswered(lesson: Lesson, step: Step) -> str | None:
    """Why a step's question is not asked on its own sentence; None if it is."""
    now, _ = parse({name: [value] for name, value in step.params.items()})
    try:
        opened, now = _opened(lesson, now)
        assert step.question is not None
        found = asking.answer(opened, step.question, asking.place(opened.translation, now))
    except KeyError:
        return f"the question cannot be asked: there is no model {now.model!r:.60} that translates."
    except (ValueError, OSError) as error:
        return f"the question cannot be asked: {error}"
    if found.asked:
        return None
    return f"the question has no margin: the best is {found.margin:.2f} from the next one."


def _opened(lesson: Lesson, now: State) -> tuple[Opened, State]:
    fits = [
        name for name in catalogue.available() if all(kind in catalogue.sizes(name) for kind in lesson.needs)
    ]
    model = now.model or (fits or [*catalogue.available()])[0]
    asked = runs.request(now, model, examples.text_on(model, now.text))
    opened = Opened(asked, runs.traced(asked, runs.Untold()), None)
    heads: dict[str, Any] = {
        kind: getattr(now, kind) or runs.default_head(model, kind) for kind in catalogue.sizes(model)
    }
    step = opened.first_step if now.step is None else now.step
    return opened, State(step=step, source=now.source, **heads)
