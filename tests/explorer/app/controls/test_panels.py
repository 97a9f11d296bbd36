"""A figure with its words: what is drawn with it, and what is left out where it cannot be."""

from __future__ import annotations

import json

import pytest
from head_views import Audit
from streamlit.testing.v1 import AppTest

from explorer.figures.base.captions import badge
from transformer.view import Check

AUDIT = Audit(checks=(Check("row sums", 1e-7, 1e-5), Check("outputs", 2e-7, 1e-4)))


def page(**given: object) -> AppTest:
    """A page with one figure."""

    def script(given: dict[str, object]) -> None:
        import plotly.graph_objects as go

        from explorer.app.controls.export import page_export
        from explorer.app.controls.panels import panel

        panel("bars", lambda *ink: go.Figure(layout={"width": 900, "title": str(ink)}), "2 * 3", **given)
        panel("other", lambda: go.Figure(layout={"title": "other"}), "what else · random")
        page_export()

    at = AppTest.from_function(script, kwargs={"given": given}).run()
    assert not at.exception
    return at


def test_a_figure_has_its_caption_as_text_and_for_those_who_do_not_see_it():
    at = page()
    assert [each.value for each in at.caption] == ["2 \\* 3", "what else · random"]
    assert at.get("plotly_chart")[0].proto.alt == "2 * 3"
    assert page(alt="bars of 2 and 3").get("plotly_chart")[0].proto.alt == "bars of 2 and 3"


@pytest.mark.parametrize("derived", [False, True])
def test_the_badge_ends_the_caption_and_says_what_stands_behind_it(derived):
    caption, _ = page(audit=AUDIT, derived=derived).caption
    assert caption.value.endswith(str(badge(AUDIT, derived)["text"]))
    assert "Largest row\\-sum error" in caption.help
    assert page(audit=AUDIT, proof="9 checks.").caption[0].help == "9 checks."


def test_all_figures_of_a_page_are_saved_under_one_button():
    def offered(**given: object) -> list[str]:
        return [each.proto.popover.label for each in page(**given).get("popover")]

    assert offered() == ["Export"]
    assert offered(seeing="Bars.", title="Why?") == ["Why?", "Export"]
    at = page(heading="##### **Two**")
    at.session_state["export.page"] = True
    assert at.run().selectbox[0].options == ["1 · Two", "2 · what else · random"]
    at.selectbox[0].select_index(1).run()
    (sent,) = at.get("bidi_component")
    assert json.loads(json.loads(sent.proto.json)["figure"])["layout"]["title"]["text"].startswith("other")


def _only_the_export() -> None:
    from explorer.app.controls import export

    if export.st.session_state.get("drawn") is None:
        export.st.session_state["drawn"] = export.collect("bars", export.Picture(dict, "2 * 3")) or True
    export.page_export()


def test_the_pictures_of_the_pages_drawn_last_are_kept_and_older_ones_are_drawn_again():
    first = AppTest.from_function(_only_the_export).run()
    second = AppTest.from_function(_only_the_export).run()
    for _ in range(31):
        AppTest.from_function(_only_the_export).run()
    for at in (second, first):
        at.session_state["export.page"] = True
        at.run()
    assert [each.label for each in first.button] == ["Draw this page again"]
    assert "or 32 others were drawn since" in first.caption[0].value
    assert [each.options for each in second.selectbox] == [["1 · 2 * 3"]]


@pytest.mark.parametrize(("scrolls", "rule"), [(True, "max-width: 900px"), (480, "min-width: 480px")])
def test_a_wide_figure_keeps_its_width_in_a_frame_that_scrolls(scrolls, rule):
    assert rule in page(scrolls=scrolls).get("html")[0].proto.body


def test_a_figure_that_takes_the_colour_of_text_is_saved_in_that_of_white_paper():
    at = page(inked=True)
    at.session_state["export.page"] = True
    (sent,) = at.run().get("bidi_component")
    assert "#1d232c" in json.loads(json.loads(sent.proto.json)["figure"])["layout"]["title"]["text"]


def test_only_a_figure_with_text_in_coloured_cells_takes_the_colour_of_text():
    assert "'#1d232c'" in page(inked=True).get("plotly_chart")[0].proto.spec
    assert "#1d232c" not in page().get("plotly_chart")[0].proto.spec
