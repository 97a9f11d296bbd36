"""A page says why a token was written, by the numbers of the lens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lenses.measures.way_back import WayGraph, way_back
from linked import PageError, page
from linked.__main__ import main
from linked.view import ways
from transformer import Translator, interventions, load_language_model, load_translator
from transformer.runs.retrace import retrace

MODELS = Path(__file__).parents[3] / "assets/models"
TEXT = "He lives in a big white house."


@pytest.fixture(scope="module")
def model() -> Translator:
    return load_translator(MODELS / "en-de")


def test_the_picture_has_the_numbers_of_the_way_back(model: Translator):
    run = model.translate(TEXT)
    made = page(run, model, why=(2, 4))
    assert made.count('<details class="living-why"') == 2
    again = retrace(model, run)
    for step, shown in zip((1, 3), made.split('<details class="living-why"')[1:], strict=True):
        written = again.steps[step]
        rival = next(each for each in written.alternatives if each.token_id != written.token_id)
        found = way_back(model.model, again, step, written.token_id, rival.token_id)
        drawn = re.findall(r"<text [^>]*>[^<]* ([+−]?[0-9.]+)</text>", shown)
        values = [float(each.replace("−", "-")) for each in drawn]
        assert values == pytest.approx([each.value for each in WayGraph(found).nodes], abs=0.0051)
        cells = [float(each) for each in re.findall(r"<td>([+-][0-9.]+)</td>", shown)]
        assert cells == pytest.approx([each.value for each in WayGraph(found).edges], abs=6e-4)
        assert ways.strongest(again, found).split(" (")[0] in shown
        assert "✓ from a verified trace" in shown
    assert "<script" not in shown.split("</section>")[0].split('<script type="text/plain"')[0]


def test_what_cannot_be_explained_is_refused_in_a_sentence(model: Translator):
    run = model.translate(TEXT)
    firefox = load_translator(MODELS / "firefox-en-pt")
    written = load_language_model(MODELS / "language/lm-en")
    changed = model.translate(TEXT, interventions=[interventions.hide(1)])
    for given, told in (
        ((run, None, (1,)), "found with the model"),
        ((run, model, (99,)), "There is no step 99"),
        ((run, model, (0,)), "There is no step 0"),
        ((firefox.translate(TEXT), firefox, (1,)), "decoder with self-attention"),
        ((changed, model, (1,)), "without changes"),
        ((written.generate("He is"), written, (1,)), "which a language model does not read"),
    ):
        with pytest.raises(PageError, match=told):
            page(given[0], given[1], why=given[2])


def test_the_command_explains_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = ["--model", str(MODELS / "en-de"), TEXT, "--output", str(tmp_path / "run.html"), "--why"]
    assert main([*command, "1"]) == 0
    assert "living-why" in (tmp_path / "run.html").read_text()
    assert main([*command, "99"]) != 0
    assert "There is no step 99" in capsys.readouterr().err
