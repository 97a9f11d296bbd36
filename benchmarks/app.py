"""Measures how fast the app shows a picture, compared with bare Streamlit pages in the same run and browser.

    python benchmarks/app.py [--models DIR] [--model en-pt] [--repeats 5] [--opens 400]

Prints four groups of ratios: the first picture of a cold server and of a second visitor; the time from Enter
to a painted view; the time from a cursor step to a painted view at 13, 32 and 64 source tokens, with the
bytes received per step; and on Linux the processor time of a step once the server is aged, after each page
was opened once and then many times, with its memory.

The floor of the first picture is a bare page that draws the same three maps and imports no PyTorch; for
comparison, the same page with PyTorch. Servers find all modules compiled, as from the second start on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.wire import Wire  # noqa: E402

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]
READY = "document.querySelector('.lv')?.dataset.ready === 'true'"
BARE_READY = "document.querySelectorAll('.heatmaplayer image').length >= 3"
WATCH = """([event, condition]) => {
  window.took = null;
  document.addEventListener(event, () => {
    const start = performance.now(), done = new Function(`return ${condition}`);
    const look = () => { if (done()) window.took = performance.now() - start; else frame(); };
    const frame = () => requestAnimationFrame(() => setTimeout(look));
    frame();
  }, { once: true, capture: true });
}"""


BARE = "benchmarks/bare_page.py"
OWN_TEXT = "?text=We+like+music."
"""Address of a page that needs the model."""
_COMPILED = tempfile.TemporaryDirectory()


@contextmanager
def server(script: str, models: Path | None, *arguments: str) -> Iterator[str]:
    """Runs a Streamlit script, and yields its address as soon as it answers."""
    with process(script, models, *arguments) as (url, _):
        yield url


@contextmanager
def process(
    script: str, models: Path | None, *arguments: str, log: int | IO[str] = subprocess.DEVNULL
) -> Iterator[tuple[str, int]]:
    """Like `server`, and yields the id of the process too; it may write a log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    environment = os.environ | ({"TRANSFORMER_MODELS": str(models)} if models else {})
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": _COMPILED.name}
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1", "--", *arguments]
    running = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        while not _answers(url):
            time.sleep(0.05)
        yield url, running.pid
    finally:
        running.terminate()
        running.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def visit(browser: Browser, url: str) -> Page:
    """A page of a new visitor with an empty cache."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(url)
    return page


def seconds_to(browser: Browser, url: str, ready: str) -> float:
    """Seconds from opening an address to its first picture."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_function(ready, timeout=120_000)
    took = time.perf_counter() - start
    page.context.close()
    return took


def first_pictures(
    browser: Browser, script: str, models: Path | None, ready: str, *arguments: str
) -> tuple[float, float]:
    """Seconds to the picture: for the first visitor of a cold server, and once it has the model."""
    with server(script, models, *arguments) as url:
        first = seconds_to(browser, url, ready)
        seconds_to(browser, f"{url}/{OWN_TEXT}", ready)
        return first, seconds_to(browser, url, ready)


def milliseconds(page: Page, event: str, condition: str, act: Callable[[], None]) -> float:
    """Milliseconds from an event in the browser to the end of the first frame that meets a condition."""
    page.evaluate(WATCH, [event, condition])
    act()
    page.wait_for_function("window.took", timeout=60_000)
    took: float = page.evaluate("window.took")
    return took


def enter(page: Page, label: str, text: str, condition: str) -> float:
    """Types a text and measures the milliseconds from Enter to a painted view."""
    box = page.get_by_label(label)
    box.fill(text)
    took = milliseconds(page, "keydown", condition, lambda: box.press("Enter"))
    settle(page)
    return took


def settle(page: Page) -> None:
    """Waits until the server is idle."""
    page.wait_for_function("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")
    page.wait_for_timeout(150)


def sentence(models: Path | None, name: str, tokens: int) -> str:
    """A text of the given number of a model's tokens, with `</s>`."""
    from transformer import load_translator

    translator = load_translator((models or ROOT / "assets" / "models") / name)
    words = ("the", "cat", "was", "tired", "and", "I", "know", "that")
    text = ""
    for i in range(tokens):
        longer = f"{text} {words[i % len(words)]}".strip()
        if len(translator.ids(longer)) + 1 > tokens:
            break
        text = longer
    return text


def steps(page: Page, count: int) -> list[float]:
    """Milliseconds of each of several cursor steps."""
    page.focus(".lv")
    taken = []
    for _ in range(count):
        at = int(page.get_attribute(".lv", "data-painted") or 0)
        condition = f"document.querySelector('.lv').dataset.painted === '{at + 1}'"
        taken.append(milliseconds(page, "keydown", condition, lambda: page.keyboard.press("ArrowRight")))
        settle(page)
    return taken


def bare_steps(page: Page, count: int) -> list[float]:
    """Milliseconds of each of several steps of the bare page."""
    taken = []
    for step in range(1, count + 1):
        done = titled(f"e.textContent === 'one {step}'")
        taken.append(
            milliseconds(page, "click", done, lambda: page.get_by_role("button", name="next").click())
        )
        settle(page)
    return taken


def titled(condition: str) -> str:
    """A JavaScript condition: the titles of all three bare maps meet ``condition``."""
    return f"[...document.querySelectorAll('.gtitle')].filter(e => {condition}).length === 3"


def report(what: str, ours: list[float], reference: list[float], unit: str, limit: float) -> None:
    """Prints medians and their ratio."""
    a, b = statistics.median(ours), statistics.median(reference)
    verdict = "ok" if a / b <= limit else "over"
    times = f"{a:8.2f} {unit}  reference {b:8.2f} {unit}"
    print(f"{what:<34} {times}  ratio {a / b:5.2f}  at most {limit:g}  {verdict}", flush=True)


def compare_first(browser: Browser, models: Path | None, repeats: int) -> None:
    """Compares the first picture of a cold server, and that of a second visitor."""
    pages: dict[str, Callable[[], tuple[float, float]]] = {
        "a bare page": lambda: first_pictures(browser, BARE, None, BARE_READY),
        "with PyTorch": lambda: first_pictures(browser, BARE, None, BARE_READY, "torch"),
        "the app": lambda: first_pictures(browser, "app.py", models, READY),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in pages}
    for round_number in range(repeats + 1):
        for name, page in pages.items():
            seconds = page()
            if round_number:  # the first round compiles
                taken[name].append(seconds)
    for i, what in enumerate(("first picture, cold server", "first picture, second visitor")):
        ours, floor, torch = (
            [both[i] for both in taken[name]] for name in ("the app", "a bare page", "with PyTorch")
        )
        report(what, ours, floor, "s", 1.15)
        report("  the reference imports PyTorch", ours, torch, "s", 1.15)


def compare_enter(browser: Browser, url: str, bare: str, name: str, repeats: int) -> None:
    """Compares the time from Enter to a painted view."""
    page, reference = visit(browser, f"{url}/?model={name}"), visit(browser, bare)
    page.wait_for_function(READY, timeout=60_000)
    reference.wait_for_function(BARE_READY, timeout=60_000)
    ours, theirs = [], []
    for i in range(repeats):
        word = ("I", "We", "They", "She", "He", "You", "It")[i % 7]
        text = f"{word} saw a new house in the city last year."
        painted = f"{READY} && document.querySelector('.lv-strip-source .lv-word').textContent === '{word}'"
        ours.append(enter(page, "Sentence to translate", text, painted))
        done = titled(f"e.textContent.startsWith('{text}')")
        theirs.append(enter(reference, "Sentence", text, done))
    report("Enter to painted", ours, theirs, "ms", 2)


def compare_steps(
    browser: Browser, url: str, bare: str, models: Path | None, name: str, tokens: int, repeats: int
) -> None:
    """Compares the time from a cursor step to a painted view, and counts the bytes received."""
    text = sentence(models, name, tokens)
    page = visit(browser, "about:blank")
    wire = Wire(page)
    page.goto(f"{url}/?{urlencode({'model': name, 'text': text, 'step': 1})}")
    page.wait_for_function(READY, timeout=60_000)
    settle(page)
    wire.clear()
    ours = steps(page, repeats)
    size = wire.received / repeats
    reference = visit(browser, f"{bare}/?tokens={tokens}")
    reference.wait_for_function(BARE_READY, timeout=60_000)
    report(f"a step to painted, {tokens} source tokens", ours, bare_steps(reference, repeats), "ms", 0.2)
    print(f"{'':<34} {size:8.0f} bytes received per step, at most 1000", flush=True)


def compare_pictures(browser: Browser, models: Path | None, name: str, repeats: int) -> None:
    """Compares first pictures, Enter and steps with the bare page."""
    compare_first(browser, models, repeats)
    with server("app.py", models) as url, server(BARE, None) as bare:
        compare_enter(browser, url, bare, name, repeats)
        for tokens in (13, 32, 64):
            compare_steps(browser, url, bare, models, name, tokens, repeats)


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """MB of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def step_cost(browser: Browser, url: str, pid: int, repeats: int) -> float:
    """Milliseconds of processor time of a step, over many steps to and fro."""
    page = visit(browser, f"{url}/?text=We+like+new+music.&step=1")
    page.wait_for_function(READY, timeout=60_000)
    page.focus(".lv")
    settle(page)
    page.wait_for_timeout(5_000)  # whatever the server does once it is left alone
    before = processor(pid)
    for i in range(repeats):
        at = 2 - i % 2
        page.keyboard.press("ArrowRight" if at == 2 else "ArrowLeft")
        page.wait_for_function(f"document.querySelector('.lv').dataset.painted === '{at - 1}'")
        settle(page)
    took = 1000 * (processor(pid) - before) / repeats
    page.context.close()
    return took


def compare_age(browser: Browser, models: Path | None, opens: int, repeats: int) -> None:
    """Compares a step of an aged server with one of the fresh server, and prints its memory on the way."""
    addresses = ["", *(path.stem for path in sorted((ROOT / "pages").glob("*.py")))]
    with process("app.py", models) as (url, pid):
        fresh = [step_cost(browser, url, pid, repeats)]
        for number in range(opens):
            page = visit(browser, f"{url}/{addresses[number % len(addresses)]}")
            page.wait_for_selector(".stApp[data-test-script-state=notRunning] h1", timeout=120_000)
            page.context.close()
            done = number + 1
            if done == len(addresses) or done == opens:
                cost = [step_cost(browser, url, pid, repeats)]
                report(f"processor time of a step, {done} pages", cost, fresh, "ms", 1.5)
            if done % 100 == 0 or done == len(addresses):
                print(f"{'':<34} {resident(pid):8.0f} MB after {done} pages were opened", flush=True)


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, help="folder of models; by default the bundled models")
    parser.add_argument("--model", default="en-pt", help="the model that translates and takes steps")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--opens", type=int, default=400, help="pages to open until the server is aged")
    parser.add_argument("--age", action="store_true", help="only compare the aged server")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        if Path("/proc/self/stat").exists():
            compare_age(browser, options.models, options.opens, 10 * options.repeats)
        if not options.age:
            compare_pictures(browser, options.models, options.model, options.repeats)
        browser.close()


if __name__ == "__main__":
    main()
