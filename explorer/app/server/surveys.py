"""Surveys of many sentences; visitors who ask for the same survey share it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from explorer.app.server import examples, pairs
from explorer.app.server.jobs import Job, JobError, Tell
from explorer.app.server.queue import FairQueue, turns
from explorer.app.server.source import Source
from explorer.app.server.stores import bytes_of, remembered
from explorer.lenses.heads.survey import Line, Survey, survey_of
from explorer.lenses.heads.surveyor import Surveyor
from explorer.lenses.words import languages
from explorer.lenses.words.links import GoldPair
from transformer import Translator
from transformer.reader import InputError
from transformer.run import Translation
from transformer.text.pairs import read_pairs

KEPT = 8
"""Most surveys that are kept, each of at most about 1 MB."""
RUN = 32
"""Sentences that are run for what a head compares and writes: a few hundred tokens."""


@cache
def sample(name: str = "tatoeba-en-de.tsv.gz") -> tuple[Line, ...]:
    """The bundled sentence pairs of a file."""
    return tuple(Line(pair.source, pair.target) for pair in read_pairs(languages.FOLDER / name))


def sample_of(source: Source) -> tuple[Line, ...]:
    """The pairs that a model is measured on: held-out ones of its toy task, else the bundled
    sentences."""
    if task := examples.of(source).task:
        return tuple(Line(pair.source, pair.target) for pair in task)
    return sample(languages.sample_of(source.path).data)


def named(source: Source | None) -> str:
    """Where these pairs come from, as captions say it."""
    return "its task" if examples.of(source).task else "Tatoeba"


def shipped(source: Source) -> Survey | None:
    """The survey of the sample that came with a model; None if there is none for these weights.

    CheckpointError if its file is damaged.
    """
    with suppress(KeyError, OSError):
        return source.beside(_shipped)
    return None


def _shipped(directory: Path) -> Survey | None:
    data = languages.sample_of(directory)
    return survey_of(directory, sample(data.data), pairs.linked_in(data.alignments))


def lines_of(
    source: Source,  # the model
    typed: tuple[Line, ...] | None,  # the lines of the visitor's file; None for the sample
    language: str | None,  # the target language of a model that must be told one
) -> tuple[Line, ...]:
    """The sentences that a model reads."""
    lines = sample_of(source) if typed is None else typed
    if source.continues:  # it reads each text as it is
        return tuple(Line(line.source, line.source) for line in lines)
    if not source.writes:
        return tuple(Line(line.source) for line in lines)
    if not source.pieces:
        return lines
    return tuple(replace(line, source=source.addressed(line.source, language)) for line in lines)


@remembered(KEPT)
def run_of(source: Source, lines: tuple[Line, ...]) -> Job[Survey]:
    """The survey of some sentences, new if nobody has asked for it yet."""
    unlinked = examples.of(source).task or source.pieces or "cross" not in source.sizes
    gold = [] if unlinked else pairs.linked(source)
    return survey_job(source.load(), lines, gold)


@remembered(2, lambda runs: sum(map(bytes_of, runs)))
def runs_of(source: Source, lines: tuple[Line, ...]) -> list[Translation]:
    """Runs of the first `RUN` of some sentences that the model can read, with their residual
    streams."""
    runs = list[Translation]()
    for line in lines[:RUN]:
        with suppress(InputError):
            runs.append(line.run(source.load(), residual=True))
    return runs


def survey_job(
    translator: Translator,  # the model
    lines: Sequence[Line],  # the sentences
    gold: Sequence[GoldPair],  # pairs with word alignments
    queue: FairQueue = turns,
) -> Job[Survey]:
    """A survey as work, one sentence after the other."""
    surveyor = Surveyor(translator, lines, gold)
    reading = surveyor.run()

    def result() -> Survey | None:
        with suppress(ValueError):  # no sentence could be read yet
            return surveyor.survey()
        return None

    def work(tell: Tell) -> None:
        for done in reading:
            tell(done)
        if result() is None:
            raise JobError(
                "None of these sentences shows anything of the heads: each is too long for the "
                "model, or its output is empty. Open a file with others."
            )

    return Job("survey", surveyor.total, work, result, queue)
