from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from closed_form import CASES, KNOWN
from damaged import FILES, TEXTS

import lenses
from transformer import Capture
from transformer.exports.npz import load_trace
from transformer.exports.record import TraceFileError
from transformer.exports.view import LARGEST, MatrixMeasure, Selection, save_view
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.trace.view import Window

SCHEMA = json.loads((Path(__file__).parents[3] / "assets" / "trace.schema.json").read_text())
SELECTION = Selection(step=2, source=1, heads={"encoder": (1, 3), "cross": (0, 1)})


@pytest.fixture
def saved(translator: Translator, tmp_path: Path) -> Path:
    path = tmp_path / "view.json"
    translation = translator.translate("one two three")
    save_view(translation, translation.head("cross", 0, 1), path, SELECTION)
    return path


def read(path: Path) -> dict:
    """A saved view, which follows the schema."""
    values = json.loads(path.read_text())
    jsonschema.validate(values, SCHEMA)
    return values


def test_a_saved_view_holds_the_run_the_selection_and_the_matrix(translator, saved):
    run, values = translator.translate("one two three"), read(saved)
    view = run.head("cross", 0, 1)
    assert values["run"]["text"] == run.text
    assert tuple(values["run"]["target_tokens"]) == run.target_tokens
    assert values["selection"] == {"step": 2, "source": 1, "heads": {"encoder": [1, 3], "cross": [0, 1]}}
    assert (values["view"]["kind"], values["view"]["layer"], values["view"]["head"]) == ("cross", 0, 1)
    for name in ("weights", "scores", "mask"):
        np.testing.assert_array_equal(np.array(values["view"][name]), getattr(view, name))
    checks = {check["name"]: check["value"] for check in values["view"]["checks"]}
    assert checks == {check.name: check.value for check in view.audit.checks}


@pytest.mark.parametrize("kind", AttentionKind)
def test_known_cells_are_in_the_file(solved, kind, tmp_path):
    case, translation = CASES[solved.name], solved.translate(CASES[solved.name].sentence)
    save_view(translation, translation.head(kind, 0, 1), tmp_path / "view.json", Selection())
    weights = np.array(read(tmp_path / "view.json")["view"]["weights"])
    assert (weights[case.weights(kind, 1) == 1] > KNOWN).all()


def test_a_window_says_where_it_lies(translator, tmp_path):
    translation = translator.translate("one two three")
    view = translation.head("cross", 0, 1, Window(1, 2, 0, 2))
    save_view(translation, view, tmp_path / "view.json", Selection())
    values = read(tmp_path / "view.json")["view"]
    assert values["window"] == [1, 2, 0, 2]
    assert np.shape(values["weights"]) == (1, 2)


def test_a_saved_view_is_refused_as_a_run_in_one_sentence(saved):
    with pytest.raises(TraceFileError, match=r"^The file is JSON, [^\n]+ as NPZ\.$"):
        load_trace(saved)


@pytest.mark.parametrize("content", [*TEXTS.values(), *FILES.values()], ids=[*TEXTS, *FILES])
def test_damaged_and_foreign_files_are_refused(content):
    file = content if isinstance(content, bytes) else content()
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(io.BytesIO(file))


def test_hostile_tokens_are_saved_letter_by_letter(translator, tmp_path):
    text = "<script>alert(1)</script> \u202eone\u202c & #000001 “%{x}” 😀"
    translation = translator.translate(text)
    save_view(translation, translation.head("encoder", 0, 0), tmp_path / "view.json", Selection())
    assert tuple(read(tmp_path / "view.json")["run"]["source_tokens"]) == translation.source_tokens


def test_a_matrix_beyond_the_limit_is_not_saved(translator, tmp_path):
    translation = translator.translate("one two three " * 60)
    with pytest.raises(TraceFileError, match=f"at most {LARGEST}"):
        save_view(translation, translation.head("encoder", 0, 0), tmp_path / "view.json", Selection())


def test_a_measure_is_saved_beside_the_weights(translator, tmp_path):
    run = translator.translate("one two three", capture=Capture(residual=True))
    view = run.map("cross", 0, 1)
    found = lenses.effect(translator, run, "cross", 0, 1)
    found[1, 0] = np.nan
    save_view(run, view, tmp_path / "view.json", SELECTION, MatrixMeasure("effect", found))
    values = read(tmp_path / "view.json")["view"]
    assert values["measure"]["name"] == "effect"
    assert values["measure"]["values"][1][0] is None
    np.testing.assert_array_equal(np.array(values["measure"]["values"], float), found)
    np.testing.assert_array_equal(np.array(values["weights"]), view.weights)
    save_view(run, view, tmp_path / "plain.json", SELECTION)
    assert "measure" not in read(tmp_path / "plain.json")["view"]
