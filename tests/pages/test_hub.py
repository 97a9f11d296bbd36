"""The app and the Hub: a model is looked up, fetched, opened, and leaves again."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import HubServer, running_hub
from huggingface_hub import constants
from marian_models import write_marian
from streamlit.testing.v1 import AppTest
from waiting import until as wait_until

from explorer.app.server import hub_models, memory, models
from explorer.app.server.run_key import RunKey
from explorer.app.server.surveys import lines_of, run_of
from explorer.lenses.heads.survey import Line
from transformer.hub.fetch import find
from transformer.hub.settings import Hub

ROOT = Path(__file__).resolve().parents[2]
NAME = "user/tiny"
LANGUAGES = "user/many"
TEXT = "the cat sat on a mat"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("originals")
    shape = {"encoder_layers": 6, "decoder_layers": 6, "heads": 8, "d_model": 32}
    return {
        NAME: write_marian(folder / "tiny", **shape),
        LANGUAGES: write_marian(folder / "many", languages=True),
    }


@pytest.fixture
def server(originals: dict[str, Path]) -> Iterator[HubServer]:
    with running_hub() as server:
        for name, directory in originals.items():
            server.add(name, directory)
        yield server


@pytest.fixture(autouse=True)
def hub(
    server: HubServer,
    closed_form_models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Hub:
    """The local Hub is the one of the environment; the models on disk are the closed-form ones."""
    hub = Hub(endpoint=server.url, cache_dir=tmp_path / "cache", token=False, timeout=2.0)
    monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls: hub))
    monkeypatch.setenv("TRANSFORMER_MODELS", str(closed_form_models["copy"].parent))
    monkeypatch.setattr(models, "BUNDLED", tmp_path / "none")
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2**14)
    hub_models.downloads.clear()
    return hub


def run(page: str = "app.py", **params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.session_state["hub.popover"] = True
    for name, value in {"model": "copy", "text": "one two", **params}.items():
        at.query_params[name] = value
    if page != "app.py":
        at.switch_page(page)
    return at.run()


def said(at: AppTest) -> str:
    texts = [each.value for each in (*at.info, *at.error, *at.caption, *at.markdown)]
    return " ".join(texts).replace("\\", "")


def button(at: AppTest, label: str) -> object:
    return next(each for each in at.button if each.label == label)


def picker(at: AppTest) -> object:
    return next(each for each in at.selectbox if each.label == "Model")


def look_up(at: AppTest, name: str) -> AppTest:
    return (
        next(each for each in at.text_input if each.label.startswith("Name of a model"))
        .input(name)
        .run()
    )


def until(at: AppTest, condition: Callable[[], bool]) -> AppTest:
    """Runs the page again until something is so."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, said(at)
        at.run()
    return at


def test_a_model_is_looked_up_fetched_and_opened(server: HubServer):
    at = look_up(run(), NAME)
    assert "user/tiny**, 6 + 6 layers of 8 heads:" in said(at)
    assert "to download" in said(at)
    assert "of memory needed" in said(at)
    assert server.asked("GET", "/storage/") == 0
    button(at, "Download it").click().run()
    until(at, lambda: picker(at).value == NAME)
    assert not at.exception
    assert NAME in [*models.available()]
    assert models.find(NAME).load().name.startswith(f"{NAME}@")


def test_a_look_at_what_is_not_there_is_one_sentence(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
):
    at = look_up(run(), "user/nothing")
    assert "There is no model user/nothing on the Hub" in said(at)
    assert "is not a model name" in said(look_up(at, "../../etc"))
    assert "is not a model name" in said(look_up(at, f"https://github.com/{NAME}"))
    server.sizes["model.safetensors"] = 10**12
    assert "downloads are limited to 1.5 GB" in said(look_up(at, NAME))
    assert not at.exception
    server.sizes.clear()
    monkeypatch.setattr(memory, "available", lambda: 1000)
    look_up(at, "")
    assert "more memory than is free here" in said(look_up(at, NAME))
    assert button(at, "Download it").disabled


def test_a_download_can_be_stopped_or_fail_and_goes_on_later(server: HubServer):
    server.faults["model.safetensors"] = "slow"
    at = look_up(run(), NAME)
    button(at, "Download it").click().run()
    assert server.waiting.wait(30)
    at.run()
    button(at, "Cancel").click().run()
    assert any(each.label.startswith("Name of a model") for each in at.text_input)
    server.faults["model.safetensors"] = "damaged"
    server.released.set()
    look_up(at, NAME)
    button(at, "Download it").click().run()
    until(at, lambda: "does not match its hash" in said(at))
    server.faults.clear()
    button(at, "Try again").click().run()
    button(at, "Download it").click().run()
    until(at, lambda: picker(at).value == NAME)
    assert server.asked("GET", "/storage/", "source.spm") == 1


def test_without_a_network_the_form_is_grey_and_says_so(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
):
    find(NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    at = run(model=NAME, text=TEXT)
    field = next(each for each in at.text_input if each.label.startswith("Name of a model"))
    assert field.disabled
    assert "The network is switched off here" in said(at)
    assert picker(at).value == NAME
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    server.faults["api"] = "error"
    at = look_up(run(), NAME)
    assert "answers with an error (503)" in said(at)
    assert next(each for each in at.text_input if each.label.startswith("Name of a model")).disabled
    server.faults.clear()
    assert "to download" in said(button(at, "Try again").click().run())


def test_a_hosted_installation_opens_what_it_allows(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    find(NAME)
    for allowed, reason in (
        ((), "does not open models from the Hub"),
        (("Helsinki-NLP/*",), "Allowed here"),
    ):
        strict = Hub(endpoint=hub.endpoint, cache_dir=hub.cache, token=False, allowed=allowed)
        monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls, strict=strict: strict))
        at = run(model=NAME)
        assert reason in said(at)
        assert picker(at).value != NAME
        assert NAME not in picker(at).options
    assert "may not be opened here" in said(button(at, "Look it up").click().run())


def test_a_link_to_a_model_that_is_not_here_offers_it_and_fetches_nothing(server: HubServer):
    at = run(model=NAME)
    assert f"{NAME} is not on this machine, so" in said(at)
    assert (
        next(each for each in at.text_input if each.label.startswith("Name of a model")).value
        == NAME
    )
    assert server.requests == []
    assert "to download" in said(button(at, "Look it up").click().run())


def test_a_model_of_several_languages_offers_them():
    find(LANGUAGES)
    at = run(model=LANGUAGES, text=TEXT)
    assert not at.error
    box = next(each for each in at.selectbox if each.label == "Translate into")
    assert list(box.options) == ["French", "Portuguese", "Spanish"]
    first = RunKey.of(at.session_state["state"], models.find(LANGUAGES), TEXT)
    assert first.text == f">>fra<< {TEXT}"
    box.select(">>spa<<").run()
    assert at.query_params["language"] in (">>spa<<", [">>spa<<"])
    assert (
        RunKey.of(at.session_state["state"], models.find(LANGUAGES), TEXT).text == f">>spa<< {TEXT}"
    )
    survey_run = run_of(many := models.find(LANGUAGES), lines_of(many, (Line(TEXT),), None))
    wait_until(lambda: not survey_run.wait("anyone"))
    survey = survey_run.result()
    assert survey is not None
    assert survey.lines[0].source.startswith(">>fra<< ")
    at = run(model=LANGUAGES, text=f">>por<< {TEXT}", language="nonsense")
    box = next(each for each in at.selectbox if each.label == "Translate into")
    assert (box.value, box.disabled) == (">>por<<", True)
    assert "could not be read" in said(at)


def test_sentence_step_and_chosen_heads_survive_another_model_and_what_cannot_is_said():
    find(NAME)
    at = run(model=NAME, text=TEXT, step="3", encoder="6.8", source="2")
    picker(at).select("copy").run()
    now = at.session_state["state"]
    assert (now.text, now.step, now.model) == (TEXT, 2, "copy")
    assert now.encoder[0] == 0
    assert "encoder shows" in said(at)
    assert "The source token is no longer chosen" in said(at)


def test_a_fetched_model_opens_at_the_same_step_and_its_address_will_do_for_its_name(
    server: HubServer,
):
    at = run(step="2", source="1", cross="1.1")
    look_up(at, f"{server.url}/{NAME}/tree/main?x=1")
    button(at, "Download it").click().run()
    until(at, lambda: picker(at).value == NAME)
    assert at.session_state["state"].step == 1
    assert "The source token is no longer chosen" in said(at)
    assert "tiny · user" in picker(at).options


def test_a_damaged_model_on_the_way_to_another_loses_no_chosen_head(
    tmp_path: Path, originals: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "models"
    for name in ("one", "damaged", "other"):
        shutil.copytree(originals[NAME], folder / name)
    (folder / "damaged" / "vocab.json").write_text("{")
    (folder / "other" / "notes.txt").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))
    at = run(model="one", text=TEXT, encoder="6.8")
    picker(at).select("damaged").run()
    assert "vocab.json is not valid JSON" in said(at)
    picker(at).select("other").run()
    assert not at.exception
    assert not at.error
    assert at.session_state["state"].encoder == (5, 7)
