"""What is wrong with a lesson's file, line by line; its questions are measured on their sentences."""

from __future__ import annotations

from pathlib import Path

from explorer.app.address.parameters import parse
from explorer.app.server.lessons import asking
from explorer.app.server.lessons.files import Lesson, LessonError, Step, read


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
        opened, now = asking.open_view(now, lesson.needs)
        assert step.question is not None
        found = asking.answer(opened, step.question, asking.place(opened.translation, now))
    except KeyError:
        return f"the question cannot be asked: there is no model {now.model!r:.60} that translates."
    except (ValueError, OSError) as error:
        return f"the question cannot be asked: {error}"
    if found.asked:
        return None
    return f"the question has no margin: the best is {found.margin:.2f} from the next one."
