"""Lessons as files: those that are bundled, and a folder of one's own, which is not trusted."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from explorer.app.address.kinds import LESSON
from explorer.app.address.parameters import parse
from explorer.app.address.state import KINDS
from explorer.lenses.what_if.questions.question import KINDS as ATTENTION
from explorer.lenses.what_if.questions.question import Question
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

    def __init__(self, path: Path, found: Sequence[tuple[int, str]]) -> None:
        self.found = found
        """Lines of the file, from 1, and what is wrong there."""
        super().__init__(f"{shown(path.name)}, line {found[0][0]}: {found[0][1]}")


def shown(path: str | Path) -> str:
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
        self._lines = lines(text)
        self.wrong: list[tuple[int, str]] = []

    def line(self, *at: Any) -> int:
        """The line of a value, or that of what it should be in."""
        while at and at not in self._lines:
            at = at[:-1]
        return self._lines.get(at, 1)

    def says(self, text: str, *at: Any) -> None:
        """Notes that something is wrong."""
        self.wrong.append((self.line(*at), text))

    def halves(self, given: Any) -> None:
        """Notes texts with half of a surrogate pair: no page can send them."""
        left: list[tuple[tuple[Any, ...], Any]] = [((), given)]
        while left:
            at, value = left.pop()
            if isinstance(value, dict):
                left += [((*at, name), text) for name, each in value.items() for text in (name, each)]
            elif isinstance(value, list):
                left += [((*at, i), each) for i, each in enumerate(value)]
            elif isinstance(value, str) and without_surrogates(value) != value:
                self.says("this text has half of a character, a lone surrogate.", *at)

    def known(self, given: Any, names: Sequence[str], *at: Any) -> dict[str, Any]:
        """An object, if it is one; names of its fields that nobody knows are noted."""
        if not isinstance(given, dict):
            self.says("this must be an object.", *at)
            return {}
        for name in given:
            if name not in names:
                self.says(f"{name!r:.40} is unknown; known are {', '.join(names)}.", *at, name)
        return given

    def text(self, given: dict[str, Any], name: str, *at: Any) -> str:
        """A text of a limited length."""
        value, most = given.get(name), _MOST_LETTERS[name]
        if not isinstance(value, str) or not (value.strip() or name == "view") or len(value) > most:
            self.says(f"{name} must be a text of at most {most:,} characters.", *at, name)
            return ""
        return value

    def lesson(self, name: str, given: Any) -> Lesson:
        """A whole lesson."""
        names = ("title", "minutes", "purpose", "needs", "first_hour", "steps")
        known = self.known(given, names)
        title, purpose = self.text(known, "title"), self.text(known, "purpose")
        minutes, hour, needs = (known.get(each) for each in ("minutes", "first_hour", "needs"))
        if not isinstance(minutes, int) or isinstance(minutes, bool) or not 1 <= minutes <= 60:
            self.says("minutes must be a whole number from 1 to 60.", "minutes")
        if hour not in (None, True, False):
            self.says("first_hour must be true or false.", "first_hour")
        if not isinstance(needs or [], list) or any(each not in (*ATTENTION, *FACTS) for each in needs or []):
            self.says(f"needs must be a list of {', '.join((*ATTENTION, *FACTS))}.", "needs")
            needs = []
        steps = known.get("steps")
        if not isinstance(steps, list) or not 1 <= len(steps) <= MOST_STEPS:
            self.says(f"steps must be a list of 1 to {MOST_STEPS} steps.", "steps")
            steps = []
        read = tuple(self.step(each, "steps", i) for i, each in enumerate(steps))
        return Lesson(name, title, minutes or 1, purpose, tuple(needs or ()), bool(hour), read)

    def step(self, given: Any, *at: Any) -> Step:
        """One step."""
        known = self.known(given, ("text", "otherwise", "view", "question"), *at)
        text, view = self.text(known, "text", *at), self.text(known, "view", *at)
        others = self.known(known.get("otherwise", {}), tuple(FACTS), *at, "otherwise")
        for each in (
            text,
            *(self.text({"text": other}, "text", *at, "otherwise") for other in others.values()),
        ):
            if len(each.split()) > MOST_WORDS:
                self.says(f"the text has {len(each.split())} words; at most {MOST_WORDS} fit.", *at, "text")
        question = self.question(known["question"], *at, "question") if "question" in known else None
        return Step(text, others, *self.view(view, *at, "view"), question, self.line(*at))

    def view(self, view: str, *at: Any) -> tuple[str, dict[str, str]]:
        """The page and the parameters of an address, as a browser shows it."""
        try:
            split = urlsplit(view)
        except ValueError:
            self.says(f"{view!r:.60} is no address.", *at)
            return "app.py", {}
        path = split.path.strip("/")
        script = f"pages/{path}.py" if path else "app.py"
        if split.netloc or not _PATH.fullmatch(path) or not (ROOT / script).is_file():
            self.says(f"there is no page {path!r:.60}.", *at)
            script = "app.py"
        params = parse_qs(split.query, keep_blank_values=True)
        for name in [*parse(params)[1], *(set(params) - set(KINDS)), *({"lesson"} & set(params))]:
            self.says(f"the address's {name}={params[name][-1]} cannot be read.", *at)
        return script, {name: values[-1] for name, values in params.items()}

    def question(self, given: Any, *at: Any) -> Question | None:
        """A question about a measured quantity."""
        names = [each.name for each in fields(Question)]
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.known(given, names, *at).items()
            if name in names
        }
        question = Question(**{"quantity": "", **known})
        if (wrong := question.problem()) is not None:
            self.says(wrong, *at, wrong.partition(" ")[0])
        return question


def name_of(path: Path) -> str:
    """The name of a lesson in addresses: that of its file without the number."""
    return re.sub(r"^\d+-", "", path.stem)


def read(path: Path) -> Lesson:
    """Reads a lesson.

    Raises:
        LessonError: The file is no lesson; all that is wrong is named, with lines.
    """
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
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        pointer = content.startswith(POINTER)
        why = "is a pointer of Git LFS; run git lfs pull." if pointer else "is not JSON in UTF-8."
        raise LessonError(path, [(line, f"this {why}")]) from error
    reader = _Reader(text)
    reader.halves(given)
    if reader.wrong:
        raise LessonError(path, sorted(reader.wrong))
    lesson = reader.lesson(name_of(path), given)
    try:
        LESSON.read(f"{lesson.name}.1")
    except ValueError:
        reader.says("a lesson's file is called by lower-case letters, digits and hyphens.")
    if reader.wrong:
        raise LessonError(path, sorted(reader.wrong))
    return lesson


def _paths() -> Iterator[Path]:
    yield from sorted(BUNDLED.glob("*.json"))
    if folder := os.environ.get(FOLDER):
        yield from sorted(Path(folder).glob("*.json"))[:MOST_FILES]


def every() -> tuple[dict[str, Lesson], list[str]]:
    """All lessons by name, in order, and a sentence for each file that is none."""
    found: dict[str, Lesson] = {}
    wrong = []
    for path in _paths():
        try:
            lesson = read(path)
        except LessonError as error:
            wrong.append(str(error))
            continue
        if lesson.name in (*found, *CHECKS):
            wrong.append(
                f"{shown(path.name)}: another lesson is called {lesson.name}, so this one is left out."
            )
        else:
            found[lesson.name] = lesson
    return found, wrong


def checks() -> dict[str, Lesson]:
    """The two checks by name."""
    return {name: read(BUNDLED / "checks" / f"{name}.json") for name in CHECKS}


def find(name: str) -> Lesson | None:
    """The lesson or the check of a name; None if there is none."""
    return {**every()[0], **checks()}.get(name)
