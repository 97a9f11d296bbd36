"""The files that a browser loads: short lines, and folders named as they are wherever they are
loaded."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "static"
VIEW = next(STATIC.glob("linked_view-*")).name
PAGE = next(STATIC.glob("page-*")).name
LIVING = next(STATIC.glob("living-*")).name
APP = next(STATIC.glob("app-*")).name
LOADED = {
    APP: ("explorer/app/controls/styles.py", "static/README.md"),
    LIVING: ("explorer/linked/living/scripts.py", "static/README.md"),
    VIEW: (
        "explorer/app/maps/explorer.py",
        "explorer/linked/living/scripts.py",
        "explorer/linked/view/__init__.py",
        "explorer/app/controls/export.py",
        "explorer/app/shell/menu.py",
        "static/README.md",
    ),
    PAGE: (
        "explorer/app/controls/slots.py",
        "explorer/app/shell/menu.py",
        "static/README.md",
    ),
}
"""Where each folder is named."""


def texts(folder: str) -> dict[str, str]:
    """Scripts and styles of a folder by their names."""
    paths = sorted(path for path in (STATIC / folder).iterdir() if path.suffix != ".json")
    return {path.name: path.read_text() for path in paths}


@pytest.mark.parametrize("folder", LOADED)
def test_lines_are_short(folder: str) -> None:
    longest = {name: max(map(len, text.splitlines())) for name, text in texts(folder).items()}
    assert {name: length for name, length in longest.items() if length > 120} == {}


def test_imports_are_relative_and_name_the_folder_that_is_there() -> None:
    assert [name for name, text in texts(VIEW).items() if "linked_view-" in text] == []
    for name, text in texts(PAGE).items():
        assert text.count("linked_view-") == text.count(f'"../{VIEW}/'), name
        assert "page-" not in text, name
    for name, text in texts(LIVING).items():
        for folder in (VIEW, PAGE):
            stem = folder.rpartition("-")[0]
            assert text.count(f"/{stem}-") == text.count(f'"../{folder}/'), name


@pytest.mark.parametrize("folder", LOADED)
def test_the_folder_is_named_wherever_it_is_loaded(folder: str) -> None:
    assert [path.name for path in STATIC.glob(f"{folder.rpartition('-')[0]}*")] == [folder]
    assert [path for path in LOADED[folder] if f"{folder}/" not in (ROOT / path).read_text()] == []


def test_every_sheet_of_the_app_is_drawn_and_the_pages_hold_no_rules_of_their_own() -> None:
    paths = [*(ROOT / "explorer" / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    sources = {path.name: path.read_text(encoding="utf-8") for path in paths}
    sheets = re.findall(r'styles\.sheet\("(\w+)"\)', "".join(sources.values()))
    assert {path.stem for path in (STATIC / APP).iterdir()} == set(sheets)
    # the element around a sheet; and of one chart, whose key no sheet can know
    assert {name for name, text in sources.items() if "<style>" in text} == {
        "styles.py",
        "panels.py",
    }
