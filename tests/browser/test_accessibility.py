"""Contrast, labels and names on every page, light and dark, judged by axe-core."""

from collections.abc import Sequence
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe

from explorer.app.address import sitemap

from .conftest import PATIENCE, Visitor, case_link

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "rules": {"scrollable-region-focusable": {"enabled": False}},
    "resultTypes": ["violations"],
}
"""Contrast, labels, names, the rest of WCAG 2.1 AA; browsers themselves let the focus into scroll
areas."""
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
"""What depends on the colour scheme."""
AXE = Axe()
CHROME = [[".stAppHeader"], [".stSidebarHeader"]]
"""Streamlit's own, which no page can change."""
MENU = [[".stSidebar"]]
"""What is the same on every page; it is judged on one."""
UNJUDGED = [[".main-svg"]]
"""What plotly.js draws, in SVG without roles: axe-core reaches no verdict on it."""
VIEWS: dict[str, tuple[dict[str, str], ...]] = {
    "decoder_self_attention": ({"show": "strongest"},),
    "cross_attention": ({"show": "lines"}, {"view": "alignment"}, {"lesson": "map.2"}),
    "masks": ({"view": "batch"},),
    "positions": ({"view": "sentence"},),
    "findings": ({"study": "positions"}, {"study": "en-pt/importance"}),
    "what_if": (
        {"changes": "scale_cross_1_1_2.0", "off": "1.hide_1"},
        {"view": "compare"},
    ),
    "beam_search": ({"view": "sampling"},),
    "training": ({"view": "loss"}, {"view": "schedule"}),
    "inside_a_head": ({"lesson": "by-hand.2", "section": "projections"},),
}
"""What else is judged of a page besides what it opens with."""
WHOLE = {
    group.name: [name for entry in sitemap.entries(group.name) for name in entry]
    for group in sitemap.GROUPS
}
"""The pages of each group of the menu."""
FEW = {
    sitemap.HOME: ({},),
    "masks": ({"view": "batch"},),
    "what_if": VIEWS["what_if"][:1],
    "heads": ({},),
}
"""Places that have together every kind of element; all others are judged nightly."""
GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}


def drawn(visitor: Visitor) -> None:
    """Waits until the linked view, if there is one, is drawn, the script has ended, and no colour
    changes."""
    visitor.page.wait_for_selector(".stMainBlockContainer .stElementContainer", timeout=PATIENCE)
    visitor.until(
        "[...document.querySelectorAll('.lv')].every((view) => view.dataset.ready === 'true')"
    )
    ended = "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
    visitor.until(f"{ended} && !document.querySelector('[data-stale=true]')")  # which is paler
    visitor.until("document.getAnimations().every((each) => each.playState !== 'running')")


def objections(visitor: Visitor, menu: bool = False) -> list[str]:
    """What axe-core objects to in both colour schemes, on the page and perhaps in the menu.

    The scheme that the page has comes first, since another one draws the page again.
    """
    excluded = [*CHROME, *UNJUDGED, *([] if menu else MENU)]
    schemes = [("light", RULES), ("dark", CONTRAST)]
    if visitor.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"):
        schemes.reverse()
    return [each for scheme, rules in schemes for each in found(visitor, scheme, rules, excluded)]


def found(
    visitor: Visitor, scheme: str, rules: dict[str, object], excluded: Sequence[list[str]]
) -> list[str]:
    """What axe-core objects to in a colour scheme: the rule, the place, and what is wrong there."""
    visitor.page.emulate_media(color_scheme=scheme)
    ground = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    visitor.until(f"{ground} === '{GROUNDS[scheme]}'")
    drawn(visitor)
    if not visitor.page.evaluate("'axe' in window"):
        visitor.page.evaluate(AXE.axe_script)
    result = visitor.page.evaluate("given => axe.run(...given)", [{"exclude": excluded}, rules])
    return [
        f"{scheme} {broken['id']} {node['target']} {node['failureSummary']}"
        for broken in result["violations"]
        for node in broken["nodes"]
    ]


@pytest.mark.parametrize(
    "group", ["a few", *(pytest.param(group, marks=pytest.mark.nightly) for group in WHOLE)]
)
def test_every_page_has_contrast_and_names_in_light_and_dark(visitor: Visitor, group: str) -> None:
    wrong = []
    whole = {page: ({}, *VIEWS.get(page, ())) for page in WHOLE.get(group, ())}
    for page, views in (whole or FEW).items():
        for more in views:
            address = (
                f"{page.removeprefix(sitemap.HOME)}?{urlencode(case_link('copy', step='2') | more)}"
            )
            visitor.page.goto(f"{visitor.base}/{address}")
            drawn(visitor)
            found = objections(visitor, menu=page == sitemap.HOME)
            wrong += [f"{address} {objection}" for objection in found]
    assert not wrong, "\n".join(wrong)


INK = """[...document.querySelectorAll(".st-key-shifted text")]
  .filter((label) => label.textContent === "drei").map((label) => getComputedStyle(label).fill)"""
"""The colours of a token in the figure of what training is shown."""


def test_words_in_figures_follow_the_page_when_it_becomes_dark_and_light_again(
    visitor: Visitor,
) -> None:
    visitor.page.emulate_media(color_scheme="light")
    link = {"model": "random", "text": "one two three", "target": "eins drei zwei"}
    visitor.go("training", f"{INK}.length > 0", **link)
    light = "(fill) => fill.match(/\\d+/g).slice(0, 3).every((part) => Number(part) > 128)"
    assert not visitor.read(f"{INK}.some({light})")
    visitor.page.emulate_media(color_scheme="dark")
    visitor.until(f"{INK}.length > 0 && {INK}.every({light})")
    visitor.page.emulate_media(color_scheme="light")
    visitor.until(f"{INK}.length > 0 && !{INK}.some({light})")


def test_the_opened_export_has_contrast_and_names(visitor: Visitor) -> None:
    visitor.open("cross_attention", **case_link("copy", step="2"))
    visitor.page.locator(".st-key-export-run button").first.click()
    visitor.page.wait_for_selector(".export-row button", timeout=PATIENCE)
    assert objections(visitor) == []
    visitor.page.get_by_text("a figure for a paper").click()
    visitor.page.wait_for_selector("[data-testid=stPopoverBody] img", timeout=PATIENCE)
    assert objections(visitor) == []
