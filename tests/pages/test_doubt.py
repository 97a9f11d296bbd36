"""The line of doubt: what it claims, when it comes, and when it is silent."""

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from app_pages import run, words
from sources import named
from waiting import until

from explorer.app.server import doubts, models, runs
from explorer.app.server.doubts import Better
from explorer.app.server.jobs import Job
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import Source
from explorer.figures.base.labels import percent
from transformer.hub.settings import HOSTED_VARIABLE
from transformer.interventions import ablate

TEXTS = [f"{a} {b} three" for a in ("one", "two", "five", "ten") for b in ("six", "four")]
OFFER = "A beam of 4 finds what scores higher"
WRONG = "This translation may be wrong"


def request(text: str, decode: str = "greedy") -> RunKey:
    return RunKey(named("random"), text, decode, None)


def searched(text: str) -> Better:
    """What the search behind a page finds, waited for."""
    asked = request(text)
    search = doubts.by_beam(asked, greedy=runs.translate(asked, whole=True))
    search.wait("a visitor")
    until(lambda: search.complete)
    better = search.result()
    assert better is not None
    return better


def test_a_beam_is_offered_exactly_if_its_text_differs_and_scores_higher() -> None:
    translator = models.find("random").load()
    offered = []
    for text in TEXTS:
        greedy, best = (
            translator.translate(text, beam_size=size, capture=False) for size in (1, 4)
        )
        score, usual = (
            float(np.mean(each.log_probs)) for each in (best, greedy)
        )  # of this model, α is 1
        better = searched(text)
        assert better.differs == (best.text != greedy.text and score > usual)
        assert better[:3] == pytest.approx((best.text, score, usual), abs=1e-6)
        shown = words(run(model="random", text=text))
        assert (OFFER in shown) == better.differs
        offered.append(better.differs)
    assert {*offered} == {True, False}


def test_a_page_searches_nothing_before_its_picture_is_painted() -> None:
    text = "nine seven three five"
    at = run(model="random", text=text)
    search = doubts.by_beam(request(text), greedy=runs.translate(request(text), whole=True))
    assert not search.running
    assert search.result() is None
    assert OFFER not in words(at)
    search.ask(at.session_state["visit"].name)  # as the painted view does
    at.run()
    until(lambda: search.complete)
    assert OFFER in words(at.run())
    next(each for each in at.button if each.key == "doubt.open").click().run()
    assert at.query_params["decode"] == "beam-4"
    assert OFFER not in words(at)


def test_the_next_sentence_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request("eight six two nine")
    greedy = runs.translate(asked, whole=True)
    gate = threading.Event()
    written = list[int]()
    translator = asked.source.load()
    plain_stream = translator.stream

    def stream(text: str, beam_size: int = 1, **way: Any) -> Iterator[Any]:
        if beam_size == 1:
            yield from plain_stream(text, **way)
            return
        for step in range(100):
            written.append(step)
            gate.wait(10)
            yield step

    monkeypatch.setattr(translator, "stream", stream)
    at = run(model="random", text="one two")
    search: Job[Better] = doubts.by_beam(asked, greedy=greedy)
    search.ask(at.session_state["visit"].name)
    at.query_params["text"] = asked.text
    at.run()
    until(lambda: written == [0])
    at.query_params["text"] = "one two"
    at.run()
    gate.set()
    until(lambda: not search.running)
    assert written == [0]
    assert search.result() is None


@pytest.mark.parametrize("hosted", ["", "on"])
def test_what_is_not_the_usual_output_is_not_searched(
    hosted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hosted:
        monkeypatch.setenv(HOSTED_VARIABLE, hosted)
    asked = request("one two")
    greedy = runs.translate(asked, whole=True)
    assert doubts.may_search(asked, greedy) == (not hosted)
    others = (
        replace(asked, decode="beam-2"),
        replace(asked, target="eins"),
        replace(asked, changes=(ablate("cross", 0, 0),)),
    )
    assert not any(doubts.may_search(other, greedy) for other in others)


def test_an_output_less_sure_than_usual_is_doubted_in_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mean = float(np.mean(runs.translate(request("one two"), whole=True).log_probs))
    for limit, doubted in ((mean + 0.1, True), (mean - 0.1, False), (None, False)):
        monkeypatch.setattr(Source, "unsure_below", limit)
        shown = words(run(model="random", text="one two")).replace("\\", "")
        assert (WRONG in shown) == doubted
        if limit is not None and doubted:
            found = percent(math.exp(mean))
            usual = percent(math.exp(limit))
            assert f"{WRONG}: {found} for a token, where over {usual} is usual." in shown
        for other in ({"decode": "beam-2"}, {"changes": "ablate_cross_1_1"}, {"target": "eins"}):
            assert WRONG not in words(run(model="random", text="one two", **other))
        assert WRONG not in words(run(model="random", text="one two", lesson="map.7"))
