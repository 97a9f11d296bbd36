"""The line about beam search: what it claims, and when it is silent."""

from __future__ import annotations

import numpy as np
import pytest
from app_pages import run, words
from sources import named

from explorer.app.address import session
from explorer.app.server import models, runs
from explorer.app.server.runs import Progress, Request, by_beam
from transformer.hub.settings import HOSTED_VARIABLE

TEXTS = [f"{first} {second} three" for first in ("one", "two", "five", "ten") for second in ("six", "four")]


def found(text: str, decode: str = "greedy") -> runs.Bettered | None:
    asked = Request(named("random"), text, decode, None)
    return by_beam(asked, runs.translate(asked), 4, Progress())


def test_it_is_told_exactly_if_the_beam_s_text_differs_and_scores_higher():
    translator, told = models.find("random").translator(), []
    for text in TEXTS:
        one, other = (translator.translate(text, beam_size=size, capture=False) for size in (1, 4))
        means = [float(np.mean(each.log_probs)) for each in (other, one)]  # this model's α is 1
        better = other.text != one.text and means[0] > means[1]
        own = found(text)
        assert (own is not None) == better
        if own is not None:
            assert own.text == other.text
            np.testing.assert_allclose([own.score, own.greedy], means, atol=1e-6)
            told.append(text)
    assert told, "none of these texts shows the line"
    assert "A beam of 4 finds what scores higher" in words(run("app.py", model="random", text=told[0]))
    assert "A beam of 4" not in words(run("app.py", model="random", text=told[0], decode="beam-4"))


def test_a_page_searches_once_its_picture_is_painted(monkeypatch: pytest.MonkeyPatch):
    text = "nine seven three five"
    asked = Request(named("random"), text, "greedy", None)
    assert "A beam of 4" not in words(run("app.py", model="random", text=text))
    greedy = runs.translate(asked)
    assert runs.unsearched(asked, greedy, 4)
    monkeypatch.setattr(session, "sent", lambda key: {"painted": key == "linked.home"})
    assert "A beam of 4 finds what scores higher" in words(run("app.py", model="random", text=text))
    assert not runs.unsearched(asked, greedy, 4)


def test_nobody_searches_unasked(monkeypatch: pytest.MonkeyPatch):
    assert all(found(text, "beam-2") is None for text in TEXTS)
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    assert all(found(text) is None for text in TEXTS)
