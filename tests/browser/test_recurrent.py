"""The page Recurrent in Chromium: its models, its address, a phone."""

from __future__ import annotations

from .conftest import Visitor

PLOTS = "document.querySelectorAll('.stMain .js-plotly-plot .main-svg').length > 1"
QUIET = "document.querySelector('.stApp').dataset.testScriptState !== 'running'"


def go(visitor: Visitor, query: str = "") -> None:
    visitor.page.goto(f"{visitor.base}/recurrent?{query}")
    visitor.until(PLOTS)


def test_choosing_another_score_is_in_the_address_and_back_undoes_it(visitor: Visitor) -> None:
    go(visitor)
    visitor.page.get_by_role("radio", name="dot product").click()
    visitor.until("location.search.includes('score=dot')")
    visitor.until("document.body.innerText.includes('recurrent/dot')")
    visitor.page.go_back()
    visitor.until("document.body.innerText.includes('recurrent/additive')")
    assert "score" not in visitor.params()


def test_local_attention_marks_its_centres_on_the_map(visitor: Visitor) -> None:
    go(visitor, "score=local")
    visitor.until("document.querySelectorAll('.stMain .js-plotly-plot .scatterlayer .point').length > 2")
    visitor.until("document.body.innerText.includes('its centre is position')")


def test_the_sections_fit_a_phone(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    for view in ("", "view=path"):
        visitor.page.goto(f"{visitor.base}/recurrent?{view}")
        visitor.until("document.querySelectorAll('.stMain .js-plotly-plot .main-svg').length > 0")
        visitor.until(QUIET)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390, view
