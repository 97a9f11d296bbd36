from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from closed_form import CASES, KNOWN
from damaged import FILES, TEXTS

from transformer import Capture, lenses
from transformer.exports.npz import load_trace
from transformer.exports.record import TraceFileError
from transformer.exports.view import LARGEST, Measured, Selection, load_view, save_view
from transformer.model.sites import AttentionKind
from transformer.runs.translation import NotCapturedError
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


def test_a_saved_view_opens_again_as_it_was(translator, saved):
    original, opened = translator.translate("one two three"), load_view(saved)
    assert opened.translation.steps == original.steps
    assert opened.translation.log_probs == original.log_probs
    assert opened.selection == SELECTION
    view = original.head("cross", 0, 1)
    for name in ("weights", "scores", "mask"):
        np.testing.assert_array_equal(getattr(opened.head, name), getattr(view, name))
    for name in ("query_tokens", "predicted_tokens", "key_tokens", "window", "kind", "layer", "head", "norm"):
        assert getattr(opened.head, name) == getattr(view, name)


def test_a_saved_view_follows_the_schema(saved):
    jsonschema.validate(json.loads(saved.read_text()), SCHEMA)


def test_load_trace_opens_a_view_too_but_it_has_one_matrix_only(saved):
    opened = load_trace(saved)
    assert opened.text == load_view(saved).translation.text
    with pytest.raises(NotCapturedError):
        opened.head("cross", 0, 1)


@pytest.mark.parametrize("kind", AttentionKind)
def test_known_cells_survive_the_file(solved, kind, tmp_path):
    case, translation = CASES[solved.name], solved.translate(CASES[solved.name].sentence)
    save_view(translation, translation.head(kind, 0, 1), tmp_path / "view.json", Selection())
    opened = load_view(tmp_path / "view.json").head
    assert (opened.weights[case.weights(kind, 1) == 1] > KNOWN).all()
    assert opened.audit.passed


def test_what_needs_no_model_is_checked_again_and_the_rest_is_as_recorded(saved):
    names = [check.name for check in load_view(saved).head.audit.checks]
    assert names[:3] == ["row sums", "masked weights", "weights"]
    assert all(name.endswith("(as recorded)") for name in names[3:])
    assert load_view(saved).head.audit.imported


def test_a_window_of_some_keys_is_not_held_against_a_softmax(translator, tmp_path):
    translation = translator.translate("one two three")
    view = translation.head("cross", 0, 1, Window(1, 2, 0, 2))
    save_view(translation, view, tmp_path / "view.json", Selection())
    opened = load_view(tmp_path / "view.json").head
    assert opened.audit.passed
    assert "row sums" not in [check.name for check in opened.audit.checks]


def changed(path: Path, change) -> Path:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["view"]["weights"].reverse(),
        lambda values: values["view"]["weights"][0].reverse(),
        lambda values: values["view"]["mask"][0].__setitem__(0, False),
        lambda values: values["view"]["scores"][0].__setitem__(0, 30.0),
    ],
)
def test_a_changed_matrix_turns_the_audit_red(saved, change):
    assert not load_view(changed(saved, change)).head.audit.passed


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(version=3),
        lambda values: values.update(format="else"),
        lambda values: values.pop("run"),
        lambda values: values.update(view=None),
        lambda values: values["run"]["steps"].pop(),
        lambda values: values["run"].update(target_tokens=["a"] * 5_000),
        lambda values: values["run"]["source_tokens"].append(7),
        lambda values: values["selection"].update(step=99),
        lambda values: values["selection"].update(step=True),
        lambda values: values["selection"].update(source=-1),
        lambda values: values["selection"]["heads"].update(encoder=[9, 9]),
        lambda values: values["selection"]["heads"].update(middle=[0, 0]),
        lambda values: values["selection"]["heads"].update(encoder="00"),
        lambda values: values["view"].update(layer=7),
        lambda values: values["view"].update(window=[0, 9, 0, 99]),
        lambda values: values["view"].update(window=[1, 1, 0, 1]),
        lambda values: values["view"].update(window=[0]),
        lambda values: values["view"].update(weights=[]),
        lambda values: values["view"]["weights"][0].append(0.0),
        lambda values: values["view"]["weights"][0].__setitem__(0, 1.5),
        lambda values: values["view"]["weights"][0].__setitem__(0, "1"),
        lambda values: values["view"]["weights"][0].__setitem__(0, [1]),
        lambda values: values["view"]["scores"][0].__setitem__(0, float("inf")),
        lambda values: values["view"]["scores"][0].__setitem__(0, 1e300),
        lambda values: values["view"]["mask"][0].__setitem__(0, 1),
        lambda values: values["view"].update(checks=[{"name": "x"}]),
        lambda values: values["view"].update(checks={}),
    ],
)
def test_a_view_that_contradicts_itself_is_refused_in_one_sentence(saved, change):
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_view(changed(saved, change))


@pytest.mark.parametrize("content", [*TEXTS.values(), *FILES.values()], ids=[*TEXTS, *FILES])
def test_damaged_and_foreign_files_are_refused(content):
    file = content if isinstance(content, bytes) else content()
    for load in (load_view, load_trace):
        with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
            load(io.BytesIO(file))


def test_hostile_tokens_come_back_letter_by_letter(translator, tmp_path):
    text = "<script>alert(1)</script> \u202eone\u202c & #000001 “%{x}” 😀"
    translation = translator.translate(text)
    save_view(translation, translation.head("encoder", 0, 0), tmp_path / "view.json", Selection())
    assert load_view(tmp_path / "view.json").translation.source_tokens == translation.source_tokens


def test_a_matrix_beyond_the_limit_is_not_saved(translator, tmp_path):
    translation = translator.translate("one two three " * 60)
    with pytest.raises(TraceFileError, match=f"at most {LARGEST}"):
        save_view(translation, translation.head("encoder", 0, 0), tmp_path / "view.json", Selection())


def test_a_measure_is_saved_beside_the_weights(translator, tmp_path):
    run = translator.translate("one two three", capture=Capture(residual=True))
    view = run.map("cross", 0, 1)
    found = lenses.effect(translator, run, "cross", 0, 1)
    found[1, 0] = np.nan
    save_view(run, view, tmp_path / "view.json", SELECTION, Measured("effect", found))
    jsonschema.validate(json.loads((tmp_path / "view.json").read_text()), SCHEMA)
    opened = load_view(tmp_path / "view.json")
    assert opened.measured.name == "effect"
    np.testing.assert_array_equal(opened.measured.values, found)
    np.testing.assert_array_equal(opened.head.weights, view.weights)
    save_view(run, view, tmp_path / "plain.json", SELECTION)
    assert load_view(tmp_path / "plain.json").measured is None


@pytest.mark.parametrize(
    "change",
    [
        lambda measure: measure | {"name": "importance"},
        lambda measure: measure | {"values": "x"},
        lambda measure: measure | {"values": measure["values"][1:]},
        lambda measure: measure | {"values": [row[1:] for row in measure["values"]]},
        lambda measure: measure | {"values": [["x"] * len(row) for row in measure["values"]]},
        lambda measure: measure | {"values": [None for _ in measure["values"]]},
        lambda measure: {"name": "carried"},
        lambda measure: [1],
    ],
)
def test_a_damaged_measure_is_one_sentence(translator, tmp_path, change):
    run = translator.translate("one two three")
    view, path = run.map("cross", 0, 1), tmp_path / "view.json"
    save_view(run, view, path, SELECTION, Measured("carried", view.weights))
    values = json.loads(path.read_text())
    values["view"]["measure"] = change(values["view"]["measure"])
    path.write_text(json.dumps(values))
    with pytest.raises(TraceFileError) as caught:
        load_view(path)
    assert "\n" not in str(caught.value)
