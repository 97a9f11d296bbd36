"""A running app with small models, and Chromium to look at it."""

import functools
import http.server
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gated_app
import pytest
from app_pages import write_language_model
from closed_form import CASES
from headless import CHROMIUM

from explorer.app.address import sitemap
from explorer.linked import served
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"
SCRIPTS = served.scripts().name
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Pages are short-lived: optimising their scripts takes a fifth of the time of these tests.
    "--js-flags=--no-opt --no-maglev",
]
OWN_FILE = re.compile(rf'File "{re.escape(str(ROOT))}/(app\.py|pages/|explorer/|transformer/)')
PATIENCE = 90_000
STILL = """addEventListener("DOMContentLoaded", () => {
  const sheet = new CSSStyleSheet();
  const still = "animation: none !important; transition: none !important";
  sheet.replaceSync(`:not(.lv *), ::before, ::after { ${still} }`);
  document.adoptedStyleSheets.push(sheet);
})"""
"""Only a linked view may move: without a graphics card, each frame that fades costs the
processor."""
VIEWPORT = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}
LAID_OUT = """document.querySelector(".stSidebar").getBoundingClientRect().left >= 0
  && [...document.querySelectorAll(".stPlotlyChart")].every((chart) => {
    const { width } = chart.querySelector(".js-plotly-plot")._fullLayout;
    return Math.abs(width - chart.clientWidth) < 1;
  })"""
"""The menu is back beside the page, and every figure is as wide as its place."""


@dataclass
class Visitor:
    """One person at a page of a browser; errors of the page are collected."""

    page: Any
    base: str
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", self._fails)
        self.page.on("dialog", self._asks)

    def _fails(self, error: object) -> None:
        self.errors.append(str(error))

    def _asks(self, dialog: object) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def leave(self) -> None:
        """Empties the page and restores its settings, for the next visitor."""
        page = self.page
        page.unroute_all()
        page.evaluate("sessionStorage.clear(), localStorage.clear()")
        page.goto("about:blank")
        page.set_viewport_size(VIEWPORT)
        page.emulate_media(color_scheme="null", reduced_motion="null", media="null")
        page.remove_listener("pageerror", self._fails)
        page.remove_listener("dialog", self._asks)

    def open(self, path: str = "", **params: str) -> None:
        """Goes to a page and waits for its picture."""
        self.page.goto(f"{self.base}/{path}?{urlencode(params)}")
        self.ready()

    def go(self, path: str, ready: str, **params: str) -> None:
        """Goes to a page and waits for a JavaScript condition."""
        self.page.goto(f"{self.base}/{path}?{urlencode(params)}")
        self.until(ready)

    def rested(self) -> None:
        """Waits until the script of the page has ended."""
        self.until("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")

    def press(self, *keys: str) -> None:
        """Presses keys in the linked view."""
        self.page.focus(".lv")
        for key in keys:
            self.page.keyboard.press(key)

    def phone(self) -> None:
        """Makes the window as small as a phone's."""
        self.page.set_viewport_size(PHONE)

    def desk(self) -> None:
        """Makes the window of a phone as wide as usual again, and waits until all lies there.

        First the page is wide, then the menu comes back, at last the figures follow: until then, a
        click misses the mark that it is meant for.
        """
        self.page.set_viewport_size(VIEWPORT)
        self.until(LAID_OUT)

    def told(self, selector: str = ".stMain") -> str:
        """The text of an element, in one line."""
        return " ".join(self.page.inner_text(selector).split())

    def proved(self) -> None:
        """Waits until the audit of what is drawn is done."""
        badges = "[...document.querySelectorAll('.lv-badge')]"
        self.until(f"{badges}.every(badge => !badge.textContent.includes('checking'))")

    def ready(self) -> None:
        """Waits until every figure of the linked view is drawn."""
        self.page.wait_for_selector('.lv[data-ready="true"]', timeout=PATIENCE)

    def until(self, condition: str, argument: object = None) -> None:
        """Waits for a JavaScript condition; while an element that it reads is not there, it does
        not hold."""
        self.page.wait_for_function(patient(condition), arg=argument, timeout=PATIENCE)

    def read(self, script: str, argument: object = None) -> Any:
        """What JavaScript reads of the page, once the elements that it reads are there."""
        boxed = (
            f"(given) => {{ const value = ({patient(script)})(given); return value != null && {{ "
            f"value }} }}"
        )
        found = self.page.wait_for_function(boxed, arg=argument, timeout=PATIENCE)
        return found.json_value()["value"]

    def chips(self, side: str) -> list[str]:
        """The tokens of a strip, without indices and glosses."""
        script = (
            f"[...document.querySelectorAll('.lv-strip-{side} .lv-word')].map(e => "
            "e.firstChild.textContent)"
        )
        return self.page.evaluate(script)  # type: ignore[attr-defined, no-any-return]

    def count(self) -> str:
        """What the cursor says: `step 2 of 5`."""
        return str(self.page.inner_text(".lv-count"))

    def has(self, **params: str) -> None:
        """Waits until the address has these parameters."""
        condition = "given => { const own = new URLSearchParams(location.search);"
        condition += (
            " return Object.entries(given).every(([name, value]) => own.get(name) === value) }"
        )
        self.until(condition, params)

    def params(self) -> dict[str, str]:
        """The parameters of the address."""
        script = "Object.fromEntries(new URLSearchParams(location.search))"
        return self.page.evaluate(script)  # type: ignore[attr-defined, no-any-return]

    def link(self, page: str) -> Any:
        """A link to a page, in the menu or beside the heading."""
        if page == sitemap.HOME:
            return self.page.locator(".st-key-menu a").filter(has_text="Step by step")
        links = f":is(.st-key-menu, .st-key-beside) a[href^='{page}']"
        return self.page.locator(links).first

    def hover_text(self, plot: str, row: int, column: int) -> str:
        """What a map says of a cell under the pointer."""
        page = self.page
        page.mouse.move(5, 5)
        self.until("document.querySelectorAll('.hoverlayer .hovertext').length === 0")
        place = page.locator(f"[data-plot={plot}] .hoverlayer .hovertext").first
        for _ in range(PATIENCE // 1_000):  # a map drawn again says nothing until a hand moves
            x, y = self.centre(plot, row, column)
            for nudge in (0, 1):
                page.mouse.move(x + nudge, y)
            with suppress(playwright_api.TimeoutError):
                return " ".join(place.text_content(timeout=1_000).split())
        raise TimeoutError(f"The map {plot} says nothing of row {row}, column {column}.")

    def centre(self, plot: str, row: int, column: int) -> tuple[float, float]:
        """The middle of a cell of a map, in px of the page."""
        x, y = self.read(
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
    closed_form_models: dict[str, Path],
    translator: Translator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder of models as `train` leaves it: the closed-form ones and a random one."""
    folder = tmp_path_factory.mktemp("models")
    for name, path in closed_form_models.items():
        (folder / name).symlink_to(path)
    model = translator.model
    save_checkpoint(folder / "random", model.config, model.state_dict(), translator.tokenizer)
    write_language_model(folder, translator.tokenizer)
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Printed:
    """What a server prints, read as it comes.

    Attributes:
        lines: All lines so far.
        told: Set once the server said where it is, or ended.
        reader: Reads until the server ends.
    """

    def __init__(self, output: Iterable[str]) -> None:
        self.lines: list[str] = []
        self.told = threading.Event()
        self.reader = threading.Thread(target=self._read, args=(output,), daemon=True)
        self.reader.start()

    def _read(self, output: Iterable[str]) -> None:
        for line in output:
            self.lines.append(line)
            if "URL:" in line:
                self.told.set()
        self.told.set()

    @property
    def own_errors(self) -> list[str]:
        """Lines of tracebacks that name a file of this project.

        Streamlit prints a traceback of its own if a browser leaves while it is answered; that is no
        error.
        """
        return [line for line in self.lines if OWN_FILE.search(line)]

    def __str__(self) -> str:
        return "".join(self.lines)


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipe at which translations of ``HELD`` texts wait; what is written into it lets them all
    pass."""
    path = tmp_path_factory.mktemp("gate") / "gate"
    os.mkfifo(path)
    return path


@contextmanager
def serving(program: Sequence[str], **environment: str) -> Iterator[str]:
    """Runs the app, and yields its address; afterwards, no traceback may name a file of this
    project.

    Args:
        program: What starts Streamlit with the arguments that follow.
        environment: Variables besides those of the tests.
    """
    url = f"http://127.0.0.1:{(port := _free_port())}"
    command = [sys.executable, *program, "run", "app.py", "--server.headless", "true"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.fileWatcherType", "none"]
    variables = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        printed = Printed(server.stdout)
        try:
            assert printed.told.wait(PATIENCE / 1000), printed
            assert server.poll() is None, printed
            yield url
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE / 1000)
            printed.reader.join(20)
    assert not printed.own_errors, str(printed)


@pytest.fixture(scope="session")
def app(models: Path, gate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running app."""
    folders = {
        "TRANSFORMER_MODELS": str(models),
        "HF_HUB_CACHE": str(tmp_path_factory.mktemp("hub")),
    }
    with serving((gated_app.__file__, str(gate)), **folders) as url:
        yield url


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A profile for visitors who come one after the other: on disk, so that it keeps compiled
    scripts."""
    assert CHROMIUM is not None, (
        "Chromium is not installed, and CI must not skip the browser tests."
    )
    with playwright_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            args=ARGUMENTS,
            viewport=VIEWPORT,
        )
        context.add_init_script(STILL)
        yield context
        context.close()


@pytest.fixture(scope="session")
def chromium(profile: Any) -> object:
    """One browser for all tests."""
    return profile.browser


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def scripts_alone(chromium: Any) -> Iterator[object]:
    """A page of a server that has the scripts and nothing else."""
    handler = functools.partial(_Quiet, directory=STATIC)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/README.md")
        yield page
        page.close()
        server.shutdown()


@pytest.fixture(scope="module")
def call(scripts_alone: Any) -> Callable[..., Any]:
    """Calls a function of a script: `call("cursor.clamp", 7, 0, 5)`."""

    def called(name: str, *arguments: object) -> Any:
        module, function = name.split(".")
        (path,) = STATIC.glob(f"{SCRIPTS}/*/{module}.js")
        address = f"/{path.relative_to(STATIC)}"
        script = f"given => import('{address}').then(m => m.{function}(...given))"
        return scripts_alone.evaluate(script, list(arguments))

    return called


@pytest.fixture(scope="session")
def strangers() -> list[object]:
    """Pages of profiles that no visitor uses now."""
    return []


@pytest.fixture
def newcomer(app: str, chromium: Any, strangers: list[object]) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors, each with a profile of their own; any error in the page fails the test.

    Profiles without options are used again by later tests, empty: a new one would first compile the
    app. Those with an option serve one test; so a test that changes more than cookies and storage
    gives one.
    """
    taken, own = [], []

    def make(**options: object) -> Visitor:
        if options:
            own.append(Visitor(_page(chromium, **options), app))
            return own[-1]
        taken.append(Visitor(strangers.pop() if strangers else _page(chromium), app))
        return taken[-1]

    yield make
    for visitor in own:
        visitor.page.context.close()
    for visitor in taken:
        visitor.leave()
        visitor.page.context.clear_cookies()
        strangers.append(visitor.page)
    assert [error for visitor in (*own, *taken) for error in visitor.errors] == []


def _page(chromium: Any, **options: object) -> object:
    """An empty page of a new profile."""
    context = chromium.new_context(**{"viewport": VIEWPORT, **options})
    context.add_init_script(STILL)
    return context.new_page()


def shared_page(profile: Any) -> object:
    """The page of the shared profile."""
    return next(iter(profile.pages), None) or profile.new_page()


@pytest.fixture
def visitor(app: str, profile: Any) -> Iterator[Visitor]:
    """One visitor in the page of the shared profile; any error in the page fails the test.

    All these tests share one page, one after the other: a new page would start a process of its
    own, which takes twice as long to show the app.
    """
    visitor = Visitor(shared_page(profile), app)
    yield visitor
    visitor.leave()
    assert visitor.errors == []


def patient(script: str) -> str:
    """The script with null instead of an error where an element is just drawn again: null has no
    style."""
    return f"""(given) => {{
      try {{
        const found = ({script});
        return typeof found === "function" ? found(given) : found;
      }} catch (error) {{
        if (error instanceof TypeError) return null;
        throw error;
      }}
    }}"""


def box_of(place: Any) -> dict[str, float]:
    """Where an element of a page lies; one that is just being drawn again has no box, and is waited
    for."""
    for _ in range(100):
        place.wait_for(timeout=PATIENCE)
        if box := place.bounding_box():
            return box
    raise AssertionError(f"{place} stays without a box.")


def case_link(name: str, **params: str) -> dict[str, str]:
    """Parameters that open the sentence of a closed-form model."""
    return {"model": name, "text": CASES[name].sentence, **params}
