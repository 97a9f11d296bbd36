"""A class at a glance: many files of progress as one table, computed in memory and kept nowhere."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.app.server.lessons import progress
from explorer.app.server.lessons.files import CHECKS, Lesson, checks, every
from explorer.figures.base import labels

MOST_STUDENTS = 500
"""Most files that are read at a time."""


@dataclass(frozen=True)
class Table:
    """What a class has done."""

    head: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[str | int, ...], ...]  # one for each file
    hardest: str  # the step that most got wrong, in a sentence; empty if nothing was got wrong
    wrong: tuple[str, ...]  # a sentence for each file, or part of one, that cannot be read

    @property
    def summary(self) -> str:
        """How many files were read, and which step was hardest."""
        count = len(self.rows)
        return f"{count} file{'s' * (count != 1)} read. {self.hardest}".strip()


def table(files: Iterable[tuple[str, bytes]]) -> Table:
    """The table of files of progress, by name and content; a student may be named."""
    known, wrong = {**every()[0], **checks()}, list[str]()
    students: list[tuple[str, progress.Notes]] = []
    for count, (file, content) in enumerate(files):
        if count == MOST_STUDENTS:
            wrong.append(f"Only the first {MOST_STUDENTS} files are read.")
            break
        try:
            notes, unread = progress.read(content)
        except progress.ProgressError as error:
            wrong.append(f"{file}: {str(error)[0].lower()}{str(error)[1:]}")
            continue
        students.append((progress.student(content) or Path(file).stem, notes))
        if unread:
            wrong.append(f"{file}: what it says of {', '.join(unread)} cannot be read.")
    begun = {name for _, notes in students for name in notes} - {*CHECKS}
    lessons = [*(name for name in known if name in begun), *sorted(begun - {*known})]
    titles = [known[name].title if name in known else name for name in lessons]
    tests = [f"{name} (of {len(known[name].steps)})" for name in CHECKS]
    rows = tuple(_row(name, notes, lessons, known) for name, notes in students)
    return Table(("name", *tests, "answers", "right", *titles), rows, _hardest(students, known), tuple(wrong))


def _row(
    student: str, notes: progress.Notes, lessons: Sequence[str], known: dict[str, Lesson]
) -> tuple[str | int, ...]:
    """One student: the checks, answers and right ones in lessons, and how far each lesson was seen."""
    scores = ("" if (score := progress.score(notes, name)) is None else score for name in CHECKS)
    answers = [note["right"] for name in lessons for note in notes.get(name, {}).values() if note]
    seen = (_seen(len(notes[name]), known.get(name)) if name in notes else "" for name in lessons)
    return (student, *scores, len(answers), sum(answers), *seen)


def _seen(steps: int, lesson: Lesson | None) -> str:
    return f"{steps} step{'s' * (steps != 1)}" if lesson is None else f"{steps} of {len(lesson.steps)} steps"


def _hardest(students: Sequence[tuple[str, progress.Notes]], known: dict[str, Lesson]) -> str:
    """The step of a lesson or a check that most students got wrong."""
    asked, missed = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for _, notes in students:
        for name, steps in notes.items():
            for step, note in steps.items():
                asked[name, step] += note is not None
                missed[name, step] += note is not None and not note["right"]
    (name, step), count = max(missed.items(), key=lambda each: each[1], default=(("", 0), 0))
    if not count:
        return ""
    title = known[name].title if name in known else name
    return f"Most got wrong: step {labels.count(step)} of “{title}”, by {count} of {asked[name, step]}."
