"""What CONTRIBUTING.md calls one place is one: a copy of the project gets an encoding, a page and a study."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = ("transformer", "lenses", "lab", "figures", "linked", "ui", "pages")
ENCODING = """    Encoding(
        "steps", "embeddings", "this test", r"x_{pos} = E_{token} + pos", "A number that counts the tokens."
    ),
)
ENCODINGS ="""
CLASS = '''class Steps(PositionalEncoding):
    """The position itself, in every dimension."""

    def added(self, length: int, first: int = 0) -> Tensor:
        return torch.arange(first, first + length).float()[:, None].expand(length, self.width) / 100

    def prepare(self, config: ModelConfig, n_layers: int, causal: bool) -> None:
        self.width = config.d_model


REGISTRY: dict[str, type[PositionalEncoding]] = {
    "steps": Steps,
'''
PAGE = """PAGES["extra"] = Page("An extra page", "It says one thing.", "lessons")
DOORS = (*DOORS, Door("More", "what was added", (("extra",),)))
"""
SCRIPT = """from ui.shell.page import open_sentence_page
import streamlit as st

opened = open_sentence_page("extra")
if opened is not None:
    st.markdown(f"Extra: {opened.translation.text}")
"""
STUDY = '''"""`python -m lab extra`: how many letters a word has."""

from lab.measurement import Json, measurement
from lab.study import Study, chart


def told(found: Json) -> Study:
    """The letters."""
    rows = [("letters", "extra", found["letters"])]
    bars = chart("bars", "Letters", ("series", "word", "letters"), rows)
    return Study("Extra", "How many letters?", f"It has {found['letters']}.", [bars], "Counted.")


@measurement("assets/extra.json", studies={"extra": told})
def extra() -> Json:
    """Counts letters."""
    return {"letters": len("extra")}
'''
ASKED = """
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from random_models import random_translator
from transformer import Capture, load_translator

model = random_translator(load_translator("assets/models/positions/none").tokenizer, "pre", "steps")
run = model.translate("one two", capture=Capture(residual=True))
print("positions:", run.audit())

def opened(page, **params):
    at = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60)
    at.query_params.update({"text": "He is old.", "model": "en-de", **params})
    at.switch_page(f"pages/{page}.py").run()
    assert not at.exception, at.exception
    return at

at = opened("positions", encoding="steps")
print("explained:", "A number that counts the tokens." in " ".join(each.value for each in at.markdown))
at = opened("extra")
print("page:", [each.value for each in at.markdown if each.value.startswith("Extra: ")])
print("menu:", [each.proto.label for each in at.get("page_link") if each.proto.page == "extra"])
at = opened("findings", study="extra")
print("study:", "It has 5." in " ".join(each.value for each in at.markdown))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = tmp_path_factory.mktemp("copy")
    for name in CODE:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", copy)
    for name in ("static", ".streamlit", "CHANGELOG.md", "docs", "README.md"):
        (copy / name).symlink_to(ROOT / name)
    (copy / "assets" / "studies").mkdir(parents=True)
    for path in (ROOT / "assets").iterdir():
        if path.name != "studies":
            (copy / "assets" / path.name).symlink_to(path)
    table = copy / "transformer/model/encodings/table.py"
    table.write_text(table.read_text().replace(")\nENCODINGS =", ENCODING))
    classes = copy / "transformer/model/encodings/positions.py"
    begin = "REGISTRY: dict[str, type[PositionalEncoding]] = {\n"
    classes.write_text(classes.read_text().replace(begin, CLASS))
    sitemap = copy / "ui/shell/sitemap.py"
    sitemap.write_text(sitemap.read_text().replace("\n\ndef ", f"\n{PAGE}\n\ndef ", 1))
    (copy / "pages/extra.py").write_text(SCRIPT)
    (copy / "lab/studies/extra.py").write_text(STUDY)
    parts = []
    for command in (["-m", "lab", "extra"], ["-c", ASKED]):
        path = f"{copy}:{ROOT / 'tests' / 'support'}"
        done = subprocess.run(
            [sys.executable, *command],
            cwd=copy,
            env={"PATH": "", "HOME": str(copy), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        parts.append(done.stdout)
    return "\n".join(parts)


def test_an_encoding_is_a_row_and_a_class(said: str) -> None:
    assert "explained: True" in said


def test_a_page_is_a_script_and_an_entry(said: str) -> None:
    assert "page: ['Extra: " in said
    assert "menu: ['An extra page']" in said


def test_a_study_is_a_file(said: str) -> None:
    assert "study: True" in said
