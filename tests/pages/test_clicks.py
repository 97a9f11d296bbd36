"""What a visitor chooses, types or presses goes into the address, is shown, and stays on its
page."""

import json
from typing import Any

import pytest
from app_pages import click_menu, feeds, said, visit, words
from streamlit.testing.v1 import AppTest

from explorer.app.address.state import SHARED

DEFAULTS = {"model": "random", "text": "one two three", "step": "2"}
ROWS: list[tuple[str, dict[str, Any], dict[str, str | None], str]] = [
    ("app?decode=sample-3", {"Temperature": 0.5}, {"temperature": "0.5"}, "temperature 0.5"),
    ("app", {"Cells say": "carried"}, {"measure": "carried"}, ""),
    ("app", {"Source share": True}, {"shares": "yes"}, ""),
    ("cross_attention", {"Order of the heads": "aer"}, {"order": "aer"}, "by alignment error"),
    ("cross_attention?show=lines", {"Words": True, "Hide punctuation": True, "Share of each row": 40},
     {"words": "yes", "hide": "punctuation", "links": "mass-40"}, "40 % of each row"),
    ("cross_attention?view=alignment&pairs=1-1", {"Clear the links": True}, {"pairs": None}, "No links made"),
    ("decoder_self_attention?view=trained", {"Your translation": "eins zwei"}, {"target": "eins zwei"},
     "Here it is your own"),
    ("inside_a_head?section=weights&kind=encoder",
     {"Other arithmetic": "temperature", "Number": 0.5, "Key": 2, "Notation": "lecture"},
     {"what_if": "temperature-0.5", "key": "3", "notation": "lecture"}, ""),
    ("inside_a_head?section=weights", {"Key": 2}, {"source": "3"}, ""),
    ("inside_a_head?section=weights", {"Next step: weighted sum": True}, {"section": "sum"}, ""),
    ("whole_model", {"Part": "decoder-cross", "Layer": 2}, {"part": "decoder-cross", "layer": "3"}, ""),
    ("masks?view=batch", {"The sentences of the batch": "\n".join(["one two"] * 8)},
     {"sentences": "\n".join(["one two"] * 6)}, "6 sentences ×"),
    ("masks?view=batch&sentences=one two%0Anine ten&member=2", {"The sentences of the batch": "one\ntwo three"},
     {"sentences": "one\ntwo three", "member": None}, "sentence 1 of the batch"),
    ("beam_search?decode=beam-3", {"Hypotheses in the beam": 5}, {"decode": "beam-5"}, "Beam search, 5 hyp"),
    ("beam_search?penalty=0.4", {"Length penalty": 1.0}, {"penalty": None}, ""),
    ("beam_search?decode=beam-3&penalty=0.6&length_offset=5", {"Divide": 0}, {"length_offset": None}, "|y|^"),
    ("what_if?view=compare&cross=2.4", {"Compare with": "head"}, {"against": "head-2.1"}, ""),
    ("what_if?view=compare&against=head-1.2", {"Row of the cursor": 3}, {"step": "4"}, ""),
    ("training?view=loss", {"Label smoothing": 0.3}, {"smoothing": "0.3"}, ""),
    ("training?view=schedule", {"d_model": 1024, "Warm-up steps": 8000},
     {"width": "1024", "warmup": "8000"}, ""),
    ("app?model=language/writer&text=one", {"Text to continue": "four five"},
     {"text": "four five", "step": None}, ""),
]  # fmt: skip


def use(at: AppTest, label: str, value: Any) -> AppTest:
    """Presses the button, or sets the field, whose label begins so."""
    kinds = (
        "selectbox",
        "slider",
        "select_slider",
        "toggle",
        "text_input",
        "text_area",
        "button_group",
        "button",
    )
    found = [each for kind in kinds for each in at.get(kind) if each.label.startswith(label)]
    assert found, [each.label for kind in kinds for each in at.get(kind)]
    return (found[0].click() if found[0].type == "button" else found[0].set_value(value)).run()


@pytest.mark.parametrize(("address", "choices", "expected", "told"), ROWS, ids=str)
def test_a_choice_goes_into_the_address_and_what_a_page_alone_reads_stays_there(
    address, choices, expected, told
):
    at = visit(address, **DEFAULTS)
    for label, value in choices.items():
        use(at, label, value)
    assert not at.exception
    held = {name: at.query_params.get(name) for name in expected}
    assert {
        name: each[-1] if isinstance(each, list) else each for name, each in held.items()
    } == expected
    shown = [
        words(at),
        said(at),
        *(str(each.value) for each in at.dataframe),
        json.dumps(feeds(at), ensure_ascii=False),
    ]
    assert told in " ".join(shown).replace("\\", "").replace("\xa0", " ")
    click_menu(at, "pages/open_file.py")
    assert not (expected.keys() - SHARED.keys()) & set(at.query_params)
