"""Texts of several sentences, and models that are told languages or a task."""

import io
import json
import sys
import threading
import zipfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from app_pages import click_menu, feeds, run
from inside_page import told as told_inside
from m2m_models import write_m2m
from sources import named
from streamlit.testing.v1 import AppTest
from t5_models import write_t5

from explorer.app.address import sitemap
from explorer.app.address.state import State
from explorer.app.lessons import files
from explorer.app.maps.living import living_pages
from explorer.app.server import examples, models, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import NOBODY
from explorer.app.server.view import View
from explorer.figures.base.tasks import WORDS
from explorer.lenses.words.languages import language_name
from transformer.families.m2m import M2M, NLLB
from transformer.hub.settings import HOSTED_VARIABLE

TEXT = "One two. Three four? Five six!"
SENTENCES = ["One two.", "Three four?", "Five six!"]


def paragraph(at: AppTest) -> dict[str, Any] | None:
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    return next(
        (data[0] for data in told if isinstance(data, list) and "translations" in data[0]), None
    )


def said_on(at: AppTest) -> str:
    """What the page says, without the signs that escape Markdown."""
    return " ".join(each.value for each in [*at.error, *at.info, *at.caption]).replace("\\", "")


@pytest.mark.parametrize(
    ("sentence", "at"),
    [({}, 0), ({"sentence": "2"}, 1), ({"sentence": "9"}, 2), ({"sentence": "all"}, -1)],
)
def test_the_address_says_which_sentence_is_shown(sentence: dict[str, str], at: int) -> None:
    page = run(model="random", text=TEXT, **sentence)
    found = paragraph(page)
    assert found is not None
    assert (found["sentences"], found["at"]) == (SENTENCES, at)
    assert page.text_input[0].value == TEXT
    run_of = RunKey.of(State(), named("random"), TEXT if at < 0 else SENTENCES[at])
    assert feeds(page)["strips"]["trace"] == run_of.key
    assert ("This text has 3 sentences; sentence 3 is shown." in said_on(page)) == (at == 2)
    again = click_menu(page, "pages/cross_attention.py")
    assert feeds(again)["strips"]["trace"] == run_of.key
    shown = paragraph(again)
    assert shown is not None
    assert (shown["at"], shown["translations"]) == (at, None)


def test_a_page_makes_the_run_of_the_shown_sentence_and_no_other() -> None:
    text = "Ten two. Ten four? Ten six!"
    found = paragraph(run(model="random", text=text, sentence="2"))
    assert found is not None
    assert found["translations"][::2] == [None, None]
    asked = RunKey.of(State(), named("random"), "Ten six!")
    assert runs.text_of(asked) is None
    made = runs.text_of(asked, NOBODY)
    assert made == runs.translate(asked).text
    assert paragraph(run(model="random", text=text, sentence="2"))["translations"][2] == made  # type: ignore[index]


def test_another_text_begins_at_its_first_sentence_and_has_forty_at_most() -> None:
    page = run(model="random", text=TEXT, sentence="3")
    page.text_input[0].set_value("Two one. Four three.").run()
    assert "sentence" not in page.query_params
    assert paragraph(page)["at"] == 0  # type: ignore[index]
    page.text_input[0].set_value("two one.").run()
    assert paragraph(page) is None
    text = " ".join(["One two."] * 42)
    page = run(model="random", text=text)
    assert len(paragraph(page)["sentences"]) == 40  # type: ignore[index]
    assert page.text_input[0].value == text
    said = "This text has 42 sentences: the first 40 are translated, the others stay in the field."
    assert said in said_on(page)


@pytest.mark.parametrize(
    ("count", "said"),
    [(29, ""), (30, "This text has 3,029 characters; this server takes at most 3000.")],
)
def test_a_hosted_server_bounds_each_sentence_and_ten_times_as_much(
    count: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    page = run(model="random", text=" ".join(["One " + "two " * 23 + "two."] * count))
    assert len(page.error) == bool(said)
    assert said in said_on(page)


def test_all_sentences_are_exported_as_living_pages_with_an_index() -> None:
    asked = RunKey.of(State(), named("random"), SENTENCES[1])
    now = State(sentence=1, step=1, encoder=(0, 0), decoder=(0, 0), cross=(0, 0))
    made = living_pages(View(asked, runs.translate(asked), None), now, SENTENCES)
    with zipfile.ZipFile(io.BytesIO(made)) as folder:
        assert sorted(folder.namelist()) == ["1.html", "2.html", "3.html", "index.html"]
        index = folder.read("index.html").decode()
        assert [text for text in SENTENCES if f">{text}</a><br>" in index] == SENTENCES
        assert all(folder.read(f"{i}.html").startswith(b"<!doctype html>") for i in (1, 2, 3))


# --- the way of one typed sentence through the files ---------------------------------------------

ROOT = f"{Path(__file__).parents[2]}/"
MODEL = {
    f"{ROOT}transformer/{name}.py"
    for name in ("attention", "encodings", "hooks", "layers", "model")
}
"""The passes of the model itself, one a token and layer, are not counted."""


def ours(frame: FrameType | None) -> str:
    """The file of the project from which a call comes, past the libraries between."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(ROOT) and "/.venv/" not in name and not name.startswith(f"{ROOT}tests/"):
            return name
        frame = frame.f_back
    return ""


def test_a_typed_sentence_finds_its_model_at_most_twice_and_seldom_changes_file():
    run(model="en-pt", text="He is old.")  # what is loaded once does not count
    moves = 0
    found = Counter[str]()
    own = models.find.__code__

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal moves
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            here = ours(frame)
            there = ours(frame.f_back)
            moves += here != there and not {here, there} & MODEL
            if frame.f_code is own:
                found[frame.f_locals["name"]] += 1

    threading.setprofile(watch)
    try:
        run(model="en-pt", text="He lives in a big white house.")
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    assert found["en-pt"] <= 2, found
    assert moves <= 1_750, moves


# --- models that are told both languages, or a task ----------------------------------------------

DOGS, OLD = "two dogs ran over the hills .", "summarize: He is old and tired."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("told")
    for kind in ("nllb", "m2m"):
        write_m2m(made / kind, kind=kind)
    tasks = {
        "a": {"prefix": "summarize: "},
        "b": {"prefix": "translate English to German: "},
        "c": {},
    }
    write_t5(made / "t5", feed_forward="gated-gelu", config={"task_specific_params": tasks})
    write_t5(made / "mt5", kind="mt5", feed_forward="gated-gelu", tied=False)
    write_t5(made / "madlad", symbols=("<2pt>", "<2de>"))
    return made


@pytest.fixture
def told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of the folder are the visitor's own."""
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))


def pickers(at: AppTest) -> list:
    return [
        each for each in at.selectbox if each.label in ("Translate from", "Into", "Translate into")
    ]


def test_every_language_has_a_name_of_its_own() -> None:
    for pieces in (NLLB, [f"__{code}__" for code in M2M]):
        names = [language_name(piece) for piece in pieces]
        assert len(set(names)) == len(names)
        assert not set(names) & {piece.strip("_").split("_")[0] for piece in pieces} - {"Akan"}


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("model", "source", "target", "other"), [
    ("nllb", "eng_Latn", "deu_Latn", "arb_Arab"),
    ("m2m", "__en__", "__de__", "__ar__"),
])  # fmt: skip
def test_two_pickers_choose_the_languages_of_the_run_and_of_the_address(
    model, source, target, other
) -> None:
    at = run("app.py", model=model, text=DOGS)
    first, into = pickers(at)
    assert (first.value, into.value) == (source, target)
    assert "German" in into.options
    assert all(f'"text": "{each}"' in json.dumps(feeds(at)) for each in (source, target))
    into.select_index(into.options.index(language_name(other))).run()
    assert at.session_state["state"].language == at.query_params["language"] == f"{source} {other}"
    assert f'"text": "{other}"' in json.dumps(feeds(at))
    assert (
        pickers(run("app.py", model=model, text=DOGS, language=f"{source} {other}"))[1].value
        == other
    )


@pytest.mark.usefixtures("told")
def test_a_text_that_names_its_languages_decides_and_angle_brackets_have_a_picker() -> None:
    found = pickers(run("app.py", model="nllb", text=f"fra_Latn eng_Latn {DOGS}"))
    assert [(each.value, each.disabled) for each in found] == [
        ("fra_Latn", True),
        ("eng_Latn", True),
    ]
    assert models.find("nllb").addressed(DOGS, "fra_Latn nonsense") == f"eng_Latn deu_Latn {DOGS}"
    (picker,) = pickers(run("app.py", model="madlad", text="the house"))
    assert picker.options == ["German", "Portuguese"]
    assert models.find("madlad").addressed("the house", None) == "<2de> the house"
    assert models.find("madlad").addressed("the house", "<2pt>") == "<2pt> the house"


def said(at: AppTest) -> str:
    """All words and formulas of a page, those in its slots among them."""
    bodies = json.dumps([str(each.proto) for each in at.get("html")])
    return " ".join([*told_inside(at).split(), *(each.value for each in at.latex), bodies])


@pytest.mark.usefixtures("told")
def test_the_tasks_of_the_config_are_offered_and_begin_the_text() -> None:
    assert models.find("t5").prompts == ("summarize: ", "translate English to German: ")
    assert models.find("mt5").prompts == ()
    assert [models.find(name).task for name in ("t5", "mt5", "en-de")] == [
        "write",
        "write",
        "translate",
    ]
    assert examples.text_on(models.find("t5"), None).startswith("summarize: ")
    at = run("app.py", model="t5", text=OLD)
    assert WORDS["write"].purpose in said(at)
    assert "Write" in [each.label for each in at.button]
    assert "Use your own text" in [each.proto.popover.label for each in at.get("popover")]
    at.button(key="prompt.1").click().run()
    assert [at.button(key=f"prompt.{i}").proto.type for i in (0, 1)] == ["tertiary", "secondary"]
    assert at.session_state["state"].text == "translate English to German: He is old and tired."


WRONG = (r"\mathrm{LayerNorm}", "LN is LayerNorm", "÷ √6", "+ b_1", "This model divides")
SAYS: list[tuple[str, dict[str, str], list[str]]] = [
    ("inside_a_head", {"section": "all"}, []),
    (
        "inside_a_head",
        {"section": "weights", "what_if": "no-scale"},
        ["does not divide q·k by √d_k"],
    ),
    (
        "whole_model",
        {"part": "decoder-forward-norm"},
        [r"\mathrm{RMSNorm}(x)", "No mean is taken away"],
    ),
    ("whole_model", {"part": "encoder-forward"}, ["It makes a gate for each unit", r"\odot"]),
    ("whole_model", {"part": "output"}, [r"\tfrac{1}{\sqrt{d_{model}}}"]),
    ("masks", {}, []),
    ("explanation", {"view": "why"}, []),
    ("app", {}, []),
]


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("page", "params", "says"), SAYS, ids=str)
def test_a_page_says_what_a_t5_model_computes(
    page: str, params: dict[str, str], says: list[str]
) -> None:
    at = run(sitemap.script(page), model="t5", text=OLD, **params)
    assert not [each.value for each in at.error]
    assert [each for each in says if each not in said(at)] == []
    assert [each for each in WRONG if each in said(at)] == []
    if page != "whole_model" and not params.get("view"):
        assert r"\sqrt{d_k}}" not in said(at).replace(r"$\sqrt{d_k}$", "")
    if "what_if" in params:
        assert at.session_state["state"].value("what_if") == ("no-scale", None)
        assert "what if, not the model's computation" not in said(at), (
            "nothing that it does not divide by"
        )


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("lesson", "step", "model", "says", "not_said"), [
    ("by-hand", 1, "t5", "leaves its divisor out", ""),
    ("by-hand", 3, "t5", "does not divide it", "Divided by"),
    ("by-hand", 4, "t5", "a score becomes", "q·k is divided"),
    ("scale", 1, "t5", "which this model does not have", "Section 3.2.1"),
    ("positions", 3, "t5", "does not multiply embeddings", "the embedding times"),
    ("stacks", 3, "t5", "has another activation, or a gate", "how many of its inner units are above 0"),
    ("by-hand", 4, "en-de", "q·k is divided", "a score becomes"),
    ("positions", 3, "en-de", "the embedding times", "does not multiply"),
    ("stacks", 3, "en-de", "how many of its inner units are above 0", "a gate"),
])  # fmt: skip
def test_a_lesson_says_what_is_true_of_the_model(
    lesson: str, step: int, model: str, says: str, not_said: str
):
    view = files.find(lesson).steps[step - 1]
    at = run(
        view.page, **{**view.params, "lesson": f"{lesson}.{step}", "model": model, "text": OLD}
    )
    (strip,) = (each.value for each in at.markdown if says in each.value)
    assert not not_said or not_said not in strip
