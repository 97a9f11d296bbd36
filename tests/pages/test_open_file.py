"""Exported files open again without their model; damaged ones get one sentence."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

import pytest
from app_pages import HOSTILE, LINKED, PAGES, feeds, run, said, words
from closed_form import CASES
from damaged import FILES, TEXTS
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.controls import plain
from explorer.app.maps.run_export import trace_file
from explorer.app.server import models
from transformer import interventions as do
from transformer import load_language_model, load_translator
from transformer.run import Translation
from transformer.translator import Translator

PAGE = "pages/open_file.py"


@pytest.fixture(scope="module")
def translation(closed_form_models: dict[str, Path]) -> Translation:
    return load_translator(closed_form_models["reverse"]).translate(CASES["reverse"].sentence)


def opened(content: bytes, name: str = "run.npz") -> AppTest:
    """The page after a visitor gave it a file."""
    at = run(PAGE)
    at.file_uploader[0].set_value((name, content, "application/octet-stream")).run()
    return at


def on_page(at: AppTest, page: str) -> AppTest:
    """The same visitor on another page."""
    return at.switch_page(page).run()


def test_a_trace_opens_again_and_says_what_was_checked_and_that_its_model_is_not_here(
    translation: Translation, own_models: Path
):
    (own_models / "reverse").unlink()
    at = opened(trace_file(translation, None))
    assert not at.error
    text = words(at)
    assert [
        each in text for each in ("✓ imported file, consistent", "computed again", "as recorded")
    ] == [True] * 3
    assert "cannot be run again" in text


def test_a_text_that_was_continued_opens_again_without_its_model() -> None:
    model = load_language_model(models.BUNDLED / "language" / "lm-en", "cpu")
    made = model.generate("The old house", max_length=8)
    at = opened(trace_file(made, model.model))
    assert not at.error
    assert not at.exception
    shown = on_page(at, "app.py")
    assert not shown.exception
    assert not shown.error


@pytest.mark.parametrize(
    "name", ["**bold**_x_.npz", "[a](b).npz", "$x^2$:red[y].npz", "![a](b)`c`.npz"]
)
def test_the_name_of_a_file_is_no_markdown(translation: Translation, name: str):
    at = opened(trace_file(translation, None), name)
    shown = next(each.value for each in at.markdown if "npz" in each.value)
    assert shown.startswith(f"**{plain(name)}")
    assert name not in shown


@pytest.mark.parametrize(
    ("page", "view"),
    [*((page, None) for page in LINKED), *thinned([*product(PAGES, (None, "batch"))], 3)],
)
def test_every_page_takes_an_imported_run_or_says_in_one_sentence_that_it_needs_the_model(
    translation: Translation, page: str, view: str | None, own_models: Path
):
    (own_models / "reverse").unlink()
    at = opened(trace_file(translation, None))
    if view is not None:
        at.query_params["view"] = view
    at = on_page(at, page)
    assert not at.exception
    assert len(at.error) <= 1
    if not (at.get("bidi_component") or at.get("plotly_chart") or page == PAGE):
        assert "needs the model" in said(at)
    if page in LINKED[:4]:
        written = [chip["text"] for chip in feeds(at)["strips"]["target"]][:-1]
        assert written == CASES["reverse"].translation.split()
        proved = [data for data in feeds(at).values() if data.get("badge")]
        of_heads = {data["badge"]["text"] for data in proved if "picks" not in data}
        of_all = {data["badge"]["text"] for data in proved if "picks" in data}
        assert of_heads == {"✓ imported file, consistent"}
        assert of_all <= {"✓ imported file, from a consistent trace"}
        assert "Imported file" in said(at)


def test_a_batch_of_a_file_says_that_it_needs_the_model_and_offers_no_field_for_it(
    translation: Translation, own_models: Path
):
    (own_models / "reverse").unlink()
    at = opened(trace_file(translation, None))
    at.query_params["view"] = "batch"
    at = on_page(at, "pages/masks.py")
    assert "needs the model" in said(at)
    assert not at.error
    assert not [each for each in at.text_area if each.label.startswith("The sentences")]


def test_another_sentence_for_an_imported_run_is_refused_in_one_sentence(translation: Translation):
    at = on_page(opened(trace_file(translation, None)), "app.py")
    at.text_input[0].set_value("one two").run()
    assert not at.exception
    assert "holds one run only" in said(at)
    picker = next(each for each in at.selectbox if each.label == "Model")
    picker.set_value("copy").run()
    assert not at.error


@pytest.mark.parametrize("changes", [(), (do.ablate("cross", 0, 0, "zero"),)])
def test_where_the_model_is_its_pictures_of_the_same_translation_are_computed_here(
    closed_form_models: dict[str, Path], changes: tuple[do.Intervention, ...]
):
    model = load_translator(closed_form_models["reverse"])
    made = model.translate(CASES["reverse"].sentence, interventions=changes)
    at = opened(trace_file(made, None))
    link = next(
        each.proto for each in at.get("page_link") if "Compute its pictures" in each.proto.label
    )
    assert "verified here" in link.help
    shown = run("app.py", **dict(parse_qsl(link.query_string)))
    assert not shown.error
    tokens = [chip["text"] for chip in feeds(shown)["strips"]["target"]]
    assert tokens == [*made.text.split(), "</s>"]
    assert "your translation, not the model's" in feeds(shown)["next"]["caption"]
    badges = [data["badge"]["text"] for data in feeds(shown).values() if data.get("badge")]
    assert badges
    assert all("verified" in text for text in badges)


def test_a_file_with_changes_opens_whatever_was_changed_before_and_runs_again_with_its_own(
    closed_form_models: dict[str, Path],
):
    changes = [do.hide(1), do.scale("cross", 0, 0, 2.0)]
    model = load_translator(closed_form_models["reverse"])
    made = model.translate(CASES["reverse"].sentence, interventions=changes)
    at = run(PAGE, changes=do.write_text([do.hide(0)]))
    at.file_uploader[0].set_value(
        ("run.npz", trace_file(made, None), "application/octet-stream")
    ).run()
    assert not at.exception
    again = next(each for each in at.get("page_link") if "Run it again" in each.proto.label)
    assert dict(parse_qsl(again.proto.query_string))["changes"] == do.write_text(changes)
    shown = on_page(at, "app.py")
    assert not shown.exception
    assert not shown.error
    assert "2 changes are active" in " ".join(each.value for each in shown.caption)


def test_a_file_whose_model_has_the_name_of_an_open_file_is_shown(translation: Translation):
    at = opened(trace_file(translation, None), "first.npz")
    named = replace(translation, model=[*at.session_state["visit"].files][-1])
    at.file_uploader[0].set_value(("second.npz", trace_file(named, None), "")).run()
    at.query_params["model"] = [*at.session_state["visit"].files][-1]
    at.query_params["text"] = translation.source_text
    shown = on_page(at, "app.py")
    assert not shown.exception
    assert "Imported file" in said(shown)


@pytest.mark.parametrize(
    "content", [lambda: TEXTS["empty"], lambda: TEXTS["deep"], FILES["random"], FILES["bomb"]]
)
def test_a_damaged_file_gets_one_sentence_and_the_page_lives_on(
    content: Callable[[], bytes], translation: Translation
):
    at = opened(content())
    assert not at.exception
    assert len(at.error) == 1
    at.file_uploader[0].set_value(("run.npz", trace_file(translation, None), "")).run()
    assert not at.exception
    assert not at.error


def test_hostile_tokens_of_a_file_stay_text_and_a_sample_is_one_click_away(translator: Translator):
    at = opened(trace_file(translator.translate(HOSTILE), None), "</script><b>.npz")
    assert not at.exception
    assert not any(re.search(r"(?<!\\)<", each.value) for each in at.markdown)
    at = run(PAGE)
    next(each for each in at.button if each.label == "Open a sample").click().run()
    assert not at.exception
    assert "✓ imported file, consistent" in words(at)


def test_a_visitor_keeps_a_few_files_only_and_can_close_them(translator: Translator):
    at = run(PAGE)
    for count in range(6):
        content = trace_file(translator.translate("one two" + " three" * count), None)
        at.file_uploader[0].set_value((f"run{count}.npz", content, "")).run()
    names = [button.key for button in at.button if button.label == "Close"]
    assert len(names) == 4
    at.button(key=names[0]).click().run()
    assert not at.exception
    assert len([button for button in at.button if button.label == "Close"]) == 3


def test_all_visits_together_keep_so_much(
    translation: Translation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(models, "_open", WeakValueDictionary())  # of other tests, some may be open
    monkeypatch.setattr(models, "TOGETHER", 3 * translation.nbytes)
    content = trace_file(translation, None)
    visits = [opened(content) for _ in range(3)]
    assert not any(visit.error for visit in visits)
    assert "fill this server" in said(opened(content))
    monkeypatch.setenv("TRANSFORMER_HOSTED", "on")
    monkeypatch.setenv("TRANSFORMER_HOSTED_CHARACTERS", "3")
    assert "at most 3" in said(opened(content))
