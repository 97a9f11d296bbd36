"""Two language pairs, bundled: the list names them, and each model opens with what was written for it."""

import pytest
from app_pages import ROOT, run
from streamlit.testing.v1 import AppTest

from explorer.app.server import models, surveys
from explorer.app.server.examples import examples

SAMPLE = surveys.sample
PAIRS = {
    "en-de": "English → German",
    "en-pt": "English → Portuguese",
}


@pytest.fixture(autouse=True)
def only_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", "/nonexistent")


def picker(at: AppTest) -> list[str]:
    return next(each for each in at.selectbox if each.label == "Model").options


@pytest.mark.parametrize("name", PAIRS)
def test_the_list_names_languages_and_a_line_says_what_the_model_is_good_at(name: str):
    at = run(model=name)
    assert not at.exception
    assert set(PAIRS.values()) <= set(picker(at))
    assert picker(at)[0] == "English → Portuguese"
    header = models.handle(name).header
    line = next(each for each in at.caption if header.good_at in each.value)
    assert " MB" not in line.value
    needed = "MB on disk · "
    assert needed in line.proto.help.replace("\\", "")


@pytest.mark.parametrize("name", PAIRS)
def test_a_model_opens_with_its_first_example_and_its_claim(name: str):
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params["model"] = name
    assert not at.run().exception
    example = examples(models.find(name))[0]
    assert example.text in [each.value for each in at.text_input]
    assert at.session_state["state"].cross == (example.claim.layer, example.claim.head)


def test_an_old_address_with_a_text_and_no_model_opens_the_model_that_was_first_then():
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params["text"] = "The dog sleeps."
    assert not at.run().exception
    assert at.session_state["state"].model == "en-de"


def test_new_addresses_name_the_model():
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    assert not at.run().exception
    at.text_input[0].set_value("The dog sleeps.").run()
    assert at.query_params["model"] == "en-pt"
    assert at.query_params["text"] == "The dog sleeps."
