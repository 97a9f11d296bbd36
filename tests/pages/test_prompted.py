"""A model that is told what to do: its tasks, its heading, and what its pages say of its arithmetic."""

import json
from pathlib import Path

import pytest
from app_pages import run
from inside_page import told as told_inside
from streamlit.testing.v1 import AppTest
from t5_models import write_t5

from explorer.app.address import sitemap
from explorer.app.server import examples, models
from explorer.app.server.lessons import files

TEXT = "summarize: He is old and tired."
PLACES = (
    ("inside_a_head", {"section": "all"}),
    ("whole_model", {"part": "decoder-forward-norm"}),
    ("whole_model", {"part": "encoder-forward"}),
    ("whole_model", {"part": "output"}),
    ("masks", {}),
    ("explanation", {"view": "why"}),
    ("app", {}),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("prompted")
    tasks = {"a": {"prefix": "summarize: "}, "b": {"prefix": "translate English to German: "}, "c": {}}
    write_t5(made / "t5", feed_forward="gated-gelu", config={"task_specific_params": tasks})
    write_t5(made / "mt5", kind="mt5", feed_forward="gated-gelu", tied=False)
    return made


@pytest.fixture(autouse=True)
def opened_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))


def said(at: AppTest) -> str:
    """All words and formulas of a page, those in its slots among them."""
    formulas = " ".join(each.value for each in at.latex)
    return (
        " ".join(told_inside(at).split())
        + formulas
        + json.dumps([str(each.proto) for each in at.get("html")])
    )


def test_the_tasks_of_the_config_are_offered_and_begin_the_text() -> None:
    assert models.find("t5").prompts == ("summarize: ", "translate English to German: ")
    assert models.find("mt5").prompts == ()
    assert models.find("t5").task == models.find("mt5").task == "write"
    assert models.find("en-de").task == "translate"
    assert examples.text_on(models.find("t5"), None).startswith("summarize: ")
    at = run("app.py", model="t5", text=TEXT)
    assert sitemap.WRITES in said(at)
    assert "Write" in [each.label for each in at.button]
    at.button(key="prompt.1").click().run()
    assert at.session_state["state"].text == "translate English to German: He is old and tired."


@pytest.mark.parametrize(("page", "params"), PLACES, ids=str)
def test_a_page_says_what_the_model_computes(page: str, params: dict[str, str]) -> None:
    at = run(sitemap.script(page), model="t5", text=TEXT, **params)
    assert not at.exception
    assert not [each.value for each in at.error]
    told = said(at)
    for wrong in (r"\mathrm{LayerNorm}", "LN is LayerNorm", "÷ √6", "+ b_1", "This model divides"):
        assert wrong not in told
    if page in ("inside_a_head", "masks", "app", "explanation") and params.get("view") != "why":
        assert r"\sqrt{d_k}}" not in told.replace(r"$\sqrt{d_k}$", "")


def test_inside_a_head_the_division_is_left_out_and_said() -> None:
    at = run(sitemap.script("inside_a_head"), model="t5", text=TEXT, section="weights", what_if="no-scale")
    told = said(at)
    assert "this model does not divide q·k by √d_k" in told
    assert at.session_state["state"].what_if == ("no-scale", None)
    assert "what if, not the model's computation" not in told  # nothing that the model does not divide by


def test_the_norm_and_the_gate_are_shown_as_they_are() -> None:
    norm = run(sitemap.script("whole_model"), model="t5", text=TEXT, part="decoder-forward-norm")
    assert r"\mathrm{RMSNorm}(x)" in said(norm)
    assert "No mean is taken away" in said(norm)
    network = run(sitemap.script("whole_model"), model="t5", text=TEXT, part="encoder-forward")
    assert "It makes a gate for each unit" in said(network)
    assert r"\odot" in said(network)
    output = run(sitemap.script("whole_model"), model="t5", text=TEXT, part="output")
    assert r"\tfrac{1}{\sqrt{d_{model}}}" in said(output)


def test_a_model_of_languages_in_angle_brackets_has_a_picker(folder: Path) -> None:
    write_t5(folder / "madlad", symbols=("<2pt>", "<2de>"))
    at = run("app.py", model="madlad", text="the house")
    assert at.session_state["state"].model == "madlad"
    (picker,) = (each for each in at.selectbox if each.label == "Translate into")
    assert picker.options == ["German", "Portuguese"]
    assert not [each.value for each in at.error]
    assert models.find("madlad").addressed("the house", None) == "<2de> the house"
    assert models.find("madlad").addressed("the house", "<2pt>") == "<2pt> the house"


@pytest.mark.parametrize(
    ("lesson", "step", "model", "says", "not_said"),
    [
        ("by-hand", 1, "t5", "leaves its divisor out", ""),
        ("by-hand", 3, "t5", "does not divide it", "Divided by"),
        ("by-hand", 4, "t5", "a score becomes", "q·k is divided"),
        ("scale", 1, "t5", "which this model does not have", "Section 3.2.1"),
        ("positions", 3, "t5", "does not multiply embeddings", "the embedding times"),
        ("stacks", 3, "t5", "has another activation, or a gate", "how many of its inner units are above 0"),
        ("by-hand", 4, "en-de", "q·k is divided", "a score becomes"),
        ("positions", 3, "en-de", "the embedding times", "does not multiply"),
        ("stacks", 3, "en-de", "how many of its inner units are above 0", "a gate"),
    ],
)
def test_a_lesson_says_what_is_true_of_the_model(
    lesson: str, step: int, model: str, says: str, not_said: str
) -> None:
    view = files.find(lesson).steps[step - 1]
    at = run(view.page, **{**view.params, "lesson": f"{lesson}.{step}", "model": model, "text": TEXT})
    (strip,) = (each.value for each in at.markdown if says in each.value)
    assert not not_said or not_said not in strip
