"""The menu in Chromium: it keeps the visitor's place, also in new tabs, and Back finds every page
again."""

import pytest

from explorer.app.address import sitemap

from .conftest import Visitor, box_of, case_link

CLICKS = ("cross_attention", "glossary", sitemap.HOME)
MOST_BYTES = 3_200
"""Of which 1,900 list the pages of the app, which Streamlit sends with every run."""
LONG = " ".join(["one two three four five six eight nine ten"] * 7)
SMALL = {"width": 1280, "height": 720}


def arrived(visitor: Visitor, page: str) -> str:
    """The address of a page, once the page stands in it with its title."""
    name = page.removesuffix("app")
    visitor.until(
        "([name, title]) => location.pathname === `/${name}` && !location.search.includes('keep=')"
        " && document.title.startsWith(title)",
        [name, sitemap.PAGES[page].title or sitemap.PAGES[page].name],
    )
    return str(visitor.page.evaluate("location.pathname + location.search"))


def test_clicks_and_as_many_backs_pass_every_page_once(visitor: Visitor) -> None:
    visitor.open(**case_link("copy", step="2"))
    visitor.press("ArrowRight")
    visitor.until("location.search.includes('step=3')")
    passed = [arrived(visitor, sitemap.HOME)]
    for page in CLICKS:
        visitor.link(page).click()
        passed.append(arrived(visitor, page))
        visitor.has(step="3")
    for page, address in zip(
        (*reversed(CLICKS[:-1]), sitemap.HOME), reversed(passed[:-1]), strict=True
    ):
        visitor.page.go_back()
        assert arrived(visitor, page) == address
    visitor.ready()
    assert visitor.count().startswith("step 3 ")


def test_the_first_click_of_a_visitor_without_an_address_is_one_step_back(visitor: Visitor) -> None:
    visitor.open()
    visitor.link("cross_attention").click()
    arrived(visitor, "cross_attention")
    visitor.ready()
    visitor.page.go_back()
    assert arrived(visitor, sitemap.HOME) == "/"


@pytest.mark.parametrize("options", [{"button": "middle"}, {"modifiers": ["Control"]}])
def test_a_link_opens_the_place_in_a_new_tab(visitor: Visitor, options: dict[str, object]) -> None:
    visitor.open("decoder_self_attention", **case_link("copy", step="2", view="trained"))
    before = visitor.page.url
    with visitor.page.context.expect_page() as opened:
        visitor.link("cross_attention").click(**options)
    tab = Visitor(opened.value, visitor.base)
    tab.ready()
    assert tab.count().startswith("step 2 ")
    assert "view" not in tab.params()
    assert visitor.page.url == before
    tab.page.close()


def test_a_copied_link_holds_the_place_after_another_page_drew_the_menu_again(
    visitor: Visitor,
) -> None:
    visitor.open("cross_attention", **case_link("copy", step="2"))
    for page in ("glossary", "beam_search"):
        visitor.link(page).click()
        arrived(visitor, page)
        link = visitor.link("masks")
        link.hover()
        assert link.get_attribute("href").startswith("masks?")
        assert "step=2" in link.get_attribute("href")


def test_the_menu_fits_a_small_screen(visitor: Visitor) -> None:
    visitor.page.set_viewport_size(SMALL)
    visitor.open(**case_link("copy"))
    box = box_of(visitor.link("training"))
    room_for_four_more = 4 * box["height"]
    assert box["y"] + box["height"] + room_for_four_more < SMALL["height"]


def test_a_step_of_a_long_sentence_receives_three_kilobytes_at_most_and_no_icon(
    visitor: Visitor,
) -> None:
    received = list[int]()
    asked = list[str]()
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.page.on(
        "websocket", lambda link: link.on("framereceived", lambda data: received.append(len(data)))
    )
    # beside greedy search, the end of the search for a better output draws the page once more
    visitor.open(model="random", text=LONG, step="1", decode="beam-2")
    visitor.rested()
    received.clear()
    asked.clear()
    visitor.press("ArrowRight")
    visitor.until("location.search.includes('step=2')")
    visitor.rested()
    assert 0 < sum(received) <= MOST_BYTES
    assert not [each for each in asked if "/media/" in each]
