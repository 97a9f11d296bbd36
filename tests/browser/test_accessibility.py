"""Contrast, labels and names on every page, light and dark, judged by axe-core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from ui.shell import doors

from .conftest import PATIENCE, Visitor, case_link

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "rules": {"scrollable-region-focusable": {"enabled": False}},
    "resultTypes": ["violations"],
}
"""Contrast, labels, names, the rest of WCAG 2.1 AA; browsers themselves let the focus into scroll areas."""
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
"""What depends on the colour scheme."""
CHROME = [[".stAppHeader"], [".stSidebarHeader"]]
"""Streamlit's own, which no page can change."""
MENU = [[".stSidebar"]]
"""What is the same on every page; it is judged on one."""
UNJUDGED = [[".main-svg"]]
"""Charts of plotly.js: axe-core reaches no verdict on the contrast of SVG."""
VIEWS = (
    *((doors.script(name), {}) for name in doors.PAGES),
    ("pages/encoder_self_attention.py", {"view": "batch"}),
    ("pages/decoder_self_attention.py", {"show": "strongest"}),
    ("pages/cross_attention.py", {"show": "lines"}),
    ("pages/cross_attention.py", {"view": "alignment"}),
    ("pages/masks.py", {"view": "batch"}),
    ("pages/positions.py", {"view": "sentence"}),
    ("pages/positions.py", {"view": "results"}),
    ("pages/what_if.py", {"changes": "scale_cross_1.1_2.0", "off": "1.hide_1"}),
    ("pages/what_if.py", {"view": "experiments"}),
    ("pages/what_if.py", {"view": "causal", "other": "one two nine four stop five six"}),
    ("pages/beam_search.py", {"view": "sampling"}),
    ("pages/training.py", {"view": "loss"}),
    ("pages/training.py", {"view": "schedule"}),
    ("pages/training.py", {"view": "cost"}),
    ("pages/cross_attention.py", {"lesson": "map.2"}),
    ("pages/inside_a_head.py", {"lesson": "by-hand.2", "section": "projections"}),
)
GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}


def name_of(view: tuple[str, dict[str, str]]) -> str:
    """A page and the view it shows, as a name for its test."""
    path, more = view
    return "-".join([Path(path).stem, *more.values()])


def drawn(visitor: Visitor) -> None:
    """Waits until the linked view, if there is one, is drawn, the script has ended, and no colour changes."""
    visitor.page.wait_for_selector(".stMainBlockContainer .stElementContainer", timeout=PATIENCE)
    visitor.until("[...document.querySelectorAll('.lv')].every((view) => view.dataset.ready === 'true')")
    ended = "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
    visitor.until(f"{ended} && !document.querySelector('[data-stale=true]')")  # which is paler
    visitor.until("document.getAnimations().every((each) => each.playState !== 'running')")


def objections(visitor: Visitor, menu: bool = False) -> list[str]:
    """What axe-core objects to in both colour schemes, on the page and perhaps in the menu."""
    excluded = [*CHROME, *([] if menu else MENU)]
    return [
        *found(visitor, "light", RULES, excluded),
        *found(visitor, "dark", CONTRAST, [*excluded, *UNJUDGED]),
    ]


def found(
    visitor: Visitor, scheme: str, rules: dict[str, object], excluded: Sequence[list[str]]
) -> list[str]:
    """What axe-core objects to in a colour scheme: the rule, the place, and what is wrong there."""
    visitor.page.emulate_media(color_scheme=scheme)
    ground = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    visitor.until(f"{ground} === '{GROUNDS[scheme]}'")
    drawn(visitor)
    result = Axe().run(visitor.page, {"exclude": excluded}, rules).response
    return [
        f"{scheme} {broken['id']} {node['target']} {node['failureSummary']}"
        for broken in result["violations"]
        for node in broken["nodes"]
    ]


@pytest.mark.parametrize("view", VIEWS, ids=name_of)
def test_every_page_has_contrast_and_names_in_light_and_dark(
    visitor: Visitor, view: tuple[str, dict[str, str]]
) -> None:
    path, more = view
    address = "" if path == "app.py" else Path(path).stem
    query = "&".join(f"{name}={value}" for name, value in (case_link("copy", step="2") | more).items())
    visitor.page.goto(f"{visitor.base}/{address}?{query}")
    drawn(visitor)
    assert objections(visitor, menu=path == "app.py") == []


def test_the_snapshots_of_a_run_have_contrast_and_names(visitor: Visitor, grown: str) -> None:
    link = case_link("copy") | {"view": "birth", "run": grown, "snapshot": "16"}
    visitor.page.goto(f"{visitor.base}/training?" + "&".join(f"{k}={v}" for k, v in link.items()))
    drawn(visitor)
    assert objections(visitor) == []


@pytest.mark.parametrize("paper", [False, True])
def test_the_opened_export_has_contrast_and_names(visitor: Visitor, paper: bool) -> None:
    visitor.open("cross_attention", **case_link("copy", step="2"))
    visitor.page.locator(".st-key-export-run button").first.click()
    visitor.page.wait_for_selector(".export-row button", timeout=PATIENCE)
    if paper:
        visitor.page.get_by_text("a figure for a paper").click()
        visitor.page.wait_for_selector("[data-testid=stPopoverBody] img", timeout=PATIENCE)
    assert objections(visitor) == []
