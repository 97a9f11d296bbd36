"""A running app with small models, and Chromium to look at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from closed_form import CASES
from hub_server import HubServer, running_hub

from transformer.storage.directory import save_checkpoint
from transformer.translate.translator import Translator

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 90_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, where there is no browser."""
    if CHROMIUM is None:
        for item in items:
            if "browser" in Path(item.fspath).parts:
                item.add_marker(pytest.mark.skip(reason="chromium is not installed"))


@dataclass
class Visitor:
    """One person with a browser of their own."""

    page: object
    base: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str = "", **params: str) -> None:
        """Goes to a page and waits for its picture."""
        self.page.goto(f"{self.base}/{path}?{urlencode(params)}")  # type: ignore[attr-defined]
        self.ready()

    def ready(self) -> None:
        """Waits until every figure of the linked view is drawn."""
        self.page.wait_for_selector('.lv[data-ready="true"]', timeout=PATIENCE)  # type: ignore[attr-defined]

    def until(self, condition: str, argument: object = None) -> None:
        """Waits for a JavaScript condition."""
        self.page.wait_for_function(condition, arg=argument, timeout=PATIENCE)  # type: ignore[attr-defined]

    def chips(self, side: str) -> list[str]:
        """The tokens of a strip, without indices and glosses."""
        script = (
            f"[...document.querySelectorAll('.lv-strip-{side} .lv-word')].map(e => e.firstChild.textContent)"
        )
        return self.page.evaluate(script)  # type: ignore[attr-defined, no-any-return]

    def count(self) -> str:
        """What the cursor says: `step 2 of 5`."""
        return str(self.page.inner_text(".lv-count"))  # type: ignore[attr-defined]

    def params(self) -> dict[str, str]:
        """The parameters of the address."""
        script = "Object.fromEntries(new URLSearchParams(location.search))"
        return self.page.evaluate(script)  # type: ignore[attr-defined, no-any-return]

    def centre(self, plot: str, row: int, column: int) -> tuple[float, float]:
        """The middle of a cell of a map, in px of the page."""
        x, y = self.page.evaluate(  # type: ignore[attr-defined]
            """([plot, row, column]) => {
              const sheet = document.querySelector(`[data-plot=${plot}] .lv-sheet`);
              const box = sheet.getBoundingClientRect(), style = getComputedStyle(sheet);
              const [rows, columns] = ["--rows", "--columns"].map(n => Number(style.getPropertyValue(n)));
              const [x, y] = [(column + .5) / columns, (row + .5) / rows];
              return [box.left + x * box.width, box.top + y * box.height];
            }""",
            [plot, row, column],
        )
        return x, y


@pytest.fixture(scope="session")
def models(
    closed_form_models: dict[str, Path], translator: Translator, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder of models as `train` leaves it: the closed-form ones and a random one."""
    folder = tmp_path_factory.mktemp("models")
    for name, path in closed_form_models.items():
        (folder / name).symlink_to(path)
    model = translator.model
    save_checkpoint(folder / "random", model.config, model.state_dict(), translator.tokenizer)
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def hub(closed_form_models: dict[str, Path]) -> Iterator[HubServer]:
    """A Hub with one model, the only one that the app can reach."""
    with running_hub() as server:
        server.add("user/reverse", closed_form_models["reverse"])
        yield server


@pytest.fixture(scope="session")
def app(models: Path, hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running app."""
    url = f"http://127.0.0.1:{(port := _free_port())}"
    log = tmp_path_factory.mktemp("log") / "app.log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.fileWatcherType", "none"]
    environment = {**os.environ, "TRANSFORMER_MODELS": str(models), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path_factory.mktemp("hub"))}
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    deadline = time.monotonic() + 60
    while not _answers(url):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
    yield url
    server.terminate()
    server.wait(timeout=20)
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """One browser for all tests."""
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def newcomer(app: str, chromium: object) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors, each with a context of their own; any error in the page fails the test."""
    contexts, visitors = [], []

    def make(**options: object) -> Visitor:
        context = chromium.new_context(viewport={"width": 1400, "height": 900}, **options)  # type: ignore[attr-defined]
        page = context.new_page()
        visitor = Visitor(page, app)
        page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        page.on("dialog", lambda dialog: visitor.errors.append(f"dialog: {dialog.message}"))
        contexts.append(context)
        visitors.append(visitor)
        return visitor

    yield make
    for context in contexts:
        context.close()
    assert [error for visitor in visitors for error in visitor.errors] == []


@pytest.fixture
def visitor(newcomer: Callable[..., Visitor]) -> Visitor:
    """One visitor."""
    return newcomer()


def case_link(name: str, **params: str) -> dict[str, str]:
    """Parameters that open the sentence of a closed-form model."""
    return {"model": name, "text": CASES[name].sentence, **params}
