"""Takes the README's picture again; or every page, wide and on a phone, light and dark, to look at.

    python benchmarks/screenshots.py [--pages DIR] [--only cross inside]

Each picture of a page holds four views side by side.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.app import ARGUMENTS, CHROMIUM, server  # noqa: E402

PAGES = {
    "translate": "",
    "encoder": "encoder_self_attention",
    "decoder": "decoder_self_attention",
    "cross": "cross_attention",
    "inside": "inside_a_head",
    "whole_model": "whole_model",
    "findings": "findings?study=positions",
    "beam_search": "beam_search?text=The+cat+is+sleeping+in+the+garden.&decode=beam-4",
    "training": "training?text=The+house+is+old.&target=Dieses+Haus+ist+alt.",
    "positions": "positions",
    "masks": "masks",
    "language_model": "language_model?prompt=The+old+man+told",
    "recurrent": "recurrent",
    "what_if": "what_if?text=The+cat+is+sleeping+in+the+garden.&changes=hide_2",
    "compare": "what_if?view=compare",
    "heads": "heads",
    "open": "open_file",
}
SINGLE = {"home": ("", (1400, 900), 1400)}
"""Pictures of one view: the page, the window, and the width in px."""
VIEWS = [(size, scheme) for size in ((1400, 900), (390, 844)) for scheme in ("light", "dark")]
HEIGHT, GAP = 480, 10
LINKED = (
    "",
    "encoder_self_attention",
    "decoder_self_attention",
    "cross_attention",
    "inside_a_head",
    "whole_model",
    "beam_search",
    "language_model",
)
"""Pages with a linked view."""
RESTS = """linked => {
  const all = (selector, done) => [...document.querySelectorAll(selector)].every(done);
  return document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
    && document.querySelector(".stMain h1")
    && (!linked || document.querySelector(".lv[data-ready=true]"))
    && all("[data-stale=true], [data-testid=stSkeleton]", () => false)
    && all("[data-plot=encoder], [data-plot=decoder], [data-plot=cross], .stPlotlyChart",
      (plot) => plot.querySelector(".main-svg"));
}"""


def shot(browser: Browser, base: str, path: str, size: tuple[int, int], scheme: str = "light") -> Image.Image:
    """A page once it rests."""
    linked = path.partition("?")[0] in LINKED
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{base}/{path}")
    page.wait_for_function(RESTS, arg=linked, timeout=120_000)
    page.wait_for_load_state("networkidle")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    context.close()
    return picture


def scaled(picture: Image.Image, width: int | None = None) -> Image.Image:
    """The picture at a width, or at the height that all views share."""
    factor = HEIGHT / picture.height if width is None else width / picture.width
    size = round(picture.width * factor), round(picture.height * factor)
    return picture.resize(size, Image.Resampling.LANCZOS)


def side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """All views of a page in one picture."""
    width = sum(each.width for each in pictures) + GAP * (len(pictures) - 1)
    sheet = Image.new("RGB", (width, HEIGHT), "#888888")
    left = 0
    for each in pictures:
        sheet.paste(each, (left, 0))
        left += each.width + GAP
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="DIR", help="where to write the pictures of pages")
    parser.add_argument("--only", nargs="*", help="names of pictures")
    asked = parser.parse_args()
    output = asked.pages or ROOT / "assets" / "screenshots"
    output.mkdir(parents=True, exist_ok=True)
    with server("app.py", None) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name in asked.only or (PAGES if asked.pages else SINGLE):
            if name in SINGLE:
                path, window, width = SINGLE[name]
                picture = scaled(shot(browser, base, path, window), width)
            else:
                views = [scaled(shot(browser, base, PAGES[name], *view)) for view in VIEWS]
                picture = side_by_side(views)
            picture.save(output / f"{name}.webp", quality=82, method=6)
            print(f"{name}.webp, {picture.width} × {picture.height} px", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
