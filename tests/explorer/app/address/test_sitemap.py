"""The map of the app: every page and section has a name, an entry in the menu and a place to go on to."""

import json
from pathlib import Path

import pytest

from explorer.app.address import sitemap

ROOT = Path(__file__).resolve().parents[4]
PLACES = tuple(sitemap.places())
MENU = [entry for group in sitemap.GROUPS for entry in sitemap.entries(group.name)]


def test_every_script_is_a_page_and_stands_once_in_the_menu():
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").glob("*.py")} | {"app.py"}
    assert {sitemap.script(name) for name in sitemap.PAGES} == scripts
    assert sorted(name for entry in MENU for name in entry) == sorted(sitemap.PAGES)


def test_a_page_stands_after_the_one_that_it_follows_and_before_those_that_followed_it(tmp_path: Path):
    pages = {"b": "a", "a": "", "d": "b", "c": "a"}
    for name, follows in pages.items():
        text = f"PAGE = Page({name!r}, 'x', group='g', icon='i', follows={follows!r})\n1 / 0\n"
        (tmp_path / f"{name}.py").write_text(f"import nothing\n{text}")
    declared = {name: sitemap.declared(tmp_path / f"{name}.py") for name in pages}
    assert [*sitemap.in_order(declared)] == ["a", "c", "b", "d"]
    assert declared["b"] == sitemap.Page("b", "x", "g", "i", "a")
    with pytest.raises(ValueError, match=r"^b.py follows a, which is no page\.$"):
        sitemap.in_order({"b": declared["b"]})
    (tmp_path / "none.py").write_text("x = 1")
    with pytest.raises(ValueError, match=r"^none.py declares no page\.$"):
        sitemap.declared(tmp_path / "none.py")


def test_pages_that_are_looked_at_together_are_one_entry_of_the_menu():
    heads = ("cross_attention", "encoder_self_attention", "decoder_self_attention", "heads")
    assert [entry for entry in MENU if len(entry) > 1] == [heads]
    assert [*sitemap.ENTRIES] == [heads[0]]
    assert {name for name in sitemap.PAGES if sitemap.beside(name) == heads} == {*heads}


def test_who_follows_the_links_from_home_sees_every_page():
    seen, name = [], sitemap.HOME
    while name.partition("/")[0] not in seen or name.partition("/")[0] == seen[-1]:
        seen.append(name.partition("/")[0])
        page, _, view = name.partition("/")
        name = sitemap.after(sitemap.at(page, view))
    assert set(seen) == set(sitemap.PAGES)


def test_every_word_of_the_glossary_has_two_sentences_and_a_place():
    entries = json.loads((ROOT / "static" / "page-2" / "glossary.json").read_text(encoding="utf-8"))
    for word, entry in entries.items():
        assert entry["written"], word
        assert entry["told"].endswith("."), word
        assert entry["see"] in PLACES, word
        assert {place.partition("/")[0] for place in entry.get("on", ())} <= set(sitemap.PAGES), word
    everywhere = [entry for entry in entries.values() if "on" not in entry]
    written = [each.lower() for entry in everywhere for each in entry["written"]]
    assert len(written) == len(set(written))
