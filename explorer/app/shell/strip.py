"""The strip of a lesson: its step in words, its question, and the ways on, back and out.

The lesson drives the app itself: every step is an address, and its links keep the visitor's
sentence, model and cursor (`explorer/app/address/session.py`).
"""

from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.address import State, session, sitemap
from explorer.app.address.kinds import LESSON
from explorer.app.address.parameters import KEEP, parse
from explorer.app.address.state import KEYS
from explorer.app.controls import part, plain, refusal, styles
from explorer.app.lessons import asking
from explorer.app.lessons.files import CHECKS, FACTS, Lesson, Step, every, find
from explorer.app.lessons.progress import Note
from explorer.app.lessons.questions import Measured, Question, Viewpoint, kind_of
from explorer.app.server import models
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.app.shell import menu, needs
from explorer.figures.base import labels
from explorer.linked.view.silent import LATER

_UNTRUE = {
    "language-model": "decoder self-attention without a source",
    "scale": "the division of q·k by $\\sqrt{d_k}$",
    "embedding-scale": "embeddings times $\\sqrt{d_{model}}$",
    "equation-2": "the feed-forward network of equation 2",
}
"""What a lesson is about that is not so of a model."""
BUILD = "build"
_RIGHT = ":material/check: **Right.**"
_BUILDING = ":gray[Move the sliders below: every query is graded as you set it.]"
_TAKEN = ":gray[Noted. You can choose another until you have seen all questions of the check.]"
_LOCKED = (
    ":gray[Noted. You have seen all questions: the page Lessons says which you got right, and "
    "what is right after both checks.]"
)
_place: ContextVar[DeltaGenerator | None] = ContextVar("lesson_question", default=None)


def link(
    lesson: Lesson,
    step: int,  # from 0
    label: str,
    icon: str | None = None,
    **named: str,  # further parameters of the address that the link sets
) -> None:
    """Draws a link that opens a step."""
    view = lesson.steps[step]
    at = {"lesson": LESSON.write((lesson.name, step))}
    query = {**KEEP, **view.params, **at, **named}
    st.page_link(view.page, label=plain(label), icon=icon, query_params=query)


class Start(NamedTuple):
    """The lesson that somebody takes first."""

    number: int  # of the lesson, from 1
    lesson: Lesson
    model: str | None  # another model than the page's, with which it is taken


def first(source: Source | None) -> Start:
    """The first lesson that a model can take; lesson 1, with another model, if there is none."""
    lessons = [*every()[0].values()]
    fitting = lessons
    if source is not None:
        with suppress(ValueError, OSError):  # a damaged model
            config = source.config
            fitting = [lesson for lesson in lessons if not lesson.lacks(config)]
    if fitting:
        return Start(lessons.index(fitting[0]) + 1, fitting[0], None)
    return Start(1, lessons[0], next((name for name, _ in _taking(lessons[0])), None))


def _offer_model(lesson: Lesson, at: int) -> None:
    """Links to the step with the first model that has what the lesson needs."""
    for name, model in _taking(lesson):
        offer = f"Take this lesson with {model.title}"
        link(lesson, at, offer, ":material/arrow_forward:", model=name)
        return


def _taking(lesson: Lesson) -> Iterator[tuple[str, models.ModelHandle]]:
    """The models that have what a lesson needs, by name."""
    for name, model in models.available().items():
        with suppress(ValueError, OSError):
            if not lesson.lacks(model.config):
                yield name, model


def draw(
    now: State,
    page: str,  # as in `sitemap.PAGES`
) -> None:
    """Draws the strip of the open lesson at the top of a page, with a place for its question."""
    _place.set(None)
    lesson, at = _open(now)
    if lesson is None:
        session.resolve(lesson=None)
        session.notice("The lesson that the address names is not here.")
        return
    step = lesson.steps[at]
    if lesson.name in CHECKS:
        with st.spinner("Choosing a sentence"), suppress(KeyError, ValueError, OSError):
            now = session.resolve(
                **asking.of_check(models.find(now.model or models.DEFAULT), lesson, step)
            )
    session.visit().lesson_notes.setdefault(lesson.name, {}).setdefault(at, None)
    session.visit().roleless = _asks_role(lesson, at)
    st.html(styles.sheet("lesson"))
    with st.container(key="lesson"):
        controls = _head(lesson, at, _moved(step, now, page))
        source = None if now.model is None else models.known(now.model)
        config = None
        with suppress(ValueError, OSError):  # a damaged model
            config = None if source is None else source.config
        lacks = [] if config is None else lesson.lacks(config)
        untrue = [need for need in lacks if need in FACTS]
        with st.container(key="lesson-text"):
            text = step.text_for(config)
            if untrue:
                text = (
                    f"This lesson is about {_UNTRUE[untrue[0]]}, which this model does not have. "
                )
                text += "Choose another model on the left."
            st.markdown(text.replace("![", "!\\["))
        lacking = [need for need in lacks if need not in FACTS]
        if lacking and source is not None:
            st.caption(plain(needs.sentence(source, lacking)))
        if lacks:
            _offer_model(lesson, at)
        elif step.question is not None:
            _place.set(st.container(key="lesson-question"))
            if not controls:
                st.html(styles.sheet("lesson_question"))
            if step.question.quantity == BUILD:
                st.html(styles.sheet("lesson_built"))


def _open(now: State) -> tuple[Lesson | None, int]:
    """The lesson that a state names, and its step."""
    name, at = now.lesson or ("", 0)
    lesson = find(name) if name else None
    return lesson, 0 if lesson is None else min(at, len(lesson.steps) - 1)


def _moved(step: Step, now: State, page: str) -> bool:
    """Whether something other than the step's own view is shown."""
    if Path(step.page).stem != page:
        return True
    wanted, _ = parse({name: [value] for name, value in step.params.items()})
    names = [name for name in step.params if name in KEYS]
    return any(wanted.value(name) != now.value(name) for name in names)


def _asks_role(lesson: Lesson, at: int) -> bool:
    """Whether a question from a step on, in this lesson or a later one of the hour, asks for a
    role."""
    if lesson.name in CHECKS or not lesson.first_hour:
        return False
    lessons = list(every()[0].values())
    notes = session.visit().lesson_notes
    for later in lessons[lessons.index(lesson) :]:
        first = at if later is lesson else 0
        for number, step in enumerate(later.steps[first:], start=first):
            asks = (
                step.question is not None and step.question.quantity == "role" and later.first_hour
            )
            if asks and notes.get(later.name, {}).get(number) is None:
                return True
    return False


def _head(lesson: Lesson, at: int, moved: bool) -> bool:
    """Draws title and ways on.

    Returns whether the page's controls are shown, which a question folds.
    """
    last = len(lesson.steps) - 1
    controls = True
    with st.container(horizontal=True, vertical_alignment="center", key="lesson-head"):
        st.markdown(
            f"**Lesson · {plain(lesson.title)}** · step {labels.count(at)} of {last + 1}",
            width="content",
        )
        if lesson.steps[at].question is not None:
            controls = st.toggle("Controls", key="lesson-controls", on_change=session.keep)
        if at:
            link(lesson, at - 1, "Back", ":material/arrow_back:")
        if moved:
            link(lesson, at, "This step’s view", ":material/visibility:")
        if at < last:
            with st.container(width="content", key="lesson-next"):
                link(lesson, at + 1, "Next", ":material/arrow_forward:")
        else:
            if (following := after(lesson)) is not None:
                with st.container(width="content", key="lesson-next"):
                    link(following, 0, "Next lesson", ":material/arrow_forward:")
            menu.link(
                sitemap.LESSONS, "All lessons", sitemap.PAGES[sitemap.LESSONS].icon, "content"
            )
        st.button(
            "Leave the lesson",
            key="lesson-leave",
            type="tertiary",
            icon=":material/close:",
            on_click=partial(session.change, lesson=None),
        )
    return controls


def after(lesson: Lesson) -> Lesson | None:
    """The lesson after one.

    After one of the first hour, the next one of that hour if there is one.
    """
    lessons = list(every()[0].values())
    if lesson not in lessons:
        return None
    later = lessons[lessons.index(lesson) + 1 :]
    hour = [following for following in later if following.first_hour and lesson.first_hour]
    return next(iter(hour or later), None)


def ask(opened: View) -> None:
    """Asks the step's question about the sentence that is shown, at the cursor of this run of the
    page.

    Until it is answered, the page is silent: see `explorer.app.controls.silence`.
    """
    now = session.current()
    box = _place.get()
    lesson, at = _open(now)
    if box is None or lesson is None or (question := lesson.steps[at].question) is None:
        return
    where = asking.place(opened.translation, now)
    step = (lesson.name, at)
    with suppress(ValueError):
        measured = asking.answer(opened, question, where)
        is_open = lesson.name in CHECKS or _noted(opened, measured, step) is None
        # what is built is graded by what is drawn, so there the page keeps nothing back
        if measured.has_margin and is_open and question.quantity != BUILD:
            session.visit().silent = [option.name for option in measured.options]
    with box:
        _question(opened, question, where, step)


def _noted(opened: View, measured: Measured, step: tuple[str, int]) -> Note | None:
    """What is noted of the visitor's answer to this very question."""
    note: Note | None = session.visit().lesson_notes.get(step[0], {}).get(step[1])
    same = note is not None and (note.asked, note.sentence) == (measured.asks, opened.run_key.text)
    return note if same else None


def built(
    opened: View,
    kind: str,  # the attention in which a query was built
    goal: str,  # the goal that it reaches
    chose: str,  # the query in words
    reason: str,  # its weights in words
) -> None:
    """Takes a query that reaches its goal as the answer, if the step that is open asks for it."""
    now = session.current()
    lesson, at = _open(now)
    question = None if lesson is None else lesson.steps[at].question
    if lesson is None or question is None:
        return
    about = kind_of(question, opened.translation)
    if (question.quantity, about, question.goal) != (BUILD, kind, goal):
        return
    with suppress(ValueError):
        step = (lesson.name, at)
        where = asking.place(opened.translation, now)
        measured = asking.answer(opened, question, where)
        if _noted(opened, measured, step) is None:
            _note(opened, measured, step=step, chose=chose, right=True, reason=reason)
            session.rerun()  # the strip says so, too


@part()
def _question(opened: View, question: Question, at: Viewpoint, step: tuple[str, int]) -> None:
    """Draws a question, and after a choice its answer."""
    try:
        measured = asking.answer(opened, question, at)
    except ValueError as error:
        st.markdown(f"*Nothing is asked here.* {refusal(error)}")
        return
    if not measured.has_margin:
        first = measured.options[measured.best]
        st.markdown(
            f"*{plain(measured.asks)}* Here the first two are too close to ask: the nearest one to "
            f"{plain(first.name)} is {measured.margin:.2f} away. {_numbers(measured)}"
        )
        return
    note = _noted(opened, measured, step)
    is_check = step[0] in CHECKS
    if note is not None and session.visit().silent is not None and not is_check:
        session.rerun()  # the page may speak
    st.markdown(f"*{plain(measured.asks)}*")
    if question.quantity == BUILD:
        if note is None:
            st.markdown(_BUILDING)
        else:
            reached = f"First reached with {plain(note.chose)}. {plain(note.reason)}"
            st.markdown(f"{_RIGHT} {reached}")
        return
    names = [option.name for option in measured.options]
    chosen: int | None = None
    if note is not None and note.chose in names:
        chosen = names.index(note.chose)
    # a score that follows every choice would tell what is right
    lesson = find(step[0])
    seen = session.visit().lesson_notes.get(step[0], {})
    locked = (
        is_check and chosen is not None and lesson is not None and len(seen) >= len(lesson.steps)
    )
    with st.container(horizontal=True, key="lesson-options"):
        for i, name in enumerate(names):
            st.button(
                plain(name),
                f"lesson.option.{i}",
                type="primary" if i == chosen else "secondary",
                on_click=partial(_choose, opened, measured, choice=i, step=step, at=at),
                disabled=locked,
            )
    if chosen is None and not is_check:
        st.markdown(f":gray[{LATER}]")
    elif chosen is not None and is_check:
        st.markdown(_LOCKED if locked else _TAKEN)
    elif chosen is not None:
        mark = _RIGHT if chosen == measured.best else ":material/close: **Not so.**"
        st.markdown(f"{mark} {plain(measured.reason(chosen))} {_numbers(measured)}")


def _numbers(measured: Measured) -> str:
    """All that was measured."""
    options = (
        f"{plain(option.name)} {plain(option.label)}" for option in measured.options if option.label
    )
    text = " · ".join(options)
    return f":gray[Measured: {text}]" if text else ""


def _choose(
    opened: View, measured: Measured, choice: int, step: tuple[str, int], at: Viewpoint
) -> None:
    now = session.current()
    if asking.place(opened.translation, now) == at:
        session.keep()
    else:  # the cursor has moved on, and comes back to what was asked
        session.change(**at.named())
    option = measured.options[choice]
    _note(
        opened,
        measured,
        step=step,
        chose=option.name,
        right=choice == measured.best,
        reason=measured.reason(choice),
    )


def _note(
    opened: View, measured: Measured, step: tuple[str, int], chose: str, right: bool, reason: str
) -> None:
    note = Note(
        sentence=opened.run_key.text,
        model=opened.run_key.model,
        asked=measured.asks,
        chose=chose,
        right=right,
        reason=reason,
    )
    session.visit().lesson_notes.setdefault(step[0], {})[step[1]] = note
