"""Searches of visitors: made once, ended with the visitor, and the long ones in a queue."""

from __future__ import annotations

import pytest
from sources import named

from explorer.app.server import runs
from explorer.app.server.queue import FairQueue
from explorer.app.server.runs import Progress, Request
from transformer.decoding import SearchRules
from transformer.translator import Translator

ASKED = Request(named("random"), "one two three", "beam-3", None)


class Left(BaseException):
    """How the run of a page ends when its visitor leaves."""


class Leaving(Progress):
    """A visitor who leaves at the third token, or as soon as there is a queue."""

    def __init__(self) -> None:
        self.heard = 0

    def waits(self, before: int) -> None:
        raise Left

    def wrote(self, count: int, token: str) -> None:
        self.heard = count
        if count == 3:
            raise Left


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> FairQueue:
    """The only turn of long searches; each search is long."""
    only = FairQueue(1)
    monkeypatch.setattr(runs, "turns", only)
    monkeypatch.setattr(runs, "LONG_SEARCH", 0)
    return only


def test_a_search_ends_with_its_visitor_and_gives_its_turn_back(translator: Translator, turns: FairQueue):
    visitor = Leaving()
    with pytest.raises(Left):
        runs.search(translator, ASKED, translator.rules, visitor)
    assert visitor.heard == 3
    assert turns.count() == (0, 0)


def test_a_long_search_waits_as_long_as_its_visitor_does(translator: Translator, turns: FairQueue):
    visitor = Leaving()
    with turns.turn(object(), pytest.fail), pytest.raises(Left):
        runs.search(translator, ASKED, translator.rules, visitor)
    assert visitor.heard == 0
    assert turns.count() == (0, 0)
    assert runs.search(translator, ASKED, translator.rules).tree is not None


def test_a_short_search_does_not_wait(translator: Translator, turns: FairQueue, monkeypatch):
    monkeypatch.setattr(runs, "LONG_SEARCH", 10_000)
    with turns.turn(object(), pytest.fail):
        assert runs.search(translator, ASKED, SearchRules(length_penalty=0.5)).tree is not None
