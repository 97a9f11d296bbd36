"""Measures living pages: size, writing, first picture, a step, another head; beside BertViz's page of it.

    python benchmarks/living.py [--repeat 20] [--long]

With `--long`, pages of 256, 512 and 1,024 tokens a side, of a translation that is given.
BertViz (`pip install bertviz ipython`) is compared in size and writing: its page holds the weights of all
heads, without texts, scores, candidates and checks, and fetches its libraries from the network. Without
BertViz, its columns stay empty. Times in the browser are medians, without the frame's own drawing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.app import ARGUMENTS, CHROMIUM  # noqa: E402
from explorer import page  # noqa: E402
from transformer import Translation, Translator, load_translator  # noqa: E402

PART = "the garden behind it is still full of flowers, and we often sit there in the evening when it is warm"
TEXTS = {
    "en-de": ("The house is old but big.", f"The house is old, but {PART}."),
    "en-pt": (
        "The house is old, but the garden is full of flowers.",
        f"The house is old, but {PART}.",
        f"The house is old, but {PART}; my sister reads a book, my brother plays with the dog, and nobody "
        "wants to go home before the moon is high above.",
        f"The house is old, but {PART}. " * 6,
    ),
}
PART_PT = (
    "o jardim atrás dela ainda está cheio de flores, e muitas vezes sentamos lá à noite quando está quente"
)
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


def bertviz_page(run: Translation) -> str:
    """BertViz's page of all heads of a run."""
    import torch

    weights = {
        f"{kind}_attention": [
            torch.tensor(run.attention.weights(kind, layer))[None]  # type: ignore[union-attr]
            for layer in range(run.config.sizes[kind][0])
        ]
        for kind in ("encoder", "decoder", "cross")
    }
    tokens = {"encoder_tokens": list(run.source_tokens), "decoder_tokens": list(run.decoder_input_tokens)}
    return str(import_module("bertviz").model_view(**weights, **tokens, html_action="return").data)


def timed(make: Callable[[], str]) -> tuple[int, float]:
    """Bytes of a page, and seconds of the processor for it."""
    start = time.process_time()
    size = len(make().encode())
    return size, time.process_time() - start


def opened(browser: Any, path: Path, repeat: int) -> tuple[float, float, float]:
    """Seconds to the first picture, ms of a step, and ms of another head, in a new tab."""
    tab, start = browser.new_page(viewport={"width": 1400, "height": 900}), time.perf_counter()
    tab.goto(path.as_uri())
    tab.wait_for_selector('.lv[data-ready="true"]')
    first = time.perf_counter() - start
    step, head = (statistics.median(tab.evaluate(script, repeat)) for script in (STEP, HEAD))
    tab.close()
    return first, step, head


def forced(translator: Translator, tokens: int) -> Translation:
    """A run of so many tokens a side."""

    def cut(part: str) -> str:
        words = f"{part}. " * (tokens // 10)
        kept = words.split()
        while len(translator.tokenizer.encode(" ".join(kept))) >= tokens:  # one is </s>
            kept.pop()
        return " ".join(kept)

    return translator.force(cut(PART), cut(PART_PT))


def line(browser: Any, translator: Translator, directory: Path, run: Translation, repeat: int) -> str:
    """What is measured of a run."""
    made = ""

    def make() -> str:
        nonlocal made
        made = page(run, translator, directory=directory, heads=HEADS)
        return made

    size, spent = timed(make)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        path.write_text(made, encoding="utf-8")
        first, step, head = opened(browser, path, repeat)
    tokens = f"{len(run.source_tokens)}/{len(run.target_tokens)}"
    told = f"{run.model}  {tokens:>7} {size / 1000:5.0f}   {spent:4.1f} s {first:4.1f} s {step:4.1f} ms"
    told += f" {head:3.0f} ms"
    if find_spec("bertviz") is None or len(run.source_tokens) >= LONG[0]:
        return told
    other, took = timed(lambda: bertviz_page(run))
    return f"{told}   {other / 1000:9.0f}   {took:4.1f} s   {other / size:.1f}"


def main() -> None:
    """Prints one line for each sentence."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    print("model  tokens     kB  written  first    step   head   BertViz: kB  written  ratio of sizes")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, texts in TEXTS.items():
            directory = ROOT / "assets/models" / name
            translator = load_translator(directory)
            if given.long:
                runs = (forced(translator, tokens) for tokens in LONG * (name == "en-pt"))
            else:
                runs = (translator.translate(text) for text in texts)
            for run in runs:
                print(line(browser, translator, directory, run, given.repeat), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
