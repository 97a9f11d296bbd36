"""Every Python snippet of README and docs/ runs alone; what pip installs works in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

ROOT = Path(__file__).parents[1]
TEXTS = [path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
SNIPPETS = sorted({code for text in TEXTS for code in re.findall(r"(?ms)^```python\n(.*?)^```", text)})
MODEL = ROOT / "assets" / "models" / "en-de"


def test_the_readme_has_snippets_and_is_short() -> None:
    assert SNIPPETS
    assert len(TEXTS[0].splitlines()) <= 180


def test_every_file_that_the_texts_link_to_is_there() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / link).exists(), (path, link)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_a_snippet_runs_alone_as_written(snippet: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", snippet], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_what_pip_installs_opens_a_model_by_its_path_in_an_empty_folder(tmp_path: Path) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    packages = find_packages(str(ROOT), include=settings["include"])
    assert {name.split(".")[0] for name in packages} == {"transformer", "lenses", "lab"}
    for name in packages:
        folder = name.replace(".", "/")
        (tmp_path / "site" / folder).mkdir(parents=True)
        for file in (ROOT / folder).glob("*.py"):
            shutil.copy(file, tmp_path / "site" / folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    code = (
        "import sys; from transformer import load_translator\n"
        "print(load_translator(sys.argv[1]).translate('The house is old.').text)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(MODEL)],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "Das Haus ist alt.", ran.stderr
