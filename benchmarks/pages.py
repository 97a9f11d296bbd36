"""Pages of one file: a living page of a run beside BertViz's, a page that translates beside
Python."""

from __future__ import annotations

import statistics
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.browser import chromium
from benchmarks.timing import MODELS, Model, Repeats
from explorer import live, page
from transformer import Translation, Translator, load_translator

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PART = (
    "the garden behind it is still full of flowers, and we often sit there in the evening when it "
    "is warm"
)
PART_PT = (
    "o jardim atrás dela ainda está cheio de flores, e muitas vezes sentamos lá à noite quando "
    "está quente"
)
TEXTS = {
    "en-de": ("The house is old but big.", f"The house is old, but {PART}."),
    "en-pt": (
        "The house is old, but the garden is full of flowers.",
        f"The house is old, but {PART}.",
        f"The house is old, but {PART}; my sister reads a book, my brother plays with the dog, "
        "and nobody wants to go home before the moon is high above.",
        f"The house is old, but {PART}. " * 6,
    ),
}
LONG = (256, 512, 1024)
HEADS = "cross=1.1&cross=1.2"
"""Those that are whole in a long page, and chosen in turn."""
STEP = """count => {
  const found = [];
  const root = document.querySelector(".lv");
  for (let i = 0; i < count; i++) {
    const key = i % 2 ? "ArrowLeft" : "ArrowRight";
    const start = performance.now();
    root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    root.getBoundingClientRect();
    found.push(performance.now() - start);
  }
  return found;
}"""
HEAD = """async count => {
  const found = [];
  const choice = document.querySelector("[data-plot=cross] .lv-head");
  for (let i = 0; i < count; i++) {
    choice.selectedIndex = i % 2;
    const start = performance.now();
    choice.dispatchEvent(new Event("change"));
    const body = document.querySelector("[data-plot=cross] .lv-body");
    while (!body.ariaLabel.includes(`head ${i % 2 + 1} of layer 1`)) await null;
    body.getBoundingClientRect();
    found.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return found;
}"""
ASKED = (
    "He lives in a big white house.",
    "The committee decided on Tuesday that the new bridge across the river would not be opened "
    "before the end of the summer, because several parts had to be tested again.",
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


def living(*, long: bool = False, repeats: Repeats = 20) -> int:
    """Size, writing, first picture, step and head of a run's page; beside BertViz's, if it is
    installed.

    BertViz's page holds the weights of all heads, without texts, scores, candidates and checks,
    and fetches
    its libraries from the network.

    long: runs of 256, 512 and 1,024 given tokens a side
    """
    with chromium() as browser:
        for name in ("en-pt",) if long else TEXTS:
            translator = load_translator(MODELS / name)
            if long:
                runs = [_forced(translator, tokens) for tokens in LONG]
            else:
                runs = [translator.translate(text) for text in TEXTS[name]]
            for run in runs:
                compares = not long and find_spec("bertviz") is not None
                _measure_run(browser, translator, name, run, repeats=repeats, compares=compares)
    return 0


def _forced(translator: Translator, tokens: int) -> Translation:
    """A run of so many tokens a side."""

    def cut(part: str) -> str:
        words = (f"{part}. " * (tokens // 10)).split()
        while len(translator.tokenizer.source.encode(" ".join(words))) >= tokens:  # one is </s>
            words.pop()
        return " ".join(words)

    return translator.force(cut(PART), cut(PART_PT))


def _measure_run(
    browser: Browser,
    translator: Translator,
    name: str,
    run: Translation,
    repeats: int,
    compares: bool,  # with BertViz
) -> None:
    start = time.process_time()
    text = page(run, translator, directory=MODELS / name, heads=HEADS)
    spent = time.process_time() - start
    size = len(text.encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        path.write_text(text, encoding="utf-8")
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        start = time.perf_counter()
        tab.goto(path.as_uri())
        tab.wait_for_selector('.lv[data-ready="true"]')
        first = time.perf_counter() - start
        step, head = (statistics.median(tab.evaluate(script, repeats)) for script in (STEP, HEAD))
        tab.close()
    beside = ""
    if compares:
        nbytes, seconds = _bertviz(run)
        beside = (
            f"; BertViz {nbytes / 1000:.0f} kB ({nbytes / size:.1f} ×), written in {seconds:.1f} s"
        )
    label = f"{name}, {len(run.source_tokens)} → {len(run.target_tokens)} tokens"
    print(
        f"{label}: {size / 1000:.0f} kB, written in {spent:.1f} s of the processor, first picture "
        f"{first:.1f} s, a step {step:.1f} ms, another head {head:.0f} ms{beside}",
        flush=True,
    )


def _bertviz(run: Translation) -> tuple[int, float]:
    """The size of BertViz's page of a run, and the seconds of the processor that it takes."""
    start = time.process_time()
    assert run.attention is not None
    weights = {
        f"{kind}_attention": [
            torch.tensor(run.attention.weights(kind, i))[None] for i in range(layers)
        ]
        for kind, (layers, _) in run.config.sizes.items()
    }
    tokens = {
        "encoder_tokens": list(run.source_tokens),
        "decoder_tokens": list(run.decoder_input_tokens),
    }
    drawn = import_module("bertviz").model_view(**weights, **tokens, html_action="return")
    return len(str(drawn.data).encode()), time.process_time() - start


def translating(*, model: Model = "en-de", repeats: Repeats = 9) -> int:
    """A page that translates beside Python without capture, both in one thread; the fastest repeat
    counts."""
    torch.set_num_threads(1)
    translator = load_translator(MODELS / model, "cpu")
    text = live(MODELS / model)
    print(f"{model}: {len(text.encode()) / 1e6:.2f} MB")
    without = "&#x27;wasm-unsafe-eval&#x27;"
    for name, content in (("SIMD kernel", text), ("plain JavaScript", text.replace(without, ""))):
        with tempfile.TemporaryDirectory() as folder, chromium() as browser:
            path = Path(folder) / "live.html"
            path.write_text(content, "utf-8")
            tab = browser.new_page()
            start = time.perf_counter()
            tab.goto(path.as_uri())
            while not tab.evaluate("document.documentElement.dataset.engine === 'ready'"):
                time.sleep(0.01)
            took = time.perf_counter() - start
            room = _largest(browser)
            print(f"{name}: ready and compared in {took:.2f} s, {room:.0f} MB")
            for sentence in ASKED:
                _compare_sentence(tab, translator, sentence, repeats)
    return 0


def _compare_sentence(tab: Page, translator: Translator, sentence: str, repeats: int) -> None:
    """A sentence in the page and in Python, the fastest repeat of each."""
    python = []
    for _ in range(repeats):
        start = time.perf_counter()
        written = translator.translate(sentence, capture=False)
        python.append(1000 * (time.perf_counter() - start))
    tab.evaluate(ASK, sentence)
    answers = [tab.evaluate(ASK, sentence) for _ in range(repeats)]
    painted, ours = (min(answer[i] for answer in answers) for i in (0, 2))
    ratio = (
        f"{ours:.0f} ms with every head; Python {min(python):.0f} ms: × {ours / min(python):.2f}"
    )
    lengths = f"{len(translator.ids(sentence)) + 1} → {len(written.steps)} tokens"
    print(f"  {lengths}: {ratio}; painted {painted:.0f} ms after Enter", flush=True)


def _largest(browser: Browser) -> float:
    """MB of the largest process that draws pages, shared memory in parts."""
    answer = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    sizes = []
    for process in answer["processInfo"]:
        if process["type"] == "renderer":
            lines = Path(f"/proc/{process['id']}/smaps_rollup").read_text().splitlines()
            sizes += [int(line.split()[1]) / 1e3 for line in lines if line.startswith("Pss:")]
    return max(sizes)
