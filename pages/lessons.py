"""Lessons: a path from a first map to what a head does, and how one knows."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from explorer.app.address import session, sitemap
from explorer.app.controls import part, plain, styles
from explorer.app.lessons import progress
from explorer.app.lessons.files import CHECKS, Lesson, checks, every
from explorer.app.server import cells
from explorer.app.shell.page import open_plain_page
from explorer.app.shell.strip import link
from explorer.figures.base import labels

_PURPOSE = (
    "Every lesson runs in the app itself, on your sentence and your model; the answers to its "
    "questions are measured there. The lessons of the first hour end where you can say what a "
    "head does, and how you know."
)
_HOUR = "first hour"
_KEPT = (
    "Nothing is stored here. To go on another day, save your progress as a file, and open it again."
)
_CLASS = (
    "Students save their progress as a file and send it to you. Open all files here to see who "
    "did what, which step most got wrong, and the checks before and after. Nothing of it is "
    "stored."
)


def show() -> None:
    now = open_plain_page(sitemap.LESSONS, styles.sheet("lessons"))
    st.markdown(_PURPOSE)
    lessons, wrong = every()
    before, after = checks().values()
    with st.container(horizontal=True, vertical_alignment="center"):
        _go_on(lessons, now.lesson)
        if not any(map(_done, lessons.values())) and (first := _done(before)) < len(before.steps):
            link(before, first, "First, check what you know", ":material/quiz:")
    _row(before)
    hour = [name for name, lesson in lessons.items() if lesson.first_hour]
    for number, (name, lesson) in enumerate(lessons.items(), start=1):
        _row(lesson, f"{number}. ")
        if name == hour[-1]:
            _row(after)
    for text in wrong:
        st.warning(plain(text), icon=":material/warning:")
    st.markdown("##### Keep your progress")
    st.caption(_KEPT)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label, name = "Your name, if your teacher asks for the file", session.visit().student
        control = session.control(
            "student", name, lambda text: setattr(session.visit(), "student", text)
        )
        st.text_input(label, name, max_chars=progress.MOST_STUDENT, width=300, **control)
        st.download_button(
            "Save progress",
            progress.written(session.visit().lesson_notes, session.visit().student),
            "attention-lessons.json",
            "application/json",
            icon=":material/download:",
            disabled=not session.visit().lesson_notes,
            on_click="ignore",
        )
        control = session.control("progress", None, _take)
        st.file_uploader(
            "Open saved progress (JSON)", type=["json"], max_upload_size=1, width=420, **control
        )
    _class()


def _done(lesson: Lesson) -> int:
    return sum(
        step < len(lesson.steps) for step in session.visit().lesson_notes.get(lesson.name, {})
    )


def _go_on(lessons: dict[str, Lesson], at: tuple[str, int] | None) -> None:
    """Draws the link to where the visitor is, or to the first lesson that is not finished."""
    lesson = lessons.get(at[0]) if at is not None else None
    if lesson is not None and at is not None and _done(lesson) < len(lesson.steps):
        step = min(at[1], len(lesson.steps) - 1)
        label = f"Continue: {lesson.title}, step {labels.count(step)} of {len(lesson.steps)}"
    else:
        left = [lesson for lesson in lessons.values() if _done(lesson) < len(lesson.steps)]
        lesson = min(left, key=lambda each: not each.first_hour, default=None)
        if lesson is None:
            return
        seen = session.visit().lesson_notes.get(lesson.name, {})
        step = next(i for i in range(len(lesson.steps)) if i not in seen)
        label = f"{'Continue with' if _done(lesson) else 'Begin:'} {lesson.title}"
    with st.container(width="content", key="lesson-go"):
        link(lesson, step, label, ":material/play_arrow:")


def _row(lesson: Lesson, number: str = "") -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", key=f"lesson-row-{lesson.name}"
    ):
        with st.container():
            link(lesson, 0, f"{number}{lesson.title}")
            st.caption(plain(lesson.purpose))
            if lesson.name in CHECKS and _done(lesson) >= len(lesson.steps):
                st.caption("  \n".join(map(plain, _missed(lesson))) or "Every answer was right.")
        hour = f" · {_HOUR}" * lesson.first_hour
        st.caption(f"{lesson.minutes} min{hour} · {_state(lesson)}", width=320)


def _missed(check: Lesson) -> list[str]:
    """The questions of a check that were not answered right.

    What is right only after both checks.
    """
    is_over = all(_done(check) >= len(check.steps) for check in checks().values())
    lines = list[str]()
    for step, note in sorted(session.visit().lesson_notes[check.name].items()):
        number = labels.count(step)
        if not note:
            lines.append(f"Step {number} was not answered.")
        elif not note.right:
            reason = note.reason if is_over else f"You chose {note.chose}."
            lines.append(f"Step {number} was not right: {note.asked} {reason}")
    return lines


def _state(lesson: Lesson) -> str:
    done = _done(lesson)
    steps = len(lesson.steps)
    if not done:
        return f"{steps} steps"
    notes = session.visit().lesson_notes
    if lesson.name in CHECKS and done >= steps:  # what both found: "before 4 → after 7 of 8 right"
        ended = [check for check in checks().values() if _done(check) >= len(check.steps)]
        right = " → ".join(
            f"{lesson.name} {progress.score(notes, lesson.name).right}" for lesson in ended
        )
        return f"{right} of {len(ended[0].steps)} right"
    answers, score = progress.score(notes, lesson.name)
    right = (
        f" · {score} of {answers} answers right" if answers and lesson.name not in CHECKS else ""
    )
    return (
        f":material/check: done{right}" if done >= steps else f"{done} of {steps} steps seen{right}"
    )


def _take(file: UploadedFile | None) -> None:
    if file is None:
        return
    try:
        student, notes, unread = progress.read(file.getvalue())
    except progress.ProgressError as error:
        session.notice(str(error))
        return
    session.visit().lesson_notes, session.visit().student = notes, student
    if unread:
        session.notice(f"What the file says of these lessons cannot be read: {', '.join(unread)}.")


@part()
def _class() -> None:
    """Draws the table of a class from its files, which are read here and not kept."""
    with st.expander("For a teacher: a class in one table", icon=":material/groups:"):
        st.caption(_CLASS)
        files = st.file_uploader(
            "Files of progress (JSON)",
            ["json"],
            accept_multiple_files=True,
            max_upload_size=1,
            key="class",
        )
        if not files:
            return
        table = progress.table((file.name, file.getvalue()) for file in files)
        st.markdown(plain(table.summary))
        if table.rows:
            st.dataframe(
                dict(zip(table.head, zip(*table.rows, strict=True), strict=True)), hide_index=True
            )
            name = "attention-lessons-class.csv"
            file = cells.written([table.head, *table.rows])
            st.download_button("Save the table (CSV)", file, name, "text/csv", on_click="ignore")
        for text in table.wrong:
            st.caption(f":material/warning: {plain(text)}")


show()
