"""Lessons as files: those that are bundled, and a folder of one's own, which is not trusted."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from explorer.app.address.kinds import LESSON
from explorer.lenses.what_if.questions import KINDS as ATTENTION
from explorer.lenses.what_if.questions import Question
from transformer.config import ModelConfig
from transformer.storage.files import POINTER
from transformer.text.typed import without_surrogates

ROOT = Path(__file__).resolve().parents[4]
BUNDLED = ROOT / "assets" / "lessons"
CHECKS = ("before", "after")
"""Lessons in the folder `checks` that only ask: before the first lesson, and after the sixth."""
FOLDER = "ATTENTION_LESSONS"
"""The environment variable that names a folder of further lessons."""
MOST_BYTES, MOST_FILES, MOST_STEPS, MOST_WORDS = 100_000, 100, 30, 80
FACTS: Mapping[str, Callable[[ModelConfig], bool]] = {
    "scale": lambda config: all(site.score == "scaled_dot" for site in config.sites.values()),
    "embedding-scale": lambda config: getattr(config, "scaled_embeddings", False),
    "equation-2": lambda config: config.activation == "relu" and not getattr(config, "gated", False),
}
"""What a text of a lesson may say of a model that is not so of every model, by its config."""
_MOST_LETTERS = {"title": 80, "purpose": 240, "text": 1_000, "view": 1_000}
_PATH = re.compile(r"[a-z_]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:\n]|[^][{},:"\s]+')


class LessonError(ValueError):
    """A file is no lesson."""

    def __init__(self, path: Path, wrong: Sequence[tuple[int, str]]) -> None:
        self.found = wrong
        """Lines of the file, from 1, and what is wrong there."""
        super().__init__(f"{printable(path.name)}, line {wrong[0][0]}: {wrong[0][1]}")


def printable(path: str | Path) -> str:
    """A path as any page or terminal can show it, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


@dataclass(frozen=True)
class Step:
    """One step of a lesson."""

    text: str  # what to look at and do, Markdown
    otherwise: Mapping[str, str]  # by a fact (`FACTS`) on which the text rests, that for other models
    page: str  # the script of the page that it shows
    params: Mapping[str, str]  # parameters of its address
    question: Question | None
    line: int  # where the step begins in the file, from 1

    def text_for(self, config: ModelConfig | None) -> str:
        """The text that is true of a model; without a model, that of the paper's."""
        others = (text for fact, text in self.otherwise.items() if config and not FACTS[fact](config))
        return next(others, self.text)


@dataclass(frozen=True)
class Lesson:
    """A lesson."""

    name: str  # its name in an address
    title: str
    minutes: int
    purpose: str  # what one can do after it, in one sentence
    needs: tuple[str, ...]  # the kinds of attention that a model must have, and facts
    first_hour: bool  # whether it is one of the first hour's
    steps: tuple[Step, ...]

    @property
    def is_check(self) -> bool:
        """Whether its answers are noted, and not told."""
        return self.name in CHECKS


def lines(text: str) -> dict[tuple[Any, ...], int]:
    """The line, from 1, of every value of a JSON text, by its path of names and places."""
    found: dict[tuple[Any, ...], int] = {}
    path: list[Any] = []
    line, name = 1, None
    for token in _TOKEN.findall(text):
        if token == "\n":
            line += 1
        elif token in "]}":
            path.pop()
        elif token == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif token == ":":
            path[-1] = name
        else:
            name = token.strip('"')
            found.setdefault(tuple(path), line)
            if token in "[{":
                path.append(0 if token == "[" else None)
    return found


class _Reader:
    """Reads a lesson and notes what is wrong."""

    def __init__(self, text: str) -> None:
        self._lines, self.wrong = lines(text), list[tuple[int, str]]()

    def line(self, *at: Any) -> int:
        """The line of a value, or that of what it should be in."""
        while at and at not in self._lines:
            at = at[:-1]
        return self._lines.get(at, 1)

    def need(self, holds: object, says: str, *at: Any) -> bool:
        """Whether something holds; if not, that is noted."""
        if not holds:
            self.wrong.append((self.line(*at), says))
        return bool(holds)

    def whole(self, value: Any, *at: Any) -> None:
        """Notes texts with half of a surrogate pair: no page can send them."""
        if isinstance(value, dict):
            for name, each in value.items():
                self.whole(name, *at, name)
                self.whole(each, *at, name)
        elif isinstance(value, list):
            for i, each in enumerate(value):
                self.whole(each, *at, i)
        elif isinstance(value, str):
            says = "this text has half of a character, a lone surrogate."
            self.need(without_surrogates(value) == value, says, *at)

    def known(self, content: Any, names: Sequence[str], *at: Any) -> dict[str, Any]:
        """An object, if it is one; names of its fields that nobody knows are noted."""
        if not self.need(isinstance(content, dict), "this must be an object.", *at):
            return {}
        for name in content:
            says = f"{name!r:.40} is unknown; known are {', '.join(names)}."
            self.need(name in names, says, *at, name)
        return {name: value for name, value in content.items() if name in names}

    def text(self, value: Any, name: str, *at: Any) -> str:
        """A text of a limited length."""
        most = _MOST_LETTERS[name]
        fits = isinstance(value, str) and (value.strip() or name == "view") and len(value) <= most
        return value if self.need(fits, f"{name} must be a text of at most {most:,} characters.", *at) else ""

    def lesson(self, name: str, value: Any) -> Lesson:
        """A whole lesson."""
        try:
            LESSON.read(f"{name}.1")
        except ValueError:
            self.need(False, "a lesson's file is called by lower-case letters, digits and hyphens.")
        known = self.known(value, ("title", "minutes", "purpose", "needs", "first_hour", "steps"))
        title, purpose = (self.text(known.get(each), each, each) for each in ("title", "purpose"))
        minutes, hour, needs = known.get("minutes"), known.get("first_hour"), known.get("needs") or []
        counts = isinstance(minutes, int) and not isinstance(minutes, bool) and 1 <= minutes <= 60
        self.need(counts, "minutes must be a whole number from 1 to 60.", "minutes")
        self.need(hour in (None, True, False), "first_hour must be true or false.", "first_hour")
        can_need = (*ATTENTION, *FACTS)
        listed = isinstance(needs, list) and all(each in can_need for each in needs)
        self.need(listed, f"needs must be a list of {', '.join(can_need)}.", "needs")
        steps = known.get("steps")
        fits = isinstance(steps, list) and 1 <= len(steps) <= MOST_STEPS
        self.need(fits, f"steps must be a list of 1 to {MOST_STEPS} steps.", "steps")
        read = [self.step(each, "steps", i) for i, each in enumerate(steps if fits and steps else ())]
        return Lesson(
            name, title, minutes or 1, purpose, tuple(needs if listed else ()), bool(hour), tuple(read)
        )

    def step(self, value: Any, *at: Any) -> Step:
        """One step."""
        known = self.known(value, ("text", "otherwise", "view", "question"), *at)
        text, view = (self.text(known.get(each), each, *at, each) for each in ("text", "view"))
        others = self.known(known.get("otherwise", {}), tuple(FACTS), *at, "otherwise")
        others = {fact: self.text(each, "text", *at, "otherwise", fact) for fact, each in others.items()}
        for each in (text, *others.values()):
            says = f"the text has {len(each.split())} words; at most {MOST_WORDS} fit."
            self.need(len(each.split()) <= MOST_WORDS, says, *at, "text")
        question = self.question(known["question"], *at, "question") if "question" in known else None
        return Step(text, others, *self.view(view, *at, "view"), question, self.line(*at))

    def view(self, view: str, *at: Any) -> tuple[str, dict[str, str]]:
        """The page and the parameters of an address, as a browser shows it."""
        try:
            split = urlsplit(view)
        except ValueError:
            self.need(False, f"{view!r:.60} is no address.", *at)
            return "app.py", {}
        path = split.path.strip("/")
        script = f"pages/{path}.py" if path else "app.py"
        is_page = not split.netloc and _PATH.fullmatch(path) and (ROOT / script).is_file()
        script = script if self.need(is_page, f"there is no page {path!r:.60}.", *at) else "app.py"
        params = parse_qs(split.query, keep_blank_values=True)
        # only the page itself knows what it reads: `asking.check` lets it say so
        self.need("lesson" not in params, "a step opens no other lesson.", *at)
        return script, {name: values[-1] for name, values in params.items()}

    def question(self, value: Any, *at: Any) -> Question | None:
        """A question about a measured quantity."""
        known = self.known(value, [each.name for each in fields(Question)], *at)
        values: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each for name, each in known.items()
        }
        question = Question(**{"quantity": "", **values})
        if (wrong := question.problem()) is not None:
            self.need(False, wrong, *at, wrong.partition(" ")[0])
        return question


def name_of(path: Path) -> str:
    """The name of a lesson in addresses: that of its file without the number."""
    return re.sub(r"^\d+-", "", path.stem)


def read(path: Path) -> Lesson:
    """Reads a lesson; a LessonError names all that is wrong, with lines."""
    try:
        modified = path.stat().st_mtime_ns
        if not path.is_file():
            raise LessonError(path, [(1, "this is no file.")])
        return _read(path, modified)
    except OSError as error:
        raise LessonError(path, [(1, f"the file cannot be read: {error.strerror}.")]) from error


@lru_cache(maxsize=2 * MOST_FILES)
def _read(path: Path, _modified: int) -> Lesson:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise LessonError(path, [(1, f"the file is larger than {MOST_BYTES:,} bytes.")])
    try:
        text = content.decode()
        given = json.loads(text)
        reader = _Reader(text)
        reader.whole(given)
    except (ValueError, RecursionError) as error:
        pointer = content.startswith(POINTER)
        why = "is a pointer of Git LFS; run git lfs pull." if pointer else "is not JSON in UTF-8."
        raise LessonError(path, [(getattr(error, "lineno", 1), f"this {why}")]) from error
    lesson = None if reader.wrong else reader.lesson(name_of(path), given)
    if lesson is None or reader.wrong:
        raise LessonError(path, sorted(reader.wrong))
    return lesson


def every() -> tuple[dict[str, Lesson], list[str]]:
    """All lessons by name, in order, and a sentence for each file that is none."""
    found, wrong, own = dict[str, Lesson](), list[str](), os.environ.get(FOLDER)
    further = sorted(Path(own).glob("*.json"))[:MOST_FILES] if own else []
    for path in [*sorted(BUNDLED.glob("*.json")), *further]:
        try:
            lesson = read(path)
        except LessonError as error:
            wrong.append(str(error))
            continue
        if lesson.name in (*found, *CHECKS):
            taken = f"another lesson is called {lesson.name}, so this one is left out."
            wrong.append(f"{printable(path.name)}: {taken}")
        else:
            found[lesson.name] = lesson
    return found, wrong


def checks() -> dict[str, Lesson]:
    """The two checks by name."""
    return {name: read(BUNDLED / "checks" / f"{name}.json") for name in CHECKS}


def find(name: str) -> Lesson | None:
    """The lesson or the check of a name; None if there is none."""
    return {**every()[0], **checks()}.get(name)
