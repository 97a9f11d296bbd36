"""Lessons as files: those that are bundled, and a folder of one's own, which is not trusted."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from explorer.app.address.kinds import LESSON
from explorer.app.address.parameters import parse
from explorer.app.address.state import KEYS, SHARED
from explorer.app.lessons.questions import KINDS as ATTENTION
from explorer.app.lessons.questions import Question
from transformer.config import AttentionKind, ModelConfig
from transformer.storage.files import POINTER
from transformer.storage.typed import typed
from transformer.text.kinds import Checked, Kind, one_of, whole
from transformer.text.typed import without_surrogates

ROOT = Path(__file__).resolve().parents[3]
BUNDLED = ROOT / "assets" / "lessons"
CHECKS = ("before", "after")
"""Lessons in the folder `checks`, before the first one and after the sixth: answers are noted, not
told."""
FOLDER = "ATTENTION_LESSONS"
"""The environment variable that names a folder of further lessons."""
MOST_BYTES, MOST_FILES, MOST_STEPS, MOST_WORDS = 100_000, 100, 30, 80
FACTS: Mapping[str, Callable[[ModelConfig], bool]] = {
    "scale": lambda config: all(site.score == "scaled_dot" for site in config.sites.values()),
    "language-model": lambda config: [*config.sites] == [AttentionKind.DECODER],
    "embedding-scale": lambda config: getattr(config, "scaled_embeddings", False),
    "equation-2": lambda config: (
        config.activation == "relu" and not getattr(config, "gated", False)
    ),
}
"""What a text of a lesson may say of a model that is not so of every model, by its config."""
_PATH = re.compile(r"[a-z_]*")


class LessonError(ValueError):
    """A file is no lesson; the message names the file and says why in one sentence."""


def printable(path: str | Path) -> str:
    """A path as any page or terminal can show it, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


def _text(most: int, empty: bool = False) -> Kind:
    says = f"a text of at most {most:,} characters"
    return Kind(says, lambda text: len(text) <= most and (empty or bool(text.strip())))


@dataclass(frozen=True)
class Step(Checked):
    """One step of a lesson, as its file has it; ValueError if it cannot be shown."""

    text: Annotated[str, _text(1_000)]  # what to look at and do, Markdown
    view: Annotated[
        str, _text(1_000, empty=True)
    ]  # an address from the page on, as a browser shows it
    question: Question | None = None
    # by a fact (`FACTS`) on which the text rests, that for other models
    otherwise: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for fact, text in self.otherwise.items():
            one_of(*FACTS).check("otherwise", fact)
            _text(1_000).check(fact, text)
        longest = max(len(text.split()) for text in (self.text, *self.otherwise.values()))
        if longest > MOST_WORDS:
            raise ValueError(f"the text has {longest} words; at most {MOST_WORDS} fit.")
        try:
            split = urlsplit(self.view)
        except ValueError as error:
            raise ValueError(f"{self.view!r:.60} is no address.") from error
        path = split.path.strip("/")
        if split.netloc or not _PATH.fullmatch(path) or not (ROOT / self.page).is_file():
            raise ValueError(f"there is no page {path!r:.60}.")
        if (
            "lesson" in self.params
        ):  # what else a page reads, only the page knows: `asking.check` asks it
            raise ValueError("a step opens no other lesson.")

    @cached_property
    def page(self) -> str:
        """The script of the page that it shows."""
        path = urlsplit(self.view).path.strip("/")
        return f"pages/{path}.py" if path else "app.py"

    @cached_property
    def params(self) -> Mapping[str, str]:
        """Parameters of its address."""
        every = parse_qs(urlsplit(self.view).query, keep_blank_values=True)
        return {name: values[-1] for name, values in every.items()}

    def text_for(self, config: ModelConfig | None) -> str:
        """The text that is true of a model; without a model, that of the paper's."""
        texts = (
            text for fact, text in self.otherwise.items() if config and not FACTS[fact](config)
        )
        return next(texts, self.text)


@dataclass(frozen=True)
class Lesson(Checked):
    """A lesson; ValueError if a value is out of bounds."""

    name: str  # its name in an address: that of its file, without the number
    title: Annotated[str, _text(80)]
    minutes: Annotated[int, whole(1, 60)]
    purpose: Annotated[str, _text(240)]  # what one can do after it, in one sentence
    steps: tuple[Step, ...]
    # the kinds of attention that a model must have, and facts
    needs: tuple[Annotated[str, one_of(*ATTENTION, *FACTS)], ...] = ()
    first_hour: bool = False  # whether it is one of the first hour's

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.steps) <= MOST_STEPS:
            raise ValueError(f"steps must be a list of 1 to {MOST_STEPS} steps.")

    @cached_property
    def unread(self) -> tuple[str, ...]:
        """What no page reads of the addresses of its steps, in sentences; read once, as every page
        asks for all lessons."""
        places = enumerate(self.steps, start=1)
        return tuple(f"step {number}: {why}" for number, step in places for why in unreadable(step))

    def lacks(self, config: ModelConfig) -> list[str]:
        """What it needs that a model does not have: kinds of attention, and facts."""
        kinds = [need for need in self.needs if need not in FACTS and need not in config.sizes]
        facts = [need for need in self.needs if need in FACTS and not FACTS[need](config)]
        return kinds + facts


def read(path: Path) -> Lesson:
    """Reads a lesson; LessonError if the file is none."""
    try:
        if not path.is_file():
            path.stat()
            raise ValueError("this is no file.")
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        why = f"the file cannot be read: {error.strerror}."
    except ValueError as error:
        why = str(error)
    raise LessonError(f"{printable(path.name)}: {why}")


@lru_cache(maxsize=2 * MOST_FILES)
def _read(path: Path, _modified: int) -> Lesson:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"the file is larger than {MOST_BYTES:,} bytes.")
    if content.startswith(POINTER):
        raise ValueError("this is a pointer of Git LFS; run git lfs pull.")
    try:
        values = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError("this is not JSON in UTF-8.") from error
    text = json.dumps(values, ensure_ascii=False)
    if without_surrogates(text) != text:
        raise ValueError(
            "a text has half of a character, a lone surrogate, which no page can send."
        )
    if not isinstance(values, dict) or "name" in values:
        raise ValueError("this must be an object of title, minutes, purpose and steps.")
    name = re.sub(r"^\d+-", "", path.stem)
    try:
        LESSON.read(f"{name}.1")
    except ValueError as error:
        raise ValueError(
            "a lesson's file is called by lower-case letters, digits and hyphens."
        ) from error
    lesson = typed(Lesson, {**values, "name": name})
    steps = values["steps"]
    questions = [step["question"] for step in steps if step.get("question")]
    for kind, objects in ((Lesson, [values]), (Step, steps), (Question, questions)):
        known = [declared.name for declared in fields(kind) if declared.name != "name"]
        for unread in (at for entry in objects for at in entry if at not in known):
            raise ValueError(f"{unread!r:.40} is unknown; known are {', '.join(known)}.")
    return lesson


def unreadable(step: Step) -> list[str]:
    """What no page reads of a step's address, in sentences.

    `asking.check` looks at what its own page alone reads, too.
    """
    _, wrong = parse({name: [value] for name, value in step.params.items() if name in SHARED})
    names = [name for name in step.params if name in wrong or name not in KEYS]
    return [f"the address's {name}={step.params[name]} cannot be read." for name in names]


def every() -> tuple[dict[str, Lesson], list[str]]:
    """All lessons by name, in order, and a sentence for each file that is none."""
    lessons = dict[str, Lesson]()
    wrong = list[str]()
    folder = os.environ.get(FOLDER)
    further = sorted(Path(folder).glob("*.json"))[:MOST_FILES] if folder else []
    for path in [*sorted(BUNDLED.glob("*.json")), *further]:
        try:
            lesson = read(path)
        except LessonError as error:
            wrong.append(str(error))
            continue
        if lesson.unread:
            wrong.append(f"{printable(path.name)}: {lesson.unread[0]}")
        elif lesson.name in (*lessons, *CHECKS):
            reason = f"another lesson is called {lesson.name}, so this one is left out."
            wrong.append(f"{printable(path.name)}: {reason}")
        else:
            lessons[lesson.name] = lesson
    return lessons, wrong


def checks() -> dict[str, Lesson]:
    """The two checks by name."""
    return {name: read(BUNDLED / "checks" / f"{name}.json") for name in CHECKS}


def find(name: str) -> Lesson | None:
    """The lesson or the check of a name; None if there is none."""
    return {**every()[0], **checks()}.get(name)
