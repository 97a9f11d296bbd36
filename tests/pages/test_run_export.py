"""What leaves the app from the linked view, and that nothing does before it is asked for."""

import io
import json
from pathlib import Path

import app_pages
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
from explorer.app.server.runs import Request
from explorer.app.server.view import View
from explorer.figures.base.quantity import MEASURES
from transformer import interventions as do
from transformer import load_trace, load_translator
from transformer.exports.npz import model_digest

KINDS = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
TRANSLATES = "A page that translates"
OFF = do.ablate("cross", 0, 1)


def opened(page: str = "app.py", **params: str) -> AppTest:
    """A page whose export popover is open."""
    at = run(page, **params)
    assert figures(at) == []
    at.session_state[KEY] = True
    return at.run()


def figures(at: AppTest) -> list[go.Figure]:
    """The figures that the export buttons carry."""
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    return [
        go.Figure(json.loads(data["figure"]))
        for data in told
        if isinstance(data, dict) and set(data) == {"figure", "name"}
    ]


def caption(figure: go.Figure) -> str:
    """What is written under a figure."""
    text = next(each.text for each in figure.layout.annotations if each.name == "caption")
    return text.replace("<br>", " ")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_map_holds_the_known_cells_and_says_what_it_is(name: str, kind: str):
    case = CASES[name]
    at = opened(KINDS[kind], model=name, text=case.sentence, step="2", **{kind: "1.2"})
    assert not at.exception
    figure = figures(at)[0]
    cells = np.concatenate([weights(trace) for trace in figure.data if trace.type == "heatmap"])
    assert (cells[case.weights(kind, 1) == 1] > KNOWN).all()
    written = caption(figure)
    for part in ("layer 1", "head 2", name, "✓ verified", "Attention explorer", f"{kind}=1.2"):
        assert part in written, part
    assert ("step 2 of" in written) == (kind != "encoder")


def weights(trace: go.Heatmap) -> np.ndarray:
    """The exact weights of a heatmap."""
    data = trace.customdata
    return (array(data) if isinstance(data, dict) else np.asarray(data))[..., 0]


def test_the_figure_is_chosen_where_there_are_several():
    at = opened(step="2")
    choice = next(each for each in at.get("button_group") if each.label == "Figure")
    assert choice.value == "cross"
    assert "opens again here and in Python" in captions(at)
    choice.set_value("next").run()
    assert not at.exception
    figure = figures(at)[0]
    assert figure.data[0].type == "bar"
    assert "step 2 of" in caption(figure)


def for_a_paper(page: str = "app.py", **params: str) -> AppTest:
    """A page whose export popover shows a figure for a paper."""
    at = opened(page, **params)
    return (
        next(each for each in at.get("button_group") if each.label == "What to save").set_value(PAPER).run()
    )


def captions(at: AppTest) -> str:
    return "\n".join(each.value for each in at.caption).replace("\\", "")


def test_a_figure_for_a_paper_says_what_it_shows_and_is_one_click_away():
    at = for_a_paper("pages/cross_attention.py", model="copy", text=CASES["copy"].sentence, cross="1.2")
    assert not at.exception
    assert [button.label for button in at.download_button] == ["Save PDF", "NPZ", "Living page", TRANSLATES]
    told = captions(at)
    for part in ("Cross-attention · layer 1 · head 2", "copy", "✓ verified", CASES["copy"].sentence, "8.5 ×"):
        assert part in told, part


def test_several_heads_of_all_kinds_stand_on_one_sheet():
    at = for_a_paper()
    heads = at.multiselect[0]
    heads.set_value([*heads.value, "encoder L1 H2", "decoder L1 H2"]).run()
    assert not at.exception
    assert "17 ×" in captions(at)
    assert "Masked decoder self-attention · layer 1 · head 2" in captions(at)


def test_a_figure_of_no_head_or_without_room_is_answered_in_one_sentence():
    at = for_a_paper()
    at.multiselect[0].set_value([]).run()
    assert not at.exception
    assert "Choose at least one head." in captions(at)
    at.multiselect[0].set_value(["cross L1 H1", "cross L1 H2", "encoder L1 H1"]).run()
    for name, value in (("Width, cm", 3.0), ("Font size, pt", 24.0), ("Maps per row", 3)):
        next(each for each in at.number_input if each.label == name).set_value(value).run()
    assert not at.exception
    assert "leave no room" in at.error[0].value
    assert at.error[0].value.count(".") == 1


def test_the_living_page_of_a_changed_run_has_the_run_as_it_is_beside_it():
    text = CASES["copy"].sentence
    run, changed = (Request(named("copy"), text, "greedy", None, changes) for changes in ((), (OFF,)))
    app_pages.run()
    opened = View(changed, runs.traced(changed), None)
    made = living_page(opened, State(step=1, encoder=(0, 0), decoder=(0, 0), cross=(0, 0))).decode()
    assert living_pages.Opened(made).run["said"]["changes"] == [f"Changed: {OFF}."]
    beside = living_pages.Opened(made, "-2").run
    assert "changes" not in beside["said"]
    assert "measures" not in beside["kinds"]["cross"]
    assert beside["said"]["texts"][1] == runs.translate(run).text


def test_the_living_page_has_the_measure_that_the_maps_show():
    app_pages.run()
    asked = Request(named("copy"), CASES["copy"].sentence, "greedy", None)
    opened = View(asked, runs.traced(asked), None)
    for measure in MEASURES:
        now = State(step=1, encoder=(0, 0), decoder=(0, 0), cross=(0, 0), measure=measure)
        made = living_pages.Opened(living_page(opened, now).decode())
        found = made.run["kinds"]["cross"].get("measures", {})
        assert [*found] == [measure] * (measure != "weight")


def test_the_files_of_a_run_hold_its_known_cells(closed_form_models: dict[str, Path]):
    case, translator = CASES["copy"], load_translator(closed_form_models["copy"])
    run = translator.translate(case.sentence)
    trace = load_trace(io.BytesIO(trace_file(run, translator.model)))
    head = trace.head("cross", 0, 1)
    assert head.audit.passed
    assert (head.weights[case.weights("cross", 1) == 1] > KNOWN).all()
    assert trace.model_sha256 == model_digest(translator.model)
