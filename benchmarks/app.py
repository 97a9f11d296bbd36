"""The app in a browser beside a bare Streamlit page: pictures, sentences, steps, long texts, files,
age."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode, urlsplit

from benchmarks.browser import (
    BARE,
    BARE_READY,
    READY,
    RESTS,
    Wire,
    chromium,
    compare,
    enter,
    milliseconds,
    proxy,
    served,
    settle,
    steps,
    visit,
)
from benchmarks.timing import MODELS, TARGET, Model, Repeats, Tokens, text_of
from explorer.app.address import sitemap

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

OWN_TEXT = "?text=We+like+new+music."
WORDS = ("I", "We", "They", "She", "He", "You", "It")
ENDS = (
    "saw a new house in the city last year",
    "sold the old car in the village this week",
    "found a small dog in the garden this morning",
    "bought a red book in the market last month",
)
SENTENCES = tuple(f"{word} {end}" for end in ENDS for word in WORDS)
"""Texts of about as many tokens, none of which a server has translated before: so many rounds can
be measured."""
LAST = "() => [...document.querySelectorAll('.pic')].at(-1)?.dataset.drawn ?? ''"
"""How often the page's last figure was drawn; a figure whose numbers have not changed is not drawn
again."""
STATIC = {"script", "stylesheet", "font"}
MOST_BYTES = 1_000_000
OTHER_VIEWS: dict[str, tuple[dict[str, str], ...]] = {
    "encoder_self_attention": ({"show": "lines"}, {"show": "strongest"}),
    "what_if": ({"view": "compare", "against": "untrained-1"},),
    "decoder_self_attention": ({"view": "trained"},),
    "cross_attention": ({"show": "lines", "links": "mass-100"}, {"view": "alignment"}),
    "inside_a_head": ({"kind": "encoder", "what_if": "hard"},),
    "masks": ({"mask": "zero"}, {"view": "batch"}),
    "positions": ({"view": "sentence"}, {"view": "together"}),
    "beam_search": ({"view": "sampling"},),
    "training": ({"view": "loss"}, {"view": "schedule"}),
}
"""What a page shows on demand."""
SAYS = re.compile(
    r"queries \d+–\d+|keys \d+–\d+|words \d+–\d+|maximum over [^·.]*|tokens? \d+–\d+|window|pooled"
    r"|the first [\d,]+|at most [\d,]+ [^·.]*|positions \d+ ?[–-] ?\d+",
)
CELL = """row => {
  const sheet = document.querySelector("[data-plot=cross] .lv-sheet");
  const box = sheet.getBoundingClientRect();
  const [rows, first, columns] = ["--rows", "--row", "--columns"].map(
    (name) => Number(getComputedStyle(sheet).getPropertyValue(name)));
  return [box.left + 2.5 / columns * box.width, box.top + (first + row + .5) / rows * box.height];
}"""
"""The middle of a cell some rows from the cursor."""


def app(*, model: Model = "en-pt", repeats: Repeats = 5) -> int:
    """Time to the first picture, from Enter and of a step, beside a bare page with the same
    maps."""
    from transformer import load_translator

    with chromium() as browser:
        pages: dict[str, Callable[[], tuple[float, float]]] = {
            "a bare page": lambda: _first_pictures(browser, BARE, BARE_READY),
            "with PyTorch": lambda: _first_pictures(browser, BARE, BARE_READY, "torch"),
            "the app": lambda: _first_pictures(browser, "app.py", READY),
        }
        rounds = [{name: page() for name, page in pages.items()} for _ in range(repeats + 1)][1:]
        for i, what in enumerate(("first picture, cold server", "first picture, second visitor")):
            seconds = {name: [pictures[name][i] for pictures in rounds] for name in pages}
            for name in ("with PyTorch", "a bare page"):
                compare(what, seconds["the app"], seconds[name], "s", 1.15, named=name)
        texts = {n: text_of(load_translator(MODELS / model), n) for n in (13, 32, 64)}
        with served() as there, served(BARE) as bare:
            page = visit(browser, f"{there.url}/?model={model}", READY)
            reference = visit(browser, bare.url, BARE_READY)
            _compare_enter(page, reference, repeats)
            _compare_models(browser, there.url, repeats)
            for tokens, text in texts.items():
                reference = visit(browser, f"{bare.url}/?tokens={tokens}", BARE_READY)
                place = urlencode({"model": model, "text": text, "step": 1})
                page, wire = _watched(browser, f"{there.url}/?{place}")
                ours = steps(page, repeats)
                theirs = _bare_steps(reference, repeats)
                compare(
                    f"a step, {tokens} source tokens", ours, theirs, "ms", 0.2, named="a bare page"
                )
                print(
                    f"{'':<40} {wire.received / repeats:8.0f} bytes received a step, at most 1000"
                )
    return 0


def _compare_enter(page: Page, reference: Page, repeats: int) -> None:
    """From Enter in the field of the sentence to the new picture, beside a bare page."""
    ours = []
    theirs = []
    for i in range(repeats):
        text = f"{SENTENCES[i]}."
        painted = _begins(".lv-strip-source .lv-word", text)
        ours.append(enter(page, "Sentence to translate", text, f"{READY} && {painted}"))
        titled = _titled(f"e.textContent.startsWith('{text}')")
        theirs.append(enter(reference, "Sentence", text, titled))
    compare("Enter to painted", ours, theirs, "ms", 2, named="a bare page")


def _begins(first: str, text: str) -> str:
    """Whether a strip, by the selector of its first word, begins as a text does."""
    word, *_ = text.split()
    return f"document.querySelector('{first}').textContent === '{word}'"


CONTINUES, TRANSLATES = "language/lm-en", "en-de"
"""A bundled model that continues texts, and one of its size that translates."""


def _compare_models(browser: Browser, url: str, repeats: int) -> None:
    """From Enter to the new picture, and the bytes of it, with a model that continues a text beside
    one that translates it."""
    times: dict[str, list[float]] = {CONTINUES: [], TRANSLATES: []}
    received: dict[str, list[float]] = {CONTINUES: [], TRANSLATES: []}
    fields = {CONTINUES: "Text to continue", TRANSLATES: "Sentence to translate"}
    firsts = {CONTINUES: ".lv-given .lv-word", TRANSLATES: ".lv-strip-source .lv-word"}
    place = {name: urlencode({"model": name, "write": 13}) for name in times}
    pages = {name: _watched(browser, f"{url}/?{place[name]}") for name in times}
    for i in range(repeats):
        text = SENTENCES[i]
        for name, (page, wire) in pages.items():
            painted = _begins(firsts[name], text)
            wire.clear()
            times[name].append(enter(page, fields[name], text, f"{READY} && {painted}"))
            settle(page)
            received[name].append(wire.received)
    what = "Enter to painted, a language model"
    compare(what, times[CONTINUES], times[TRANSLATES], "ms", 1.1, named=TRANSLATES)
    what = "bytes of that picture"
    compare(what, received[CONTINUES], received[TRANSLATES], "", 1.1, named=TRANSLATES)


def _first_pictures(
    browser: Browser, script: str, ready: str, *arguments: str
) -> tuple[float, float]:
    """Seconds to the picture: for the first visitor of a cold server, and once it has the model."""

    def seconds(url: str) -> float:
        start = time.perf_counter()
        page = visit(browser, url, ready)
        took = time.perf_counter() - start
        page.context.close()
        return took

    with served(script, *arguments) as there:
        first = seconds(there.url)
        seconds(f"{there.url}/{OWN_TEXT}")
        return first, seconds(there.url)


def _bare_steps(page: Page, count: int) -> list[float]:
    """Milliseconds of each of several steps of the bare page."""
    press = page.get_by_role("button", name="next").click
    first = int((page.text_content(".gtitle >> nth=0") or "").split()[-1]) + 1
    places = range(first, first + count)
    return [
        milliseconds(page, "click", _titled(f"e.textContent === 'one {i}'"), press) for i in places
    ]


def _titled(condition: str) -> str:
    """A JavaScript condition: the titles of all three bare maps meet another one."""
    return f"[...document.querySelectorAll('.gtitle')].filter(e => {condition}).length === 3"


def _watched(browser: Browser, url: str) -> tuple[Page, Wire]:
    """A page with a linked view at rest, and what counts its bytes from now on."""
    page = visit(browser, "about:blank")
    wire = Wire(page)
    page.goto(url)
    page.wait_for_function(READY, timeout=120_000)
    settle(page)
    wire.clear()
    return page, wire


def inside(*, model: Model = "en-de", tokens: Tokens = 13, repeats: Repeats = 8) -> int:
    """Time of a step on *Inside a head* until its last figure shows it, beside a step of the bare
    page."""
    from transformer import load_translator

    text = text_of(load_translator(MODELS / model), tokens)
    changed = f"(now => now && now !== window.before)(({LAST})())"
    with chromium() as browser, served() as own, served(BARE) as bare:
        for section in ("weights", "path"):
            for kind in ("encoder", "decoder", "cross"):
                place = {
                    "model": model,
                    "text": text,
                    "kind": kind,
                    "section": section,
                    "step": 1,
                    "source": 1,
                }
                page, wire = _watched(browser, f"{own.url}/inside_a_head?{urlencode(place)}")
                page.wait_for_function(f"({LAST})() !== ''", timeout=120_000)
                reference = visit(browser, f"{bare.url}/?tokens={tokens}", BARE_READY)
                page.focus(".lv")
                ours: list[float] = []
                _bare_steps(reference, 1)
                for i in range(repeats + 1):
                    if i == 1:  # the first one loads
                        wire.clear()
                    page.evaluate(f"window.before = ({LAST})()")
                    press = partial(page.keyboard.press, "ArrowRight")
                    ours.append(milliseconds(page, "keydown", changed, press))
                size = wire.received / repeats
                theirs = _bare_steps(reference, repeats)
                compare(
                    f"{kind}, {section}, {size:.0f} bytes a step",
                    ours[1:],
                    theirs,
                    "ms",
                    8,
                    named="a bare page",
                )
                page.context.close()
                reference.context.close()
    return 0


def age(*, opens: Annotated[int, "pages to open"] = 400, repeats: Repeats = 50) -> int:
    """Processor time of a step after each page was opened, and after many, beside a fresh
    server's."""
    addresses = [name.removeprefix(sitemap.HOME) for name in sitemap.PAGES]
    with chromium() as browser, served() as there:

        def step() -> list[float]:
            page = visit(browser, f"{there.url}/{OWN_TEXT}&step=1", READY)
            page.focus(".lv")
            page.wait_for_timeout(5_000)  # whatever the server does once it is left alone
            before = there.processor()
            for i in range(repeats):
                page.keyboard.press(("ArrowRight", "ArrowLeft")[i % 2])
                page.wait_for_function(
                    f"document.querySelector('.lv').dataset.painted === '{1 - i % 2}'"
                )
                settle(page)
            page.context.close()
            return [1000 * (there.processor() - before) / repeats]

        fresh = step()
        for done in range(1, opens + 1):
            page = visit(browser, f"{there.url}/{addresses[done % len(addresses)]}")
            page.wait_for_selector(".stApp[data-test-script-state=notRunning] h1", timeout=120_000)
            page.context.close()
            if done in (len(addresses), opens):
                compare(
                    f"processor time of a step, {done} pages",
                    step(),
                    fresh,
                    "ms",
                    1.5,
                    named="fresh",
                )
                print(
                    f"{'':<40} {there.memory():8.0f} MB after {done} pages were opened", flush=True
                )
    return 0


def long(*, model: Model = "en-de", repeats: Repeats = 5, only: str = "") -> int:
    """Bytes of every page at 256 tokens, clicks beside 32 tokens, every page at 1,024, memory.

    only [PART]: `bytes`, `clicks` or `longest`
    """
    from explorer.app.server.stores import bytes_of
    from transformer import load_translator

    translator = load_translator(MODELS / model)
    places = {
        n: {
            "model": model,
            "text": text_of(translator, n),
            "target": text_of(translator, n, TARGET),
        }
        for n in (32, 256, 1024)
    }
    with chromium() as browser, served() as there:
        if only in ("", "bytes"):
            for page in sitemap.PAGES:
                for more in ({}, *OTHER_VIEWS.get(page, ())):
                    _opened(browser, there.url, page, places[256] | more)
        if only in ("", "clicks"):
            times: dict[str, list[list[float]]] = {
                "a step": [],
                "a click on a cell": [],
                "another head": [],
            }
            for n in (256, 32):
                cursor = {"step": 10, "source": 10}
                tab, _ = _watched(browser, _address(there.url, sitemap.HOME, places[n] | cursor))
                times["a step"].append(steps(tab, repeats))
                times["a click on a cell"].append(
                    [_cell_click(tab, 1 - 2 * (i % 2)) for i in range(repeats)]
                )
                tab.context.close()
                address = _address(there.url, "cross_attention", places[n] | {"step": 10})
                tab, wire = _watched(browser, address)
                times["another head"].append(
                    [_tile_click(tab, wire, i % 8) for i in range(repeats)]
                )
                tab.context.close()
            for what, (ours, reference) in times.items():
                compare(f"{what}, 256 tokens", ours, reference, "ms", 2, named="32 tokens")
        if only in ("", "longest"):
            for page in sitemap.PAGES:
                _opened(browser, there.url, page, places[1024])
        print(f"{'memory of the server':<40} {there.memory():8.0f} MB")
    for n, place in places.items():
        size = bytes_of(translator.force(place["text"], place["target"]))
        print(f"a kept translation of {n} tokens a side: {size / n / 1000:.1f} kB a token")
    return 0


def _address(url: str, page: str, place: dict[str, Any]) -> str:
    return f"{url}/{page.removeprefix(sitemap.HOME)}?{urlencode(place)}"


def _opened(browser: Browser, url: str, page: str, place: dict[str, Any]) -> None:
    """Opens a place with an empty cache: prints its bytes, its seconds, and what it says of its
    part."""
    answers: list[Response] = []
    tab = visit(browser, "about:blank")
    wire = Wire(tab)
    size = 0
    start = time.perf_counter()
    tab.on(
        "response", lambda answer: answers.append(answer)
    )  # a method of a list cannot be marked as heard
    tab.goto(_address(url, page, place))
    _rest(tab, wire)
    took = time.perf_counter() - start
    text = tab.inner_text(".stMain")
    for answer in answers:
        if answer.request.resource_type not in STATIC and answer.status == 200:
            size += len(answer.body())
    total = wire.received + wire.sent + size
    says = list(dict.fromkeys(SAYS.findall(text)))[:4]
    broken = "EXCEPTION" if tab.locator(".stException").count() else ""
    name = " ".join(
        [page, *(place[name] for name in place if name not in ("model", "text", "target"))]
    )
    verdict = "ok" if total <= MOST_BYTES else "over"
    print(f"{name:<40} {total:>9,} bytes  {verdict}  {took:5.1f} s  {broken}  {says}", flush=True)
    tab.context.close()


def _rest(page: Page, wire: Wire) -> None:
    """Waits until the script has run, the view is drawn, and no frame has arrived for a while."""
    page.wait_for_function(RESTS, timeout=300_000)
    if page.locator(".lv").count():
        page.wait_for_function(READY, timeout=120_000)
    before = -1
    while before != wire.received:
        before = wire.received
        page.wait_for_timeout(700)
    page.wait_for_function(RESTS, timeout=300_000)


def _cell_click(page: Page, rows: int) -> float:
    """Milliseconds from a click on a cell, some rows from the cursor, to the next painted
    cursor."""
    at = int(page.get_attribute(".lv", "data-painted") or 0)
    page.mouse.move(*page.evaluate(CELL, rows))
    page.wait_for_selector("[data-plot=cross] .hoverlayer .hovertext", timeout=30_000)
    return milliseconds(
        page,
        "mousedown",
        f"document.querySelector('.lv').dataset.painted === '{at + rows}'",
        _press(page),
    )


def _tile_click(page: Page, wire: Wire, head: int) -> float:
    """Milliseconds from a click on a tile of the overview to the drawn map of that head."""
    box = page.locator("[data-plot=overview] .nsewdrag").first.bounding_box()
    assert box is not None
    title, hover = "[data-plot=cross] .lv-title b", "[data-plot=overview] .hoverlayer .hovertext"
    before = page.inner_text(title)
    page.mouse.move(
        5, 5
    )  # a click means the tile whose text is shown, which may still be the last one's
    page.wait_for_selector(hover, state="detached")
    page.mouse.move(
        box["x"] + box["width"] * (0.06 + 0.125 * head), box["y"] + box["height"] * 0.15
    )
    page.wait_for_selector(hover, timeout=30_000)
    changed = f"document.querySelector('{title}').innerText !== {before!r} && {READY}"
    took = milliseconds(page, "mousedown", changed, _press(page))
    _rest(page, wire)
    return took


def _press(page: Page) -> Callable[[], None]:
    """Clicks where the mouse is."""

    def press() -> None:
        page.mouse.down()
        page.mouse.up()

    return press


def files(*, visitors: Annotated[int, "first visits"] = 50) -> int:
    """What scripts, styles and fonts of first visits cost the process, directly and behind
    nginx."""
    requested = list[str]()
    with served() as there, proxy([there.url]) as before:
        with chromium() as browser:
            page = visit(browser, "about:blank")
            page.on("request", lambda request: requested.append(urlsplit(request.url).path))
            page.goto(f"{there.url}/{OWN_TEXT}")
            page.wait_for_function(READY, timeout=60_000)
        paths = [path for path in requested if "/static/" in path]
        used = list[float]()
        for name, base in (("the process itself", there.url), ("nginx before it", before)):
            start = time.perf_counter()
            spent = there.processor()
            with ThreadPoolExecutor(8) as pool:
                size = sum(pool.map(lambda _, base=base: _fetched(base, paths), range(visitors)))
            used.append(1000 * (there.processor() - spent) / visitors)
            took = time.perf_counter() - start
            costs = f"{size / visitors / 1e6:.2f} MB and {used[-1]:6.1f} ms of the process a visit"
            print(
                f"{name:<20} {took:6.1f} s, {visitors} visits of {len(paths)} files, {costs}",
                flush=True,
            )
    print(f"ratio of the process's time {used[1] / used[0]:.2f}")
    return 0


def _fetched(url: str, paths: Sequence[str]) -> int:
    """Asks for files over one connection; bytes of the answers."""
    link = HTTPConnection(urlsplit(url).netloc, timeout=60)
    size = 0
    for path in paths:
        link.request("GET", path, headers={"Accept-Encoding": "gzip"})
        with link.getresponse() as answer:
            assert answer.status == 200, path
            size += len(answer.read())
    link.close()
    return size
