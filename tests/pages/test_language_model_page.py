"""The page Language model: what it draws of a prompt and of a text, and its place among the
others."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from app_pages import SENTENCE, click_menu, feeds, run, said, view, words
from decoder_models import write_decoder, write_gguf

from explorer.app.maps.run_export import KEY
from explorer.app.sections.language_model import generation, lengths, surprisal
from explorer.app.server import models
from explorer.app.server.runs import LONGEST, MORE
from transformer import Translator, load_language_model
from transformer.text.words import is_special

PAGE = "pages/language_model.py"
PROMPT = "one two three"
opened = partial(run, PAGE, model="language/writer", prompt=PROMPT)


@pytest.fixture(scope="module")
def generator(app_models: Path) -> Translator:
    return load_language_model(app_models / "language" / "writer")


@pytest.mark.parametrize("prompt", [PROMPT, ""])
def test_the_model_goes_on_with_the_prompt_or_begins_by_itself(generator: Translator, prompt: str):
    at = opened(prompt=prompt)
    given = len(generator.ids(prompt))
    found = generator.generate(prompt, max_length=given + MORE)
    carried = feeds(at)
    assert at.text_input[0].value == prompt
    assert carried["strips"]["given"] == found.n_given == given
    assert carried["strips"]["steps"] == len(found.target_tokens)
    assert (view(at)["strips"], view(at)["step"]) == (["target"], given)
    assert (
        f"The {given} tokens of the prompt are given" if given else "Nothing is given"
    ) in words(at)
    for step, offered in zip(found.steps[given:], carried["next"]["ids"][given:], strict=True):
        marks = [
            alternative
            for alternative in step.alternatives
            if is_special(alternative.token) or "<0x" in alternative.token
        ]
        assert {mark.token_id for mark in marks}.isdisjoint(offered), "marks are not offered"


def test_a_prompt_that_is_too_long_or_no_model_keeps_the_page(monkeypatch: pytest.MonkeyPatch):
    at = opened(prompt=" ".join(["one"] * (LONGEST + 1)))
    assert f"at most {LONGEST}" in said(at).replace("\\", "")
    assert at.text_input[0].value.startswith("one one")
    monkeypatch.setattr(models, "catalogue", dict)
    assert "There is no language model here" in said(run(PAGE))


def test_every_token_of_a_text_has_its_surprisal(generator: Translator):
    at = opened(view="surprisal", prompt="one two two")
    found = generator.force("one two two")
    shades = [chip["title"] for chip in feeds(at)["strips"]["target"]]
    assert shades == [f"{bits:.2f} bits" for bits in found.surprisals]
    assert view(at)["step"] == int(np.argmax(found.surprisals))
    table = at.dataframe[0].value
    np.testing.assert_allclose(table["bits"], found.surprisals)
    np.testing.assert_allclose(table["sum of bits"].iloc[-1], sum(found.surprisals))
    bits = sum(found.surprisals)
    pieces = len(found.target_tokens)
    assert (
        f"**{bits:.1f} bits** in all: {bits / 4:.1f} bits per word (3 words and the end). "
        f"Perplexity **{2 ** (bits / 4):,.1f} per word**, {2 ** (bits / pieces):,.1f} per piece "
        f"({pieces} pieces, the end among them)."
    ) in words(at)
    chances = {0.5: "1 in 1.4", 3: "1 in 8.0", 11.5: "1 in 2,900"}
    assert {chance: surprisal.odds(chance) for chance in chances} == chances


def test_each_sort_of_models_keeps_its_own_place():
    at = run(step="3", decoder="1.2")
    click_menu(at, PAGE)
    assert at.text_input[0].value == next(iter(generation.EXAMPLES.values()))
    at.text_input[0].set_value("four five").run()
    own = view(at)["step"]
    click_menu(at, "pages/cross_attention.py")
    assert (view(at)["step"], at.text_input[0].value) == (2, SENTENCE)
    assert "prompt" not in at.query_params
    click_menu(at, PAGE)
    assert (view(at)["step"], at.text_input[0].value) == (own, "four five")
    assert "not here" not in said(at)


@pytest.mark.parametrize("own", [None, "four five"])
def test_an_example_gives_way_to_that_of_another_section_and_a_text_of_one_s_own_stays(
    own: str | None,
):
    at = run(PAGE, **({} if own is None else {"prompt": own}))
    next(each for each in at.segmented_control if each.label == "View").set_value("surprisal").run()
    assert at.text_input[0].value == (own or next(iter(surprisal.EXAMPLES.values())))
    for section in (generation, surprisal, lengths):
        assert len({*section.EXAMPLES.values()}) == len(section.EXAMPLES) > 1


def test_no_file_of_a_run_is_offered_that_could_not_be_opened_again():
    at = opened()
    at.session_state[KEY] = True
    at.run()
    told = [each.proto.json for each in at.get("bidi_component") if '"figure"' in each.proto.json]
    assert any("prompt=one+two+three" in each and "one-two-three" in each for each in told)
    assert not [each for each in at.get("download_button") if each.proto.label in {"JSON", "NPZ"}]


def test_a_decoder_without_a_start_token_begins_with_the_text_s_own_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    directory = tmp_path / "language" / "llama"
    directory.mkdir(parents=True)
    write_decoder(directory, "Llama, groups of three")
    write_gguf(tmp_path / "small.gguf", directory, "llama")
    for name in ("language/llama", "small.gguf"):
        at = run(PAGE, model=name, prompt="the old  house")
        model = load_language_model(tmp_path / name)
        wrote = model.generate("the old  house", max_length=len(model.ids("the old  house")) + MORE)
        carried = feeds(at)
        assert "The text begins with “the”" in words(at)
        assert carried["strips"]["given"] == wrote.n_given == len(model.ids("the old  house")) - 1
        assert carried["strips"]["names"]["reads"][0] == "the"
        other = next(
            candidate.token_id
            for candidate in wrote.steps[wrote.n_given].alternatives
            if candidate.token.strip("▁").isalpha()
        )
        opened = SimpleNamespace(
            translation=wrote,
            source=SimpleNamespace(load=lambda model=model: model),
            run_key=SimpleNamespace(model=name),
        )
        with monkeypatch.context() as still:
            still.setattr(generation.session, "visit", lambda: SimpleNamespace(tried=set()))
            still.setattr(generation.session, "notice", list)
            values = generation.take(opened, wrote.n_given, other)
        assert values["prompt"] == model.text(
            [wrote.start_id, *wrote.target_ids[: wrote.n_given], other]
        )
        assert values["step"] == len(model.ids(values["prompt"])) - 2
    assert "no start token" in said(run(PAGE, model="small.gguf", prompt=""))
    at = run("pages/heads.py", model="small.gguf")
    assert "is a language model" in said(at)
