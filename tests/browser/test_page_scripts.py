"""The scripts for the parts of a page outside the linked view: what they compute, say and paint."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from explorer.app.controls.slots import SlotPicture
from explorer.figures.base.strips import Strip, strips_spec, vectors_spec
from explorer.figures.pages.inside import LedgerRow, ledger_spec

from .conftest import STATIC

SCRIPTS = next(STATIC.glob("page-*")).name
Call = Callable[..., Any]


# --- axes.js, colour.js -------------------------------------------------------------------------------------


def test_ticks_are_round_numbers_within_the_range(call: Call) -> None:
    cases = {
        (0.5, 32.5, 8): [5, 10, 15, 20, 25, 30],
        (0.5, 256.5, 6): [50, 100, 150, 200, 250],
        (0.5, 3.5, 6): [1, 2, 3],
    }
    assert {case: call("axes.roundTicks", case[:2], case[2]) for case in cases} == cases
    assert {case: call("axes.roundTicks", case[1::-1], case[2]) for case in cases} == cases


def test_a_scale_is_mixed_between_its_stops(call: Call) -> None:
    stops = [[0, "rgba(0,0,0,0)"], [0.5, "#ffffff"], [0.5, "#ff0000"], [1, "rgba(0,0,255,0.5)"]]
    assert call("colour.parts", "#0072B2") == [0, 114, 178, 1]
    assert call("colour.colourAt", stops, 0) == "rgba(0,0,0,0.000)"
    assert call("colour.colourAt", stops, 0.25) == "rgba(128,128,128,0.500)"
    assert call("colour.colourAt", stops, 0.5) == "rgba(255,0,0,1.000)"
    assert call("colour.colourAt", stops, 1) == "rgba(0,0,255,0.500)"


# --- sizes.js -----------------------------------------------------------------------------------------------


def test_the_cursor_stays_whole_in_a_high_window_and_without_its_strips_in_a_low_one(call: Call) -> None:
    sizes = {"list": 30, "view": 190, "strips": 80}
    assert call("sizes.stuck", sizes, 900) == {"top": 30, "room": 220}
    assert call("sizes.stuck", sizes, 700) == {"top": -50, "room": 140}


def test_the_section_being_read_is_the_last_whose_top_was_reached(call: Call) -> None:
    assert call("sizes.reading", [400, 900, 1300], 200) == 0
    assert call("sizes.reading", [-900, 210, 700], 200) == 1
    assert call("sizes.reading", [-900, None, -100], 200) == 2


def test_a_narrow_figure_gives_less_room_to_names_and_scrolls_below_its_least_width(call: Call) -> None:
    given = {"l": 118, "r": 92, "t": 4, "b": 22}
    assert call("sizes.margins", given, 700) == given
    assert call("sizes.margins", given, 340) == {"l": 100, "r": 66, "t": 4, "b": 22}
    assert [call("sizes.size", *each) for each in ((None, 700, 0), (250, 700, 0), (None, 340, 600))] == [
        700,
        250,
        600,
    ]


# --- rich.js, hover.js --------------------------------------------------------------------------------------

FILLED = """({ folder, text }) => import(`/${folder}/rich.js`).then(({ fill }) => {
  const root = document.createElement("div");
  fill(root, text);
  return root.innerHTML;
})"""


def test_texts_become_bold_emphasis_tables_and_nothing_else(scripts_alone: Any) -> None:
    text = "**a** and *b* \\*c\\* <script>x</script>\n\n| | y |\n|--|--|\n| 1 | **2** |"
    assert scripts_alone.evaluate(FILLED, {"folder": SCRIPTS, "text": text}) == (
        "<p><strong>a</strong> and <em>b</em> *c* &lt;script&gt;x&lt;/script&gt;</p>"
        "<table><tbody><tr><th></th><th>y</th></tr><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table>"
    )


def test_escaped_labels_become_what_was_escaped(call: Call) -> None:
    assert call("rich.unescaped", "&lt;s&gt; &amp;lt; &#35;") == "<s> &lt; #"


def test_numbers_carry_a_true_minus_sign(call: Call) -> None:
    assert call("hover.number", -1.234, ".2") == "−1.23"
    assert call("hover.number", 3, None) == "3"
    assert [call("hover.number", each, "+.1") for each in (1.25, -1, 0)] == ["+1.3", "−1.0", "+0.0"]


# --- canvas.js: what plotly.js would show -------------------------------------------------------------------

DRAWN = """async ({ folder, data, at }) => {
  const { Picture } = await import(`/${folder}/picture.js`);
  document.body.replaceChildren();
  document.body.style.width = "700px";
  const picture = new Picture(data.name);
  document.body.append(picture.root);
  picture.show(data);
  await new Promise((done) => setTimeout(done));
  picture.room = 700;
  picture.refresh({ ink: "#000000", family: "sans-serif" });
  const { axes } = picture.canvas;
  const left = axes.x.at(at.x), top = axes[at.axis ?? "y"].at(at.y);
  const pen = picture.canvas.canvas.getContext("2d");
  const scale = window.devicePixelRatio || 1;
  const labels = [...picture.root.querySelectorAll(".pic-tick, .pic-note")].map((e) => e.textContent);
  return {
    under: picture.canvas.under(left, top),
    colour: [...pen.getImageData(Math.round(left * scale), Math.round(top * scale), 1, 1).data],
    labels,
    caption: picture.words.textContent,
    label: picture.node.getAttribute("aria-label"),
  };
}"""


def drawn(scripts_alone: Any, spec: dict, **at: float) -> dict[str, Any]:
    """What a picture says and paints at a place, given in the values of its axes."""
    picture = SlotPicture("p", spec, "what it shows", "caption")
    given = {"folder": SCRIPTS, "data": json.loads(json.dumps(picture.sent())), "at": at}
    return scripts_alone.evaluate(DRAWN, given)  # type: ignore[no-any-return]


def test_a_strip_says_the_number_under_the_pointer_and_paints_its_sign(scripts_alone: Any) -> None:
    spec = strips_spec([Strip("x", np.array([-2.0, 0.0, 1.0]), "length 2.24")])
    amber, clear, purple = (drawn(scripts_alone, spec, x=x, y=0) for x in (1, 2, 3))
    assert "−2.0" in amber["under"]
    assert "dimension 1" in amber["under"]
    assert clear["colour"][3] <= 2
    assert amber["colour"][0] > amber["colour"][2]
    assert purple["colour"][2] > purple["colour"][1]
    assert {"x", "length 2.24"} <= set(amber["labels"])
    assert (amber["label"], amber["caption"]) == ("what it shows", "caption")


def test_the_rows_of_vectors_are_the_tokens_beside_them(scripts_alone: Any) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    spec = vectors_spec(values, ("die", "<b>", "die"), np.array([[10.0, 100.0]]), ("k", "q"), 1)
    below = drawn(scripts_alone, spec, x=2, y=2)
    assert "6.00" in below["under"]
    assert "600.00" in below["under"]
    assert [each for each in below["labels"] if not each.isdigit()] == ["die₁", "<b>", "die₂"]


def test_a_masked_key_has_no_number_under_the_pointer(scripts_alone: Any) -> None:
    row = LedgerRow("masked", np.array([1.0, 2.0]), masked=True)
    spec = ledger_spec("decoder", ("▁a", "▁b"), np.array([True, False]), [row])
    assert "1.000" in drawn(scripts_alone, spec, x=0, y=0)["under"]
    assert drawn(scripts_alone, spec, x=1, y=0)["under"] is None


# --- words.js -----------------------------------------------------------------------------------------------


GLOSSARY = {
    "head": {"written": ["head"]},
    "induction head": {"written": ["induction head", "induction heads"]},
    "KL": {"written": ["KL"]},
    "</s>": {"written": ["</s>"]},
    "σ": {"written": ["σ"]},
}


def found(call: Call, *texts: str) -> list[tuple[str, int, str]]:
    """Word, number of the text, and what stands there, of each first use."""
    uses = call("words.firstUses", list(texts), GLOSSARY)
    return [(use["word"], use["text"], texts[use["text"]][use["start"] : use["end"]]) for use in uses]


def test_a_word_is_found_once_where_it_is_used_first_even_at_the_start_of_a_sentence(call: Call) -> None:
    assert found(call, "Heads", "a head", "Head 3, and head 4") == [("head", 1, "head")]
    assert found(call, "ahead of kl, Σ of all") == []
    assert found(call, "it rests on </s>.", "KL of two") == [("KL", 1, "KL"), ("</s>", 0, "</s>")]


def test_of_two_words_in_one_place_the_longer_is_meant(call: Call) -> None:
    assert found(call, "An induction head looks back.") == [("induction head", 0, "induction head")]


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("/training?view=loss", "weight of a model"),
        ("/findings?study=adam", "weight of a model"),
        ("/findings?study=en-pt/importance", "weight"),
        ("/", "weight"),
    ],
)
def test_a_word_has_the_meaning_of_its_page(call: Call, address: str, word: str) -> None:
    glossary = {
        "weight of a model": {"written": ["weight"], "on": ["training", "findings/adam"]},
        "weight": {"written": ["weight", "weights"]},
        "head": {"written": ["head"]},
    }
    pathname, _, search = address.partition("?")
    found = call("words.meant", glossary, {"pathname": pathname, "search": search})
    assert list(found) == [word, "head"]
