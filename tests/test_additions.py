"""What CONTRIBUTING.md calls one place is one.

A copy of the project gets an encoding, a page and a measure, and everything must know them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = ("transformer", "explorer", "pages")
ENCODING = """    Encoding(
        "steps", "this test", r"x_{pos} = E_{token} + pos", "A number that counts the tokens.",
        title="counted steps", from_zero=True,
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
MEASURE = '''"""Squares of weights."""

from dataclasses import replace

from transformer.view import sealed

def squared(view):
    """A map whose numbers are the squares of its weights."""
    numbers = {"weights": view.weights**2, "measure": "squared", "measured": view.weights}
    return sealed(replace(view, **numbers), view.audit)

'''
QUANTITY = """QUANTITIES = {
    "squared": Quantity("square", "squared weight", "squares of weights", "%{customdata[0]}", "", "", False),
"""
DRAWN = """IN_PLACE: dict[str, Callable[[View, HeadMap], HeadMap]] = {
    "squared": lambda opened, view: squared(view),
"""
SCRIPT = """import streamlit as st

from explorer.app.address import session
from explorer.app.address.page_values import Extra
from explorer.app.shell.page import open_sentence_page

opened = open_sentence_page("extra")
if opened is not None:
    st.markdown(f"Extra, {session.values(Extra).loudness}: {opened.translation.text}")
"""
VALUES = """
@dataclass(frozen=True)
class Extra:
    loudness: str = parameter(one_of("low", "high"), "low")


@dataclass(frozen=True)
class Masks:
"""
PAGE = """DECLARED: tuple[Page, ...] = (
    Page(
        script="extra",
        name="An extra page",
        purpose="It says one thing.",
        group="Learn",
        follows="glossary",
        icon=":material/add:",
        values=(page_values.Extra,),
    ),
"""
CHANGE = """
@dataclass(frozen=True)
class Shift(OfHeads):
    name = "shift"
    changes = "scores"
    by: Annotated[float, One(Number(-10, 10))]

    def __str__(self) -> str:
        return f"{self.place} with scores moved by {self.by:g}"


def shift(kind: str, layer: int, head: Indices, by: float) -> Shift:
    return exact(Shift, kind=kind, layer=layer, head=head, by=by)


@dataclass(frozen=True)
class Temperature(OfHeads):
"""
ASKED = """
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from app_pages import named_charts
from random_models import random_translator
from explorer import lenses
from explorer.app.address.encodings import twin_title as title
from transformer import Capture, load_translator
from transformer.training.presets import TWINS

model = random_translator(load_translator("assets/models/positions/none").tokenizer, "pre", "steps")
run = model.translate("one two", capture=Capture(residual=True))
print("positions:", run.audit())

def opened(page, **params):
    at = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60)
    at.query_params.update({"text": "He is old.", "model": "en-de", **params})
    at.switch_page(f"pages/{page}.py").run()
    assert not at.exception, at.exception
    return at

def choices(at, label):
    return next(each.options for each in (*at.segmented_control, *at.selectbox) if each.label == label)

from transformer import interventions as do
(change,) = do.read_text("shift_decoder_1_2_-1.5")
print("change:", change, do.to_json([change]), do.write_text([do.shift("decoder", 0, 1, -1.5)]))
changed = model.force("one two", run.target_ids, interventions=[change])
before, after = (each.head("decoder", 0, 1) for each in (model.force("one two", run.target_ids), changed))
print("shifted:", round(float((after.scores - before.scores).max()), 4), changed.audit().passed)
for wrong in ("shift_decoder_1_2_11", "shift_decoder_9_2_1"):
    try:
        model.translate("one two", interventions=do.read_text(wrong))
    except do.InterventionError as error:
        print("refused:", error)

at = opened("positions", encoding="steps")
told = " ".join(each.value for each in (*at.markdown, *at.caption))
print("explained:", "A number that counts the tokens." in told, "dimensions from 0" in told)
print("drawn:", sorted(named_charts(at)))
at = opened("positions", view="together", encoding="steps")
told = " ".join(each.value for each in at.info)
print("chosen:", "counted steps" in choices(at, "Encoding"), "no model positions/steps" in told)
print("twin:", title("steps-seed2"), TWINS["positions-steps"].sizes["positions"])
print("measured:", lenses.squared.__doc__)
at = opened("cross_attention", measure="squared")
print("switch:", choices(at, "Cells say"))
print("map:", "squares of weights" in str([each.proto for each in at.get("bidi_component")]))
at = opened("extra", loudness="high")
print("page:", [each.value for each in at.markdown if each.value.startswith("Extra, ")])
print("menu:", [each.proto.label for each in at.get("page_link") if each.proto.page == "extra"])
at = opened("glossary")
print("next:", [each.proto.label for each in at.get("page_link") if each.proto.label.startswith("Next")])
"""
ADDED = 'ENCODINGS = {\n    "steps": Encoding("embeddings", False),\n'
ROWS = (
    (
        "explorer/app/address/page_values.py",
        "@dataclass(frozen=True)\nclass Masks:\n",
        VALUES,
    ),
    ("explorer/app/address/pages.py", "DECLARED: tuple[Page, ...] = (\n", PAGE),
    ("explorer/app/address/encodings.py", ")\nENCODINGS =", ENCODING),
    ("transformer/config.py", "ENCODINGS = {\n", ADDED),
    (
        "transformer/interventions/heads.py",
        "@dataclass(frozen=True)\nclass Temperature(OfHeads):\n",
        CHANGE,
    ),
    (
        "transformer/interventions/__init__.py",
        "    SetRow,\n",
        "    SetRow,\n    Shift,\n    shift,\n",
    ),
    (
        "transformer/interventions/edits.py",
        "        case do.Temperature():\n",
        (
            "        case do.Shift():\n            after = before + value.by\n        case "
            "do.Temperature():\n"
        ),
    ),
    (
        "transformer/equations.py",
        "        if isinstance(change, do.Temperature):\n",
        "        if isinstance(change, do.Shift):\n            scores = scores + "
        "np.float32(change.by)\n"
        "        if isinstance(change, do.Temperature):\n",
    ),
    (
        "explorer/app/sections/what_if/forms.py",
        '    "Arithmetic": (\n',
        '    "Arithmetic": (\n'
        '        Sort("move scores", lambda opened: do.shift("cross", 0, 0, 1.0), "It adds."),\n',
    ),
    ("transformer/encodings.py", "REGISTRY: dict[str, type[PositionalEncoding]] = {\n", CLASS),
    (
        "explorer/lenses/__init__.py",
        "_MODULES = {\n",
        '_MODULES = {\n    "measures.squared": "squared",\n',
    ),
    ("explorer/figures/base/captions.py", "QUANTITIES = {\n", QUANTITY),
    (
        "explorer/app/maps/measures.py",
        "IN_PLACE: dict[str, Callable[[View, HeadMap], HeadMap]] = {\n",
        DRAWN,
    ),
    (
        "explorer/app/maps/measures.py",
        "from explorer.lenses.measures.stream",
        (
            "from explorer.lenses.measures.squared import squared\nfrom "
            "explorer.lenses.measures.stream"
        ),
    ),
)
"""Rows of what is added: file, the place where it goes, and what stands there then."""


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
    for name, row, new in ROWS:
        path = copy / name
        text = path.read_text()
        assert row in text, name
        path.write_text(text.replace(row, new, 1))
    (copy / "explorer/lenses/measures/squared.py").write_text(MEASURE)
    (copy / "pages/extra.py").write_text(SCRIPT)
    path = f"{copy}:{ROOT / 'tests' / 'support'}"
    env = {"PATH": "", "HOME": str(copy), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-9000:]
    return done.stdout


@pytest.mark.parametrize(
    "lines",
    [
        (
            "explained: True True",
            "drawn: ['table-decoder', 'table-encoder']",
            "chosen: True True",
            "twin: counted steps, seed 2 steps",
        ),
        ("measured: A map whose", "switch: ['square', 'weight', 'carried', 'effect']", "map: True"),
        (
            "change: decoder self-attention, layer 1, head 2 with scores moved by -1.5 [{'do': "
            "'shift', 'kind': 'decoder', 'layer': 0, 'head': [1], 'by': -1.5}] "
            "shift_decoder_1_2_-1.5",
            "shifted: -1.5 True",
            "refused: The by is 11.0; it must be a number from -10 to 10.",
            "refused: There is no layer 9 in decoder self-attention: there are ",
        ),
        ("page: ['Extra, high: ", "menu: ['An extra page']", "next: ['Next: An extra page']"),
    ],
    ids=[
        "an encoding is a row and a class",
        "a measure a file and rows",
        "a change five files",
        "a page one file, its row and its values",
    ],
)
def test_what_is_added_in_its_places_is_known_everywhere(said: str, lines: tuple[str, ...]) -> None:
    assert [line for line in lines if line not in said] == []
