"""Surveys of many sentences in the background; visitors who ask for the same survey share it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st

from transformer import Translator
from transformer.lenses.alignment import GoldPair
from transformer.storage.description import SURVEY_FILE, WEIGHTS_FILE, weights_hash
from transformer.storage.files import read_json
from transformer.study.shipped import ShippedSurvey, read_survey
from transformer.study.survey import Line, Survey, Surveyor
from transformer.text.pairs import read_pairs
from ui.server import catalogue, gold
from ui.server.stores import Recent

SAMPLE = catalogue.ROOT / "assets" / "sample" / "tatoeba-en-de.tsv.gz"

AT_ONCE = 2
"""Most surveys that compute at the same time; others wait for their turn."""
KEPT = 8
"""Most surveys that are kept, each of at most about 4 MB."""


@cache
def sample() -> tuple[Line, ...]:
    """The bundled sentence pairs."""
    return tuple(Line(pair.source, pair.target) for pair in read_pairs(SAMPLE))


@st.cache_resource(show_spinner=False)
def turns() -> threading.Semaphore:
    return threading.Semaphore(AT_ONCE)


@st.cache_resource(show_spinner=False)
def _runs() -> Recent[Run]:
    return Recent(KEPT)


def shipped(model: str) -> ShippedSurvey | None:
    """The survey of the sample that came with a model; None if there is none for these weights."""
    try:
        directory = catalogue.directory(model)
        changed = tuple((directory / name).stat().st_mtime_ns for name in (SURVEY_FILE, WEIGHTS_FILE))
        return _read(directory, changed, sample())
    except (KeyError, OSError, ValueError):
        return None


@cache
def _read(directory: Path, changed: tuple[int, ...], lines: tuple[Line, ...]) -> ShippedSurvey | None:
    return read_survey(read_json(directory / SURVEY_FILE), weights_hash(directory), lines, gold.sample())


def run_of(model: str, own: tuple[Line, ...] | None, language: str | None) -> Run:
    """The survey of a visitor's own sentences, or of the sample; new if nobody has asked for it yet.

    Args:
        model: the name of the model.
        own: the lines of the visitor's file, or None.
        language: the target language of a model that must be told one.

    Raises:
        ValueError: There is no model of that name.
    """
    translator = catalogue.translator(model)
    lines, pairs = sample() if own is None else own, gold.sample()
    if catalogue.languages(model):
        lines = tuple(
            replace(each, source=catalogue.addressed(model, each.source, language)) for each in lines
        )
        pairs = pairs[:0]
    key = (model, id(translator), lines)
    return _runs().get(key, lambda: Run(translator, lines, pairs, turns()))


class Run:
    """One survey, computed in a thread while somebody waits for it, and then kept.

    Args:
        translator: The model.
        lines: The sentences.
        gold: Pairs with word alignments.
        turns: Limits how many runs compute at once; shared by all runs.
    """

    def __init__(
        self,
        translator: Translator,
        lines: Sequence[Line],
        gold: Sequence[GoldPair],
        turns: threading.Semaphore,
    ) -> None:
        surveyor = Surveyor(translator, lines, gold)
        self.total, self.read, self.failed = surveyor.total, 0, ""
        self._surveyor: Surveyor | None = surveyor
        self._reading, self._turns = surveyor.run(), turns
        self._waiting: set[str] = set()
        self._left: set[str] = set()
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._result: Survey | None = None

    def ask(self, visitor: str) -> None:
        """Notes that a visitor wants this survey."""
        with self._lock:
            self._asked.add(visitor)

    def asked(self, visitor: str) -> bool:
        """Whether a visitor wanted this survey, or it is complete because somebody else did."""
        with self._lock:
            return visitor in self._asked or self._result is not None

    def wait(self, visitor: str) -> bool:
        """Whether the survey still runs for a visitor who has not left; starts it if it is not running."""
        with self._lock:
            if visitor in self._left or self._result is not None or self.failed:
                return False
            self._waiting.add(visitor)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            return True

    @property
    def running(self) -> bool:
        """Whether a thread reads sentences, or waits for its turn to."""
        return self._thread is not None

    def leave(self, visitor: str) -> None:
        """Removes a visitor; if nobody waits any more, the run stops after its present sentence."""
        with self._lock:
            self._waiting.discard(visitor)
            self._left.add(visitor)

    def go_on(self, visitor: str) -> None:
        """Adds the visitor again; sentences already read are not lost."""
        with self._lock:
            self._left.discard(visitor)

    def survey(self) -> Survey | None:
        """The results so far; None before the first sentence."""
        with self._lock:
            surveyor = self._surveyor
        if surveyor is None:
            return self._result
        try:
            return surveyor.survey()
        except ValueError:
            return None

    def _run(self) -> None:
        try:
            with self._turns:
                self._read_on()
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            self.failed = f"The survey stopped: {error}"
        finally:
            with self._lock:
                self._thread = None

    def _read_on(self) -> None:
        while self._waiting:
            try:
                self.read = next(self._reading)
            except StopIteration:
                self._finish()
                return

    def _finish(self) -> None:
        result = self.survey()
        with self._lock:
            self._result, self._surveyor = result, None
            if result is None:
                self.failed = "All these sentences are too long for the model: open a file with shorter ones."
