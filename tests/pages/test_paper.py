"""The page of the paper: every link opens what it names, with the visitor's sentence and cursor kept."""

from urllib.parse import parse_qsl

import pytest
from app_pages import functions, run, words

from explorer.app.address import sitemap
from explorer.app.address.parameters import parse
from explorer.app.address.state import keys

ITEMS = [item for items in functions("pages/paper.py")["WALK"].values() for item in items]
LINKS = sorted({address for item in ITEMS for _, address in item.links})


def test_the_page_shows_every_item():
    at = run("pages/paper.py")
    said = words(at)
    assert all(item.says in said for item in ITEMS)
    assert all(item.formula in said for item in ITEMS)
    labels = [each.proto.label for each in at.get("page_link")]
    assert {label for item in ITEMS for label, _ in item.links} <= set(labels)


@pytest.mark.parametrize("address", LINKS)
def test_a_link_opens_the_live_thing(address: str):
    path, _, query = address.partition("?")
    given = dict(parse_qsl(query))
    at = run("pages/paper.py", model="random", text="one two three", step="2")
    name = "" if path == "app" else path
    link = next(
        each.proto
        for each in at.get("page_link")
        if each.proto.page == name and given.items() <= dict(parse_qsl(each.proto.query_string)).items()
    )
    at.query_params.clear()
    at.query_params.update(parse_qsl(link.query_string))
    at = at.switch_page(sitemap.script(path)).run()
    assert not at.exception
    assert not at.error
    shown = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe"), *at.get("table")]
    assert len(shown) > 1 or at.info or at.button
    assert not parse({name: [value] for name, value in given.items()})[1]
    assert at.query_params["text"] == "one two three"
    assert at.query_params["step"] == "2"
    for name, value in given.items():
        default = keys()[name].kind.read(value) == getattr(parse({})[0], name)
        assert default or at.query_params[name] == value
