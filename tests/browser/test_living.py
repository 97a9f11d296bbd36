"""A run as one HTML file: opened from the disk, without a server, in Chromium."""

import csv
import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import waiting
from closed_form import CASES
from nightly import thinned
from PIL import Image

from explorer import page, show
from explorer.lenses.measures.effect import effect_in
from explorer.lenses.measures.stream import carried
from transformer import Translation, Translator, load_translator
from transformer.translator import retrace
from transformer.view import Window

from .conftest import PATIENCE, PHONE, ROOT, Visitor, box_of
from .from_disk import HOSTILE, Open, accessible, choose, over, said
from .from_disk import open_from_disk as _opened  # noqa: F401


@pytest.fixture(scope="module")
def run(translator: Translator) -> Translation:
    return translator.translate("one two three", max_length=7)


def test_beside_the_only_map_of_a_page_lie_all_heads_of_its_kind(opened: Open) -> None:
    weights = np.full((2, 3, 4, 4), 0.25, np.float32)
    visitor = opened(page(weights, ["one", "two", "three", "four"]))
    tab = visitor.page
    tab.set_viewport_size({"width": 1280, "height": 800})
    beside = """() => {
      const [map, heads] = [".lv-grid > [data-plot]", ".living-heads"].map((part) =>
        document.querySelector(part).getBoundingClientRect());
      return heads.left > map.right && heads.top === map.top && heads.right > 1200;
    }"""
    tab.wait_for_function(beside)
    tab.set_viewport_size(PHONE)
    tab.wait_for_function(f"() => !({beside})()")


def test_the_file_steps_says_the_weights_of_the_run_plays_and_is_printed(
    opened: Open, run: Translation, tmp_path: Path
) -> None:
    visitor = opened(page(run))
    tab = visitor.page
    assert len(visitor.chips("source")) == len(run.source_tokens)
    visitor.press("Home")
    for _ in range(2):
        tab.keyboard.press("ArrowRight")
    visitor.until("document.querySelector('.lv-count').textContent.startsWith('step 3 of')")
    places = (("cross", 0, 1, 2, 3), ("encoder", 1, 0, 3, 1), ("decoder", 0, 0, 4, 2))
    for kind, layer, head, row, column in places:
        choose(visitor, kind, layer, head)
        over(visitor, kind, row, column)
        view = run.head(kind, layer, head)
        told = said(visitor)
        assert f"weight {view.weights[row, column]:.3f}" in told
        assert f"{view.scores[row, column]:.2f}".replace("-", "−") in told
    assert tab.evaluate("location.hash").startswith("#step=3&")
    assert "cross=1.2" in tab.evaluate("location.hash")
    tiles = tab.locator("[data-tiles=encoder] canvas")
    tiles.scroll_into_view_if_needed()
    box = box_of(tiles)
    tab.mouse.click(box["x"] + 30 + 10, box["y"] + 26 + 10)
    visitor.until("document.querySelector('[data-plot=encoder] .lv-head').value === '0.0'")
    over(visitor, "cross", 1, 2)
    tab.mouse.click(*visitor.centre("cross", 1, 2))
    assert visitor.count() == f"step 2 of {len(run.target_tokens)}"
    tab.pdf(path=tmp_path / "run.pdf", prefer_css_page_size=True)
    assert (tmp_path / "run.pdf").read_bytes().count(b"/Type /Page\n") == 1
    visitor.press("End", "Space")
    visitor.until("document.querySelector('.lv-playing') !== null")
    tab.keyboard.press("Space")
    tab.keyboard.press("p")
    visitor.until("document.querySelector('.lv-present') !== null")
    tab.keyboard.press("Escape")
    visitor.until("document.querySelector('.lv-present') === null")
    tab.keyboard.press("?")
    assert tab.is_visible(".lv-keys")


def test_without_scripts_the_texts_are_read(opened: Open, run: Translation) -> None:
    tab = opened(page(run), ready=None, java_script_enabled=False).page
    assert tab.inner_text("#texts p:nth-child(1)") == run.source_text
    assert tab.inner_text("#texts p:nth-child(2)").split() == run.text.split()
    assert "random" in tab.inner_text("#proof")
    assert "scripts are blocked" in tab.inner_text("#digest")


def test_two_runs_move_on_one_cursor_and_the_shorter_says_where_it_ended(
    opened: Open, translator: Translator, run: Translation
) -> None:
    short = translator.translate("one two", max_length=4)
    tab: Any = opened(page(short, place="step=2&cross=1.2", beside=run)).page
    sides = [tab.locator(".living-side").nth(i) for i in range(2)]
    steps = len(short.target_tokens), len(run.target_tokens)
    assert steps[0] < steps[1]
    heads = "[...document.querySelectorAll('[data-plot=cross] .lv-head')].map(e => e.value).join()"
    sheets = "[...document.querySelectorAll('[data-plot=cross] .lv-sheet')]"
    ended = "[...document.querySelectorAll('.living-name')].map(e => e.textContent).join()"
    assert tab.evaluate(heads) == "0.1,0.1"
    tab.evaluate("document.querySelector('.lv').focus()")
    for step in range(3, steps[1] + 1):
        tab.keyboard.press("ArrowRight")
        waiting.until(
            lambda step=step: f"step {step} of" in sides[1].locator(".lv-count").text_content()
        )
        told = f" · ended after step {steps[0]}" * (step > steps[0])
        waiting.until(
            lambda told=told: tab.evaluate(ended) == f"A · “one two”{told},B · “one two three”"
        )
        rows = tab.evaluate(f"{sheets}.map(e => +e.style.getPropertyValue('--row'))")
        assert rows == [min(step, length) - 1 for length in steps]
    sides[1].locator("[data-plot=cross] .lv-head").select_option("1.0")
    waiting.until(lambda: tab.evaluate(heads) == "1.0,1.0")
    for number, each in enumerate((short, run)):
        over_cell(tab, number, each, 2, 1)
        weight = f"weight {each.weights('cross', 1, 0)[2, 1]:.3f}"
        waiting.until(lambda weight=weight: weight in said_by(tab))
    assert "cross=2.1" in tab.evaluate("location.hash")


def over_cell(tab: Any, number: int, run: Translation, row: int, column: int) -> None:
    """Moves the pointer over a cell of cross-attention, in one of the runs that stand side by
    side."""
    side = tab.locator(".living-side").nth(number)
    side.locator("[data-plot=cross] canvas").scroll_into_view_if_needed()
    box = box_of(side.locator("[data-plot=cross] .lv-sheet"))
    rows = len(run.target_tokens)
    columns = len(run.source_tokens)
    x = (column + 0.5) * box["width"] / columns
    y = (row + 0.5) * box["height"] / rows
    tab.mouse.move(box["x"] + x, box["y"] + y)


def said_by(tab: Any) -> str:
    return " ".join(tab.locator(".pic-tip:not([hidden])").all_inner_texts())


def test_a_place_in_the_address_opens_there_and_is_followed(opened: Open, run: Translation) -> None:
    visitor = opened(page(run, place="step=4&decoder=1.2"), "#step=2&cross=1.2")
    tab = visitor.page
    heads = "[...document.querySelectorAll('.lv-head')].map(e => e.value)"
    assert visitor.count().startswith("step 2 ")
    assert tab.evaluate(heads) == ["0.1", "1.0", "0.1"]
    tab.evaluate("location.hash = '#step=999&cross=9.9&encoder=x&source=3'")
    visitor.until("document.querySelectorAll('.lv-strip-source .lv-on').length === 1")
    assert visitor.count().startswith("step 2 ")
    assert tab.evaluate(heads) == ["0.1", "1.0", "0.1"]
    tab.evaluate("location.hash = '#step=5'")
    visitor.until("document.querySelector('.lv-count').textContent.startsWith('step 5 ')")


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        (r"(<title>)one", r"\1two"),
        (r'(data-place=")step=2', r"\1step=3"),
        (r'(id="about">|id="about" .*\n<p .*>)A ', r"\1The "),
        (r"(living-name.*>)A", r"\1C"),
        (r'(id="proof-2">\n<p .*>)random', r"\1wrong"),
        (r'(id="run"[^>]*>.{400}).', r"\1+"),
    ],
)
def test_what_was_altered_is_said(opened: Open, run: Translation, pattern: str, other: str) -> None:
    made, count = re.subn(pattern, other, page(run, place="step=2", beside=run), count=1)
    assert count == 1
    visitor = opened(made, ready=None)
    visitor.until("document.querySelector('#digest').textContent.startsWith('✗ ')")


def test_the_page_beside_the_documents_is_as_it_was_written(opened: Open) -> None:
    opened((ROOT / "docs/pages/en-pt.html").read_text(encoding="utf-8"))


def test_hostile_texts_stay_texts(opened: Open, translator: Translator) -> None:
    tab = opened(page(translator.translate(f"{HOSTILE}\x01\uffff", max_length=5))).page
    assert tab.evaluate("window.hacked === undefined && document.images.length === 0")
    assert "<script>" in tab.inner_text("#texts")


def test_two_frames_of_a_notebook_have_cursors_of_their_own_and_its_theme(
    opened: Open, run: Translation
) -> None:
    frames = "".join(show(run, place=f"step={step}")._repr_html_() for step in (1, 4))
    head = "<!doctype html><meta charset=utf-8><body data-jp-theme-light=false>"
    visitor = opened(f"{head}{frames}", ready=None)
    tab = visitor.page
    one, other = (tab.frame_locator(f"iframe >> nth={i}") for i in (0, 1))
    for frame in (one, other):
        frame.locator('.lv[data-ready="true"]').wait_for(timeout=PATIENCE)
    one.get_by_label("One forward").click()
    assert one.locator(".lv-count").inner_text().startswith("step 2 ")
    assert other.locator(".lv-count").inner_text().startswith("step 4 ")
    dark = "getComputedStyle(document.body).backgroundColor"
    assert tab.frames[1].evaluate(dark) == "rgb(18, 22, 28)"
    tab.evaluate("document.body.setAttribute('data-jp-theme-light', 'true')")
    waiting.until(lambda: tab.frames[1].evaluate(dark) == "rgb(255, 255, 255)")


def test_a_long_run_is_whole(opened: Open, translator: Translator) -> None:
    run = translator.force("one " * 90, "two three")
    visitor = opened(page(run))
    assert len(visitor.chips("source")) == len(run.source_tokens) > 64
    over(visitor, "encoder", 5, 4)
    layers, _ = run.config.sizes["encoder"]
    assert f"weight {run.weights('encoder', layers - 1, 0)[5, 4]:.3f}" in said(visitor)


def test_cells_of_both_runs_say_what_keys_carried_and_did(opened: Open) -> None:
    model = load_translator(ROOT / "assets/models/en-de")
    runs = [model.translate(text) for text in ("The house is old.", "The bookshelves lean.")]
    head = (model.heads or {})["default"]["cross"]
    pair = page(runs[0], model, beside=runs[1], measures=("carried", "effect"))
    tab: Any = opened(pair, bypass_csp=True, color_scheme="dark", viewport=PHONE).page
    again = [retrace(model, run) for run in runs]
    norms = [carried(model.model, each, "cross", *head).norms[1, 2] for each in again]
    whole = [Window(0, len(run.target_tokens), 0, len(run.source_tokens)) for run in runs]
    changes = [
        effect_in(model, each, "cross", *head, window)[1, 2]
        for each, window in zip(again, whole, strict=True)
    ]
    weights = [run.weights("cross", *head)[1, 2] for run in runs]
    told = {
        "Carried": [f"length {norm:.3f}" for norm in norms],
        "Effect": [f"Δ log p {change:+.3f} nats".replace("-", "−") for change in changes],
        "Weight": [f"weight {weight:.3f}" for weight in weights],
    }
    for name, texts in told.items():
        tab.get_by_role("button", name=name, exact=True).nth(1).click()
        for number, (run, text) in enumerate(zip(runs, texts, strict=True)):
            over_cell(tab, number, run, 1, 2)
            waiting.until(lambda text=text: text in said_by(tab))
    assert tab.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")
    accessible(tab)


def test_a_longer_run_has_tiles_and_some_heads_whole(
    opened: Open, translator: Translator, tmp_path: Path
) -> None:
    run = translator.force("one " * 260, "two three")
    visitor = opened(page(run, heads="encoder=1.2&encoder=2.1&cross=1.1"), "#encoder=2.2&cross=2.2")
    tab = visitor.page
    offered = (
        "[...document.querySelectorAll('[data-plot=encoder] option:enabled')].map(e => e.value)"
    )
    assert tab.evaluate(offered) == ["0.1", "1.0"]
    shown = "[...document.querySelectorAll('.lv-head')].map(e => e.value)"
    assert tab.evaluate(shown) == ["0.0", "1.0", "2.0"]
    tiles = tab.locator("[data-tiles=encoder] canvas")
    tiles.scroll_into_view_if_needed()
    box = box_of(tiles)
    side = (box["width"] - 34) / run.config.sizes["encoder"][1]
    tab.mouse.click(box["x"] + 30 + side / 2, box["y"] + 26 + side / 2)  # one that is a tile
    assert tab.evaluate(shown) == ["0.0", "1.0", "2.0"]
    tab.mouse.click(box["x"] + 30 + side / 2, box["y"] + 26 + 3 * side / 2)
    visitor.until("document.querySelector('[data-plot=encoder] .lv-head').value === '1.0'")
    tab.eval_on_selector("[data-tiles=encoder] details", "node => (node.open = true)")
    tab.get_by_text("Too many for a table").first.wait_for(timeout=PATIENCE)
    assert saved(visitor, "encoder", tmp_path).stat().st_size > 10_000


def saved(visitor: Visitor, kind: str, folder: Path) -> Path:
    """The file of a map."""
    with visitor.page.expect_download() as given:
        visitor.page.click(f"[data-plot={kind}] [data-act=save]")
    given.value.save_as(path := folder / given.value.suggested_filename)
    return Path(path)


def pixels_and_sheet(path: Path, strong: int, weak: int) -> tuple[np.ndarray, np.ndarray]:
    """(height, width, 3) pixels of a picture, and of its cells, where one colour is stronger than
    another."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    rows, columns = np.nonzero(pixels[..., strong] - pixels[..., weak] > 12)
    return pixels, pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def test_a_map_is_saved_with_its_colours_and_labels_on_white_and_its_numbers_as_a_table(
    opened: Open, run: Translation, tmp_path: Path
) -> None:
    visitor = opened(page(run, place="cross=1.2"), color_scheme="dark")
    path = saved(visitor, "cross", tmp_path)
    assert path.name == f"{run.model}-cross-1.2.png"
    weights = run.weights("cross", 0, 1)
    pixels, sheet = pixels_and_sheet(path, 0, 2)
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    sizes = [each / count for each, count in zip(sheet.shape, weights.shape, strict=False)]
    middles = [
        (np.arange(n) * size + size / 2).astype(int)
        for n, size in zip(weights.shape, sizes, strict=True)
    ]
    opacity = 0.08 + 0.92 * weights[..., None]
    wanted = 255 + opacity * (np.array([0xD5, 0x5E, 0x00]) - 255)
    assert np.abs(sheet[np.ix_(*middles)] - wanted).max() <= 2
    dark = np.argwhere(pixels.sum(2) < 200)
    beside = (len(pixels) - len(sheet), pixels.shape[1] - sheet.shape[1])
    assert (dark.min(0) < beside).all(), "labels above and beside the cells"
    assert dark.max(0)[0] > len(sheet) + 100, "a caption below them"
    a_table_and_a_csv_file_have_its_numbers(visitor.page, weights, tmp_path)


def a_table_and_a_csv_file_have_its_numbers(tab: Any, weights: np.ndarray, folder: Path) -> None:
    """Opens the table under the tiles of cross-attention, and saves it."""
    tab.click("[data-tiles=cross] summary")
    tab.wait_for_selector("[data-tiles=cross] table", timeout=PATIENCE)
    rows = tab.locator("[data-tiles=cross] tr")
    numbers = [[f"{weight:.3f}" for weight in row] for row in weights]
    assert [rows.nth(i + 1).locator("td").all_inner_texts() for i in range(len(numbers))] == numbers
    with tab.expect_download() as given:
        tab.click("[data-tiles=cross] button")
    given.value.save_as(folder / "cross.csv")
    assert given.value.suggested_filename == "cross-1.2.csv"
    with (folder / "cross.csv").open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    assert [line[1:] for line in lines] == numbers


def test_a_masked_part_of_a_saved_map_is_hatched(
    opened: Open, run: Translation, tmp_path: Path
) -> None:
    _, sheet = pixels_and_sheet(saved(opened(page(run)), "decoder", tmp_path), 1, 0)
    size = len(sheet) // len(run.decoder_input_tokens)
    masked = sheet[size // 4 : size, -size : -size // 4]
    assert {tuple(each) for each in np.unique(masked.reshape(-1, 3), axis=0)} > {(255, 255, 255)}


@pytest.mark.parametrize(
    ("scheme", "two"),
    thinned([("dark", True), ("light", True), ("light", False), ("dark", False)], 2),
)
def test_the_file_is_accessible(opened: Open, run: Translation, scheme: str, two: bool) -> None:
    tab: Any = opened(
        page(run, beside=run if two else None), color_scheme=scheme, bypass_csp=True
    ).page
    accessible(tab)


def test_the_file_works_in_a_sandboxed_frame(opened: Open, run: Translation) -> None:
    frame = show(run)._repr_html_().replace("<iframe", '<iframe sandbox="allow-scripts"', 1)
    tab: Any = opened(f"<!doctype html><meta charset=utf-8>{frame}", ready=None).page
    inside = tab.frame_locator("iframe")
    inside.locator('.lv[data-ready="true"]').wait_for(timeout=PATIENCE)
    inside.locator("[data-plot=cross] .lv-head").select_option("0.1")
    inside.locator("[data-plot=cross] .lv-body[aria-label*='head 2 of layer 1']").wait_for(
        timeout=PATIENCE
    )
    inside.get_by_label("One forward").click()
    assert inside.locator(".lv-problem").is_hidden()


def test_a_phone_scrolls_only_downwards(opened: Open, closed_form_models: dict[str, Path]) -> None:
    model = load_translator(closed_form_models["copy"])
    run = model.translate(CASES["copy"].sentence)
    visitor = opened(page(run, model), viewport=PHONE, has_touch=True)
    tab = visitor.page
    parts = "[...document.querySelectorAll('.stMain, .lv-cell, .lv-title')]"
    wide = f"{parts}.every(each => each.scrollWidth <= innerWidth)"
    assert tab.evaluate(wide)
    assert tab.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert html.escape(run.text) in tab.content()


def test_weights_of_one_s_own_are_stepped_over_and_said_as_they_are(opened: Open) -> None:
    weights = np.full((1, 2, 4, 4), 0.25)
    weights[0, 1] = [[-1, 0.5, 1.5, 0], [0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25], [1, 0, 0, 0]]
    visitor = opened(page(weights, ["the", "old", "red", "house"]))
    tab = visitor.page
    assert visitor.chips("target") == []
    choose(visitor, "encoder", 0, 1)
    for row, column in ((0, 0), (0, 2), (1, 3)):
        over(visitor, "encoder", row, column)
        told = said(visitor)
        assert f"weight {weights[0, 1, row, column]:.3f}".replace("-", "−") in told
        assert "score" not in told
    visitor.press("Home")
    tab.keyboard.press("ArrowRight")
    visitor.until("document.querySelector('.lv-count').textContent === 'token 2 of 4'")
    visitor.until("location.hash.startsWith('#source=2&')")
    tab.keyboard.press("Shift+ArrowRight")
    visitor.until("location.hash.startsWith('#source=3&sources=2-3&')")
    assert "score" not in said(visitor)
