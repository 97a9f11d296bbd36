from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from closed_form import CASES
from head_views import decoder_view, view

from explorer.figures import heatmap, heatmap_spec, to_json
from explorer.figures.maps.heatmap import hatching, levels, pool
from transformer.translator import Translator


def test_masked_cells_have_level_zero_and_visible_ones_never():
    head = decoder_view()
    shown = levels(head.weights, head.mask)
    assert shown.dtype == np.uint8
    assert (shown[~head.mask] == 0).all()
    assert (shown[head.mask] >= 1).all()


def test_levels_grow_with_the_weight_from_one_to_255():
    shown = levels(np.array([[0.0, 0.5, 1.0]]), np.ones((1, 3), bool))
    assert shown.tolist() == [[1, 128, 255]]


def test_cells_stand_where_their_labels_stand(solved: Translator):
    case = CASES[solved.name]
    translation = solved.translate(case.sentence)
    for kind in ("encoder", "decoder", "cross"):
        for index in (0, 1):
            figure = heatmap(translation.head(kind, 0, index))
            cells = figure.data[0]
            rows = figure.layout.yaxis.ticktext
            columns = [text.removeprefix("▁") for text in figure.layout.xaxis.ticktext]
            for row, key in enumerate(case.keys(kind, index)):
                assert cells.customdata[row, key, 0] > 0.99
                assert cells.z[row, key] >= 253
                tokens = case.decoder_input_tokens if kind == "decoder" else case.source_tokens
                assert columns[key] == tokens[key].removeprefix("▁").replace("<", "&lt;").replace(">", "&gt;")
            labelled = {"encoder": case.source_tokens, "decoder": case.decoder_input_tokens}.get(kind)
            expected = labelled or case.target_tokens
            assert [text.replace("&lt;", "<").replace("&gt;", ">") for text in rows] == [
                token.removeprefix("▁") for token in expected
            ]


def test_a_transposed_map_is_refused(solved: Translator):
    head = solved.translate(CASES[solved.name].sentence).head("cross", 0, 0)
    turned = replace(head, weights=head.weights.T, scores=head.scores.T, mask=head.mask.T)
    with pytest.raises(ValueError, match="labels for"):
        heatmap(turned)


def test_the_mask_is_one_hatched_polygon():
    figure = heatmap(decoder_view())
    assert len(figure.data) == 2
    polygon = figure.data[1]
    assert polygon.fill == "toself"
    assert polygon.fillpattern.shape == "/"
    assert polygon.hoverinfo == "skip"


def test_equal_runs_of_masked_cells_are_one_rectangle():
    mask = np.ones((5, 4), bool)
    mask[:, 3] = False
    (polygon,) = hatching(mask)
    assert list(polygon["x"]) == [2.5, 3.5, 3.5, 2.5, 2.5]
    assert list(polygon["y"]) == [-0.5, -0.5, 4.5, 4.5, -0.5]


def test_nothing_masked_draws_no_polygon():
    assert len(heatmap(view("cross", ("a", "b"), ("c",), predicted_tokens=("b", "</s>"))).data) == 1


def test_the_linked_view_gets_no_text_per_cell():
    assert "text" not in heatmap_spec(decoder_view())["data"][0]


def test_a_hover_text_says_which_token_is_read_and_which_predicted():
    figure = heatmap(decoder_view())
    assert figure.data[0].text[1][0] == "reads w0, predicts w1, key &lt;s&gt;"
    assert figure.data[0].text[0][1].endswith("(masked)")


def test_axes_say_whose_they_are():
    head = view("cross", ("<s>", "a"), ("b",), predicted_tokens=("a", "</s>"))
    titles = [note.text for note in heatmap(head).layout.annotations]
    assert titles == ["keys and values: encoder output", "queries: decoder, layer 3 (token predicted)"]


def test_the_plot_area_is_the_same_for_every_length():
    margins = {heatmap(decoder_view(n)).layout.margin.to_plotly_json()["l"] for n in (3, 20, 64)}
    assert len(margins) == 1


def test_a_map_holds_at_most_64_by_64_cells():
    with pytest.raises(ValueError, match="at most 64 x 64"):
        heatmap(decoder_view(65))


def test_labels_and_cells_must_agree_in_number():
    head = decoder_view()
    wrong = view("encoder", ("a", "b"), ("a", "b"))
    with pytest.raises(ValueError, match="labels for"):
        heatmap(type(wrong)("encoder", ("a",), ("a", "b"), head.weights, head.mask))


def test_a_figure_of_64_tokens_stays_small():
    assert len(to_json(heatmap_spec(decoder_view(64)))) < 70_000


def test_pooling_keeps_the_largest_weight():
    values = np.zeros((130, 70), np.uint8)
    values[129, 69] = 200
    pooled, rows, columns = pool(values, 64)
    assert (rows, columns) == (3, 2)
    assert pooled.shape == (44, 35)
    assert pooled[-1, -1] == 200


def test_plain_values_and_figure_are_the_same():
    head = decoder_view()
    plain, drawn = json.loads(to_json(heatmap_spec(head))), json.loads(heatmap(head).to_json())
    assert plain["data"][0]["z"] == drawn["data"][0]["z"]
    assert plain["data"][0]["customdata"] == drawn["data"][0]["customdata"]
    assert plain["layout"]["xaxis"] == drawn["layout"]["xaxis"]
