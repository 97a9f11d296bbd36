"""The app in a frame of another page, with `?embed=true`: it is drawn, steps, and other pages open
there."""

from collections.abc import Callable
from urllib.parse import urlencode

from explorer.app.address import sitemap

from .conftest import PATIENCE, VIEWPORT, Visitor, case_link, patient


def test_the_app_works_in_a_frame_and_stays_embedded(newcomer: Callable[..., Visitor]) -> None:
    visitor = newcomer(viewport=VIEWPORT)
    address = f"{visitor.base}/?{urlencode({'embed': 'true', **case_link('copy', step='2')})}"
    size = f'width="{VIEWPORT["width"] - 40}" height="{VIEWPORT["height"] - 40}"'
    visitor.page.set_content(f'<iframe src="{address.replace("&", "&amp;")}" {size}></iframe>')
    frame = visitor.page.query_selector("iframe").content_frame()

    def until(condition: str) -> None:
        frame.wait_for_function(patient(condition), timeout=PATIENCE)

    until("document.querySelector('.lv')?.dataset.ready === 'true'")
    frame.focus(".lv")
    visitor.page.keyboard.press("ArrowRight")
    until("location.search.includes('step=3')")
    assert frame.query_selector(".stAppToolbar") is None
    assert frame.evaluate("location.search").count("embed=true") == 1
    frame.click(".st-key-menu a[href^='cross_attention']")
    until(f"document.title.startsWith({sitemap.PAGES['cross_attention'].name!r})")
    until("document.querySelector('.lv')?.dataset.ready === 'true'")
    until("location.search.includes('embed=true') && location.search.includes('step=3')")
