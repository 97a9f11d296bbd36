"""The line about translations that may be wrong: when it stands on a page, what it offers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from app_pages import LINKED, SENTENCE, run
from hub_cases import NAME
from hub_server import HubServer
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest
from waiting import until

from lenses.words.familiarity import WEIGHTED, DoubtMeasure, as_json
from transformer.hub.settings import Hub
from transformer.storage.files import write_json
from ui.server import hub_models, memory, models

MEASURE = DoubtMeasure((0.0, 1.0, 0.0), 0.0, 0.0, dict.fromkeys(WEIGHTED, (-1.0, 2.0)), (0.0, 0.0, 0.0), {})
"""Flags every text of more than one token, for its length."""


@pytest.fixture
def strange(own_models: Path) -> str:
    """A model to which every text is strange, and which offers a model on the Hub."""
    return write(own_models, instead=NAME, instead_bytes=298_000_000)


def write(folder: Path, **values: object) -> str:
    directory = folder / "strange"
    shutil.copytree(folder / "copy", directory)
    write_json(directory / "familiarity.json", as_json(MEASURE) | values)
    return "strange"


def captions(at: AppTest) -> list[str]:
    return [each.value.replace("\\", "") for each in at.caption]


def line(at: AppTest) -> list[str]:
    return [text for text in captions(at) if "This translation may be wrong" in text]


def offers(at: AppTest) -> list[str]:
    return [each.label for each in at.button if each.label.startswith(("Open ", "Download"))]


@pytest.fixture(autouse=True)
def fresh_desk():
    hub_models.desk.clear()
    yield
    hub_models.desk.clear()


@pytest.mark.parametrize("page", [*LINKED, "pages/masks.py", "pages/compare.py", "pages/training.py"])
def test_every_page_with_a_sentence_says_that_a_text_is_strange(strange: str, page: str):
    at = run(page, model=strange)
    (told,) = line(at)
    tokens = len(models.find(strange).translator().ids(SENTENCE))
    assert f": {tokens} tokens (usual: -1 to 2)" in told
    helps = [each.proto.help.replace("\\", "") for each in at.caption]
    assert any("✓\u00a0verified is about the pictures, not the translation" in text for text in helps)


@pytest.mark.parametrize(
    "params",
    [
        {"decode": "beam-4"},
        {"decode": "sample-3"},
        {"target": "eins zwei"},
        {"changes": "ablate_cross_1.1_zero"},
    ],
)
def test_the_way_of_decoding_changes_nothing_in_the_line(strange: str, params: dict[str, str]):
    assert line(run(model=strange, **params)) == line(run(model=strange))


def test_a_model_without_a_measure_says_nothing(own_models: Path):
    assert line(run(model="copy")) == []


def test_a_damaged_measure_is_named_and_the_page_still_opens(own_models: Path):
    name = write(own_models, bias="many")
    at = run(model=name)
    assert any("familiarity.json is damaged" in text for text in captions(at))


def test_one_click_fetches_the_offered_model_and_opens_it(hub: Hub, server: HubServer, strange: str):
    at = run(model=strange)
    assert offers(at) == ["Download and open"]
    assert server.asked("GET", "/storage/") == 0
    next(each for each in at.button if each.key == "doubt.fetch").click().run()
    until(lambda: at.run() and next(each for each in at.selectbox if each.label == "Model").value == NAME)
    assert not at.exception
    assert line(at) == []
    again = run(model=strange)
    assert offers(again) == [f"Open {NAME}"]


def test_what_stands_in_the_way_of_the_offered_model_is_said(
    hub: Hub, strange: str, monkeypatch: pytest.MonkeyPatch
):
    at = run(model=strange)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    next(each for each in at.button if each.key == "doubt.fetch").click().run()
    assert any(f"{NAME} needs" in text for text in captions(at))


@pytest.mark.parametrize("allowed", [(), ("others/*",)])
def test_nothing_is_offered_that_may_not_be_fetched(
    hub: Hub, strange: str, monkeypatch: pytest.MonkeyPatch, allowed: tuple[str, ...]
):
    object.__setattr__(hub, "allowed", allowed)
    at = run(model=strange)
    assert line(at)
    assert offers(at) == []


def test_without_a_network_the_page_says_how_the_larger_model_is_fetched_elsewhere(
    hub: Hub, strange: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    at = run(model=strange)
    assert line(at)
    assert offers(at) == []
    (told,) = [text for text in captions(at) if "cannot be reached from here" in text]
    assert f"`python -m transformer pull {NAME}`" in told


def test_a_greeting_in_small_letters_is_doubted_and_as_a_sentence_it_is_not():
    assert line(run(model="en-de", text="hello"))
    assert line(run(model="en-de", text="Hello.")) == []
