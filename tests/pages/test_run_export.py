"""What leaves the app from the linked view, and that nothing does before it is asked for."""

import io
import json
from pathlib import Path

import living_pages
import numpy as np
import plotly.graph_objects as go
import pytest
from app_pages import array, run
from closed_form import CASES, KNOWN
from sources import named
from streamlit.testing.v1 import AppTest

from explorer.app.address import State
from explorer.app.maps.living import living_page
from explorer.app.maps.run_export import KEY, PAPER, trace_file
from explorer.app.server import runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.figures.base.captions import MEASURES
from transformer import interventions as do
from transformer import load_trace, load_translator
from transformer.exports.npz import model_digest

KINDS = {kind: f"pages/{kind}_self_attention.py" for kind in ("encoder", "decoder")}
KINDS["cross"] = "pages/cross_attention.py"
OFF = do.ablate("cross", 0, 1)
START = {"step": 1, "encoder": (0, 0), "decoder": (0, 0), "cross": (0, 0)}


def opened(page: str = "app.py", **params: str) -> AppTest:
    """A page whose export popover is open."""
    at = run(page, **params)
    assert figures(at) == []
    at.session_state[KEY] = True
    return at.run()


def figures(at: AppTest) -> list[go.Figure]:
    """The figures that the export buttons carry."""
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    found = [data for data in told if isinstance(data, dict) and set(data) == {"figure", "name"}]
    return [go.Figure(json.loads(data["figure"])) for data in found]


def caption(figure: go.Figure) -> str:
    """What is written under a figure."""
    text = next(
        annotation.text for annotation in figure.layout.annotations if annotation.name == "caption"
    )
    return text.replace("<br>", " ")


def weights(trace: go.Heatmap) -> np.ndarray:
    """The exact weights of a heatmap."""
    data = trace.customdata
    return (array(data) if isinstance(data, dict) else np.asarray(data))[..., 0]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_map_holds_the_known_cells_and_says_what_it_is(name: str, kind: str):
    case = CASES[name]
    at = opened(KINDS[kind], model=name, text=case.sentence, step="2", **{kind: "1.2"})
    figure = figures(at)[0]
    cells = np.concatenate([weights(trace) for trace in figure.data if trace.type == "heatmap"])
    assert (cells[case.weights(kind, 1) == 1] > KNOWN).all()
    parts = ("layer 1", "head 2", name, "✓ verified", "Attention explorer", f"{kind}=1.2")
    assert [part for part in parts if part not in caption(figure)] == []
    assert ("step 2 of" in caption(figure)) == (kind != "encoder")


@pytest.mark.parametrize("kind", KINDS)
def test_the_row_that_stands_for_several_is_exported_and_said(
    kind: str, closed_form_models: dict[str, Path]
):
    case = CASES["copy"]
    chosen = {"sources" if kind == "encoder" else "steps": "1-2.4", kind: "1.1"}
    at = opened(KINDS[kind], model="copy", text=case.sentence, together="sum", **chosen)
    rings = [shape for shape in figures(at)[0].layout.shapes if shape.type == "rect"]
    assert [(ring.y0, ring.y1) for ring in rings] == [(-0.5, 0.5), (0.5, 1.5), (2.5, 3.5)]
    choice = next(each for each in at.get("button_group") if each.label == "Figure")
    choice.set_value(f"sum of 3 rows, {kind}").run()
    figure = figures(at)[0]
    run = load_translator(closed_form_models["copy"]).translate(case.sentence)
    weights = run.head(kind, 0, 0).weights
    sums = [sum(float(weights[row, key]) for row in (0, 1, 3)) for key in range(weights.shape[1])]
    assert max(array(figure.data[0].x)) == pytest.approx(max(sums), abs=1e-4)
    assert "sum of 3 rows: “" in caption(figure)


def test_all_heads_bear_their_proof_in_the_file_even_of_a_run_that_was_just_made():
    at = opened(KINDS["cross"], text="four five two")
    choice = next(each for each in at.get("button_group") if each.label == "Figure")
    choice.set_value("overview").run()
    (figure,) = figures(at)
    of_all = caption(figure)
    assert of_all.startswith("All heads")
    assert of_all.count("✓ from a verified trace") == 1
    assert "checking" not in of_all


@pytest.mark.parametrize("show", ["lines", "strongest"])
def test_the_figure_is_chosen_where_there_are_several(show: str):
    at = opened(step="2")
    choice = next(each for each in at.get("button_group") if each.label == "Figure")
    assert choice.value == "cross"
    choice.set_value("next").run()
    (figure,) = figures(at)
    assert figure.data[0].type == "bar"
    assert "step 2 of" in caption(figure)
    assert figures(opened("pages/cross_attention.py", show=show, scale="log"))


def for_a_paper(page: str = "app.py", **params: str) -> AppTest:
    """A page whose export popover shows a figure for a paper."""
    at = opened(page, **params)
    ways = [each for each in at.get("button_group") if each.label == "What to save"]
    return ways[0].set_value(PAPER).run()


def captions(at: AppTest) -> str:
    assert not at.exception
    return "\n".join(each.value for each in at.caption).replace("\\", "")


def test_a_figure_for_a_paper_says_what_it_shows_and_is_one_click_away():
    at = for_a_paper(
        "pages/cross_attention.py", model="copy", text=CASES["copy"].sentence, cross="1.2"
    )
    buttons = [button.label for button in at.download_button]
    assert buttons == ["Save PDF", "NPZ", "Living page", "A page that translates"]
    parts = (
        "Cross-attention · layer 1 · head 2",
        "copy",
        "✓ verified",
        CASES["copy"].sentence,
        "8.5 ×",
    )
    assert [part for part in parts if part not in captions(at)] == []


def test_a_text_that_is_continued_is_exported_as_every_file():
    at = opened(model="language/lm-en", text="The old house")
    assert not at.exception
    buttons = [button.label for button in at.download_button]
    assert buttons[-3:] == ["NPZ", "Living page", "A page that continues texts"]
    assert "In a page that continues texts, the model itself runs" in captions(at)


def test_several_heads_stand_on_one_sheet_and_none_or_no_room_is_one_sentence():
    at = for_a_paper()
    heads = at.multiselect[0]
    heads.set_value([*heads.value, "encoder L1 H2", "decoder L1 H2"]).run()
    assert "17 ×" in captions(at)
    assert "Masked decoder self-attention · layer 1 · head 2" in captions(at)
    at.multiselect[0].set_value([]).run()
    assert "Choose at least one head." in captions(at)
    at.multiselect[0].set_value(["cross L1 H1", "cross L1 H2", "encoder L1 H1"]).run()
    for name, value in (("Width, cm", 3.0), ("Font size, pt", 24.0), ("Maps per row", 3)):
        next(each for each in at.number_input if each.label == name).set_value(value).run()
    assert not at.exception
    assert "leave no room" in at.error[0].value
    assert at.error[0].value.count(".") == 1


def test_the_living_page_of_a_changed_run_has_the_run_as_it_is_beside_it():
    run()
    plain, changed = (
        RunKey(named("copy"), CASES["copy"].sentence, "greedy", None, each) for each in ((), (OFF,))
    )
    made = living_page(
        View(changed, runs.translate(changed, whole=True), None), State(**START)
    ).decode()
    assert living_pages.Opened(made).run["said"]["changes"] == [f"Changed: {OFF}."]
    beside = living_pages.Opened(made, "-2").run
    assert "changes" not in beside["said"]
    assert "measures" not in beside["kinds"]["cross"]
    assert beside["said"]["texts"][1] == runs.translate(plain).text
    opened = View(plain, runs.translate(plain, whole=True), None)
    for measure in MEASURES:
        made = living_page(opened, State(**START, measure=measure)).decode()
        found = living_pages.Opened(made).run["kinds"]["cross"].get("measures", {})
        assert [*found] == [measure] * (measure != "weight"), "the measure that the maps show"


def test_the_files_of_a_run_hold_its_known_cells(closed_form_models: dict[str, Path]):
    case = CASES["copy"]
    translator = load_translator(closed_form_models["copy"])
    trace = load_trace(
        io.BytesIO(trace_file(translator.translate(case.sentence), translator.model))
    )
    head = trace.head("cross", 0, 1)
    assert head.audit.passed
    assert (head.weights[case.weights("cross", 1) == 1] > KNOWN).all()
    assert trace.model_sha256 == model_digest(translator.model)
