"""A page in which the model runs: from the disk, in a frame, under a strict policy, beside its
files."""

import functools
import http.server
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import waiting
from decoder_models import write_decoder

from explorer.__main__ import main
from explorer.linked.live.page import live
from transformer import Translator, load_language_model, load_translator
from transformer.interventions import ablate

from .conftest import PHONE, ROOT, Visitor
from .from_disk import HOSTILE, Open, accessible, choose, over, said
from .from_disk import open_from_disk as _opened  # noqa: F401
from .test_accessibility import GROUNDS

MODEL = ROOT / "assets/models/positions/sinusoidal"
TEXTS = ("He lives in a big white house.", "The woman who wrote the book is my sister.")
GROUND = "getComputedStyle(document.body).backgroundColor"
COMPARED = "document.documentElement.dataset.engine === 'ready'"


@pytest.fixture(scope="module")
def model() -> Translator:
    return load_translator(MODEL, "cpu")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("live") / "live.html"
    path.write_text(live(MODEL, TEXTS), encoding="utf-8")
    return path


def ask(visitor: Visitor, text: str) -> None:
    visitor.page.get_by_label("Sentence to translate").fill(text)
    visitor.page.keyboard.press("Enter")


def shows(visitor: Visitor, text: str) -> None:
    """Waits until a translation is on the screen."""
    waiting.until(lambda: visitor.page.locator("#texts p").last.inner_text() == text)
    visitor.ready()


def test_a_typed_sentence_is_translated_here_as_python_translates_it(
    opened: Open, written: Path, model: Translator
) -> None:
    visitor = opened(written.as_uri(), ready=COMPARED)
    tab = visitor.page
    told = tab.inner_text("#digest")
    assert re.search(r"compared here with 8 runs .* weights \d\.\de-\d, log p \d\.\de-\d", told)
    run = model.translate("We saw the old bridge near the river.")
    ask(visitor, run.source_text)
    shows(visitor, run.text)
    assert visitor.chips("source")[:-1] == run.source_text.replace(".", " .").split()
    assert visitor.count() == f"step 1 of {len(run.steps)}"
    choose(visitor, "cross", 1, 2)
    weights, scores = run.map("cross", 1, 2).weights, run.map("cross", 1, 2).scores
    over(visitor, "cross", 2, 3)
    tip = said(visitor)
    assert f"weight {weights[2, 3]:.3f} · score before the mask {scores[2, 3]:.2f}" in tip.replace(
        "−", "-"
    )
    assert "cross=2.3" in tab.url
    assert "text=We+saw" in tab.url


def test_a_head_is_switched_off_and_an_own_translation_is_read(
    opened: Open, written: Path, model: Translator
) -> None:
    visitor = opened(
        f"{written.as_uri()}#text=Where+is+the+key%3F&cross=2.1&step=3", ready=COMPARED
    )
    tab = visitor.page
    shows(visitor, model.translate("Where is the key?").text)
    assert visitor.count().startswith("step 3 of")
    tab.click("[data-plot=cross] [data-act=off]")
    run = model.translate("Where is the key?", interventions=[ablate("cross", 1, 0)])
    waiting.until(lambda: "Off: cross, layer 2, head 1." in tab.inner_text("#changes"))
    shows(visitor, run.text)
    assert "is off: its output is 0" in tab.inner_text(".lv-sentence")
    title = tab.locator("[data-plot=next] .lv-runner.lv-chosen").get_attribute("title")
    step = run.steps[min(2, len(run.steps) - 1)]
    assert float(re.search(r"log-probability (-[\d.]+)", title)[1]) == pytest.approx(
        step.log_prob, abs=2e-2
    )
    assert "off=cross.1.0" in tab.url
    whole = model.translate("Where is the key?").text
    changes = f"The translation changes; with every head it is “{whole}”."
    says = "The translation stays the same." if run.text == whole else changes
    assert tab.inner_text("#changes").endswith(says)
    tab.get_by_text("Use your own translation").click()
    tab.get_by_label("Your own translation").fill("Wo ist der Schlüssel?")
    tab.keyboard.press("Enter")
    shows(visitor, "Wo ist der Schlüssel?")
    assert "your translation, not the model's" in tab.inner_text("[data-plot=next]")


def test_what_cannot_be_translated_is_refused_and_what_is_there_stays(
    opened: Open, written: Path
) -> None:
    visitor = opened(written.as_uri(), ready=COMPARED)
    tab = visitor.page
    before = tab.inner_text("#texts")
    for text, says in (("  ", "is empty"), ("two " * 200, "this page takes at most 128")):
        ask(visitor, text)
        waiting.until(lambda says=says: says in tab.inner_text("#status"))
        assert tab.inner_text("#texts") == before
    long = (
        "The old house is near the river and the new house is on the hill, but nobody lives there "
        "now."
    )
    for text in (long, "We like music."):
        ask(visitor, text)
    waiting.until(lambda: tab.locator("#texts p").first.inner_text() == "We like music.")
    visitor.ready()
    ask(visitor, HOSTILE)
    waiting.until(lambda: "script" in tab.inner_text("#texts p >> nth=0"))
    visitor.ready()
    assert tab.evaluate("typeof hacked") == "undefined"
    assert tab.locator("#view script, #view img, #texts img, #texts script").count() == 0


def ask_to_continue(visitor: Visitor, text: str) -> None:
    visitor.page.get_by_label("Text to continue").fill(text)
    visitor.page.keyboard.press("Enter")


LANGUAGE_MODEL = ROOT / "assets/models/language/lm-en"


def test_a_typed_text_is_continued_here_as_python_continues_it(
    opened: Open, tmp_path: Path
) -> None:
    path = tmp_path / "live.html"
    path.write_text(live(LANGUAGE_MODEL, ["The old house"]), encoding="utf-8")
    visitor = opened(path.as_uri(), ready=COMPARED)
    tab = visitor.page
    assert tab.title() == "lm-en continues texts in this page"
    told = tab.inner_text("#digest")
    assert re.search(r"✓ compared: .* with 8 runs .* weights \d\.\de-\d, log p \d\.\de-\d", told)
    model = load_language_model(LANGUAGE_MODEL, "cpu")
    run = model.generate("Tom and Mary have")
    ask_to_continue(visitor, "Tom and Mary have")
    shows(visitor, run.text)
    assert tab.locator("#texts p").count() == 1
    assert visitor.count() == f"step 1 of {len(run.steps)}"
    choose(visitor, "decoder", 2, 5)
    head = run.map("decoder", 2, 5)
    over(visitor, "decoder", 3, 1)
    tip = said(visitor).replace("−", "-")
    score = f"score before the mask {head.scores[3, 1]:.2f}"
    assert f"weight {head.weights[3, 1]:.3f} · {score}" in tip
    tab.click("[data-plot=decoder] [data-act=off]")
    waiting.until(lambda: "Off: decoder, layer 3, head 6." in tab.inner_text("#changes"))
    changed = model.generate("Tom and Mary have", interventions=[ablate("decoder", 2, 5)])
    shows(visitor, changed.text)
    says = f"The text changes; with every head it is “{run.text}”."
    stays = "The text stays the same."
    wanted = stays if changed.text == run.text else says
    assert tab.inner_text("#changes").endswith(wanted)
    ask_to_continue(visitor, "")
    shows(visitor, model.generate("").text)
    ask_to_continue(visitor, "two " * 200)
    waiting.until(lambda: "this page takes at most 128" in tab.inner_text("#status"))


def test_a_decoder_of_another_family_continues_what_is_typed_line_breaks_too(
    opened: Open, tmp_path: Path
) -> None:
    directory = tmp_path / "gpt2"
    directory.mkdir()
    write_decoder(directory, "GPT-2")
    path = tmp_path / "live.html"
    path.write_text(live(directory, ["the old\n\nhouse"]), encoding="utf-8")
    visitor = opened(path.as_uri(), ready=COMPARED)
    tab = visitor.page
    assert "✓ compared" in tab.inner_text("#digest")
    assert "rounded to 8 bits" in tab.inner_text("#about")
    assert tab.locator("#texts p").inner_text().startswith("the old\n\nhouse")
    ask_to_continue(visitor, "two dogs<|turn|> ")
    waiting.until(lambda: "two dogs" in tab.inner_text("#texts"))
    visitor.ready()
    assert "<|turn|>" in visitor.chips("target")
    ask_to_continue(visitor, "")
    waiting.until(lambda: "no start token; type a word" in tab.inner_text("#status"))


HELD = """
const plain = Worker;
window.held = [];
window.holds = false;
window.Worker = class extends plain {
  addEventListener(type, listener, options) {
    const later = (event) => {
      const { run, refused, writes } = event.data;
      const ends = Boolean(run) || refused !== undefined;
      const answers = ends || writes !== undefined;
      if (window.holds && answers) window.held.push({ ends, arrive: () => listener(event) });
      else listener(event);
    };
    super.addEventListener(type, type === "message" ? later : listener, options);
  }
};
"""
"""Keeps back what the engine answers, until the test lets it arrive."""


@pytest.mark.parametrize("late", [TEXTS[1], "  ", "two " * 200])
def test_an_answer_that_arrives_after_the_next_one_is_not_shown(
    opened: Open, written: Path, model: Translator, late: str
) -> None:
    visitor = opened(written.as_uri(), ready=None, init=HELD)
    tab = visitor.page
    waiting.until(lambda: "✓ compared" in tab.inner_text("#digest"))
    tab.evaluate("window.holds = true")
    ask(visitor, late)
    waiting.until(lambda: tab.evaluate("window.held.some(({ ends }) => ends)"))
    tab.evaluate("window.holds = false")
    ask(visitor, "We like music.")
    shows(visitor, model.translate("We like music.").text)
    before = [tab.inner_text(part) for part in ("#texts", "#status", "#doubt")]
    tab.evaluate("window.held.forEach(({ arrive }) => arrive())")
    tab.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
    assert [tab.inner_text(part) for part in ("#texts", "#status", "#doubt")] == before


def test_a_doubt_stands_under_the_picture_and_the_card_at_the_end(
    opened: Open, tmp_path: Path
) -> None:
    name = tmp_path / "unsure"
    shutil.copytree(MODEL, name)
    heads = json.loads((name / "heads.json").read_text())
    (name / "heads.json").write_text(json.dumps(heads | {"unsure_below": 0.0}))
    path = tmp_path / "unsure.html"
    path.write_text(live(name, TEXTS), encoding="utf-8")
    tab = opened(path.as_uri(), ready=COMPARED).page
    assert re.fullmatch(
        r"This translation may be wrong: \d+ % for a token, where over 100 % is usual.",
        tab.inner_text("#doubt").replace("\xa0", " "),
    )
    under = "document.querySelector('#doubt').getBoundingClientRect().top"
    assert tab.evaluate(
        f"{under} >= document.querySelector('#view').getBoundingClientRect().bottom"
    )
    tab.get_by_text("The card of the model").click()
    assert "CC BY 2.0 FR" in tab.inner_text(".live-card pre")


def test_a_page_of_a_hostile_sentence_and_name_stays_whole(opened: Open, tmp_path: Path) -> None:
    name = tmp_path / '"><img src=x onerror=hacked=1>'
    shutil.copytree(MODEL, name)
    path = tmp_path / "hostile.html"
    path.write_text(live(name, [HOSTILE]), encoding="utf-8")
    tab: Any = opened(path.as_uri(), ready=COMPARED).page
    assert tab.evaluate("typeof hacked") == "undefined"
    assert "onerror=hacked" in tab.inner_text("#about")
    assert tab.locator("img").count() == 0


@pytest.mark.parametrize("how", ["sandboxed", "no WebAssembly", "no worker"])
def test_it_runs_where_less_is_allowed(
    opened: Open, written: Path, tmp_path: Path, how: str
) -> None:
    page = written.read_text("utf-8")
    if how == "sandboxed":
        outside = written.with_name("outside.html")
        outside.write_text(
            f'<iframe sandbox="allow-scripts" src="{written.as_uri()}" width=1200 height=800></iframe>'
        )
        inside = opened(outside.as_uri(), ready=None).page.frame_locator("iframe")
        waiting.until(lambda: "✓ compared" in inside.locator("#digest").inner_text())
        return
    path = tmp_path / "less.html"
    without = {"no WebAssembly": "&#x27;wasm-unsafe-eval&#x27;", "no worker": "worker-src blob:"}[
        how
    ]
    assert without in page
    path.write_text(
        page.replace(without, "worker-src 'none'" if how == "no worker" else ""), encoding="utf-8"
    )
    visitor = opened(path.as_uri(), ready=None)
    tab = visitor.page
    waiting.until(lambda: "✓ compared" in tab.inner_text("#digest"))
    ask(visitor, TEXTS[1])
    waiting.until(
        lambda: TEXTS[1] in tab.inner_text("#texts") and "ms" in tab.inner_text("#status")
    )
    assert ("several times slower" in tab.inner_text("#status")) == (how == "no WebAssembly")
    visitor.errors[:] = [
        error for error in visitor.errors if "Content Security Policy" not in error
    ]


def test_a_folder_serves_the_page_with_its_files_beside_it(opened: Open, tmp_path: Path) -> None:
    assert (
        main(
            [
                "live",
                "--model",
                str(MODEL),
                "--output",
                str(tmp_path / "space"),
                "--folder",
                TEXTS[0],
            ]
        )
        == 0
    )
    assert sorted(path.name for path in (tmp_path / "space").iterdir()) == [
        "index.html",
        "model.safetensors",
        "tokenizer.model",
    ]
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "space")
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tab: Any = opened(f"http://127.0.0.1:{server.server_port}/index.html", ready=COMPARED).page
        assert "✓ compared" in tab.inner_text("#digest")
        server.shutdown()


def test_the_page_is_accessible_in_both_themes_and_fits_a_phone(
    opened: Open, written: Path
) -> None:
    visitor = opened(written.as_uri(), ready=COMPARED, color_scheme="dark", bypass_csp=True)
    tab = visitor.page
    for scheme in ("dark", "light"):
        tab.emulate_media(color_scheme=scheme)
        waiting.until(lambda scheme=scheme: tab.evaluate(GROUND) == GROUNDS[scheme])
        accessible(tab)
    tab.set_viewport_size(PHONE)
    parts = "[...document.querySelectorAll('.stMain, .lv-cell, .live-ask')]"
    waiting.until(lambda: tab.evaluate(f"{parts}.every(each => each.scrollWidth <= innerWidth)"))
    ask(visitor, f"{TEXTS[1][:-1]} and {TEXTS[0].lower()}")
    waiting.until(lambda: "sister and he lives" in tab.inner_text("#texts"))
    whole = (
        "[...document.querySelectorAll('#texts p')].every(each => each.scrollWidth <= "
        "each.clientWidth)"
    )
    assert tab.evaluate(whole)
