"""The page of heads over many sentences, without a browser."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, charts, run, taken
from closed_form import CASES
from fragments import listening
from streamlit.testing.v1 import AppTest

from explorer.app.sections.heads import head
from explorer.app.server import models, surveys
from explorer.app.server.examples import offered, text_on
from explorer.app.server.queue import place
from explorer.lenses.heads.survey import Line
from transformer.config import AttentionKind
from transformer.training.toys import LETTERS

PAGE = "pages/heads.py"
SAMPLE = surveys.sample
SENTENCE = CASES["copy"].sentence
LINES = (Line(SENTENCE),) * 3
CROSS = AttentionKind.CROSS


@pytest.fixture(autouse=True)
def short_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sentences that the closed-form models translate, instead of five hundred."""
    monkeypatch.setattr(surveys, "sample", lambda _: LINES)


@pytest.fixture
def whole_sample(monkeypatch: pytest.MonkeyPatch, short_sample: None) -> None:
    """Undoes the short sample, and forgets what was read with it."""
    monkeypatch.setattr(surveys, "sample", SAMPLE)
    models._handle.cache_clear()


def until(at: AppTest, done: Callable[[AppTest], bool]) -> AppTest:
    """Runs the page again, as its fragment does twice a second, until something is there."""
    deadline = time.monotonic() + 60
    while not done(at):
        assert time.monotonic() < deadline
        assert not at.exception
        at.run()
    return at


def said(at: AppTest, words: str) -> AppTest:
    return until(at, lambda at: words in told(at))


def ask(at: AppTest) -> AppTest:
    """Presses the button that reads the sentences, if they were not read yet."""
    buttons = [each for each in at.button if "sentences here" in each.label]
    return buttons[0].click().run() if buttons else at


def read(**params: str) -> AppTest:
    """The page once all sentences are read."""
    return said(ask(run(PAGE, **params)), "The roles")


def told(at: AppTest) -> str:
    """All text of the page."""
    return " ".join(
        each.value for each in (*at.markdown, *at.caption, *at.info, *at.error)
    ).replace("\\", "")


def links(at: AppTest, words: str) -> list:
    return [each.proto for each in at.get("page_link") if words in each.proto.label]


def press(at: AppTest, label: str) -> AppTest:
    return next(each for each in at.button if each.label == label).click().run()


def test_the_survey_that_came_with_a_model_is_shown_at_once(whole_sample: None):
    found = surveys.shipped(models.find("en-de"))
    means = found.profiles[CROSS].means
    at = run(PAGE, model="en-de", kind="cross", cross="3.4", keys_by="lift", unit="pieces")
    for each in (
        token for by in ("lift", "selective") for token in found.tokens(CROSS, 2, 3, "pieces", by)
    ):
        assert f"| {each.ratio:.1f} times | {each.seen} |" in told(at)
    assert array(charts(at)[0]["data"][0]["z"]) == pytest.approx(
        np.fmin(means["aer"], means["aer_read"])
    )
    asks = [each.label for each in at.button if "here" in each.label]
    assert asks == [f"Read the {found.sentences} sentences here"]
    at = run(
        PAGE, model="en-de", kind="cross", cross="3.4", facet="distances", statistic="eos_value"
    )
    heads, bars = (chart["data"][0] for chart in charts(at))
    assert array(heads["z"]) == pytest.approx(means["eos_value"], abs=1e-5)
    assert array(bars["y"]) == pytest.approx(found.profiles[CROSS].distances[2, 3], abs=1e-6)


def test_without_a_survey_nothing_is_read_until_somebody_asks():
    at = run(PAGE, kind="encoder")
    assert "No statistics came with this model" in told(at)
    assert "The roles" not in told(at)
    assert not at.get("plotly_chart")


def test_the_page_leads_with_its_numbers_and_keeps_the_choices_in_the_address():
    at = read(kind="encoder", statistic="entropy", encoder="1.2")
    shown = "**1 next token, 1 previous token**"
    assert f"Over 3 sentences, the 2 heads of encoder self-attention show: {shown}" in told(at)
    for words in (
        "L1 H2 · previous token",
        "**100\u00a0%** of the sentences show it",
        "entropy, colour",
    ):
        assert words in told(at)
    cells = [each["text"].split("<br>")[1] for each in charts(at)[0]["layout"]["annotations"]]
    assert cells == ["next", "prev"]
    assert "3 sentences (sample of Tatoeba)" in told(at)
    next(each for each in at.selectbox if each.label == "Statistic").select("mean_distance").run()
    assert at.query_params["statistic"] == "mean_distance"
    at.segmented_control[0].set_value("decoder").run()
    assert (at.query_params["kind"], at.query_params["encoder"]) == ("decoder", "1.2")


def test_sentences_open_the_run_that_was_measured_at_the_row_that_counts():
    at = read(kind="encoder", encoder="1.2", facet="sentences", sorted_by="entropy")
    link = links(at, SENTENCE)[0]
    assert link.page.endswith("encoder_self_attention")
    for part in ("encoder=1.2", "text=one", "source=3"):
        assert part in link.query_string
    assert "Highest fifth" in told(at)


def test_queries_and_keys_are_points_and_one_shows_its_token_in_its_sentence():
    address = {"model": "random", "facet": "points", "colour_by": "class"}
    at = read(kind="encoder", encoder="1.2", point="2.2", **address)
    assert "of the variance of q·k" in told(at)
    assert "content words" in [each.get("name") for each in charts(at)[1]["data"]]
    assert "As a key: one **two** " in told(at)
    assert "source=2" in links(at, SENTENCE)[-1].query_string


@pytest.mark.parametrize(("kind", "value"), [("encoder", 0.49), ("decoder", 0.51), ("cross", 0.49)])
def test_where_a_head_rests_is_measured_and_a_value_is_short_below_a_half(kind, value, monkeypatch):
    real = head._sunk
    monkeypatch.setattr(head, "_sunk", lambda *of, **more: real(*of, **more)._replace(value=value))
    at = read(model="random", kind=kind, facet="sink")
    for words in ("of its weight on", f"writes **{value:.2f} times**", "nats"):
        assert words in told(at)
    assert ("A short value" in told(at)) == (value < 0.5)


def test_reading_can_be_stopped_and_taken_up_again_and_no_part_with_a_clock_draws_findings(
    monkeypatch,
):
    monkeypatch.setattr(surveys, "sample", lambda _: LINES * 10)
    with taken():
        at = ask(run(PAGE, model="copy", kind="encoder"))
        with listening() as going:
            at.run()
        assert at.get("progress")[0].proto.text == place(0)
        press(at, "Stop")
    assert "Stopped after 0 of" in told(at)
    assert "No sentence was read before you stopped" in told(at)
    said(press(at, "Continue"), "Over 30 sentences")
    assert "Stopped" not in told(at)
    with listening() as ended:
        at.run()
    assert going.timed
    assert not going.nested
    assert not going.timed & ended.places.keys()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "mine.txt",
            b"one two three\nfour five\teins zwei\n",
            "(your file mine.txt), 1 with a given output",
        ),
        ("<script>.txt", b"\xff\xfe", "not UTF-8"),
        ("a.txt", b"one\n" * 501, "more than 500 sentences"),
        ("a.txt", b"one\0", "binary"),
        ("a.tsv", b"a\tb\tc", "3 columns"),
    ],
)
def test_a_visitors_own_file_is_read_or_refused_and_the_sample_stays(name, content, words):
    at = read(kind="encoder")
    at.file_uploader[0].set_value((name, content, "text/plain")).run()
    said(at, "Over 2 sentences" if name == "mine.txt" else words)
    assert words in told(at)
    assert ("Over 3 sentences" in told(at)) == (name != "mine.txt")


def test_a_hostile_sentence_stays_text():
    at = read(kind="encoder", facet="sentences")
    text = "<script>alert(1)</script> [a](javascript:1) **b** $x$ | one two three four"
    at.file_uploader[0].set_value(("<b>.txt", text.encode(), "text/plain")).run()
    labels = [link.label for link in links(said(at, "Over 1 sentence,"), "script")]
    assert labels
    assert all("<" not in label.replace("\\<", "") for label in labels)


def test_a_model_of_a_toy_task_opens_on_sequences_of_its_task_and_is_measured_on_them(
    own_models: Path,
):
    directory = own_models / "backwards"
    shutil.copytree(own_models / "copy", directory)
    card = (
        "```sh\npython -m transformer train --toy reverse --toy-length 6 --output backwards\n```\n"
    )
    (directory / "README.md").write_text(card, encoding="utf-8")
    source = models.find("backwards")
    texts = [*offered(source).values()]
    assert text_on(source, None) == texts[0]
    assert all(set(text.split()) <= set(LETTERS) and len(text.split()) == 6 for text in texts)
    for line in surveys.sample_of(source):
        assert line.target == " ".join(reversed(line.source.split()))
    assert surveys.named(source) == "its task"
    assert "sentences of its task here" in told(run(PAGE, model="backwards"))
