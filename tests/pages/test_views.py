"""Words, lines, strongest keys, scales, windows and tiles without a browser: what the browser is fed with."""

import json
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, charts, feeds, run, said, view, words
from closed_form import CASES, KNOWN
from streamlit.testing.v1 import AppTest

from explorer.app.maps import display

PAGES = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
LONG = " ".join(["one two three four five six eight nine ten"] * 9)
HOSTILE = "</script> <b> <s> </s> #000001 %{x} שלום 猫が。 one"


def weights(feed: dict[str, object]) -> np.ndarray:
    """The numbers of lines and strongest keys, as the browser reads them."""
    return array(feed["values"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", PAGES)
def test_known_cells_are_drawn_in_every_way(kind: str, name: str):
    case = CASES[name]
    link = {"model": name, "text": case.sentence, kind: "1.2", "words": "yes"}
    lines = feeds(run(PAGES[kind], show="lines", links="weight-99", **link))["lines"]
    known = {(row, key) for row, key in enumerate(case.keys(kind, 1))}
    assert {(row, key) for row, key, *_ in lines["links"]} == known
    strongest = weights(feeds(run(PAGES[kind], show="strongest", **link))["strongest"])
    plain = feeds(run(PAGES[kind], **link))
    matrix = json.loads(str(plain[kind]["figure"]))["data"][0]
    drawn = array(matrix["customdata"])
    assert drawn.shape[2] == 1
    for row, key in known:
        assert strongest[row, key] > KNOWN
        assert drawn[row, key, 0] > KNOWN
    tiles = array(json.loads(str(plain["overview"]["figure"]))["data"][0]["z"])
    first, second = case.weights(kind, 0), case.weights(kind, 1)
    columns = first.shape[1]
    assert np.array_equal(tiles[:, :columns] > 250, first == 1)
    assert np.array_equal(tiles[:, -columns:] > 250, second == 1)


@pytest.mark.parametrize("name", CASES)
def test_known_cells_stay_where_they_are_in_a_batch_and_as_trained(name: str):
    case = CASES[name]
    link = {"model": name, "text": case.sentence}
    nine = f"{case.sentence}\none two three four five six eight nine ten"
    batch = run("pages/masks.py", view="batch", sentences=nine, kind="encoder", encoder="1.1", **link)
    drawn = array(charts(batch)[3]["data"][0]["customdata"])
    known = case.weights("encoder", 0)
    size = len(case.source_tokens)
    assert (drawn[:size, :size, 0][known == 1] > KNOWN).all()
    trained = feeds(run(PAGES["decoder"], view="trained", decoder="1.2", **link))["decoder"]
    cells = array(json.loads(str(trained["figure"]))["data"][0]["customdata"])
    assert (cells[..., 0][case.weights("decoder", 1) == 1] > KNOWN).all()


@pytest.mark.parametrize("show", display.SHOWS)
@pytest.mark.parametrize("kind", PAGES)
def test_every_way_of_drawing_opens_from_its_address(kind: str, show: str):
    at = run(PAGES[kind], model="random", show=show, words="yes", hide="special.punctuation", scale="log")
    assert "could not be read" not in said(at)
    told, carried = view(at), feeds(at)
    focus = kind if show == "matrix" else show
    assert told["focus"] == focus
    assert set(told["plots"]) <= set(carried)
    assert "from a verified trace" in str(carried[focus]["badge"])
    assert "Strongest links" in str(carried[focus]["alt"])
    assert len(carried[focus]["sentences"]) == len(carried[focus]["spans"]["rows"])


@pytest.mark.parametrize("show", display.SHOWS)
def test_hostile_tokens_stay_text(show: str):
    at = run(PAGES["encoder"], text=HOSTILE, model="random", show=show, words="yes", hide="special")
    focus = feeds(at)["encoder" if show == "matrix" else show]
    names = focus["names"]["columns"]
    assert any("</script>" in name for name in names)
    assert any("שלום" in name for name in names)
    assert sum("猫" in name for name in names) == 1
    if show == "matrix":
        assert "</script>" not in str(focus["figure"])


def test_hidden_weight_is_named_in_the_row_and_at_its_end():
    at = run(PAGES["cross"], model="random", hide="special")
    carried = feeds(at)["cross"]
    assert "</s>" not in carried["names"]["columns"]
    assert any("lies on hidden tokens" in note for note in carried["notes"].values())
    ends = json.loads(str(carried["figure"]))["layout"]["yaxis2"]["ticktext"]
    assert all(" + " in end for end in ends)


def test_rows_can_be_named_by_the_token_they_read_and_the_scale_is_printed_with_its_numbers():
    carried = feeds(run(PAGES["cross"], rows="read", scale="sqrt"))["cross"]
    layout = json.loads(str(carried["figure"]))["layout"]
    assert layout["yaxis"]["ticktext"][0] == "&lt;s&gt;"
    assert "token read" in layout["annotations"][1]["text"]
    assert "square root" in str(carried["caption"])
    assert [text for text, _ in carried["legend"]["marks"]] == ["0", "0.05", "0.2", "0.5", "1"]


@pytest.mark.parametrize("show", display.SHOWS)
def test_smaller_windows_come_with_the_whole_matrix(show: str):
    at = run(PAGES["cross"], model="random", text=LONG, window="16", step="20", source="40", show=show)
    carried = feeds(at)
    focus = carried["cross" if show == "matrix" else show]
    assert max(map(len, focus["spans"].values())) <= 16
    for side, position in (("rows", 19), ("columns", 39)):
        assert any(start <= position < stop for start, stop in focus["spans"][side])
    assert "maximum over" in str(carried["whole"]["caption"])
    assert "whole" in view(at)["plots"]


def test_up_to_four_heads_are_drawn_in_colours_and_styles_of_their_own():
    at = run(PAGES["cross"], model="random", show="lines", cross="1.1", more="1.2_2.1_3.4_3.3")
    heads = feeds(at)["lines"]["heads"]
    assert [head["name"] for head in heads] == ["L1 H1", "L1 H2", "L2 H1", "L3 H4"]
    assert len({head["color"] for head in heads}) == len({head["dash"] for head in heads}) == 4


def test_every_cell_has_a_text_alternative_that_says_what_is_drawn_and_what_can_be_done():
    for show in ("matrix", "lines", "strongest"):
        at = run(PAGES["cross"], model="random", show=show, cross="2.3", window="16")
        assert all(feed["alt"] for name, feed in feeds(at).items() if name != "strips")
    found = feeds(at)
    tiles = "All heads, 3 layers of 4, as tiles; head 3 of layer 2 is chosen."
    todo = "Click a tile to open its head, or choose one above."
    assert found["overview"]["alt"] == f"Cross-attention. {tiles} {todo}"
    assert found["row"]["alt"] == f"The row of the cursor, as bars: {found['row']['caption']}."
    frames = json.loads(str(found["row"]["figure"]))["frames"]
    largest = [array(frame["data"][0]["y"]).max() for frame in frames]
    names = found["strongest"]["names"]["rows"]
    for name, value, text in zip(names, largest, found["row"]["alts"], strict=True):
        assert text.startswith(f"Largest of {name}: ")
        assert text.split("; ")[0].endswith(f": {value:.2f}")


def test_the_controls_write_the_address():
    at = run(PAGES["cross"], model="random", show="lines")
    next(each for each in at.toggle if each.label == "Words").set_value(True).run()
    next(each for each in at.toggle if each.label == "Hide punctuation").set_value(True).run()
    next(each for each in at.slider if "row" in each.label).set_value(40).run()
    assert not at.exception
    assert at.query_params["words"] == "yes"
    assert at.query_params["hide"] == "punctuation"
    assert at.query_params["links"] == "mass-40"
    assert "40\u00a0% of each row" in str(feeds(at)["lines"]["caption"])


@pytest.mark.parametrize("statistic", ["entropy", "mean_distance", "first_mass", "contribution", "aer"])
def test_tiles_take_the_colour_of_a_statistic(statistic: str):
    at = run(PAGES["cross"], model="random", color=statistic, order=statistic)
    carried = feeds(at)["overview"]
    assert not at.exception
    assert carried["legend"]["marks"]
    layout = json.loads(str(carried["figure"]))["layout"]
    written = [float(note["text"].split(" · ")[1]) for note in layout["annotations"]]
    rows = [written[i : i + 4] for i in range(0, len(written), 4)]
    falling = statistic in {"entropy", "mean_distance", "aer"}
    assert all(row == sorted(row, reverse=not falling) for row in rows)
    assert sum("fillcolor" in shape for shape in layout["shapes"]) == len(written)


def test_the_table_has_the_numbers_and_masked_cells_are_empty(app_models: Path):
    from explorer.lenses.words.reading import Reading, read_view
    from transformer import load_translator

    head = load_translator(app_models / "copy").translate(CASES["copy"].sentence).head("decoder", 0, 0)
    table = display.weights(read_view(head, Reading()))
    assert table.isna().to_numpy().sum() == (~head.mask).sum()
    assert table.iloc[3, 2] > KNOWN
    assert table.columns.is_unique
    assert list(table.columns[:2]) == ["1 <s>", "2 eins"]


def opened_tables(at: AppTest) -> int:
    return len(at.get("arrow_data_frame"))


def test_tables_are_sent_only_when_asked_for():
    assert opened_tables(run(PAGES["cross"])) == 0


def test_as_trained_the_page_says_whose_translation_stands_for_the_reference():
    at = run(PAGES["decoder"], view="trained")
    assert "the model's own translation stands in for it" in words(at)
    assert "do not exist yet" not in words(at)
    assert "shifted right" in words(at)
    box = next(each for each in at.text_input if each.label == "Your translation")
    box.set_value("eins zwei").run()
    assert at.query_params["target"] in ("eins zwei", ["eins zwei"])
    assert "your own translation is the reference" in words(at)
    assert "stands in for it" not in words(at)


def test_as_decoded_later_tokens_do_not_exist_and_a_given_translation_is_named():
    at = run(PAGES["decoder"])
    assert "later ones do not exist yet" in words(at)
    assert "as if the model had chosen it" not in words(at)
    assert "as if the model had chosen it" in words(run(PAGES["decoder"], target="eins zwei"))


@pytest.mark.parametrize("kind", PAGES)
def test_the_formula_has_the_mask_of_the_decoder_alone(kind: str):
    at = run(PAGES[kind])
    assert any(("+ M" in each.value) == (kind == "decoder") for each in at.latex)
