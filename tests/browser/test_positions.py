"""The page of positions in Chromium: its parts, its address, a phone."""

from __future__ import annotations

import pytest

from .conftest import Visitor, case_link

PLOTS = "document.querySelectorAll('.stMain .js-plotly-plot .main-svg').length > 0"
QUIET = "document.querySelector('.stApp').dataset.testScriptState !== 'running'"


def go(visitor: Visitor, query: str) -> None:
    visitor.page.goto(f"{visitor.base}/positions?{query}")
    visitor.until(PLOTS)


def test_choosing_another_encoding_is_in_the_address_and_back_undoes_it(visitor: Visitor) -> None:
    go(visitor, "base=100")
    visitor.page.get_by_role("radio", name="ALiBi").click()
    visitor.until("location.search.includes('encoding=alibi')")
    visitor.until("document.body.innerText.includes('Bias by distance in every layer of the encoder')")
    visitor.page.go_back()
    visitor.until("document.body.innerText.includes('base 100')")
    assert "encoding" not in visitor.params()


@pytest.mark.nightly
def test_a_sentence_in_all_twins_fits_a_phone(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    link = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in case_link("copy").items())
    go(visitor, f"view=sentence&{link}")
    visitor.until("document.body.innerText.includes('which maps move')")
    visitor.until(QUIET)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert "verified" in visitor.page.inner_text(".stMain")
