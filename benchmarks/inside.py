"""Measures a step of the cursor on the page "Inside a head": the time until its last figure shows the step.

    python benchmarks/inside.py [--models DIR] [--tokens 13] [--repeats 8]

One visitor presses the right arrow key; the clock runs in the browser, from the key press to the first frame
in which the last figure holds other numbers than before: with the weights on the screen, as the
page opens, and with the path of a query (`section=path`). A step is also taken on the bare page of
`benchmarks/bare_page.py` in turn, so that two versions of this project that were measured at different times
can be compared by their ratios to the same reference.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.app import (
    ARGUMENTS,
    BARE_READY,
    CHROMIUM,
    READY,
    bare_steps,
    milliseconds,
    sentence,
    server,
    settle,
    visit,
)
from benchmarks.wire import Wire

LAST = "() => [...document.querySelectorAll('.pic')].at(-1)?.dataset.drawn ?? ''"
"""How often the page's last figure was drawn; a figure whose numbers have not changed is not drawn again."""


def main() -> None:
    """Prints the median time of a step, its ratio to the bare page's, and the bytes received per step."""
    options = _options()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        with server("app.py", options.models) as url, server("benchmarks/bare_page.py", None) as bare:
            for section in ("weights", "path"):
                for kind in ("encoder", "decoder", "cross"):
                    _compare(browser, url, bare, kind, section, options)
        browser.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, help="folder of models; by default the bundled models")
    parser.add_argument("--model", default="en-de")
    parser.add_argument("--tokens", type=int, default=13, help="source tokens of the sentence, with </s>")
    parser.add_argument("--repeats", type=int, default=8)
    return parser.parse_args()


def _compare(
    browser: Browser, url: str, bare: str, kind: str, section: str, options: argparse.Namespace
) -> None:
    name, text = options.model, sentence(options.models, options.model, options.tokens)
    page = visit(browser, "about:blank")
    wire = Wire(page)
    place = {"model": name, "text": text, "kind": kind, "section": section, "step": 1, "source": 1}
    page.goto(f"{url}/inside_a_head?{urlencode(place)}")
    page.wait_for_function(READY, timeout=120_000)
    page.wait_for_function(f"({LAST})() !== ''", timeout=120_000)
    reference = visit(browser, f"{bare}/?tokens={options.tokens}")
    reference.wait_for_function(BARE_READY, timeout=120_000)
    settle(page)
    steps(page, 1)
    bare_steps(reference, 1)
    wire.clear()
    ours = steps(page, options.repeats)
    size = wire.received / options.repeats
    theirs = bare_steps(reference, options.repeats)
    _report(f"{kind}, {section}, {options.tokens} tokens", ours, theirs, size)
    page.context.close()
    reference.context.close()


def steps(page: Page, count: int) -> list[float]:
    """Milliseconds from each of several key presses until the last figure shows the step."""
    page.focus(".lv")
    taken = []
    for _ in range(count):
        page.evaluate(f"window.before = ({LAST})()")
        changed = f"(now => now && now !== window.before)(({LAST})())"
        taken.append(milliseconds(page, "keydown", changed, lambda: page.keyboard.press("ArrowRight")))
        settle(page)
    return taken


def _report(what: str, ours: list[float], theirs: list[float], size: float) -> None:
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{what:<30} {a:8.0f} ms  bare page {b:8.0f} ms  ratio {a / b:5.2f}  {size:8.0f} bytes", flush=True)


if __name__ == "__main__":
    main()
