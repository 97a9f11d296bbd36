"""A text that a model continues, on the pages: what is given and what is written, how much, as a
chat, and what a click on another token does."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from app_pages import feeds, run, said, view, words
from decoder_models import TURN, write_decoder, write_gguf, write_vocabulary

from explorer.app.address.state import State
from explorer.app.maps import explorer
from explorer.app.sections.what_if import changes
from explorer.app.server import models
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import LONGEST, translate
from explorer.app.server.view import View
from explorer.app.shell import sentence
from explorer.app.shell.sentence import _stop
from explorer.lenses.what_if.experiments import CONTINUED
from transformer import Translator, load_language_model
from transformer import interventions as do
from transformer.text.words import is_special

PROMPT = "one two three"
opened = partial(run, model="language/writer", text=PROMPT)
TEMPLATE = (
    "{% for message in messages %}" + TURN + "{{ message['role'] }} {{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}" + TURN + "assistant{% endif %}"
)


@pytest.fixture(scope="module")
def generator(app_models: Path) -> Translator:
    return load_language_model(app_models / "language" / "writer")


@pytest.mark.parametrize("prompt", [PROMPT, ""])
@pytest.mark.parametrize("write", [1, 7])
def test_the_model_goes_on_with_the_prompt_or_begins_by_itself(
    generator: Translator, prompt: str, write: int
):
    at = opened(text=prompt, write=str(write))
    given = len(generator.ids(prompt))
    expected = generator.generate(prompt, max_length=given + write)
    strips = feeds(at)["strips"]
    assert at.text_area[0].value == prompt
    assert strips["given"] == expected.n_given == given
    assert strips["steps"] == len(expected.target_tokens)
    assert (view(at)["strips"], view(at)["step"]) == (["target"], given)
    assert (strips["sides"], strips["begins"]) == ({"target": "text"}, "")
    assert "incomplete" not in words(at)


def test_only_what_can_be_typed_may_end_a_prompt(generator: Translator):
    wrote = generator.generate(PROMPT, max_length=len(generator.ids(PROMPT)) + 9)
    ids = feeds(opened(write="9"))["next"]["ids"]
    for step, offered in zip(wrote.steps[: wrote.n_given], ids, strict=False):
        marks = {
            alternative.token_id
            for alternative in step.alternatives
            if is_special(alternative.token) or "<0x" in alternative.token
        }
        assert marks.isdisjoint(offered)
    assert not explorer.can_be_typed("<0xE2>")
    assert not explorer.can_be_typed("▁")
    assert explorer.can_be_typed("▁two")


def test_a_text_that_is_too_long_or_empty_keeps_the_page():
    at = opened(text=" ".join(["one"] * (LONGEST + 1)))
    assert "shorten it to at most" in said(at)
    assert at.text_area[0].value.startswith("one one")
    assert "is empty" in said(opened(text="", write="0"))


def test_every_token_of_a_text_has_its_surprisal(generator: Translator):
    at = run("pages/training.py", view="surprisal", model="language/writer", text="one two two")
    expected = generator.force("one two two")
    shades = [chip["title"] for chip in feeds(at)["strips"]["target"]]
    assert shades == [f"{bits:.2f} bits" for bits in expected.surprisals]
    table = at.dataframe[0].value
    np.testing.assert_allclose(table["bits"], expected.surprisals)
    bits = sum(expected.surprisals)
    pieces = len(expected.target_tokens)
    assert (
        f"**{bits:.1f} bits** in all: {bits / 4:.1f} bits per word (3 words and the end). "
        f"Perplexity **{2 ** (bits / 4):,.1f} per word**, {2 ** (bits / pieces):,.1f} per piece "
        f"({pieces} pieces, the end among them)."
    ) in words(at)


@pytest.mark.parametrize("model", ["en-pt", "language/lm-en"])
def test_surprisal_and_every_position_are_sections_for_every_model_that_writes(model: str):
    for section, told in (("surprisal", "bits"), ("lengths", "out, all from one pass")):
        at = run("pages/training.py", view=section, model=model, text="The house is old.")
        assert told in words(at)
        assert not at.error


@pytest.fixture
def decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a decoder of others: as a directory with a chat template, and as a file."""
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    write_decoder(tmp_path / "llama", "Llama, groups of three")
    write_vocabulary(tmp_path / "llama", chat_template=TEMPLATE)
    write_gguf(tmp_path / "small.gguf", tmp_path / "llama", "llama")
    return tmp_path


@pytest.mark.parametrize("name", ["llama", "small.gguf"])
def test_a_decoder_without_a_start_token_begins_with_the_text_s_own_first(
    name: str, decoders: Path
):
    text = "the old  house\nand the two dogs"
    at = run(model=name, text=text, write="5")
    model = load_language_model(decoders / name)
    wrote = model.generate(text, max_length=len(model.ids(text)) - 1 + 5)
    strips = feeds(at)["strips"]
    assert at.text_area[0].value == text
    assert at.query_params["text"] == text
    assert (strips["begins"], strips["given"]) == ("the", wrote.n_given)
    assert strips["names"]["reads"][0] == "the"
    assert [chip["text"] for chip in strips["target"]].count("¶") >= 1
    assert "no start token" in said(run(model=name, text=""))


def test_another_token_in_the_prompt_makes_another_prompt_and_one_behind_it_a_choice(
    decoders: Path,
):
    at = run(model="llama", text="the old house", write="5")
    state = at.session_state["state"]
    model = load_language_model(decoders / "llama")
    wrote = model.generate("the old house", max_length=len(model.ids("the old house")) - 1 + 5)
    for step in (wrote.n_given - 1, wrote.n_given):
        other = next(
            candidate.token_id
            for candidate in wrote.steps[step].alternatives[1:]
            if explorer.can_be_typed(candidate.token)
        )
        values = continued(at, step, other)
        if step < wrote.n_given:
            assert values["text"] == model.text([wrote.start_id, *wrote.target_ids[:step], other])
            assert values["step"] == len(model.ids(values["text"])) - 2
        else:
            assert values["changes"]
            assert "text" not in values
    assert state.write == 5


def continued(at: object, step: int, token_id: int) -> dict[str, object]:
    """The values with which the page of a run goes on with another token."""
    key = RunKey.of(State(write=5), models.find("llama"), "the old house")
    opened_view = View(key, translate(key, whole=True), None)
    visit = SimpleNamespace(tried=set())
    with (
        patch.object(explorer.session, "visit", lambda: visit),
        patch.object(explorer.session, "notice", list),
    ):
        return explorer.continue_with(opened_view, step, token_id)


def test_a_text_said_to_a_chat_model_has_roles_and_is_answered(decoders: Path):
    at = run(model="llama", text="the old house", write="4")
    assert "As a chat" in [toggle.label for toggle in at.toggle]
    at = run(model="llama", text="the old house", write="4", chat="yes")
    strips = feeds(at)["strips"]
    assert [chip["role"] for chip in strips["target"] if "role" in chip] == ["user", "assistant"]
    model = load_language_model(decoders / "llama")
    turns = [{"role": "user", "content": "the old house"}]
    assert strips["given"] == len(model.ids(model.prompted(turns))) - 1
    assert "As a chat" not in [toggle.label for toggle in opened().toggle]


def test_stop_keeps_what_was_written(decoders: Path, monkeypatch: pytest.MonkeyPatch):
    heard: dict[str, object] = {}
    monkeypatch.setattr(sentence.session, "change", lambda **values: heard.update(values))
    key = RunKey.of(State(write=40), models.find("llama"), "the old house")
    given = key.source.load().prompt_steps("the old house")
    _stop(key, given + 6)
    assert heard["write"] == 6
    _stop(key, given)
    assert heard["write"] == 1


@pytest.mark.parametrize("view", ["beam", "sampling"])
def test_a_search_writes_although_the_text_was_only_read(view: str):
    at = run("pages/beam_search.py", view=view, model="language/writer", text=PROMPT, write="0")
    assert not at.error
    assert at.get("plotly_chart")


def test_a_change_that_lifts_the_mask_reads_what_was_written_and_can_write_again():
    at = run("pages/what_if.py", model="language/writer", text=PROMPT, write="5")
    opened_view = SimpleNamespace(
        run_key=RunKey.of(State(write=5), models.find("language/writer"), PROMPT),
        sides={"target": "text"},
    )
    wrote = translate(opened_view.run_key, whole=True)
    values = changes.given_with(opened_view, do.mask("decoder", allow="future"))
    assert values == {"text": wrote.text, "write": 0}
    assert changes.given_with(opened_view, do.hide(0)) == {}
    lifted = do.write_text([do.mask("decoder", allow="future")])
    at = run(
        "pages/what_if.py", model="language/writer", text=wrote.text, write="0", changes=lifted
    )
    assert not at.error
    assert "The model reads a given output" in words(at)
    at.button(key="what-if.decode").click().run()
    assert at.session_state["state"].write == 40
    assert not at.error


def test_nobody_types_what_a_template_writes(decoders: Path):
    at = run(model="llama", text="the old house", write="4", chat="yes")
    carried = feeds(at)
    given = carried["strips"]["given"]
    assert {token for row in carried["next"]["ids"][:given] for token in row} == {None}
    assert None not in carried["next"]["ids"][given]


def test_questions_are_about_the_first_token_that_the_model_writes(decoders: Path):
    model = load_language_model(decoders / "llama")
    for experiment in CONTINUED:
        if experiment.name not in ("second", "forbidden"):
            continue
        variants, _ = experiment.put(model, {})
        (change,) = next(iter(variants.values()))
        wrote = model.translate(experiment.text, max_length=model.prompt_steps(experiment.text) + 1)
        assert len(wrote.steps) == wrote.n_given + 1
        if experiment.name == "second":
            second = wrote.steps[-1].alternatives[1].token_id
            assert change == do.choose(wrote.n_given, second)
        else:
            assert change == do.forbid(wrote.target_ids[-1])


def test_heads_over_sentences_reads_each_text_as_it_is(generator: Translator):
    at = run("pages/heads.py", model="language/writer")
    at.button(key="heads.ask").click().run()
    for _ in range(60):
        if "the roles" in words(at).lower() or "heads of masked decoder" in words(at):
            break
        at.run()
    assert not at.error
    told = words(at)
    assert "heads of masked decoder self-attention show" in told
    assert "each read as it is" in told
