"""Export and opening again in Chromium: files arrive, say what they are, and run nothing."""

import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from closed_form import CASES, KNOWN

from transformer import load_trace

from .conftest import PATIENCE, Visitor, case_link

HOSTILE = (
    "</script><script>window.hacked=1</script> <b>one</b> \u202etwo\u202c #000001 <a href='//x.invalid'>z</a>"
)


def popover(visitor: Visitor) -> object:
    """Opens the export popover of the linked view."""
    visitor.page.locator(".st-key-export-run button").first.click()
    visitor.page.wait_for_selector(".export-row button", timeout=PATIENCE)
    return visitor.page.locator("[data-testid=stPopoverBody]")


def download(visitor: Visitor, box: object, label: str, path: Path) -> Path:
    """Saves the file behind a button."""
    with visitor.page.expect_download(timeout=PATIENCE) as waiting:
        box.get_by_role("button", name=label, exact=True).click()
    target = path / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def test_every_format_arrives_with_tokens_and_caption_inside(
    newcomer: Callable[..., Visitor], tmp_path: Path
) -> None:
    visitor = newcomer(offline=False)  # goes offline at the end
    case = CASES["reverse"]
    visitor.open("cross_attention", **case_link("reverse", step="2", cross="1.1"))
    assert visitor.page.locator(".export-row").count() == 0
    box = popover(visitor)
    png = download(visitor, box, "PNG", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", png[16:24])) > 1000
    assert len(png) > 20_000
    svg = download(visitor, box, "SVG", tmp_path).read_text()
    for text in (*case.translation.split(), "Cross-attention", "layer 1", "verified", "cross=1.1"):
        assert text in svg, text
    assert "data:image/png" in svg
    page = download(visitor, box, "HTML", tmp_path)
    assert "src=" not in page.read_text()[-20_000:]
    visitor.page.context.set_offline(True)
    visitor.page.goto(page.as_uri())
    visitor.page.wait_for_selector(".heatmaplayer image", timeout=PATIENCE)
    assert "Cross-attention" in visitor.page.inner_text("body")


def test_a_run_is_taken_home_as_a_page_that_opens_where_the_visitor_was(
    newcomer: Callable[..., Visitor], tmp_path: Path
) -> None:
    visitor = newcomer(offline=False)  # goes offline at the end
    visitor.open("", **case_link("reverse", step="2", cross="1.2"))
    page = download(visitor, popover(visitor), "Living page", tmp_path)
    visitor.page.context.set_offline(True)
    visitor.page.goto(page.as_uri())
    visitor.ready()
    assert visitor.count().startswith("step 2 of")
    assert visitor.page.input_value("[data-plot=cross] .lv-head") == "0.1"
    assert visitor.chips("target")[:-1] == CASES["reverse"].translation.split()
    assert "SHA-256" in visitor.page.inner_text("#proof")
    visitor.page.get_by_label("One forward").click()
    visitor.until("document.querySelector('.lv-count').textContent.startsWith('step 3 of')")


def test_a_run_is_exported_and_opened_again_without_its_model(visitor: Visitor, tmp_path: Path) -> None:
    case = CASES["shift"]
    visitor.open("cross_attention", **case_link("shift", step="2"))
    box = popover(visitor)
    npz = download(visitor, box, "NPZ", tmp_path)
    weights = load_trace(npz).head("cross", 0, 0).weights
    assert (weights[case.weights("cross", 0) == 1] > KNOWN).all()
    visitor.page.goto(f"{visitor.base}/open_file")
    visitor.page.set_input_files("input[type=file]", npz)
    visitor.page.get_by_role("link", name="Show it").click(timeout=PATIENCE)
    visitor.ready()
    assert visitor.chips("target")[:-1] == case.translation.split()
    assert "imported file, consistent" in visitor.page.text_content("[data-plot=cross]")
    x, y = visitor.centre("cross", 1, case.keys("cross", 0)[1])
    visitor.page.mouse.move(x, y)
    visitor.page.wait_for_selector("[data-plot=cross] .hoverlayer .hovertext", timeout=PATIENCE)
    hover = visitor.page.text_content("[data-plot=cross] .hoverlayer")
    assert float(re.search(r"weight ([\d.]+)", hover).group(1)) > KNOWN
    visitor.page.locator(".st-key-menu summary", has_text="Research").click()
    visitor.page.locator(".st-key-menu").get_by_role("link", name="Open a file").click()
    visitor.page.get_by_role("link", name="Run it again").wait_for(timeout=PATIENCE)


def test_damaged_files_get_one_sentence_and_the_page_lives_on(visitor: Visitor, tmp_path: Path) -> None:
    visitor.page.goto(f"{visitor.base}/open_file")
    for name, content in (("a.npz", np.random.default_rng(1).bytes(3_000)), ("b.npz", b"[" * 90_000)):
        (tmp_path / name).write_bytes(content)
        visitor.page.set_input_files("input[type=file]", tmp_path / name)
        visitor.page.wait_for_selector("[data-testid=stAlert]", timeout=PATIENCE)
        assert visitor.page.inner_text("[data-testid=stAlert]").count(".") == 1
        visitor.page.get_by_role("button", name="Remove").first.click()
        visitor.page.wait_for_selector("[data-testid=stAlert]", state="detached", timeout=PATIENCE)
    assert visitor.page.locator(".stException").count() == 0


def test_hostile_tokens_stay_text_in_a_file(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open("encoder_self_attention", model="random", text=HOSTILE)
    box = popover(visitor)
    svg, page = (download(visitor, box, label, tmp_path) for label in ("SVG", "HTML"))
    assert not re.search("<script|\u202e", svg.read_text())
    requests: list[str] = []
    visitor.page.on("request", lambda request: requests.append(request.url))
    for file, drawn in ((svg, "svg"), (page, ".heatmaplayer image")):
        visitor.page.goto(file.as_uri())
        visitor.page.wait_for_selector(drawn, timeout=PATIENCE)
        assert visitor.page.evaluate("window.hacked") is None
        assert visitor.page.locator("a[href*=invalid]").count() == 0
    assert not [url for url in requests if "invalid" in url]


def test_a_figure_for_a_paper_is_shown_and_arrives_under_the_name_of_the_sentence(
    visitor: Visitor, tmp_path: Path
) -> None:
    case = CASES["reverse"]
    visitor.open("cross_attention", **case_link("reverse", step="2", cross="1.1"))
    box = popover(visitor)
    box.get_by_text("a figure for a paper").click()
    for file, begin in (("PDF", b"%PDF"), ("SVG", b"<?xml")):
        box.get_by_role("radio", name=file, exact=True).click()
        box.get_by_role("button", name=f"Save {file}", exact=True).wait_for(timeout=PATIENCE)
        saved = download(visitor, box, f"Save {file}", tmp_path)
        assert saved.read_bytes().startswith(begin)
        assert saved.name == f"{case.sentence.replace(' ', '-').lower()}-cross-l1-h1.{file.lower()}"
    figure = box.locator("img").first
    figure.wait_for(timeout=PATIENCE)
    assert case.translation.split()[0] in figure.get_attribute("alt")
    svg = saved.read_text()
    for text in (*case.translation.split(), "Cross-attention", case.sentence, "cross=1.1"):
        assert text in svg, text
    assert "<image" not in svg
