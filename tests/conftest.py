"""What all tests share: one computing thread, and models made once per run."""

import gc
import os
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

# before they are imported: an assert of a helper says what it saw, as one of a test does
pytest.register_assert_rewrite(
    *(path.stem for path in (Path(__file__).parent / "support").iterdir())
)

import torch
from closed_form import CASES, make_tokenizer, write_models
from headless import CHROMIUM
from hub_cases import NAME
from hub_server import HubServer, running_hub
from huggingface_hub import constants
from hypothesis import settings
from marian_models import write_marian
from random_models import random_model
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner import script_cache
from streamlit.testing.v1 import local_script_runner

from transformer.hub import machine
from transformer.hub.settings import Hub
from transformer.text.tokenizer import Tokenizer
from transformer.translator import Translator, load_translator

torch.set_num_threads(1)
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.load_profile("same")

# what the programs of whoever runs the tests keep on this machine is none of theirs
os.environ.pop(machine.OLLAMA_VARIABLE, None)
machine.OLLAMA_FOLDERS = machine.LM_STUDIO_FOLDERS = ()

MOST_WORKERS = 4
"""Each worker has an app and a browser of its own: about 1.5 GB."""


SLOW = ("tests/pages/", "tests/browser/")
"""Folders of slower and slower tests."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than processors, since browsers wait; none for one processor, or if files are
    named."""
    may_use = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    named = any(Path(argument.partition("::")[0]).is_file() for argument in config.args)
    return 0 if named or len(may_use) == 1 else min(len(may_use) + 1, MOST_WORKERS)


def pytest_report_header() -> str:
    """Says which browser is driven: the full Chromium takes longer than the headless shell."""
    return f"browser tests drive {CHROMIUM or 'nothing: Chromium is not on the PATH'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the browser tests; without Chromium they are skipped with the reason, but not in CI.

    Quick tests run first, so that most failures show soon: those of functions, of pages, of a
    browser. Those marked nightly run only if `-m` names them, or if they are named themselves.
    """
    if "nightly" not in config.option.markexpr and not any(
        "::" in argument for argument in config.args
    ):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
    items.sort(
        key=lambda item: next((i for i, slow in enumerate(SLOW, start=1) if slow in item.nodeid), 0)
    )
    skipped = CHROMIUM is None and not os.environ.get("CI")
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.browser)
        if skipped and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason="Chromium is not on the PATH"))


def pytest_collection_finish() -> None:
    """Keeps what is loaded by now out of garbage collection: Streamlit collects after every run of
    a page."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _quick_pages() -> Iterator[None]:
    """Spares what takes nearly half of the time of a page in `AppTest`.

    It looks for components in all installed packages and compiles the scripts whenever a page runs,
    and asks every millisecond whether the page has run. Here it looks and compiles once, and waits.
    """
    with pytest.MonkeyPatch.context() as patch:
        found = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", found)
        compiled = script_cache.ScriptCache()
        patch.setattr(local_script_runner, "ScriptCache", lambda: compiled)
        asks = local_script_runner.require_widgets_deltas
        patch.setattr(local_script_runner, "require_widgets_deltas", partial(_waited, asks))
        yield


def _waited(asks: Callable[..., None], runner: Any, timeout: float) -> None:
    """Waits until the page has run, so that ``asks`` needs to look only once."""
    runner._script_thread.join(timeout)
    asks(runner, timeout)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A real vocabulary: number words, and bytes for everything else."""
    return make_tokenizer()


@pytest.fixture(scope="session")
def closed_form_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoint directories by the names of ``closed_form.CASES``."""
    return write_models(tmp_path_factory.mktemp("closed-form"))


@pytest.fixture(scope="session", params=CASES)
def solved(request: pytest.FixtureRequest, closed_form_models: dict[str, Path]) -> Translator:
    """Each closed-form model, opened as a visitor would; its name is a key of
    ``closed_form.CASES``."""
    return load_translator(closed_form_models[request.param])


@pytest.fixture(scope="session")
def translator(tokenizer: Tokenizer) -> Translator:
    """A random pre-norm model with a real vocabulary: fluent in nothing, but every weight
    matters."""
    model = random_model(
        vocab_size=tokenizer.vocab_size, norm="pre", tied_embeddings=False, trained_length=30
    )
    return Translator(model, tokenizer, name="random")


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the Marian model that ``server`` has; never changed."""
    return write_marian(tmp_path_factory.mktemp("original"))


@pytest.fixture
def server(original: Path) -> Iterator[HubServer]:
    """A Hub with one model."""
    with running_hub() as server:
        server.add(NAME, original)
        yield server


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client asks to sleep; it does not sleep."""
    wanted: list[float] = []
    monkeypatch.setattr(time, "sleep", wanted.append)
    return wanted


@pytest.fixture
def hub(
    server: HubServer, naps: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Hub:
    """The local Hub, which is also the one of the environment; nothing waits longer than needed."""
    hub = Hub(endpoint=server.url, cache_dir=tmp_path / "cache", token=False, timeout=2.0)
    monkeypatch.setattr(Hub, "from_environment", classmethod(lambda cls: hub))
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2**14)
    return hub
