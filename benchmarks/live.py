"""Measures a page in which the model runs in the browser, beside Python on one core in the same run.

    python benchmarks/live.py [--model assets/models/en-de] [--repeats 9]

Prints the page's size, the time from opening the file to a compared engine, the memory of its process,
and for sentences of about 9 and 33 tokens the time of a token and of the whole sentence in Chromium, with
the SIMD kernel and in plain JavaScript, and from Enter to the painted view. The reference is the package's
translation without capture, in one thread; the fastest of all repeats counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import ARGUMENTS, CHROMIUM  # noqa: E402
from explorer import live  # noqa: E402
from transformer import Translator, load_translator  # noqa: E402

SHORT = "He lives in a big white house."
LONG = (
    "The committee decided on Tuesday that the new bridge across the river would not be opened before "
    "the end of the summer, because several parts had to be tested again."
)
ASK = """async (text) => {
  const [form, said] = [document.querySelector("#ask"), document.querySelector("#status")];
  form.elements.text.value = text;
  said.textContent = "";
  const start = performance.now();
  form.requestSubmit();
  const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  while (!/^\\d+ tokens/.test(said.textContent)) await frame();
  while (document.querySelector(".lv").dataset.ready !== "true") await frame();
  return [performance.now() - start, ...said.textContent.match(/\\d+/g).slice(0, 2).map(Number)];
}"""
READY = "document.documentElement.dataset.engine === 'ready'"


def opened(browser: Browser, path: Path) -> tuple[Page, float]:
    """A page with a compared engine, and the seconds until then."""
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(path.as_uri())
    while not page.evaluate(READY):
        time.sleep(0.01)
    return page, time.perf_counter() - start


def memory(browser: Browser) -> float:
    """MB of the largest process that draws pages, shared memory in parts."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for each in found:
        if each["type"] == "renderer":
            lines = Path(f"/proc/{each['id']}/smaps_rollup").read_text().splitlines()
            sizes += [int(line.split()[1]) / 1e3 for line in lines if line.startswith("Pss:")]
    return max(sizes)


def fastest(repeats: int, run: Callable[[], float]) -> float:
    return min(run() for _ in range(repeats))


def in_python(model: Translator, text: str, repeats: int) -> tuple[float, int]:
    """Milliseconds and steps of a sentence."""

    def run() -> float:
        start = time.perf_counter()
        model.translate(text, capture=False)
        return 1e3 * (time.perf_counter() - start)

    return fastest(repeats, run), len(model.translate(text).steps)


def measure(browser: Browser, path: Path, model: Translator, name: str, repeats: int) -> None:
    page, ready = opened(browser, path)
    print(f"{name}: ready and compared in {ready:.2f} s, {memory(browser):.0f} MB")
    for text in (SHORT, LONG):
        python, steps = in_python(model, text, repeats)
        page.evaluate(ASK, text)
        answers = [page.evaluate(ASK, text) for _ in range(repeats)]
        painted, own = min(each[0] for each in answers), min(each[2] for each in answers)
        print(
            f"  {len(model.ids(text)) + 1} → {steps} tokens: {own:.0f} ms in the browser with every head, "
            f"{own / steps:.1f} ms a token; Python {python:.0f} ms, {python / steps:.1f} a token: "
            f"× {own / python:.2f}; painted {painted:.0f} ms after Enter"
        )
    page.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=ROOT / "assets/models/en-de", metavar="DIR")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load_translator(arguments.model, "cpu")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = live(arguments.model)
        print(f"{arguments.model.name}: {len(page.encode()) / 1e6:.2f} MB")
        fast, plain = Path(folder) / "live.html", Path(folder) / "plain.html"
        fast.write_text(page, "utf-8")
        plain.write_text(page.replace("&#x27;wasm-unsafe-eval&#x27;", ""), "utf-8")
        for path, name in ((fast, "SIMD kernel"), (plain, "plain JavaScript")):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            measure(browser, path, model, name, arguments.repeats)
            browser.close()


if __name__ == "__main__":
    main()
