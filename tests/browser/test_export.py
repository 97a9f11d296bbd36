"""Export and opening again in Chromium: files arrive, say what they are, and run nothing."""

import re
import struct
from collections.abc import Callable
from pathlib import Path

from closed_form import CASES, KNOWN

from transformer import load_trace

from .conftest import PATIENCE, Visitor, case_link

HOSTILE = (
    "</script><script>window.hacked=1</script> <b>one</b> \u202etwo\u202c #000001 <a "
    "href='//x.invalid'>z</a>"
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


def test_every_format_arrives_with_tokens_and_caption_inside_and_runs_nothing(
    newcomer: Callable[..., Visitor], tmp_path: Path
) -> None:
    visitor = newcomer(offline=False)  # goes offline at the end
    visitor.open("cross_attention", model="random", text=HOSTILE, step="2", cross="1.1")
    assert visitor.page.locator(".export-row").count() == 0
    box = popover(visitor)
    png = download(visitor, box, "PNG", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", png[16:24])) > 1000
    assert len(png) > 20_000
    svg, page = (download(visitor, box, label, tmp_path) for label in ("SVG", "HTML"))
    for text in (
        "one",
        "two",
        "Cross-attention",
        "layer 1",
        "verified",
        "cross=1.1",
        "data:image/png",
    ):
        assert text in svg.read_text(), text
    assert not re.search("<script|\u202e", svg.read_text())
    assert "src=" not in page.read_text()[-20_000:]
    visitor.page.context.set_offline(True)
    for file, drawn in ((svg, "svg"), (page, ".heatmaplayer image")):
        visitor.page.goto(file.as_uri())
        visitor.page.wait_for_selector(drawn, timeout=PATIENCE)
        assert visitor.page.evaluate("window.hacked") is None
        assert visitor.page.locator("a[href*=invalid]").count() == 0
    assert "Cross-attention" in visitor.page.inner_text("body")


def test_a_run_is_exported_and_opened_again_without_its_model(
    visitor: Visitor, tmp_path: Path
) -> None:
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
