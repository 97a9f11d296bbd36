"""What a student has done, as a file that the student keeps; nothing is stored here."""

import json
from collections.abc import Mapping
from typing import Any

from explorer.app.address.kinds import LESSON
from explorer.app.server.lessons.files import CHECKS, MOST_FILES, MOST_STEPS
from transformer.text.typed import without_surrogates

MOST_BYTES, MOST_STUDENT = 1_000_000, 80
_MOST_LETTERS, _MOST_NAME = 2_000, 40
_NONE = "This file holds no progress that was saved on this page."
FIELDS = ("sentence", "model", "asked", "chose", "right", "reason")
"""What is noted of a question; `right` says whether the choice was."""

Notes = dict[str, dict[int, dict[str, Any] | None]]
"""By lesson and step (from 0): None for a step without an answer."""


class ProgressError(ValueError):
    """A file holds no progress."""


def score(notes: Mapping[str, Mapping[int, Any]], check: str) -> int | None:
    """Right answers of a check, "before" or "after"; None if no question of it was answered."""
    answers = [note["right"] for note in notes.get(check, {}).values() if note]
    return sum(answers) if answers else None


def written(
    notes: Mapping[str, Mapping[int, Any]],
    student: str = "",  # the name, as the student typed it
) -> str:
    """The file; steps count from 1 in it."""
    steps = {
        name: [{"step": step + 1, **(note or {})} for step, note in sorted(steps.items())]
        for name, steps in notes.items()
    }
    right = {name: found for name in CHECKS if (found := score(notes, name)) is not None}
    named = {"name": student} if student else {}
    whole = {"attention explorer": "progress", **named, "right in checks": right, "lessons": steps}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def student(content: bytes) -> str:
    """The name in a file that `read` has read; empty if there is none."""
    name = json.loads(content).get("name")
    return "".join(filter(str.isprintable, name)).strip()[:MOST_STUDENT] if isinstance(name, str) else ""


def read(content: bytes) -> tuple[Notes, list[str]]:
    """What was done in each lesson, and the names of lessons of which the file says something unreadable.

    ProgressError if it holds no progress; the message says so in one sentence.
    """
    if len(content) > MOST_BYTES:
        raise ProgressError(f"The file is larger than {MOST_BYTES:,} bytes, so it holds no progress.")
    try:
        lessons = json.loads(content)["lessons"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProgressError(_NONE) from error
    if len(lessons) > 2 * MOST_FILES:
        raise ProgressError(_NONE)
    found, wrong = Notes(), []
    for name, steps in lessons:
        try:
            if len(steps) > MOST_STEPS:
                raise ValueError
            found[LESSON.read(f"{name}.1")[0]] = dict(map(_step, steps))
        except (ValueError, KeyError, TypeError, AttributeError):
            wrong.append(without_surrogates(name)[:_MOST_NAME])
    return found, wrong


def _step(values: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
    """A step, from 0, and what is noted of it; an error if anything is not as `written` writes it."""
    step = values["step"]
    note = {name: values[name] for name in FIELDS if name in values}
    counts = isinstance(step, int) and not isinstance(step, bool) and 1 <= step <= MOST_STEPS
    if not counts or set(values) - {"step", *FIELDS} or len(note) not in (0, len(FIELDS)):
        raise ValueError
    for name, value in note.items():
        text = str(value)
        if not isinstance(value, bool if name == "right" else str) or len(text) > _MOST_LETTERS:
            raise ValueError
        if without_surrogates(text) != text:
            raise ValueError
    return step - 1, note or None
