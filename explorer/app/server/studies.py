"""What was measured over many sentences, as documents with charts (`assets/studies`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from explorer.app.server import models
from explorer.figures.pages.study import Chart
from transformer.storage.typed import read_typed, typed

FOLDER = models.ROOT / "assets" / "studies"


@dataclass(frozen=True)
class Study:
    """One document."""

    topic: str  # what it is listed under
    question: str
    finding: str  # the answer, in one sentence
    parts: Sequence[
        str | Chart
    ]  # paragraphs in Markdown and charts, in order; each number stands in a chart
    method: str  # what was done, in a few sentences
    sources: str  # papers
    commands: Sequence[tuple[str, str]]  # dates and commands of the measurements
    program: str  # where the program is that measured


@cache
def known() -> dict[str, Path]:
    """The documents by name: `adam`, or `en-pt/importance` about a model."""
    return {
        path.relative_to(FOLDER).with_suffix("").as_posix(): path
        for path in sorted(FOLDER.rglob("*.json"))
    }


@cache
def study(name: str) -> Study:
    """A document; KeyError if there is none of that name, CheckpointError if it cannot be read."""
    return read_typed(
        known()[name], lambda values: typed(Study, {**values, "commands": values["made"]})
    )


def every() -> tuple[dict[str, Study], list[str]]:
    """All documents by name, and a sentence for each file that is none."""
    documents = dict[str, Study]()
    wrong = list[str]()
    for name in known():
        try:
            documents[name] = study(name)
        except ValueError as error:
            wrong.append(str(error))
    return documents, wrong
