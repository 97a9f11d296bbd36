"""Opens eight pages in Firefox and moves the cursor: run by hand, since the tests drive Chromium.

    apt-get install firefox-esr && pip install marionette_driver
    streamlit run app.py &
    python benchmarks/firefox.py http://localhost:8501/
    python benchmarks/firefox.py file:///tmp/live.html    # of `python -m explorer live`

Prints for each page the seconds until it is at rest, its exceptions, and by how much it is wider than the
window; then the step before a click, after it, and after a key. Of a page that translates: how it compares
with Python, and a sentence. The exit status is 1 if something failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAGES = (
    *("", "cross_attention", "masks", "inside_a_head"),
    *("beam_search", "what_if", "explanation", "positions"),
)
PORT = 2829
PREFERENCES = f'user_pref("marionette.port", {PORT});\nuser_pref("app.update.enabled", false);\n'
RESTS = """
const main = document.querySelector("[data-testid=stMain]");
const running = document.querySelector(
  "[data-testid=stStatusWidget], [data-testid=stSkeleton], [data-stale=true]"
);
return Boolean(main && main.innerText.length > 200 && !running);
"""
SEEN = """
const main = document.querySelector("[data-testid=stMain]");
return [document.querySelectorAll("[data-testid=stException]").length, main.scrollWidth - main.clientWidth];
"""
STEP = "return document.querySelector('.lv-count').textContent;"
RIGHT, ENTER = "\ue014", "\ue007"
"""Keys, in the protocol's codes."""


def settled(browser: Any, seconds: float = 60) -> float:
    """Waits until a page has been at rest for a second; returns the seconds until it was."""
    started, rested = time.monotonic(), 0
    while rested < 4:
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"The page is not at rest after {seconds:.0f} s.")
        rested = rested + 1 if browser.execute_script(RESTS) else 0
        time.sleep(0.25)
    return time.monotonic() - started - 1


def check(browser: Any, address: str) -> bool:
    """Prints what the pages and the cursor did; returns whether all went well."""
    well = True
    for page in PAGES:
        browser.navigate(address + page)
        seconds = settled(browser)
        exceptions, over = browser.execute_script(SEEN)
        well &= not exceptions and over <= 0
        print(f"{page or 'home'}: {seconds:.1f} s, {exceptions} exceptions, {over} px too wide", flush=True)
    browser.navigate(address)
    settled(browser)
    steps = [browser.execute_script(STEP)]
    browser.find_element("css selector", "[aria-label='One back']").click()
    settled(browser)
    steps.append(browser.execute_script(STEP))
    browser.find_element("css selector", ".lv").send_keys(RIGHT)
    settled(browser)
    steps.append(browser.execute_script(STEP))
    print(" → ".join(steps))
    return well and steps[0] == steps[2] != steps[1]


def check_live(browser: Any, address: str) -> bool:
    """Opens a page in which the model runs, and types a sentence."""
    start = time.monotonic()
    browser.navigate(address)
    status, digest = (browser.find_element("id", name) for name in ("status", "digest"))
    while "compared here with" not in digest.text:
        time.sleep(0.02)
    print(f"{time.monotonic() - start:.1f} s: {digest.text}")
    box = browser.find_element("name", "text")
    box.clear()
    box.send_keys("The old bridge is near the river." + ENTER)
    texts = browser.find_element("id", "texts")
    while "bridge" not in texts.text or "tokens in" not in status.text:
        time.sleep(0.02)
    print(f"{texts.text!r}: {status.text}")
    return digest.text.startswith("✓")


def main() -> int:
    """Starts Firefox with a profile of its own, and checks the app at the address that was given."""
    from marionette_driver.marionette import Marionette  # type: ignore[import-not-found]

    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        sys.exit("Firefox is not on the PATH.")
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text(PREFERENCES)
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", profile]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        browser = Marionette(host="127.0.0.1", port=PORT, startup_timeout=60)
        try:
            browser.start_session()
            browser.set_window_rect(width=1400, height=985)
            opened = check_live if sys.argv[1].endswith(".html") else check
            return 0 if opened(browser, sys.argv[1]) else 1
        finally:
            running.terminate()
            running.wait(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
