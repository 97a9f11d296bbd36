"""The page Language model without a browser: what it draws of a prompt and of a text, and what it says."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from app_pages import SENTENCE, click_menu, feeds, run, said, view, words
from streamlit.testing.v1 import AppTest

from explorer.app.maps.run_export import KEY
from explorer.app.sections.language_model import generation, lengths, surprisal
from explorer.app.server import catalogue
from explorer.app.server.writer import LONGEST, MORE
from explorer.figures.base.labels import is_special
from transformer import Translator, load_language_model

PAGE = "pages/language_model.py"
PROMPT = "one two three"
MODEL = "language/writer"


@pytest.fixture(scope="module")
def generator(app_models: Path) -> Translator:
    return load_language_model(app_models / "language" / "writer")


opened = partial(run, PAGE, model=MODEL, prompt=PROMPT)


def strip(at: AppTest) -> list[str]:
    return [chip["text"] for chip in feeds(at)["strips"]["target"]]  # type: ignore[attr-defined]


def test_the_model_goes_on_with_the_prompt_and_the_strip_says_what_was_given(generator: Translator):
    at = opened()
    found = generator.generate(PROMPT, max_length=len(generator.ids(PROMPT)) + MORE)
    carried, told = feeds(at), view(at)
    assert carried["strips"]["given"] == found.n_given == len(generator.ids(PROMPT))
    assert carried["strips"]["steps"] == len(found.target_tokens)
    assert told["strips"] == ["target"]
    assert told["step"] == found.n_given
    assert f"The {found.n_given} tokens of the prompt are given" in words(at)


def test_an_empty_prompt_lets_the_model_begin_by_itself(generator: Translator):
    at = opened(prompt="")
    assert at.text_input[0].value == ""
    assert feeds(at)["strips"]["given"] == 0
    assert "Nothing is given" in words(at)
    assert view(at)["step"] == 0
    found, ids = generator.generate("", max_length=MORE), feeds(at)["next"]["ids"]
    for step, offered in zip(found.steps, ids, strict=True):
        marks = [each for each in step.alternatives if is_special(each.token) or "<0x" in each.token]
        assert {each.token_id for each in marks}.isdisjoint(offered), "marks are not offered"


def test_a_prompt_that_is_too_long_or_empty_keeps_the_page():
    assert "is empty" in said(opened(view="surprisal", prompt="")).replace("\\", "")
    at = opened(prompt=" ".join(["one"] * (LONGEST + 1)))
    assert f"at most {LONGEST}" in said(at).replace("\\", "")
    assert at.text_input[0].value.startswith("one one")


# --- a text of one's own ------------------------------------------------------------------------------------


def test_every_token_of_a_text_has_its_surprisal(generator: Translator):
    at = opened(view="surprisal", prompt="one two two")
    found = generator.force("one two two")
    shades = [chip["title"] for chip in feeds(at)["strips"]["target"]]
    assert shades == [f"{bits:.2f} bits" for bits in found.surprisals]
    assert view(at)["step"] == int(np.argmax(found.surprisals))
    table = at.dataframe[0].value
    np.testing.assert_allclose(table["bits"], found.surprisals)
    np.testing.assert_allclose(table["sum of bits"].iloc[-1], sum(found.surprisals))
    bits, pieces = sum(found.surprisals), len(found.target_tokens)
    told = (
        f"**{bits:.1f} bits** in all: {bits / 4:.1f} bits per word (3 words and the end). Perplexity "
        f"**{2 ** (bits / 4):,.1f} per word**, {2 ** (bits / pieces):,.1f} per piece ({pieces} pieces, the "
        "end among them)."
    )
    assert surprisal.cost(found) == told
    assert told in words(at)


@pytest.mark.parametrize(("bits", "told"), [(0.5, "1 in 1.4"), (3, "1 in 8.0"), (11.5, "1 in 2,900")])
def test_a_surprisal_is_told_as_a_chance(bits: float, told: str):
    assert surprisal.odds(bits) == told


# --- the place of the page among the others ----------------------------------------------------------------


def test_each_sort_of_models_keeps_its_own_place():
    at = run(step="3", decoder="1.2")
    click_menu(at, PAGE)
    assert not at.exception
    assert at.text_input[0].value == next(iter(generation.EXAMPLES.values()))
    at.text_input[0].set_value("four five").run()
    own = view(at)["step"]
    click_menu(at, "pages/cross_attention.py")
    assert not at.exception
    assert view(at)["step"] == 2
    assert at.text_input[0].value == SENTENCE
    assert "prompt" not in at.query_params
    click_menu(at, PAGE)
    assert at.text_input[0].value == "four five"
    assert view(at)["step"] == own
    assert "not here" not in said(at)


def test_an_example_gives_way_to_the_example_of_another_section_and_a_text_of_one_s_own_stays():
    for own in (None, "four five"):
        at = run(PAGE, **({} if own is None else {"prompt": own}))
        next(each for each in at.segmented_control if each.label == "View").set_value("surprisal").run()
        assert not at.exception
        assert at.text_input[0].value == (own or next(iter(surprisal.EXAMPLES.values())))
    for section in (generation, surprisal, lengths):
        assert len({*section.EXAMPLES.values()}) == len(section.EXAMPLES) > 1


def test_without_a_language_model_the_page_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catalogue, "language_models", dict)
    at = run(PAGE)
    assert "There is no language model here" in said(at)


def test_no_file_of_a_run_is_offered_that_could_not_be_opened_again():
    at = opened()
    at.session_state[KEY] = True
    at.run()
    assert not at.exception
    told = [each.proto.json for each in at.get("bidi_component") if '"figure"' in each.proto.json]
    assert any("prompt=one+two+three" in each and "one-two-three" in each for each in told)
    assert not [each for each in at.get("download_button") if each.proto.label in {"JSON", "NPZ"}]
