"""What students have done: a file that each keeps, and a class in one table.

Nothing is stored here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from explorer.app.address.kinds import LESSON
from explorer.app.lessons.files import CHECKS, MOST_FILES, MOST_STEPS, Lesson, checks, every
from explorer.figures.base import labels
from transformer.storage.typed import typed
from transformer.text.kinds import whole
from transformer.text.typed import without_surrogates

MOST_BYTES, MOST_STUDENT, MOST_STUDENTS = 1_000_000, 80, 500
_MOST_LETTERS, _MOST_NAME = 2_000, 40
_NONE = "This file holds no progress that was saved on this page."


@dataclass(frozen=True)
class Note:
    """What is noted of an answer.

    ValueError for a text that is too long, or that no page can send.
    """

    sentence: str
    model: str
    asked: str  # the question
    chose: str
    right: bool  # whether the choice was
    reason: str  # why it was right or wrong, in numbers

    def __post_init__(self) -> None:
        for text in map(str, vars(self).values()):
            if len(text) > _MOST_LETTERS or without_surrogates(text) != text:
                raise ValueError("A text is too long, or has half of a character.")


Notes = dict[str, dict[int, Note | None]]
"""By lesson and step (from 0): None for a step without an answer."""


class Progress(NamedTuple):
    """The content of a file."""

    student: str  # the name; empty if there is none
    notes: Notes
    unread: list[str]  # the lessons of which the file says something unreadable


class ProgressError(ValueError):
    """A file holds no progress."""


class Score(NamedTuple):
    """What became of questions."""

    answers: int  # how many were answered
    right: int  # how many of those rightly


def score(notes: Notes, *lessons: str) -> Score:
    """The score of some lessons together."""
    right = [note.right for name in lessons for note in notes.get(name, {}).values() if note]
    return Score(len(right), sum(right))


def written(notes: Notes, student: str = "") -> str:
    """The file; steps count from 1 in it."""
    steps = {
        name: [
            {"step": step + 1, **(asdict(note) if note else {})}
            for step, note in sorted(steps.items())
        ]
        for name, steps in notes.items()
    }
    right = {name: found.right for name in CHECKS if (found := score(notes, name)).answers}
    named = {"name": student} if student else {}
    values = {"attention explorer": "progress", **named, "right in checks": right, "lessons": steps}
    return json.dumps(values, ensure_ascii=False, indent=1)


def read(content: bytes) -> Progress:
    """The content of a file.

    ProgressError if it holds no progress, which says so in one sentence.
    """
    if len(content) > MOST_BYTES:
        raise ProgressError(
            f"The file is larger than {MOST_BYTES:,} bytes, so it holds no progress."
        )
    try:
        values = json.loads(content)
        lessons = values["lessons"].items()
        name = values.get("name")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProgressError(_NONE) from error
    if len(lessons) > 2 * MOST_FILES:
        raise ProgressError(_NONE)
    student = (
        "".join(filter(str.isprintable, name)).strip()[:MOST_STUDENT]
        if isinstance(name, str)
        else ""
    )
    notes = Notes()
    unread = []
    for name, steps in lessons:
        try:
            if len(steps) > MOST_STEPS:
                raise ValueError
            noted = dict[int, Note | None]()
            for number in steps:
                step = whole(1, MOST_STEPS).check("step", number["step"])
                noted[step - 1] = typed(Note, number) if len(number) > 1 else None
            notes[LESSON.read(f"{name}.1")[0]] = noted
        except (ValueError, KeyError, TypeError, AttributeError):
            unread.append(without_surrogates(name)[:_MOST_NAME])
    return Progress(student, notes, unread)


# --- a class at a glance -------------------------------------------------------------------------


class Table(NamedTuple):
    """What a class has done."""

    head: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[str | int, ...], ...]  # one for each file
    summary: str  # how many files were read, and the step that most got wrong
    wrong: tuple[str, ...]  # a sentence for each file, or part of one, that cannot be read


def table(files: Iterable[tuple[str, bytes]]) -> Table:
    """The table of files of progress, by name and content; a student may be named."""
    known = {**every()[0], **checks()}
    wrong = list[str]()
    students = list[Progress]()
    for count, (file, content) in enumerate(files):
        if count == MOST_STUDENTS:
            wrong.append(f"Only the first {MOST_STUDENTS} files are read.")
            break
        try:
            found = read(content)
        except ProgressError as error:
            wrong.append(f"{file}: {str(error)[0].lower()}{str(error)[1:]}")
            continue
        students.append(found._replace(student=found.student or Path(file).stem))
        if found.unread:
            wrong.append(f"{file}: what it says of {', '.join(found.unread)} cannot be read.")
    begun = {name for student in students for name in student.notes} - {*CHECKS}
    lessons = [*(name for name in known if name in begun), *sorted(begun - {*known})]
    titles = [known[name].title if name in known else name for name in lessons]
    head = (
        "name",
        *(f"{name} (of {len(known[name].steps)})" for name in CHECKS),
        "answers",
        "right",
        *titles,
    )
    rows = []
    for student, notes, _ in students:
        scores = (
            check.right if check.answers else ""
            for check in (score(notes, name) for name in CHECKS)
        )
        seen = (
            _seen(len(notes[name]), known.get(name)) if name in notes else "" for name in lessons
        )
        rows.append((student, *scores, *score(notes, *lessons), *seen))
    read_files = f"{labels.counted(len(rows), 'file')} read."
    return Table(
        head, tuple(rows), f"{read_files} {_hardest(students, known)}".strip(), tuple(wrong)
    )


def _seen(steps: int, lesson: Lesson | None) -> str:
    return (
        f"{labels.counted(steps, 'step')}"
        if lesson is None
        else f"{steps} of {len(lesson.steps)} steps"
    )


def _hardest(students: Iterable[Progress], known: Mapping[str, Lesson]) -> str:
    """The step that most students got wrong, in a sentence; empty if nothing was got wrong."""
    counts = Counter[tuple[str, int]]()
    missed = Counter[tuple[str, int]]()
    for student in students:
        for name, steps in student.notes.items():
            counts.update((name, step) for step, note in steps.items() if note)
            missed.update((name, step) for step, note in steps.items() if note and not note.right)
    if not missed:
        return ""
    ((name, step), count), *_ = missed.most_common(1)
    title = known[name].title if name in known else name
    return (
        f"Most got wrong: step {labels.count(step)} of “{title}”, by {count} of "
        f"{counts[name, step]}."
    )
