from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from explorer.figures import next_token_spec
from explorer.figures.base import labels
from explorer.figures.maps.heatmap import MASKED, heatmap
from explorer.figures.maps.strongest import SHOWN
from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.linked.view.feeds import Draw, bars_feed, is_off, lines_feed, map_feed, strongest_feed
from transformer import Translator
from transformer import interventions as do

SCRIPT = next((Path(__file__).parents[4] / "static").glob("linked_view-*/view.js"))


@pytest.fixture
def view(solved: Translator) -> ReadView:
    return read_view(solved.translate("one two three").head("decoder", 0, 0), Reading())


def test_every_way_of_drawing_has_its_class_in_the_script():
    table = re.search(r"const CLASSES = \{(.*?)\};", SCRIPT.read_text(encoding="utf-8"), re.S)
    assert table is not None
    assert set(re.findall(r"(\w+):", table[1])) == set(get_args(Draw)) - {"strips"}


def test_a_feed_says_how_it_is_drawn(view: ReadView, solved: Translator):
    bars = bars_feed("abc", next_token_spec(solved.translate("one").steps), "step", "", "", "", [])
    feeds = [map_feed("abc", view), lines_feed("abc", [view], [[]], ""), strongest_feed("abc", view), bars]
    assert [feed["draw"] for feed in feeds] == ["map", "lines", "strongest", "bars"]


def test_the_parts_of_a_hover_text_make_the_text_of_the_plain_figure(view: ReadView):
    hover = map_feed("abc", view)["hover"]
    made = [
        [
            f"{row}, {column}{'' if view.mask[i, j] else hover['masked']}"
            for j, column in enumerate(hover["columns"])
        ]
        for i, row in enumerate(hover["rows"])
    ]
    assert made == [list(line) for line in heatmap(view).data[0].text]
    assert sum(text.endswith(MASKED) for line in made for text in line) == int((~view.mask).sum())


def test_names_in_hover_texts_are_escaped_and_names_elsewhere_are_not(view: ReadView):
    feed = map_feed("abc", view)
    assert any("<" in name for name in feed["names"]["rows"])
    assert feed["hover"]["rows"] == [labels.escape(name) for name in feed["names"]["rows"]]
    assert "meta" not in json.loads(feed["figure"])["layout"]


def test_lists_on_the_screen_are_as_long_as_printed_ones(view: ReadView):
    assert strongest_feed("abc", view)["listed"] == SHOWN


@pytest.mark.parametrize(
    ("change", "off"),
    [
        (do.ablate("cross", 1, 2), True),
        (do.ablate("cross", 1), True),
        (do.ablate("cross", 1, 2, by="uniform"), False),
        (do.ablate("cross", 1, 2, rows=(0,)), False),
        (do.ablate("cross", 0, 2), False),
        (do.ablate("encoder", 1, 2), False),
    ],
)
def test_a_head_is_off_if_its_output_is_zero_in_every_row(translator, change, off: bool):
    run = translator.translate("one two", max_length=3, interventions=[change])
    assert is_off(run, "cross", (1, 2)) is off
