"""The page of heads over many sentences, without a browser."""

from __future__ import annotations

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
from explorer.app.server import catalogue, measured, models, surveys
from explorer.app.server.examples import offered, text_on
from explorer.lenses.heads.survey import Line
from transformer.config import AttentionKind
from transformer.training.toys import LETTERS

PAGE = "pages/heads.py"
SAMPLE = surveys.sample
LINES = tuple(Line(CASES["copy"].sentence) for _ in range(3))


@pytest.fixture(autouse=True)
def short_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sentences that the closed-form models translate, instead of five hundred."""
    monkeypatch.setattr(surveys, "sample", lambda _: LINES)


def until(at: AppTest, done: Callable[[AppTest], bool]) -> AppTest:
    """Runs the page again, as its fragment does twice a second, until something is there."""
    deadline = time.monotonic() + 60
    while not done(at):
        assert time.monotonic() < deadline
        assert not at.exception
        at.run()
    return at


def ask(at: AppTest) -> AppTest:
    """Presses the button that reads the sentences, if they were not read yet."""
    buttons = [each for each in at.button if "sentences here" in each.label]
    return buttons[0].click().run() if buttons else at


def read(**params: str) -> AppTest:
    """The page once all sentences are read."""
    return until(ask(run(PAGE, **params)), lambda at: any("The roles" in each.value for each in at.markdown))


def whole_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undoes the short sample, and forgets what was read with it."""
    monkeypatch.setattr(surveys, "sample", SAMPLE)
    measured.MEASURED.clear()


def told(at: AppTest) -> str:
    """All text of the page."""
    return " ".join(each.value for each in (*at.markdown, *at.caption, *at.info, *at.error))


def test_the_survey_that_came_with_a_model_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_sample(monkeypatch)
    at = run(PAGE, model="en-de", kind="cross")
    found = surveys.shipped(models.find("en-de"))
    assert found is not None
    assert f"Over {found.sentences} sentences" in told(at)
    assert "The roles" in told(at)
    assert "came with the model" in told(at)
    expected = np.fmin(*(found.means[AttentionKind.CROSS][name] for name in ("aer", "aer_read")))
    drawn = array(charts(at)[0]["data"][0]["z"])
    assert drawn == pytest.approx(expected, abs=1e-6)
    assert [each.label for each in at.button if "here" in each.label] == [
        f"Read the {found.sentences} sentences here"
    ]


MOVED = "When two words change places,"


@pytest.mark.parametrize(
    ("kind", "head", "words"),
    [
        (
            "cross",
            "1.2",
            ["L1 H2 · alignment (row that reads)", "the 24 pairs with links made by hand show it"],
        ),
        ("cross", "3.2", ["L3 H2 · alignment (row that predicts)"]),
        ("cross", "1.2&facet=distances", [MOVED, "in their columns stays in place"]),
        (
            "encoder",
            "2.4&facet=distances",
            [MOVED, "in their rows and columns", "looks more **by position**"],
        ),
        ("encoder", "1.6&facet=distances", [MOVED, "within two standard errors, neither is more"]),
        ("decoder", "1.6&facet=distances", [MOVED, "where it can go is for the mask to decide"]),
    ],
)
def test_what_is_said_of_a_head_of_en_de(
    kind: str, head: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_sample(monkeypatch)
    place, _, facet = head.partition("&facet=")
    at = run(PAGE, model="en-de", kind=kind, facet=facet or "tokens", **{kind: place})
    assert [each for each in words if each not in told(at)] == []


def test_every_bundled_model_comes_with_a_survey_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_sample(monkeypatch)
    found = catalogue.available().items()
    bundled = [
        name
        for name, path in found
        if catalogue.BUNDLED in path.parents and name not in catalogue.recurrent()
    ]
    assert len(bundled) > 8
    for name in bundled:
        assert surveys.shipped(models.find(name)) is not None, name


def test_without_a_survey_nothing_is_read_until_somebody_asks() -> None:
    at = run(PAGE, kind="encoder")
    assert "No statistics came with this model" in told(at)
    assert "The roles" not in told(at)
    assert not at.get("plotly_chart")


@pytest.mark.parametrize("name", CASES)
def test_heads_with_a_known_line_are_shown_with_their_role(name: str) -> None:
    at = read(model=name, kind="encoder", encoder="1.1")
    role = {1: "next token", -1: "previous token"}[CASES[name].encoder[0].offset]
    assert f"L1 H1 · {role}" in told(at)
    assert "**100\u00a0%** of the sentences show it" in told(at)
    texts = [each["text"] for each in charts(at)[0]["layout"]["annotations"]]
    assert texts[0].endswith(role[:4])


def test_the_page_leads_with_one_sentence_of_its_numbers() -> None:
    at = read(kind="encoder")
    assert (
        "Over 3 sentences, the 2 heads of encoder self-attention show: **1 next token, 1 previous token**"
        in told(at)
    )
    assert "3 sentences (sample of Tatoeba)" in told(at).replace("\\", "")


def test_statistic_kind_and_head_are_in_the_address() -> None:
    at = read(kind="encoder", statistic="entropy", encoder="1.2")
    assert "entropy, colour from" in told(at)
    choice = next(each for each in at.selectbox if each.label == "Statistic")
    choice.select("mean_distance").run()
    assert at.query_params["statistic"] == "mean_distance"
    at.segmented_control[0].set_value("decoder").run()
    assert at.query_params["kind"] == "decoder"
    assert at.query_params["encoder"] == "1.2"


def test_sentences_open_the_run_that_was_measured_at_the_row_that_counts() -> None:
    at = read(kind="encoder", encoder="1.2", facet="sentences", sorted_by="entropy")
    links = [each.proto for each in at.get("page_link") if CASES["copy"].sentence in each.proto.label]
    assert links
    assert links[0].page.endswith("encoder_self_attention")
    assert "encoder=1.2" in links[0].query_string
    assert "text=one" in links[0].query_string
    assert "source=" in links[0].query_string
    assert "Highest fifth" in told(at)


def test_tokens_and_distances_of_the_chosen_head_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_sample(monkeypatch)
    found = surveys.shipped(models.find("en-de"))
    assert found is not None
    at = run(PAGE, model="en-de", kind="cross", cross="3.4", keys_by="lift", unit="pieces")
    for by in ("lift", "selective"):
        for each in found.tokens(AttentionKind.CROSS, 2, 3, "pieces", by):
            assert f"| {each.ratio:.1f} times | {each.seen} |" in told(at)
    at = run(PAGE, model="en-de", kind="cross", cross="3.4", facet="distances")
    drawn = array(charts(at)[1]["data"][0]["y"])
    assert drawn == pytest.approx(found.profiles[AttentionKind.CROSS].distances[2, 3], abs=1e-6)


def test_all_heads_are_points_in_the_plane_of_two_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_sample(monkeypatch)
    found = surveys.shipped(models.find("en-de"))
    assert found is not None
    chosen = {"across": "eos_mass", "up": "eos_value", "statistic": "stays", "heads_as": "points"}
    at = run(PAGE, model="en-de", kind="cross", **chosen)
    points = charts(at)[0]["data"][0]
    means = found.means[AttentionKind.CROSS]
    drawn = (points["x"], points["y"], points["marker"]["color"])
    for values, name in zip(drawn, ("eos_mass", "eos_value", "stays"), strict=True):
        assert array(values) == pytest.approx(means[name].ravel(), abs=1e-5)


def test_queries_and_keys_are_points_and_one_shows_its_token_in_its_sentence() -> None:
    address = {"model": "random", "facet": "points", "colour_by": "class"}
    at = read(kind="encoder", encoder="1.2", point="2.2", **address)
    assert "of the variance of q·k" in told(at)
    names = [each.get("name") for each in charts(at)[1]["data"]]
    assert "content words" in names
    assert "As a key: one **two** " in told(at)
    links = [each.proto for each in at.get("page_link") if CASES["copy"].sentence in each.proto.label]
    assert "source=2" in links[-1].query_string


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_where_a_head_rests_is_measured(kind: str) -> None:
    said = told(read(model="random", kind=kind, facet="sink"))
    assert "of its weight on" in said
    assert "nats" in said


def test_reading_can_be_stopped_and_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "sample", lambda _: LINES * 10)
    with taken():
        at = ask(run(PAGE, kind="encoder"))
        first = "First in the queue: the next free turn is yours."
        until(at, lambda at: at.get("progress")[0].proto.text == first)
        next(each for each in at.button if each.label == "Stop").click().run()
    assert "Stopped after 0 of" in told(at)
    assert "No sentence was read before you stopped" in told(at).replace("\\", "")
    next(each for each in at.button if each.label == "Continue").click().run()
    until(at, lambda at: any("Over 30 sentences" in each.value for each in at.markdown))
    assert "Stopped" not in told(at)


def test_the_part_with_a_clock_never_draws_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "sample", lambda _: LINES * 5)
    with taken():
        at = ask(run(PAGE, model="copy", kind="encoder"))
        with listening() as going:
            at.run()
    assert going.timed
    assert not going.nested
    until(at, lambda at: any("The roles" in each.value for each in at.markdown))
    with listening() as ended:
        at.run()
    assert not going.timed & ended.places.keys()


def test_a_visitors_own_file_is_read() -> None:
    at = read(kind="encoder")
    at.file_uploader[0].set_value(("mine.txt", b"one two three\nfour five\teins zwei\n", "text/plain")).run()
    until(at, lambda at: any("Over 2 sentences" in each.value for each in at.markdown))
    assert "your file mine.txt" in told(at).replace("\\", "")
    assert "1 with a given translation" in told(at).replace("\\", "")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("<script>.txt", b"\xff\xfe", "not UTF-8"),
        ("a.txt", b"one\n" * 501, "501 sentences"),
        ("a.txt", b"one\0", "binary"),
        ("a.tsv", b"a\tb\tc", "3 columns"),
    ],
)
def test_a_hostile_file_is_refused_and_the_sample_stays(name: str, content: bytes, reason: str) -> None:
    at = read(kind="encoder")
    at.file_uploader[0].set_value((name, content, "text/plain")).run()
    assert not at.exception
    assert reason in told(at).replace("\\", "")
    assert "Over 3 sentences" in told(at)


def test_a_hostile_sentence_stays_text() -> None:
    at = read(kind="encoder", facet="sentences")
    text = "<script>alert(1)</script> [a](javascript:1) **b** $x$ | one two three four"
    at.file_uploader[0].set_value(("<b>.txt", text.encode(), "text/plain")).run()
    until(at, lambda at: any("Over 1 sentence," in each.value for each in at.markdown))
    labels = [each.proto.label for each in at.get("page_link") if "script" in each.proto.label]
    assert labels
    assert all("<" not in label.replace("\\<", "") for label in labels)


def test_a_model_of_a_toy_task_opens_on_sequences_of_its_task_and_is_measured_on_them(own_models: Path):
    directory = own_models / "backwards"
    shutil.copytree(own_models / "copy", directory)
    card = "```sh\npython -m transformer train --toy reverse --toy-length 6 --output backwards\n```\n"
    (directory / "README.md").write_text(card, encoding="utf-8")
    texts = list(offered(models.find("backwards")).values())
    assert text_on(models.find("backwards"), None) == texts[0]
    assert all(set(text.split()) <= set(LETTERS) and len(text.split()) == 6 for text in texts)
    assert {line.target for line in surveys.sample_of(models.find("backwards"))} == {
        " ".join(reversed(line.source.split())) for line in surveys.sample_of(models.find("backwards"))
    }
    assert surveys.named(models.find("backwards")) == "its task"
    (told,) = run(PAGE, model="backwards").info
    assert "sentences of its task here" in told.value


@pytest.mark.parametrize(("value", "short"), [(0.49, True), (0.51, False)])
def test_a_value_is_called_short_below_a_half(
    value: float, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = head._sunk
    monkeypatch.setattr(head, "_sunk", lambda *of, **more: real(*of, **more)._replace(value=value))
    at = read(kind="cross", facet="sink")
    assert f"writes **{value:.2f} times**" in told(at)
    assert ("A short value" in told(at)) == short
