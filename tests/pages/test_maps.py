"""What maps draw, by arithmetic: known heads in every way, masks, what keys carried and did."""

import json
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, feeds, run, said, view, words
from closed_form import CASES, KNOWN
from sources import named
from streamlit.testing.v1 import AppTest

from explorer import lenses
from explorer.app.maps import display, measures, wall
from explorer.app.maps.run_export import KEY
from explorer.app.server import models
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.figures.base import captions
from explorer.lenses.words.reading import Reading, read_view
from transformer import Capture, load_translator
from transformer import interventions as do

KINDS = ("encoder", "decoder", "cross")
PAGES = {kind: f"pages/{kind}_{'' if kind == 'cross' else 'self_'}attention.py" for kind in KINDS}
TEXT = "one two three"
LONG = " ".join(["one two three four five six eight nine ten"] * 9)


def cells(feed: dict[str, object]) -> np.ndarray:
    return array(json.loads(str(feed["figure"]))["data"][0]["customdata"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_known_cells_are_drawn_in_every_way(kind: str, name: str):
    case = CASES[name]
    link = {"model": name, "text": case.sentence, kind: "1.2", "words": "yes"}
    lines = feeds(run(PAGES[kind], show="lines", links="weight-99", **link))["lines"]
    known = {(row, key) for row, key in enumerate(case.keys(kind, 1))}
    assert {(row, key) for row, key, *_ in lines["links"]} == known
    strongest = array(feeds(run(PAGES[kind], show="strongest", **link))["strongest"]["values"])
    plain = feeds(run(PAGES[kind], **link))
    drawn = cells(plain[kind])
    assert drawn.shape[2] == 1
    for row, key in known:
        assert strongest[row, key] > KNOWN
        assert drawn[row, key, 0] > KNOWN
    tiles = array(json.loads(str(plain["overview"]["figure"]))["data"][0]["z"])
    first = case.weights(kind, 0)
    second = case.weights(kind, 1)
    columns = first.shape[1]
    assert np.array_equal(tiles[:, :columns] > 250, first == 1)
    assert np.array_equal(tiles[:, -columns:] > 250, second == 1)


@pytest.mark.parametrize("show", display.SHOWS)
def test_smaller_windows_come_with_the_whole_matrix(show: str):
    at = run(
        PAGES["cross"], model="random", text=LONG, window="16", step="20", source="40", show=show
    )
    carried = feeds(at)
    focus = carried["cross" if show == "matrix" else show]
    assert max(map(len, focus["spans"].values())) <= 16
    for side, position in (("rows", 19), ("columns", 39)):
        assert any(start <= position < stop for start, stop in focus["spans"][side])
    assert "maximum over" in str(carried["whole"]["caption"])
    assert "whole" in view(at)["plots"]


@pytest.mark.parametrize("statistic", ["first_mass", "aer"])
def test_tiles_take_the_colour_and_the_order_of_a_statistic(statistic: str):
    carried = feeds(run(PAGES["cross"], model="random", color=statistic, order=statistic))[
        "overview"
    ]
    layout = json.loads(str(carried["figure"]))["layout"]
    written = [float(note["text"].split(" · ")[1]) for note in layout["annotations"]]
    rows = [written[i : i + 4] for i in range(0, len(written), 4)]
    assert all(row == sorted(row, reverse=statistic != "aer") for row in rows)
    assert sum("fillcolor" in shape for shape in layout["shapes"]) == len(written)


def test_the_table_has_the_numbers_and_masked_cells_are_empty(app_models: Path):
    head = (
        load_translator(app_models / "copy").translate(CASES["copy"].sentence).head("decoder", 0, 0)
    )
    table = display.weights(read_view(head, Reading()))
    assert table.isna().to_numpy().sum() == (~head.mask).sum()
    assert table.iloc[3, 2] > KNOWN
    assert table.columns.is_unique
    assert list(table.columns[:2]) == ["1 <s>", "2 eins"]


def test_after_all_rows_the_table_has_the_one_that_stands_for_several(app_models: Path):
    run = load_translator(app_models / "copy").translate(CASES["copy"].sentence)
    drawn = read_view(run.head("decoder", 0, 0), Reading())
    for how, parts in (("mean", 3), ("sum", 1)):
        table = display.weights(drawn, (0, 2, 3), how)
        assert list(table.index[-1:]) == [f"{how} of 3 rows"]
        assert len(table) == len(drawn.weights) + 1
        for key, cell in enumerate(table.iloc[-1]):
            rows = [float(drawn.weights[row, key]) for row in (0, 2, 3)]
            seen = any(drawn.mask[row, key] for row in (0, 2, 3))
            assert cell == pytest.approx(sum(rows) / parts, abs=1e-4) if seen else cell != cell
    assert len(display.weights(drawn)) == len(drawn.weights)


def test_tokens_that_the_text_does_not_have_are_left_out_with_a_notice():
    at = run("app.py", model="random", steps="2-3.900", sources="1.800", together="sum")
    state = at.session_state["state"]
    assert (state.steps, state.sources, state.together) == ((1, 2), (), "sum")
    assert state.step == 2  # the cursor is at one of them
    assert [each.value for each in at.info if "looked at as one" in each.value]
    whole = run("app.py", model="random", steps="1-4096")
    state = whole.session_state["state"]
    assert state.steps == tuple(range(state.step + 1))


# --- the wall of heads ---------------------------------------------------------------------------


@pytest.fixture
def walled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model has so many heads that they stand on a wall."""
    monkeypatch.setattr(wall, "MANY", 1)


def standing(at) -> tuple[list[tuple[int, int]], dict[str, object]]:
    """The heads as they stand on the wall, and the feed that says so."""
    feed = feeds(at)["ranking"]
    return [tuple(head) for group in feed["groups"] for head in group["heads"]], feed


@pytest.mark.usefixtures("walled")
@pytest.mark.parametrize("kind", KINDS)
def test_the_wall_is_sorted_by_the_weight_of_the_cursor_s_row_on_a_key(kind: str, app_models: Path):
    place = {"source": "3"} if kind == "encoder" else {"step": "3"}
    key = {"source": "2"} if kind == "cross" else {"key": "2"}
    at = run(PAGES[kind], model="random", text=TEXT, sort="weight", **place, **key)
    heads, feed = standing(at)
    found = load_translator(app_models / "random").translate(TEXT)
    layers, count = found.config.sizes[kind]
    weights = {
        (layer, head): float(found.weights(kind, layer, head)[2, 1])
        for layer in range(layers)
        for head in range(count)
    }
    assert heads == sorted(weights, key=lambda head: -weights[head])
    assert all(
        feed["numbers"][layer][head] == f"{weights[layer, head]:.2f}" for layer, head in weights
    )
    assert view(at)["plots"][0] == "wall"
    tiles = array(feeds(at)["wall"]["cells"])
    assert tiles.shape[:2] == (layers, count)


@pytest.mark.usefixtures("walled")
def test_the_wall_is_sorted_by_what_a_head_did_to_the_token_of_the_step(app_models: Path):
    heads, feed = standing(run(PAGES["cross"], model="random", text=TEXT, sort="effect", step="2"))
    translator = load_translator(app_models / "random")
    base = translator.translate(TEXT, capture=Capture(residual=True))
    lost = {}
    for layer, row in enumerate(feed["numbers"]):
        for head, told in enumerate(row):
            change = do.ablate("cross", layer, head)
            without = translator.force(TEXT, base.target_ids, interventions=[change])
            moved = without.steps[1].log_prob - base.steps[1].log_prob
            assert float(told.replace("−", "-")) == pytest.approx(moved, abs=0.006)
            lost[layer, head] = moved
    assert [lost[head] for head in heads] == pytest.approx(sorted(lost.values()), abs=1e-4)


@pytest.mark.usefixtures("walled")
def test_all_heads_of_a_wall_are_one_picture_in_an_export():
    at = run(PAGES["cross"], model="random", text=TEXT)
    at.session_state[KEY] = True
    choice = next(each for each in at.run().get("button_group") if each.label == "Figure")
    told = [*choice.options]
    assert told[0] == "all heads"


@pytest.mark.usefixtures("walled")
@pytest.mark.parametrize(
    ("asked", "count", "unreadable"),
    [
        ({"only": "layer-2"}, 4, ""),
        ({"only": "layer-900"}, 12, ""),  # no layer of this model: all heads are shown
        ({"only": "sink", "sort": "role"}, None, ""),
        ({"only": "layer-0"}, 4, ""),
        ({"only": "nonsense"}, 12, "only"),
        ({"only": "layer-x"}, 12, "only"),
        ({"sort": "nonsense"}, 12, "sort"),
        ({"sort": "weight", "key": "99999"}, 12, ""),
    ],
)
def test_what_is_left_of_the_wall_is_in_the_address(asked, count: int | None, unreadable: str):
    at = run(PAGES["decoder"], model="random", text=TEXT, **asked)
    heads, feed = standing(at)
    assert len(heads) == len(set(heads)) <= 12
    assert count is None or len(heads) == count
    assert bool(unreadable) == any("could not be read" in each.value for each in at.info)
    assert feed["aligned"] == (asked.get("sort", "layer") not in ("weight", "role"))


# --- masks ---------------------------------------------------------------------------------------


# --- what keys carried, and what happens without them --------------------------------------------


@pytest.fixture
def traced():
    translator = load_translator(models.find("random").path)
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def opened(kind: str, measure: str, **more: str):
    return run(PAGES[kind], model="random", text=TEXT, measure=measure, **{kind: "2.3"}, **more)


def test_maps_that_cannot_be_measured_show_weights_and_say_why(monkeypatch):
    changed = opened("cross", "carried", changes="ablate_cross_1_1")
    assert "in a run without changes" in words(changed)
    monkeypatch.setattr(measures, "MOST_CELLS_OF_MAP", 3)
    large = opened("cross", "effect")
    assert "effects are measured for at most 3. It shows weights" in said(large)
    assert [feeds(at)["cross"]["quantity"] for at in (changed, large)] == ["weight"] * 2


def test_words_carry_sums_and_effects_stay_those_of_pieces():
    shown = opened("cross", "carried", words="yes", hide="special")
    switches = {each.label: each.value for each in shown.toggle}
    assert (switches["Words"], switches["Hide special tokens"], switches["Hide punctuation"]) == (
        True,
        True,
        False,
    )
    sums, pieces = (
        cells(feeds(opened("cross", each, words="yes"))["cross"]) for each in ("carried", "effect")
    )
    np.testing.assert_allclose(sums[..., 0].sum(1), 1, atol=1e-5)
    assert (sums.shape[-1], pieces.shape[-1]) == (1, 2)


def test_a_cell_is_measured_in_every_way(traced):
    (model, translation), row, key = traced, 1, 2
    one = View(RunKey(named("random"), TEXT, "greedy", None), translation, None)
    own = lenses.carried(model.model, translation, "cross", 1, 2)
    ways = ("hidden", "zeroed", "mean")
    expected = [
        translation.attention.map("cross", 1, 2).scores[row, key],
        translation.weights("cross", 1, 2)[row, key],
        *(
            own.values[key],
            own.norms[row, key],
            own.bias,
            own.norms[row, key] / own.norms[row].sum(),
        ),
        *(lenses.effect(*traced, "cross", 1, 2, way, rows=[row])[row, key] for way in ways),
    ]
    lines = measures.of_cell(one, "cross", (1, 2), (row, key), row)
    assert [float(each.replace("−", "-")) for _, each, _ in lines] == pytest.approx(
        expected, abs=6e-4
    )
    masked = measures.of_cell(one, "decoder", (1, 2), (0, 1), 0)
    assert masked == [("weight", "0", "masked: the query may not see the key")]


def sent(at: AppTest) -> dict[str, dict[str, object]]:
    """The feeds by name as they were sent, before what the audit found was put in."""
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    every = [data[0] for data in told if isinstance(data, list)]
    return {data["name"]: data for data in every if "name" in data}


def test_the_picture_of_a_new_run_does_not_wait_for_its_proof() -> None:
    first = sent(run(text="two three four"))
    proof = first.pop("proof")
    assert {*proof["badges"]} == {*KINDS}
    for name, badge in proof["badges"].items():
        assert first[name]["badge"] == captions.CHECKING
        assert badge["text"] == "✓ verified"
    later = sent(run(text="two three four", cross="1.1"))  # of a run that is proved
    assert "proof" not in later
    assert later["cross"]["badge"]["text"] == "✓ verified"


def test_the_badge_of_all_heads_says_that_they_are_proved_once_they_are() -> None:
    # the words of a badge may stand in a text: only the badge waits
    first = sent(run(PAGES["cross"], text="three four five"))
    assert first["overview"]["badge"] == captions.CHECKING
    assert "checking" not in first["overview"]["caption"]
    assert first["proof"]["badges"]["overview"]["text"] == "✓ from a verified trace"
    assert {*first["proof"]} == {"view", "name", "draw", "trace", "badges"}


def test_a_run_that_is_not_what_was_recorded_is_found_out_after_its_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transformer.audit.WEIGHT_LIMIT", -1.0)
    first = sent(run(text="four five six"))
    for badge in first["proof"]["badges"].values():
        assert not badge["passed"]
        assert badge["text"].startswith("✗")
