"""Two views in a notebook of JupyterLab: skipped where JupyterLab and nbconvert are not installed,
as in CI.

pip install "jupyterlab>=4" nbconvert && pytest -n 0 tests/browser/test_jupyterlab.py
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting

from transformer import Translator, save_trace

from .conftest import PATIENCE, ROOT, _free_port

pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
pytest.importorskip("nbconvert", reason="nbconvert is not installed")

pytestmark = pytest.mark.nightly
CELLS = (
    (
        "from explorer import show\nfrom transformer.exports.npz import load_trace\nrun = "
        "load_trace('run.npz')"
    ),
    "show(run, place='step=1')",
    "show(run, place='step=4')",
)
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 28)"


@pytest.fixture(scope="module")
def folder(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and a notebook that shows it twice, executed but not trusted."""
    made = tmp_path_factory.mktemp("notebook")
    save_trace(translator.translate("one two three", max_length=6), made / "run.npz")
    cell: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [{**cell, "source": each} for each in CELLS], "metadata": kernel}
    (made / "run.ipynb").write_text(json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 4}))
    jupyter(made, "nbconvert", "--to", "notebook", "--execute", "--inplace", "run.ipynb")
    return made


def surroundings(folder: Path) -> dict[str, str]:
    """Jupyter keeps what it writes in the folder."""
    named = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    return {**os.environ, **named, "HOME": str(folder), "PYTHONPATH": str(ROOT)}


def jupyter(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "jupyter", *arguments]
    subprocess.run(command, cwd=folder, env=surroundings(folder), check=True, capture_output=True)


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[str]:
    """The address of the notebook in a running JupyterLab."""
    port = _free_port()
    given = ("--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=")
    command = [sys.executable, "-m", "jupyterlab", *given, "--expose-app-in-browser"]
    told = folder / "lab.log"
    with told.open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=surroundings(folder), stderr=log)
    waiting.until(lambda: f":{port}/lab" in told.read_text())
    yield f"http://127.0.0.1:{port}/lab/tree/run.ipynb"
    server.terminate()
    server.wait(timeout=20)


def opened(chromium: Any, url: str) -> Any:
    tab = chromium.new_page(viewport={"width": 1400, "height": 2600})
    tab.goto(url)
    tab.wait_for_selector(".jp-OutputArea-output", timeout=PATIENCE)
    return tab


def test_a_notebook_that_is_not_trusted_shows_a_line(chromium: Any, lab: str) -> None:
    tab = opened(chromium, lab)
    tab.get_by_text("only if it is trusted").nth(1).wait_for(timeout=PATIENCE)
    assert tab.locator("iframe").count() == 0
    tab.close()


def test_two_views_have_cursors_of_their_own_and_follow_the_theme(
    chromium: Any, lab: str, folder: Path
) -> None:
    jupyter(folder, "trust", "run.ipynb")
    tab = opened(chromium, lab)
    one, other = (tab.frame_locator(f"iframe >> nth={i}") for i in (0, 1))
    for frame in (one, other):
        frame.locator('.lv[data-ready="true"]').wait_for(timeout=PATIENCE)
    one.get_by_label("One forward").click()
    assert one.locator(".lv-count").inner_text().startswith("step 2 ")
    assert other.locator(".lv-count").inner_text().startswith("step 4 ")
    for theme, colour in (("Dark", DARK), ("Light", LIGHT)):
        name = f"JupyterLab {theme}"
        tab.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", name
        )
        frames = [frame for frame in tab.frames if frame.parent_frame is not None]
        waiting.until(lambda: {frame.evaluate(BACKGROUND) for frame in frames} == {colour})  # noqa: B023
        assert all(frame.locator("canvas").first.is_visible() for frame in frames)
    tab.close()


def test_nbconvert_keeps_the_views(chromium: Any, folder: Path) -> None:
    jupyter(folder, "nbconvert", "--to", "html", "run.ipynb")
    tab = chromium.new_page(viewport={"width": 1400, "height": 900})
    tab.goto((folder / "run.html").as_uri())
    for i in (0, 1):
        tab.frame_locator(f"iframe >> nth={i}").locator('.lv[data-ready="true"]').wait_for(
            timeout=PATIENCE
        )
    tab.close()
