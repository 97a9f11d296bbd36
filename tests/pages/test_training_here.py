"""The section "train here": start, watch, stop, keep; files, and who may do what."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from app_pages import charts, run, said, words
from fragments import listening
from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.app.server.hosted import MEMORY, NICE, SWITCH
from explorer.app.server.training import TrainingRun, Workshop, workshop
from explorer.app.server.training_plan import OWN, Plan
from transformer import load_translator

PAGE = "pages/training.py"


@pytest.fixture
def shop(own_models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.setenv(SWITCH, "on")
    monkeypatch.setenv(NICE, "0")
    workshop.clear()
    yield workshop()
    if (run := workshop().run) is not None:
        run.stop()
        until(lambda: bool(run.outcome))
    workshop.clear()


opened = partial(run, PAGE, view="here", model="random", text="one two three")


def button(at: AppTest, label: str):
    return next(each for each in at.button if each.label == label)


def labels(at: AppTest) -> set[str]:
    return {each.label for each in at.button}


def choose(at: AppTest, **values: object) -> AppTest:
    """Sets widgets of the form by the ends of their keys."""
    for name, value in values.items():
        fields = (*at.segmented_control, *at.selectbox, *at.slider, *at.select_slider)
        at = (
            next(field for field in fields if str(field.key) == f"here.{name}")
            .set_value(value)
            .run()
        )
    return at


def test_a_run_is_started_watched_stopped_and_kept(shop: Workshop, own_models: Path) -> None:
    at = choose(opened(), task="copy", length=3, width=32, heads=2, layers=1, steps=5000)
    button(at, "Train").click().run()
    assert not at.exception
    assert shop.run is not None
    assert shop.run.plan == Plan(task="copy", length=3, width=32, heads=2, layers=1, steps=5000)
    until(lambda: shop.run is not None and any(step.exact is not None for step in shop.run.steps()))
    other = opened()
    assert {"Stop", "Train"} & labels(other) == set()
    assert "Another visitor began this run" in words(other)
    with listening() as sent:
        at.run()
    assert sent.timed
    assert not sent.nested
    assert "of the held-out pairs exactly" in words(at)
    assert "which is not in its training" in words(at)
    lines = {each.get("name"): each for chart in charts(at) for each in chart["data"]}
    assert {"training loss", "validation loss"} <= set(lines)
    button(at, "Stop").click().run()
    until(lambda: shop.run is not None and bool(shop.run.outcome))
    at.run()
    assert "Stopped, and saved after its last step" in words(at).replace("\\", "")
    assert {"Keep", "Train"} <= labels(at)
    kept_source = shop.run.example.source
    at.text_input(key="here.name").set_value("letters")
    button(at, "Keep").click().run()
    assert not at.exception
    assert "letters is kept" in said(at).replace("\\", "")
    assert at.query_params["model"] == "letters"
    assert at.query_params["text"] == kept_source
    assert load_translator(own_models / "letters").name == "letters"
    run("pages/cross_attention.py", model="letters", text=kept_source)


def test_a_run_that_left_nothing_and_a_server_that_is_switched_off_say_so(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run = TrainingRun(Plan())
    at = opened()
    assert "Nothing is left of it" in words(at)
    assert "Keep" not in labels(at)
    monkeypatch.setenv(SWITCH, "off")
    at = opened()
    assert "switched off" in said(at)
    assert "Train" not in labels(at)


@pytest.mark.parametrize(
    ("content", "limit", "message"),
    [
        (None, "1000", "Choose a file of pairs first"),
        (b"a b\n" * 30, "1000", "expected source, tab, target"),
        (b"\xff", "1000", "UTF-8"),
        (None, "much", f"{MEMORY} is"),
    ],
)
def test_a_bad_file_or_limit_is_one_sentence_and_no_run(
    content: bytes | None, limit: str, message: str, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY, limit)
    at = opened() if limit == "much" else choose(opened(), task=OWN)
    if content is not None:
        at.file_uploader(key="here.file").set_value(("own.tsv", content, "text/plain")).run()
    button(at, "Train").click().run()
    assert message in said(at).replace("\\", "")
    assert shop.run is None
