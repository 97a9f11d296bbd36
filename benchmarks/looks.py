"""The app to look at: pictures of its pages, and eight pages in Firefox, which the tests do not
drive."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from benchmarks.browser import chromium, served
from explorer.app.address import sitemap

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DRAWN = """() => {
  const all = (selector, done) => [...document.querySelectorAll(selector)].every(done);
  return document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
    && document.querySelector(".stMain h1")
    && all(".lv", (view) => view.dataset.ready === "true")
    && all("[data-stale=true], [data-testid=stSkeleton]", () => false)
    && all(".stPlotlyChart", (plot) => plot.querySelector(".main-svg"));
}"""
FIREFOX_PAGES = (
    "",
    *("cross_attention", "masks", "inside_a_head", "beam_search", "what_if", "explanation"),
)
RESTS = """
const main = document.querySelector("[data-testid=stMain]");
const running = document.querySelector(
  "[data-testid=stStatusWidget], [data-testid=stSkeleton], [data-stale=true]"
);
return Boolean(main && main.innerText.length > 200 && !running);
"""
FAULTS = """
const main = document.querySelector("[data-testid=stMain]");
const exceptions = document.querySelectorAll("[data-testid=stException]");
return [exceptions.length, main.scrollWidth - main.clientWidth];
"""
Scheme = Literal["light", "dark"]
RIGHT, ENTER = "\ue014", "\ue007"
"""Keys, in the protocol's codes."""


def screenshots(
    folder: Annotated[str, "DIR", "where every page goes, wide and on a phone"],
) -> int:
    """Takes pictures of every page, light and dark, to look at."""
    with served() as there, chromium() as browser:
        for name in sitemap.PAGES:
            for size in ((1400, 900), (390, 844)):
                for scheme in get_args(Scheme):
                    shot = _shot(browser, there.url, name.removeprefix(sitemap.HOME), size, scheme)
                    Path(folder, f"{name}-{size[0]}-{scheme}.png").write_bytes(shot)
    return 0


def _shot(browser: Browser, base: str, path: str, size: tuple[int, int], scheme: Scheme) -> bytes:
    """A page once it rests."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{base}/{path}")
    page.wait_for_function(DRAWN, timeout=120_000)
    page.wait_for_load_state("networkidle")
    picture: bytes = page.screenshot()
    context.close()
    return picture


def firefox(
    address: Annotated[str, "URL", "the app, or the file of a page that translates"],
) -> int:
    """Opens pages in Firefox and moves the cursor; or types a sentence into a page that translates.

    Needs `apt-get install firefox-esr` and `pip install marionette_driver`.
    """
    from marionette_driver.marionette import Marionette  # type: ignore[import-not-found]

    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        raise ValueError("Firefox is not on the PATH.")
    with tempfile.TemporaryDirectory() as profile:
        settings = 'user_pref("marionette.port", 2829);\nuser_pref("app.update.enabled", false);\n'
        Path(profile, "user.js").write_text(settings)
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", profile]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        browser = Marionette(host="127.0.0.1", port=2829, startup_timeout=60)
        try:
            browser.start_session()
            browser.set_window_rect(width=1400, height=985)
            check = _check_live if address.endswith(".html") else _check_app
            return int(not check(browser, address))
        finally:
            running.terminate()
            running.wait(timeout=20)


def _check_app(browser: Any, address: str) -> bool:
    """Prints what the pages and the cursor did; returns whether all went well."""
    well, seen = True, []
    for page in (*FIREFOX_PAGES, ""):
        browser.navigate(address + page)
        seconds = _settled(browser)
        exceptions, over = browser.execute_script(FAULTS)
        well &= not exceptions and over <= 0
        print(
            f"{page or 'home'}: {seconds:.1f} s, {exceptions} exceptions, {over} px too wide",
            flush=True,
        )
    acts = (
        lambda: None,
        lambda: browser.find_element("css selector", "[aria-label='One back']").click(),
        lambda: browser.find_element("css selector", ".lv").send_keys(RIGHT),
    )
    for act in acts:
        act()
        _settled(browser)
        seen.append(
            browser.execute_script("return document.querySelector('.lv-count').textContent;")
        )
    print(" → ".join(seen))
    return well and seen[0] == seen[2] != seen[1]


def _settled(browser: Any) -> float:
    """Waits until a page has been at rest for a second; returns the seconds until it was."""
    started = time.monotonic()
    rested = 0
    while rested < 4:
        if time.monotonic() - started > 60:
            raise TimeoutError("The page is not at rest after 60 s.")
        rested = rested + 1 if browser.execute_script(RESTS) else 0
        time.sleep(0.25)
    return time.monotonic() - started - 1


def _check_live(browser: Any, address: str) -> bool:
    """Opens a page in which the model runs, and types a sentence."""
    start = time.monotonic()
    browser.navigate(address)
    status, digest, texts = (
        browser.find_element("id", name) for name in ("status", "digest", "texts")
    )
    while "compared here with" not in digest.text:
        time.sleep(0.02)
    print(f"{time.monotonic() - start:.1f} s: {digest.text}")
    box = browser.find_element("name", "text")
    box.clear()
    box.send_keys("The old bridge is near the river." + ENTER)
    while "bridge" not in texts.text or "tokens in" not in status.text:
        time.sleep(0.02)
    print(f"{texts.text!r}: {status.text}")
    return bool(digest.text.startswith("✓"))
