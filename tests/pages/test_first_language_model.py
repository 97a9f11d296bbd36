"""A first-time reader gets a real language model with one click, or is told the command."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from decoder_models import write_decoder
from hub_server import HubServer, running_hub
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.app.server import hub_models, models
from explorer.app.server.hub_models import Suggested
from explorer.app.shell import hub_picker
from transformer.hub.settings import HOSTED_VARIABLE, Hub

ROOT = Path(__file__).resolve().parents[2]
NAME = "user/writes"
LABEL = "Try a real language model"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    write_decoder(folder, "Llama, groups of three")
    return folder


@pytest.fixture(autouse=True)
def server(
    original: Path,
    closed_form_models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[HubServer]:
    """The local Hub has the language model, and the models on disk are the closed-form ones."""
    with running_hub() as server:
        server.add(NAME, original)
        hub = Hub(endpoint=server.url, cache_dir=tmp_path / "cache", token=False, timeout=2.0)
        monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls: hub))
        monkeypatch.setattr(models, "kept_models", tuple)
        models.looked_for.cache_clear()
        monkeypatch.setenv("TRANSFORMER_MODELS", str(closed_form_models["copy"].parent))
        monkeypatch.setattr(models, "BUNDLED", tmp_path / "none")
        offered = Suggested(NAME, 1, "Apache 2.0", "continues English text", bytes_each=2)
        monkeypatch.setattr(hub_models, "LANGUAGE_MODEL", offered)
        hub_models.downloads.clear()
        yield server


def opened() -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params["model"] = "copy"
    at.query_params["text"] = "one two"
    return at.run()


def picked(at: AppTest) -> str:
    (picker,) = (box for box in at.selectbox if box.label == "Model")
    return str(picker.value)


def notices(at: AppTest) -> str:
    return " ".join(info.value for info in at.info).replace("\\", "")


def test_one_click_brings_it_and_opens_it_and_the_offer_goes() -> None:
    at = opened()
    (button,) = (button for button in at.button if button.label == LABEL)
    assert "2.0 MB to download, Apache 2.0" in button.help
    button.click().run()
    until(lambda: picked(at.run()) == NAME)
    assert not at.exception
    assert LABEL not in [button.label for button in at.button]


def test_a_large_one_among_one_s_own_models_ends_the_offer(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "models"
    shutil.copytree(original, own / "language" / "mine")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(own))
    known = models.available().values()
    assert [model.name for model in known if hub_picker.is_real(model)] == []
    monkeypatch.setattr(models, "LARGE", 1_000)
    assert [model.name for model in known if hub_picker.is_real(model)] == ["language/mine"]


def test_without_a_network_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    at = opened()
    assert LABEL not in [button.label for button in at.button]
    captions = " ".join(caption.value for caption in at.caption)
    assert f"`python -m transformer pull {NAME}`" in captions
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    assert "transformer pull" not in " ".join(caption.value for caption in opened().caption)


def test_a_hub_that_does_not_answer_is_named_in_a_sentence(server: HubServer) -> None:
    server.faults["api"] = "error"
    at = opened()
    next(button for button in at.button if button.label == LABEL).click().run()
    assert "answers with an error (503)" in notices(at)
    assert picked(at) == "copy"


def test_one_that_does_not_fit_into_memory_is_not_downloaded(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened()
    monkeypatch.setattr(hub_models, "needed_bytes", lambda config: 10**15)
    next(button for button in at.button if button.label == LABEL).click().run()
    assert "needs more memory than is free here" in notices(at)
    assert server.asked("GET", "/storage/") == 0
