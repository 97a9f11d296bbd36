"""The files that a browser loads: short lines, relative imports, and a version that others than
these files know from one place alone."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from explorer.linked import served

ROOT = Path(__file__).parents[1]
STATIC = served.static()


@pytest.mark.parametrize("folder", ["linked_view", "page", "living"])
def test_lines_are_short(folder: str) -> None:
    paths = [path for path in (served.scripts() / folder).iterdir() if path.suffix != ".json"]
    longest = {path.name: max(map(len, path.read_text().splitlines())) for path in paths}
    assert {name: length for name, length in longest.items() if length > 120} == {}


def test_what_has_changed_is_noted_so_that_no_browser_keeps_the_scripts_of_another_release():
    noted = served.manifest(STATIC)
    sums = served.digests(STATIC / noted.folder)
    changed = sorted(
        name for name in sums | noted.sha256 if sums.get(name) != noted.sha256.get(name)
    )
    assert changed == [], "python -m explorer.linked.served notes it, and says its version"
    assert [path.name for path in STATIC.iterdir() if path.is_dir()] == [noted.folder]


def test_one_place_names_the_version():
    named = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "explorer/**/*.py", "pages/*.py", "static/scripts-*/*/*.js")
        for path in ROOT.glob(pattern)
        if f"{served.scripts().name}/" in path.read_text(encoding="utf-8")
    ]
    assert named == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Two folders of scripts of release 1.0, as they were noted then."""
    for name in ("one", "two"):
        (tmp_path / "scripts-3" / name).mkdir(parents=True)
        (tmp_path / "scripts-3" / name / "a.js").write_text(name)
    sums = served.digests(tmp_path / "scripts-3")
    noted = served.Manifest(folder="scripts-3", release="1.0", sha256=sums)
    (tmp_path / served.MANIFEST).write_text(json.dumps(asdict(noted)))
    return tmp_path


@pytest.mark.parametrize(("release", "folder"), [("1.0", "scripts-3"), ("1.1", "scripts-4")])
def test_a_change_after_a_release_gives_the_folder_its_next_number(
    copy: Path, release: str, folder: str
):
    before = served.manifest(copy)
    assert served.note(copy, release) == before  # as nothing has changed
    (copy / "scripts-3" / "one" / "a.js").rename(copy / "scripts-3" / "one" / "b.js")
    noted = served.note(copy, release)
    assert noted == served.manifest(copy)
    assert (noted.folder, noted.release) == (folder, release)
    assert {name for name, text in noted.sha256.items() if text != before.sha256[name]} == {"one"}
    assert [path.name for path in copy.iterdir() if path.is_dir()] == [folder]


def test_a_script_is_imported_from_the_version_that_is_noted():
    address = f"app/static/{served.manifest(STATIC).folder}/page/slots.js"
    assert served.imported("page/slots.js") == (f'import(new URL("{address}", document.baseURI))')
    assert (ROOT / "static" / address.removeprefix("app/static/")).is_file()


def test_every_sheet_of_the_app_is_drawn_and_the_pages_hold_no_rules_of_their_own() -> None:
    paths = [*(ROOT / "explorer" / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    sources = {path.name: path.read_text(encoding="utf-8") for path in paths}
    sheets = re.findall(r'styles\.sheet\("(\w+)"\)', "".join(sources.values()))
    assert {path.stem for path in (served.scripts() / "app").iterdir()} == set(sheets)
    # the element around a sheet; and of one chart, whose key no sheet can know
    assert {name for name, text in sources.items() if "<style>" in text} == {
        "styles.py",
        "panels.py",
    }
