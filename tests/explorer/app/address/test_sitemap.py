"""Doors: every page and section has a name, a door and a place to go on to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.app.address import sitemap

ROOT = Path(__file__).resolve().parents[4]
PLACES = tuple(sitemap.places())
BEHIND = [name for door in sitemap.DOORS for entry in door.entries for name in entry]


def test_every_script_is_a_page_and_every_page_stands_behind_one_door():
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").glob("*.py")} | {"app.py"}
    assert {sitemap.script(name) for name in sitemap.PAGES} == scripts
    assert sorted(name for name in BEHIND if "/" not in name) == sorted(sitemap.PAGES)
    assert {name for name in BEHIND if "/" in name} == {name for name in sitemap.RESEARCH if "/" in name}


def test_only_the_page_of_language_models_shows_none_that_translate():
    assert {name for name, page in sitemap.PAGES.items() if page.sort == "language"} == {"language_model"}


@pytest.mark.parametrize("name", PLACES)
def test_every_place_leads_on_to_another(name: str):
    after = sitemap.after(name)
    assert after in PLACES
    assert after != name
    assert after.partition("/")[2] in ("", *sitemap.PAGES[after.partition("/")[0]].sections)


def test_who_follows_the_links_from_home_sees_every_page():
    seen, name = [], sitemap.HOME
    while name.partition("/")[0] not in seen or name.partition("/")[0] == seen[-1]:
        seen.append(name.partition("/")[0])
        page, _, view = name.partition("/")
        name = sitemap.after(sitemap.at(page, view))
    assert set(seen) == set(sitemap.PAGES)


def test_every_page_says_what_it_is_for_in_a_line():
    assert all(page.told.endswith((".", "?")) and len(page.told) <= 110 for page in sitemap.PAGES.values())


def test_every_word_of_the_glossary_has_two_sentences_and_a_place():
    entries = json.loads((ROOT / "static" / "page-2" / "glossary.json").read_text(encoding="utf-8"))
    for word, entry in entries.items():
        assert entry["written"], word
        assert 1 <= entry["told"].count(". ") + 1 <= 3, word
        assert entry["told"].endswith("."), word
        assert entry["see"] in PLACES, word
        assert {place.partition("/")[0] for place in entry.get("on", ())} <= set(sitemap.PAGES), word
    everywhere = [entry for entry in entries.values() if "on" not in entry]
    written = [each.lower() for entry in everywhere for each in entry["written"]]
    assert len(written) == len(set(written))
