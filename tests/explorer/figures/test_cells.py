"""What figures compute, against arithmetic of their own: cells, links, places, clicks; what they
refuse."""

import itertools
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import plotly.io
import pytest
from head_views import decoder_view, view
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from properties import PROPERTY

from explorer import figures
from explorer.figures import Tile, heatmap, heatmap_spec, lines, to_json
from explorer.figures.base import labels, style
from explorer.figures.base.strips import pooled
from explorer.figures.maps.alignment import NAMED, alignment_map
from explorer.figures.maps.export import marked
from explorer.figures.maps.heatmap import hatching, levels, lowered, pool, row_frame, token_grid
from explorer.figures.maps.lines import links
from explorer.figures.maps.measures import MeasureRow, measures_map
from explorer.figures.maps.overview import Measure
from explorer.figures.pages.positions import LOOKS, looks, table_map
from explorer.figures.pages.recurrent import paths
from explorer.figures.pages.search import KEPT, LOST, STEPS, WON, Branch, ordered, search_tree
from explorer.figures.pages.study import KINDS, Chart, draw
from explorer.figures.pages.training import COLUMNS, Column, shifted_right, two_ways
from explorer.figures.pages.what_if import difference_map
from explorer.lenses.words.reading import Reading, read_view
from transformer import Window

CROSS = view("cross", ("<s>", "▁a", "b"), ("▁x", "y"), predicted_tokens=("▁a", "b", "</s>"))
MASKS = hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7))


# --- cells ---------------------------------------------------------------------------------------


@PROPERTY
@given(MASKS)
def test_hatching_covers_the_masked_cells_once_and_no_others(mask: np.ndarray):
    covered = np.zeros(mask.shape, int)
    for polygon in hatching(mask):
        corners = [*zip(polygon["x"], polygon["y"], strict=True), (None, None)]
        for (left, top), (right, _), (_, bottom), *_ in zip(*[iter(corners)] * 6, strict=True):
            covered[int(top + 0.5) : int(bottom + 0.5), int(left + 0.5) : int(right + 0.5)] += 1
    assert (covered == ~mask).all()


@PROPERTY
@given(MASKS, st.integers(1, 9))
def test_levels_are_0_only_where_masked_and_pooling_keeps_the_largest_of_each_block(mask, limit):
    weights = np.random.default_rng(mask.size).random(mask.shape)
    shown = levels(weights, mask)
    assert shown.dtype == np.uint8
    assert (shown == np.where(mask, np.rint(1 + 254 * weights), 0)).all()
    found, rows, columns = pool(shown, limit)
    assert (rows, columns) == tuple(-(-side // limit) for side in mask.shape)
    for (i, j), level in np.ndenumerate(found):
        assert level == shown[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns].max()
    tile = Tile.of(
        np.pad(weights, ((0, 40), (0, 30))), np.ones((len(mask) + 40, mask.shape[1] + 30), bool)
    )
    assert (tile.rows, tile.columns) == (2, 1 + (mask.shape[1] > 2))


@PROPERTY
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 40))
def test_a_pooled_matrix_keeps_the_number_of_largest_magnitude_with_its_sign(rows, columns, cells):
    values = np.random.default_rng(cells).normal(size=(rows, columns))
    shown, down, along = pooled(values, cells)
    assert shown.size <= cells
    assert ((down, along) == (1, 1)) == (values.size <= cells)
    for (i, j), value in np.ndenumerate(shown):
        block = values[i * down : (i + 1) * down, j * along : (j + 1) * along]
        assert value == block.flat[np.abs(block).argmax()]


@PROPERTY
@given(hnp.arrays(np.float64, (3, 2), elements=st.floats(0, 1)), st.floats(0, 1), st.floats(0, 1))
def test_links_are_the_fewest_of_each_row_that_carry_the_share_of_its_sum(
    weights, mass: float, least: float
):
    head = replace(CROSS, weights=weights)
    found = links(head, mass, least)
    for i, row in enumerate(weights):
        kept = [each.weight for each in found if each.query == i]
        assert all(row[each.key] == each.weight for each in found if each.query == i)
        every = sorted((w for w in row if w > 0 and w >= least), reverse=True)
        assert kept == every[: len(kept)]
        if least == 0 and row.any() and mass:
            assert sum(kept) >= mass * row.sum() - 1e-9
            assert sum(kept[:-1]) < mass * row.sum() + 1e-9
    assert len(links(head, None, least)) == ((weights > 0) & (weights >= least)).sum()


# --- clicks and the cursor -----------------------------------------------------------------------

LATE = replace(decoder_view(4), window=Window(10, 14, 20, 24))
PIECES = ("▁on", "e", "▁two", "</s>")
READ = read_view(view("encoder", PIECES, PIECES), Reading(words=True))


@pytest.mark.parametrize(
    ("head", "cursor", "now", "boxes"),
    [
        (decoder_view(6), (2, 1), 3, [(-0.5, 5.5, 1.5, 2.5), (0.5, 1.5, 1.5, 2.5)]),
        (decoder_view(4), (3,), 4, [(-0.5, 3.5, 2.5, 3.5)]),
        (decoder_view(4), (1, None, False), 4, [(-0.5, 3.5, 0.5, 1.5)]),
        (LATE, (12, 21), 3, [(-0.5, 3.5, 1.5, 2.5), (0.5, 1.5, 1.5, 2.5)]),
        (LATE, (9,), 4, []),
        (LATE, (14,), 4, []),
        (READ, (2, 2, False), 3, [(-0.5, 2.5, 0.5, 1.5), (0.5, 1.5, 0.5, 1.5)]),
    ],
)
def test_the_cursor_is_ringed_and_the_rows_after_it_fade(head, cursor, now, boxes):
    figure = marked(head, *cursor)
    whole = heatmap(head).data[0]
    assert [(box.x0, box.x1, box.y0, box.y1) for box in figure.layout.shapes] == boxes
    cells = [each for each in figure.data if each.type == "heatmap"]
    assert len(cells[0].z) == now
    assert len(cells) == 1 + (now < len(whole.z))
    for part in ("z", "customdata"):
        assert np.array_equal(np.concatenate([cell[part] for cell in cells]), whole[part])
    for later in cells[1:]:
        assert (later.y0, later.dy, later.opacity) == (now, 1, 0.25)


def test_rows_that_are_looked_at_as_one_are_ringed_and_those_after_the_last_fade():
    figure = marked(decoder_view(6), 2, together=(0, 2, 4))
    boxes = [(box.y0, box.y1) for box in figure.layout.shapes]
    assert boxes == [(-0.5, 0.5), (1.5, 2.5), (3.5, 4.5)]
    later = [cells for cells in figure.data if cells.type == "heatmap"][1]
    assert (later.y0, len(later.z)) == (5, 1)


def test_the_legend_of_a_measure_has_its_ends_in_the_colours_of_their_strips():
    measure = Measure.of([[0.5, np.nan], [0.25, 1.0]])
    assert [text for text, _ in measure.legend] == ["0.25", "0.62", "1.00"]
    assert measure.colors[1] == [measure.legend[0][1], measure.legend[2][1]]
    assert len(Measure.of([[0.5]]).legend) == 1


def test_tables_have_numbers_and_rows_where_they_fit_and_the_frame_beside_a_map_stands_at_its_row():
    texts = [
        measures_map([MeasureRow("w", np.ones(n))], ["a"] * n).data[0].texttemplate
        for n in (16, 17)
    ]
    assert texts == ["%{text}", None]  # numbers as long as there is room
    long = table_map(np.zeros((512, 4)), 1, "position", "dimension").layout
    assert long.height - long.margin.t - long.margin.b >= 512
    beside = row_frame(lowered(heatmap(CROSS, 300), 9), 1)
    own = {"left": 88, "top": 97, "beside": 92, "high": 208, "rows": 3, "columns": 2, "row": 1}
    assert beside == own


# --- room ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 5, 40, 64])
@pytest.mark.parametrize("size", [270, style.SIZE, style.LARGE])
def test_labels_as_wide_as_any_leave_room_for_the_title_and_stand_far_enough_apart(
    size: int, count: int
):
    layout = token_grid(
        ["W" * 40] * count, [f"{i}" for i in range(count)], ("rows", "columns"), size
    )
    down = layout["yaxis"]
    across = layout["xaxis"]
    widest = max(map(labels.width, down["ticktext"])) * down["tickfont"]["size"]
    assert widest + down["ticklabelstandoff"] + 15 <= layout["margin"]["l"]
    apart = style.pitch(count, size) * (np.diff(across["tickvals"]).min() if count > 1 else 1)
    assert apart >= 0.75 * across["tickfont"]["size"]
    assert down["tickfont"] == across["tickfont"]


def test_more_room_makes_a_map_larger_its_cells_not_smaller():
    usual, wide = (
        token_grid(["x"], ["y"], ("", ""), 330, room) for room in (labels.ROOM, labels.ROOM + 2)
    )
    inner = [each["width"] - each["margin"]["l"] - each["margin"]["r"] for each in (usual, wide)]
    assert (inner[0], wide["margin"]["t"] - usual["margin"]["t"]) == (inner[1], 20)
    columns, rows = token_grid(["x"], ["y"], ("short", "long " * 12), 270)["annotations"]
    assert columns["xshift"] < 0 == rows["yshift"]  # a long title begins before the map


def test_maps_of_any_length_keep_their_frame_and_stay_small():
    assert len({heatmap(decoder_view(n)).layout.margin.l for n in (3, 20, 64)}) == 1
    assert len(to_json(heatmap_spec(decoder_view(64)))) < 70_000
    for count in (41, NAMED + 36):
        names = [f"w{i}" for i in range(count)]
        figure = alignment_map(np.eye(count), names, names, (), (), (), ("r", "c"), 1104)
        assert ("%{y} – %{x}" in figure.data[-1].hovertemplate) == (count > NAMED)
    assert len(figure.to_json()) < 350_000
    assert len(paths(["▁a"] * 200, (0, 199)).layout.xaxis.ticktext) == 50


TALL = np.ones((65, 1))


@pytest.mark.parametrize(
    ("draw_", "message"),
    [
        (lambda: heatmap(decoder_view(65)), "at most 64 x 64"),
        (lambda: heatmap(replace(CROSS, query_tokens=("a",))), "labels for"),
        (
            lambda: difference_map(TALL, TALL, TALL > 0, (), (), TALL[:, 0], 1, ("", "")),
            "ask for a window",
        ),
        (lambda: lines([CROSS, decoder_view(3)]), "one kind"),
        (lambda: lines([CROSS, replace(CROSS, window=Window(1, 4, 0, 2))]), "one window"),
        (lambda: lines([CROSS] * 5), "1 to 4"),
        (lambda: lines([]), "1 to 4"),
        (lambda: links(CROSS, mass=1.5), "from 0 to 1"),
        (lambda: links(CROSS, threshold=-0.1), "from 0 to 1"),
        (lambda: style.strength(TALL, "cubic"), "no scale 'cubic'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw_, message: str):
    with pytest.raises(ValueError, match=message):
        draw_()


# --- pages ---------------------------------------------------------------------------------------


def wide(steps: int, width: int) -> list[Branch]:
    """A tree in which every kept token has two continuations, with long tokens."""
    found: list[Branch] = []
    before: list[int | None] = [None]
    for step in range(steps):
        here = []
        for place in range(2 * width):
            here.append(len(found))
            fate = WON if not place else KEPT if place < width else LOST
            parent = before[place % len(before)]
            found.append(
                Branch("▁Geschwindigkeit", step, parent, 1 / (place + 1), fate, False, "x")
            )
        before = [*here[:width]]
    return found


@pytest.mark.parametrize("width", [4, 8])
def test_no_two_lines_of_a_tree_cross_and_no_two_labels_overlap(width: int):
    branches = wide(STEPS, width)
    rows = [{place: row for row, place in enumerate(column)} for column in ordered(branches)]
    for before, after in itertools.pairwise(rows):
        parents = [before[branches[place].parent] for place in after]
        assert parents == sorted(parents)
    figure = search_tree(branches, {})
    texts = [each for each in figure.data if each.mode == "markers+text"]
    pitch = (figure.layout.width - 16) / (STEPS + 1)
    for text in {text for each in texts for text in each.text}:
        assert labels.width(text.removeprefix("<b>").removesuffix("</b>")) * 11 <= pitch - 10
    assert (figure.layout.height - 58) / (2 * width) >= 22
    spots = [spot for each in texts for spot in zip(each.x, each.y, strict=True)]
    assert len(set(spots)) == len(spots)
    assert len(figure.to_json()) < 250_000


def test_longer_pictures_are_drawn_in_a_window():
    tree = wide(STEPS + 15, 2)
    figure = search_tree(tree, {}, first=10)
    assert figure.layout.xaxis.ticktext == tuple(str(step) for step in range(11, STEPS + 11))
    (targets,) = [each for each in figure.data if each.customdata is not None]
    assert {tree[place].step for place in targets.customdata} == set(range(10, STEPS + 10))
    columns = [Column("▁a", "▁b", 0.1, "▁c", 0.9)] * 90
    for figure in (shifted_right(columns, 0, first=7), two_ways(columns, ["▁b"] * 90, 9, first=7)):
        assert figure.layout.xaxis.ticktext == tuple(str(i) for i in range(8, 8 + COLUMNS))
    (bars,) = [each for each in shifted_right(columns, 0, first=7).data if each.type == "bar"]
    assert list(bars.customdata) == [*range(7, 7 + COLUMNS)]


def test_no_two_twins_look_alike_but_those_of_other_seeds_and_none_wears_the_hue_of_a_kind():
    found = looks([*LOOKS, *"abcdefghijkl"])
    assert found | LOOKS == found
    assert len(set(found.values())) == len(found)
    assert not {colour for colour, _ in found.values()} & {*style.HUES.values()}
    found = looks(["rotary-seed2", "rotary", "new-seed2", "new"])
    assert (found["rotary-seed2"], found["new-seed2"]) == (found["rotary"], found["new"])


def curves(series: dict[str, list[tuple[float, float]]], log: str = "") -> Chart:
    rows = [(name, *point) for name, points in series.items() for point in points]
    return Chart("curves", "x", "", ("line", "layer", "norm"), rows, log)  # type: ignore[arg-type]


def test_axes_of_a_study_can_be_read_and_a_series_looks_alike_in_all_charts():
    assert draw(curves({"a": [(1, 1e-9), (2, 1e9)]}, "y")).layout.yaxis.type == "log"
    for places, ticks in (((3, 6, 12), (3, 6, 12)), ((0.5, 1, 2), None)):
        assert (
            draw(curves({"a": [(place, 1.0) for place in places]})).layout.xaxis.tickvals == ticks
        )
    both = draw(curves({"a": [(1, 1.0)], "b": [(1, 1.0)]}), ["a", "b"])
    one = draw(curves({"b": [(1, 1.0)]}), ["a", "b"])
    assert one.data[0].line == both.data[1].line != both.data[0].line
    assert {*KINDS} == {
        "encoder self-attention",
        "masked decoder self-attention",
        "cross-attention",
    }
    assert draw(curves({"cross-attention": [(1, 1.0)]})).data[0].line.color == style.HUES["cross"]


# --- in a notebook -------------------------------------------------------------------------------


def test_five_lines_show_a_head_in_a_notebook_without_a_network(
    monkeypatch: pytest.MonkeyPatch, capsys
):
    pytest.importorskip("IPython", reason="IPython is not installed")
    monkeypatch.chdir(Path(__file__).resolve().parents[3])
    monkeypatch.setattr(plotly.io.renderers, "default", plotly.io.renderers.default)
    code = textwrap.dedent((figures.__doc__ or "").partition("without a network:\n")[2]).strip()
    *statements, expression = code.splitlines()
    assert len(statements) == 4
    names: dict[str, object] = {}
    exec("\n".join(statements), names)
    page = eval(expression, names)._repr_mimebundle_()["text/html"]
    shown = capsys.readouterr().out
    assert "plotly.js v" in shown
    assert 'src="https://cdn.plot.ly' not in shown + page
    assert "Plotly.newPlot" in page
    assert "old" in page
