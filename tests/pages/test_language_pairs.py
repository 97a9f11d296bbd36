"""Two language pairs, bundled: the list names them, and each model opens with what was written for it."""

import json

import pytest
from app_pages import ROOT, feeds, run, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import measured, models, surveys

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
    header = models.find(name).header
    line = next(each for each in at.caption if header.good_at in each.value)
    assert " MB" not in line.value
    needed = "MB on disk · "
    assert needed in line.proto.help.replace("\\", "")


@pytest.mark.parametrize("name", PAIRS)
def test_a_model_opens_with_its_first_example_and_its_claim(name: str):
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params["model"] = name
    assert not at.run().exception
    example = models.find(name).samples.examples[0]
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


def test_the_first_row_of_the_decoder_reads_no_token():
    at = run("pages/decoder_self_attention.py", model="en-pt")
    assert "◌ (no token, but a vector of zeros) first" in words(at)
    assert "<s>" not in words(at)


def test_heads_over_sentences_count_the_roles_of_every_kind(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(surveys, "sample", SAMPLE)
    measured.MEASURED.clear()
    at = run("pages/heads.py", model="en-pt", kind="decoder")
    assert "heads: encoder / decoder / cross" in words(at)
    assert not at.exception


def test_attention_that_learned_from_given_alignments_says_so_wherever_its_errors_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
):
    name = "en-pt"
    guided = models.find(name).guided
    assert "trained with given word alignments" in guided
    text = "The old house."
    assert guided in json.dumps(feeds(run(model=name, text=text)))
    shown = words(run("pages/cross_attention.py", model=name, text=text, view="alignment"))
    assert guided in shown.replace("\\", "")
    monkeypatch.setattr(surveys, "sample", SAMPLE)
    measured.MEASURED.clear()
    assert guided in words(run("pages/heads.py", model=name)).replace("\\", "")
    assert models.find("en-de").guided == ""
