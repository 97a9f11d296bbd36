"""What takes a browser: typing, stepping, keys, addresses, files, axe, and two visitors."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from tests.acceptance import surface

pytestmark = pytest.mark.browser
TEXT = "The old house is not for sale."
HOSTILE = "<img src=x onerror='hacked=1'><script>hacked=1</script> \u202eone"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def visitor() -> Iterator[Callable[..., Any]]:
    """Opens a page for somebody who was never there before."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{probe.getsockname()[1]}"
    line = [sys.executable, "-m", "streamlit", "run", surface.HOME, "--server.headless=true"]
    line += [
        "--server.address=127.0.0.1",
        f"--server.port={url[10:]}",
        "--server.fileWatcherType=none",
    ]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        sync_playwright() as playwright,
        subprocess.Popen(
            line, cwd=surface.ROOT, env=env, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        browser = playwright.chromium.launch(
            executable_path=surface.CHROMIUM, args=["--no-sandbox"]
        )
        expect.set_options(timeout=60_000)

        def opened(page: str = "", **address: str) -> Any:
            tab = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            tab.set_default_timeout(60_000)
            tab.goto(
                f"http://{url}/{page}?{urlencode({'model': 'en-de', 'text': TEXT, **address})}"
            )
            tab.wait_for_selector(surface.VIEW)
            return tab

        assert any(url in said for said in server.stdout), "the server ended"
        yield opened
        browser.close()
        server.kill()


def typed(tab: Any, text: str, *shown: tuple[str, str]) -> None:
    tab.get_by_label(surface.FIELD).fill(text)
    tab.get_by_label(surface.FIELD).press("Enter")
    for side, word in shown:
        expect(tab.locator(surface.WORDS.format(side)).filter(has_text=word).first).to_be_visible()
    tab.wait_for_selector(surface.VIEW)


def at_step(tab: Any, step: int) -> None:
    expect(tab.locator(surface.COUNT)).to_have_text(re.compile(f"step {step} of"))


def saved(tab: Any, label: str, folder: Path) -> Path:
    tab.locator(surface.SAVE).first.click()
    with tab.expect_download(timeout=60_000) as waiting:
        tab.get_by_role("button", name=label, exact=True).first.click()
    waiting.value.save_as(folder / waiting.value.suggested_filename)
    tab.keyboard.press("Escape")
    return folder / waiting.value.suggested_filename


def test_two_visitors_type_step_and_see_only_their_own(visitor: Callable[..., Any]) -> None:
    one = visitor(step="2")
    other = visitor(step="4")
    typed(one, "My garden is small.", ("source", "garden"), ("target", "Garten"))
    at_step(other, 4)
    other.get_by_label(surface.FORWARD).click()
    at_step(other, 5)
    other.locator(surface.VIEW).focus()
    other.keyboard.press("Home")
    other.keyboard.press("ArrowRight")
    at_step(other, 2)
    other.select_option(surface.HEADS, "0.1")
    other.wait_for_url(re.compile(r"(?=.*step=2)(?=.*cross=1\.2)"))
    again = other.context.new_page()
    again.goto(other.url)
    again.wait_for_selector(surface.VIEW)
    at_step(again, 2)
    assert again.input_value(surface.HEADS) == "0.1"
    expect(again.locator(surface.WORDS.format("target")).filter(has_text="Haus")).to_be_visible()


def test_a_view_is_described_accessible_and_taken_home(
    visitor: Callable[..., Any], tmp_path: Path
) -> None:
    tab = visitor("cross_attention", step="3", cross="3.5")
    asked = []
    assert len(tab.locator(surface.CAPTION).first.inner_text()) > 30
    assert "head 5 of layer 3" in tab.locator(surface.MAP).get_attribute("aria-label")
    tab.locator(surface.VERIFIED, has_text="✓ verified").first.wait_for()
    result = Axe().run(tab, context={"exclude": surface.NOT_OURS}, options=RULES).response
    assert [each["id"] for each in result["violations"]] == []
    run = surface.load_trace(saved(tab, "NPZ", tmp_path))
    assert run.text == surface.translator("en-de").translate(TEXT).text
    assert saved(tab, "PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    page = saved(tab, "Living page", tmp_path)
    tab.context.set_offline(True)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector(surface.VIEW)
    at_step(tab, 3)
    tab.get_by_label(surface.FORWARD).click()
    at_step(tab, 4)
    assert "head 5 of layer 3" in tab.locator(surface.MAP).get_attribute("aria-label")
    assert [url for url in asked if url.startswith("http")] == []


def test_hostile_text_is_shown_as_text_and_runs_nothing(
    visitor: Callable[..., Any], tmp_path: Path
) -> None:
    tab = visitor()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    typed(tab, HOSTILE, ("source", "<"), ("source", "="))
    page = saved(tab, "Living page", tmp_path)
    assert (tab.evaluate("'hacked' in window"), errors) == (False, [])
    tab.goto(page.as_uri())
    tab.wait_for_selector(surface.VIEW)
    assert HOSTILE[:40] in tab.inner_text("body") + tab.title()
    assert (tab.evaluate("'hacked' in window"), errors) == (False, [])
