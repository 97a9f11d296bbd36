"""Measures the cost of long texts: bytes per view, click times, memory; opens every page at 1,024 tokens.

    python benchmarks/scale.py [--models DIR] [--repeats 5] [--pages NAME ...]

First, a browser with an empty cache opens every page of the menu with a text of 256 tokens and a forced
translation of 256 tokens. All messages, deflated, and HTTP responses are counted, except scripts, styles
and fonts. Second, the times of a step, of a click on a cell and of a change of head are compared with those
for 32 tokens. Third, every page opens with 1,024 tokens, and its notes about the part that it draws are
printed. Last, the memory of the server is printed.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, Response, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import ARGUMENTS, CHROMIUM, READY, milliseconds, process, settle, steps  # noqa: E402
from benchmarks.wire import Wire  # noqa: E402

if TYPE_CHECKING:
    from transformer import Translator

MOST_BYTES = 1_000_000
MOST_RATIO = 2.0
STATIC = {"script", "stylesheet", "font"}
SOURCE = ("the", "cat", "was", "tired", "and", "I", "know", "that")
TARGET = ("die", "Katze", "war", "alt", "und", "ich", "war", "da")
OTHER_VIEWS = {
    "pages/encoder_self_attention.py": ({"show": "lines"}, {"show": "strongest"}),
    "pages/what_if.py": ({"view": "compare", "against": "untrained-1"},),
    "pages/decoder_self_attention.py": ({"view": "trained"},),
    "pages/cross_attention.py": ({"show": "lines", "links": "mass-100"}, {"view": "alignment"}),
    "pages/inside_a_head.py": ({"kind": "encoder", "what_if": "pair"},),
    "pages/masks.py": ({"mask": "zero"}, {"view": "batch"}),
    "pages/positions.py": ({"view": "sentence"}, {"view": "together"}),
    "pages/beam_search.py": ({"view": "sampling"},),
    "pages/training.py": ({"view": "loss"}, {"view": "schedule"}),
}
"""Query parameters of views that a page shows on demand."""
SAYS = re.compile(
    r"queries \d+–\d+|keys \d+–\d+|words \d+–\d+|maximum over [^·.]*|tokens? \d+–\d+|window|pooled"
    r"|the first [\d,]+|at most [\d,]+ [^·.]*|positions \d+ ?[–-] ?\d+",
)


@dataclass
class Traffic:
    """Bytes that a page received and sent."""

    wire: Wire
    responses: int = 0
    waiting: list[Response] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Starts counting responses."""
        page.on("response", lambda response: self.waiting.append(response))

    def total(self) -> int:
        """Total number of bytes received and sent."""
        for response in self.waiting:
            if response.request.resource_type not in STATIC and response.status == 200:
                self.responses += len(response.body())
        self.waiting.clear()
        return self.wire.received + self.wire.sent + self.responses


def text_of(model: Translator, words: tuple[str, ...], tokens: int) -> str:
    """A text that a model splits into the given number of tokens, with `</s>`."""
    text = ""
    for i in range(tokens):
        longer = f"{text} {words[i % len(words)]}".strip()
        if len(model.tokenizer.encode(longer)) + 1 > tokens:
            break
        text = longer
    return text


def address(url: str, page: str, query: dict[str, object]) -> str:
    """The address of a page with its state."""
    path = page.removeprefix("pages/").removesuffix(".py")
    return f"{url}/{'' if page == 'app.py' else path}?{urlencode(query)}"


def visit(browser: Browser, url: str) -> tuple[Page, Traffic]:
    """Opens an address with an empty cache and waits until the app is idle."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    traffic = Traffic(Wire(page))
    traffic.watch(page)
    page.goto(url)
    rest(page, traffic)
    return page, traffic


def rest(page: Page, traffic: Traffic) -> None:
    """Waits until the script has run, the view is drawn, and no frame has arrived for a while."""
    page.wait_for_function(
        "document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'", timeout=300_000
    )
    if page.locator(".lv").count():
        page.wait_for_function(READY, timeout=120_000)
    before = -1
    while before != traffic.wire.received:
        before = traffic.wire.received
        page.wait_for_timeout(700)
    page.wait_for_function(
        "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'", timeout=300_000
    )


def measure_bytes(browser: Browser, url: str, pages: list[str], query: dict[str, object]) -> dict[str, int]:
    """Measures the bytes of every page, opened by a new visitor."""
    found = {}
    views = [(page, more) for page in pages for more in ({}, *OTHER_VIEWS.get(page, ()))]
    for path, more in views:
        name = " ".join([path.removeprefix("pages/").removesuffix(".py"), *more.values()])
        page, traffic = visit(browser, address(url, path, query | more))
        found[name] = traffic.total()
        verdict = "ok" if found[name] <= MOST_BYTES else "over"
        errors = page.locator(".stException").count()
        wire = traffic.wire
        parts = f"received {wire.received:>9,} · sent {wire.sent:>6,} · responses {traffic.responses:>7,}"
        print(
            f"{name:<34} {found[name]:>9,} bytes  ({parts})  {verdict}{'  EXCEPTION' * bool(errors)}",
            flush=True,
        )
        page.context.close()
    return found


def cell_clicks(page: Page, kind: str, count: int) -> list[float]:
    """Milliseconds from a click on a cell of a map to the next painted cursor."""
    taken = []
    for i in range(count):
        at = int(page.get_attribute(".lv", "data-painted") or 0)
        row = at + (1 if i % 2 == 0 else -1)
        box = page.evaluate(
            """([kind, row]) => {
              const sheet = document.querySelector(`[data-plot=${kind}] .lv-sheet`).getBoundingClientRect();
              const style = getComputedStyle(document.querySelector(`[data-plot=${kind}] .lv-sheet`));
              const rows = Number(style.getPropertyValue("--rows"));
              const first = Number(style.getPropertyValue("--row"));
              const columns = Number(style.getPropertyValue("--columns"));
              const x = sheet.left + 2.5 / columns * sheet.width;
              return [x, sheet.top + (first + row + .5) / rows * sheet.height];
            }""",
            [kind, row - at],
        )
        done = f"document.querySelector('.lv').dataset.painted === '{row}'"
        page.mouse.move(*box)
        page.wait_for_selector(f"[data-plot={kind}] .hoverlayer .hovertext", timeout=30_000)
        taken.append(milliseconds(page, "mousedown", done, lambda: press(page)))
        settle(page)
    return taken


def press(page: Page) -> None:
    """Clicks at the position of the mouse."""
    page.mouse.down()
    page.mouse.up()


def tile_clicks(page: Page, traffic: Traffic, kind: str, count: int) -> list[float]:
    """Milliseconds from a click on a tile of the overview to the drawn map of that head."""
    taken = []
    for i in range(count):
        box = page.locator("[data-plot=overview] .nsewdrag").first.bounding_box()
        assert box is not None
        title = page.inner_text(f"[data-plot={kind}] .lv-title b")
        page.mouse.move(5, 5)  # a click means the tile whose text is shown, which may still be the last one's
        page.wait_for_selector("[data-plot=overview] .hoverlayer .hovertext", state="detached")
        page.mouse.move(box["x"] + box["width"] * (0.06 + 0.125 * (i % 8)), box["y"] + box["height"] * 0.15)
        page.wait_for_selector("[data-plot=overview] .hoverlayer .hovertext", timeout=30_000)
        other = f"document.querySelector('[data-plot={kind}] .lv-title b').innerText !== {title!r}"
        taken.append(milliseconds(page, "mousedown", f"{other} && {READY}", lambda: press(page)))
        rest(page, traffic)
    return taken


def compare_clicks(
    browser: Browser, url: str, long: dict[str, object], short: dict[str, object], repeats: int
) -> None:
    """Compares steps, clicks on cells and changes of head between 256 and 32 tokens."""
    taken: dict[str, list[list[float]]] = {"a step": [], "a click on a cell": [], "another head": []}
    for query in (long, short):
        page, traffic = visit(browser, address(url, "app.py", query | {"step": 10, "source": 10}))
        taken["a step"].append(steps(page, repeats))
        taken["a click on a cell"].append(cell_clicks(page, "cross", repeats))
        page.context.close()
        page, traffic = visit(browser, address(url, "pages/cross_attention.py", query | {"step": 10}))
        taken["another head"].append(tile_clicks(page, traffic, "cross", repeats))
        page.context.close()
    for what, (ours, reference) in taken.items():
        a, b = statistics.median(ours), statistics.median(reference)
        print(
            f"{what:<34} 256 tokens {a:7.1f} ms  32 tokens {b:7.1f} ms  ratio {a / b:5.2f}  "
            f"at most {MOST_RATIO:g}  {'ok' if a / b <= MOST_RATIO else 'over'}",
            flush=True,
        )


def open_longest(browser: Browser, url: str, pages: list[str], query: dict[str, object]) -> None:
    """Opens every page at 1,024 tokens, and prints its notes about the part that it draws."""
    for name in pages:
        start = time.perf_counter()
        page, traffic = visit(browser, address(url, name, query))
        took, text = time.perf_counter() - start, page.inner_text(".stMain")
        says = list(dict.fromkeys(match.group() for match in SAYS.finditer(text)))
        errors = page.locator(".stException").count()
        verdict = "opens" if not errors else "EXCEPTION"
        print(
            f"{name:<34} {verdict} in {took:5.1f} s, {traffic.total():>9,} bytes, says: {says[:4]}",
            flush=True,
        )
        page.context.close()


def memory(process: int) -> float:
    """Resident memory of a process, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024  # type: ignore[union-attr]


def print_memory(model: Translator, sizes: tuple[int, ...]) -> None:
    """Prints the bytes that one kept translation holds."""
    from explorer.app.server.stores import MOST_BYTES as MOST_KEPT
    from explorer.app.server.stores import bytes_of

    for tokens in sizes:
        run = model.force(text_of(model, SOURCE, tokens), text_of(model, TARGET, tokens))
        each = bytes_of(run)
        print(
            f"{'one translation kept':<34} {tokens:>5} + {tokens} tokens: {each / 2**20:6.1f} MiB, "
            f"{each / (2 * tokens) / 1000:.1f} kB a token; at most {MOST_KEPT / 2**20:.0f} MiB are kept",
            flush=True,
        )


def main() -> None:
    """Runs all measurements."""
    from explorer.app.address import sitemap
    from transformer import load_translator

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, help="folder of models; by default the bundled models")
    parser.add_argument("--model", default="en-de")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pages", nargs="*", help="only pages whose path contains one of these words")
    parser.add_argument("--only", choices=["bytes", "clicks", "longest", "memory"])
    options = parser.parse_args()
    model = load_translator((options.models or ROOT / "assets" / "models") / options.model)
    pages = [sitemap.script(name) for name in sitemap.PAGES]
    if options.pages:
        pages = [page for page in pages if any(word in page for word in options.pages)]
    long, short, longest = (
        {"model": options.model, "text": text_of(model, SOURCE, n), "target": text_of(model, TARGET, n)}
        for n in (256, 32, 1024)
    )
    wanted = {options.only} if options.only else {"bytes", "clicks", "longest", "memory"}
    with sync_playwright() as playwright, process("app.py", options.models) as (url, number):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        if "bytes" in wanted:
            measure_bytes(browser, url, pages, long)
        if "clicks" in wanted:
            compare_clicks(browser, url, long, short, options.repeats)
        print(f"{'memory of the server':<34} {memory(number):7.0f} MiB after 256 tokens", flush=True)
        if "longest" in wanted:
            open_longest(browser, url, pages, longest)
        print(f"{'memory of the server':<34} {memory(number):7.0f} MiB at the end", flush=True)
        browser.close()
    if "memory" in wanted:
        print_memory(model, (32, 256, 1024))


if __name__ == "__main__":
    main()
