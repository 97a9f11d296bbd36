"""The visit of one person: texts, addresses, the menu, the bundled pairs, and a hosted instance."""

import json
from pathlib import Path

import pytest
from app_pages import ROOT, SENTENCE, click_menu, feeds, run, said, view, words
from closed_form import CASES
from streamlit.testing.v1 import AppTest

from explorer.app.address import sitemap
from explorer.app.address.parameters import KEEP
from explorer.app.controls import plain
from explorer.app.server import examples, models, studies
from explorer.app.server.examples import text_on
from explorer.figures.base import labels
from transformer import interventions as do
from transformer.hub.settings import HOSTED_VARIABLE
from transformer.translator import Translator


def bare(**address: str | list[str]) -> AppTest:
    """The home page with nothing but this in its address."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params.update(address)
    assert not at.run().exception
    return at


def chips(at: AppTest) -> list[str]:
    return [chip["text"] for chip in feeds(at)["strips"]["source"]]


def press(at: AppTest, label: str) -> AppTest:
    return next(each for each in at.button if each.label == label).click().run()


def test_a_bare_address_opens_on_a_translated_sentence_and_then_names_its_model():
    at = bare()
    shown = "".join(chips(at)).replace("◦", "")
    assert shown.startswith(examples.of(models.find("en-pt")).examples[0].text.replace(" ", ""))
    assert len(feeds(at)["strips"]["target"]) > 2
    at.text_input[0].set_value("The dog sleeps.").run()
    assert (at.query_params["model"], at.query_params["text"]) == ("en-pt", "The dog sleeps.")
    assert bare(text="The dog sleeps.").session_state["state"].model == "en-de", (
        "the first model of old links"
    )


def test_a_text_that_cannot_be_translated_keeps_the_page():
    at = run()
    for text in ("", " \t ", "\x00\x01", "word " * 10_000):
        at.text_input[0].set_value(text).run()
        assert not at.exception
        told = "shorten it to at most" if text.strip("\0\1 \t\n") else "is empty"
        assert told in said(at).replace("\\", "")
        assert at.text_input[0].value == text
        back = [each for each in at.button if each.label == "Back to the example"]
        assert len(back) == (not text.strip())
    at.text_input[0].set_value("").run()
    press(at, "Back to the example")
    assert not at.error
    assert at.text_input[0].value == text_on(models.find("copy"), None)


def test_a_long_text_stays_in_the_session_and_says_so():
    text = " ".join(["one stop", *["two three"] * 400])
    at = run()
    at.text_input[0].set_value(text).run()
    assert not at.exception
    assert "too long for a link" in said(at)
    assert "text" not in at.query_params
    next(each for each in at.selectbox if each.label == "Decoding").select_index(1).run()
    assert at.text_input[0].value == text
    at = click_menu(at, "pages/open_file.py")
    assert "text" not in at.query_params
    assert at.session_state["state"].text == text


def test_another_model_switches_off_the_changes_that_it_has_no_place_for():
    changes = (do.ablate("cross", 5, 2), do.ablate("decoder", 1, 0))
    at = run(model="en-pt", text="He is old.", changes=do.write_text(changes))
    picker = next(each for each in at.selectbox if each.label == "Model")
    picker.set_value("language/lm-en").run()
    assert not at.error
    told = "numbers its tokens otherwise: cross-attention, layer 6, head 3 gives no output."
    assert plain(told) in said(at)
    state = at.session_state["state"]
    assert (state.changes, state.off) == (changes[1:], ((0, changes[0]),))
    next(each for each in at.selectbox if each.label == "Model").set_value("en-pt").run()
    assert at.session_state["state"].off == state.off
    assert "Switched off" not in said(at)


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [("en-pt", "en-de", False), ("positions/rotary", "positions/shaw", True)],
)
def test_a_token_by_its_id_is_another_one_in_another_vocabulary(
    first: str, second: str, stays: bool
):
    by_id = do.choose(0, 40)
    by_piece = do.choose(1, "▁old")
    at = run(model=first, text="He is old.", changes=do.write_text((by_id, by_piece)))
    next(each for each in at.selectbox if each.label == "Model").set_value(second).run()
    state = at.session_state["state"]
    assert state.off == (() if stays else ((0, by_id),))
    assert by_piece in state.changes
    assert ("Switched off" in said(at)) is not stays


def test_a_translation_is_made_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    stream = Translator.stream
    monkeypatch.setattr(
        Translator,
        "stream",
        lambda *given, **more: calls.append(given[1]) or stream(*given, **more),
    )
    text = "nine ten eight stop"
    at = run(text=text)
    at.query_params["cross"] = "1.2"
    at.run()
    at.run()
    assert calls.count(text) == 1
    assert feeds(at)["cross"]["title"] == "Cross L1 H2"


@pytest.mark.parametrize("page", ["app.py", "pages/cross_attention.py"])
def test_back_restores_the_earlier_state_and_a_click_that_overtakes_the_address_does_not(page: str):
    at = run(page, step="2")
    before = dict(at.query_params)
    press(at, "Translate")
    assert dict(at.query_params) == before, "a click alone writes no address"
    at.text_input[0].set_value("nine ten").run()
    written = dict(at.query_params)
    at.query_params.clear()
    at.query_params.update(before)  # the browser has not got the new address yet
    press(at, "Translate")
    assert (at.text_input[0].value, chips(at)) == ("nine ten", ["nine", "ten", "</s>"])
    assert dict(at.query_params) == written
    at.query_params.update(before)
    at.run()
    assert view(at)["step"] == 1
    assert chips(at)[0] == CASES["copy"].source_tokens[0].removeprefix("▁")


def test_the_menu_is_the_same_at_every_step_and_opens_the_state_of_the_session():
    links = [[each.proto for each in run(step=step).get("page_link")] for step in ("1", "2")]
    assert links[0] == links[1]
    assert len(links[0]) >= sum(len(sitemap.entries(group.name)) for group in sitemap.GROUPS)
    at = click_menu(run(step="2", decoder="1.2"), "pages/decoder_self_attention.py")
    assert view(at)["step"] == 1
    held = {name: at.query_params[name] for name in at.query_params}
    assert held == {"model": "copy", "text": SENTENCE, "step": "2", "decoder": "1.2"} | {
        name: held[name] for name in ("encoder", "cross")
    }
    assert view(click_menu(at, "app.py"))["step"] == 1
    alone = bare(**KEEP)
    assert not alone.query_params, "a link without a session opens what the app chooses"
    assert view(alone)["step"] is not None


def test_without_any_model_the_page_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    monkeypatch.setattr("explorer.app.server.models.BUNDLED", tmp_path)
    assert "python -m transformer train" in said(run())


@pytest.mark.parametrize("name", ["gptj", "language/gptj"])
def test_a_folder_that_cannot_be_opened_is_named_with_the_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "config.json").write_text('{"model_type": "gptj"}')
    reason = f"{name} holds a gptj model of another library; this package cannot open it."
    at = run(model=name)
    captions = [each.value.replace("\\", "") for each in at.caption]
    assert any(reason in caption for caption in captions), captions
    assert not any("runs on the" in caption for caption in captions)


def test_a_damaged_document_ends_no_list_and_no_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "damaged.json").write_text("{")
    paths = {**studies.known(), "damaged": tmp_path / "damaged.json"}
    monkeypatch.setattr(studies, "known", lambda: paths)
    at = run("pages/findings.py")
    assert "is not valid JSON; it is damaged" in words(at)
    assert not at.exception
    at = run("pages/findings.py", study="damaged")
    assert "is not valid JSON; it is damaged" in said(at)
    assert not at.exception


JOINED, SPACE = (f"“{sign}” {means}" for sign, means in labels.SIGNS.items())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The old house is not for sale.", [JOINED]),
        ("He is old.", []),
        ("He is 3.", [JOINED, SPACE]),
    ],
)
def test_signs_are_explained_where_they_stand(text: str, told: list[str]):
    at = run("pages/cross_attention.py", model="en-de", text=text)
    shown = " ".join(each.value for each in at.caption)
    assert [each for each in (JOINED, SPACE) if each in shown] == told


PAIRS = {"en-de": "English → German", "en-pt": "English → Portuguese"}


@pytest.mark.parametrize("name", ["language/lm-en", "encoder/masked-en"])
def test_a_bundled_model_without_a_pair_says_what_it_is_good_at(name: str):
    at = run(model=name)
    good_at = models.find(name).header.good_at
    assert good_at
    assert any(good_at in caption.value for caption in at.caption)


@pytest.mark.parametrize("name", PAIRS)
def test_the_list_names_languages_and_a_pair_opens_with_its_first_example(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", "/nonexistent")
    at = bare(model=name)
    options = next(each for each in at.selectbox if each.label == "Model").options
    assert set(PAIRS.values()) <= set(options)
    assert options[0] == "English → Portuguese"
    line = next(each for each in at.caption if models.find(name).header.good_at in each.value)
    assert " MB" not in line.value
    assert "MB on disk · " in line.proto.help.replace("\\", "")
    example = examples.of(models.find(name)).examples[0]
    assert example.text in [each.value for each in at.text_input]
    assert at.session_state["state"].cross == (example.claim.layer, example.claim.head)


def test_a_hosted_page_refuses_a_long_text_and_logs_runs_without_texts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    at = run(text="one " * 200)
    assert "at most 300" in said(at)
    assert at.text_input[0].value == "one " * 200
    capsys.readouterr()
    run(text="one two five", changes="hide_1")
    out = capsys.readouterr().out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert {line["event"] for line in lines} >= {"page", "translated"}
    page = next(line for line in lines if line["event"] == "page")
    assert (page["page"], page["characters"], page["changes"]) == ("app", 12, 1)
    assert "one two" not in out
