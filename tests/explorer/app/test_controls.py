"""Controls: names and tables of saved figures, formulas, options, panels, parts, texts."""

import csv
import inspect
import io
import json
import unicodedata

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY
from streamlit.testing.v1 import AppTest

from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.state import State
from explorer.app.controls import formula, options, text
from explorer.app.controls.export import Picture, file_name
from transformer.encodings import REGISTRY

# --- saved files ---------------------------------------------------------------------------------

WOMAN = "The woman who wrote the book is my sister."


@PROPERTY
@given(
    st.one_of(
        st.text(max_size=80), st.sampled_from(("😀" * 300, "𝔸" * 300, "猫が。" * 200, "\ud800"))
    ),
    st.text(),
)
def test_every_file_system_accepts_the_name_of_a_file(sentence: str, figure: str):
    name = file_name(sentence, figure)
    assert 0 < len(f"{name}.json".encode()) <= 255
    assert {unicodedata.category(letter)[0] for letter in name.replace("-", "")} <= {*"LMN"}
    assert name == name.strip("-") == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ((WOMAN, "cross L2 H6"), "the-woman-who-wrote-the-book-is-my-cross-l2-h6"),
        (("Müde war die Katze!",), "müde-war-die-katze"),
        (("../../etc/passwd",), "etc-passwd"),
        (("बिल्ली ने चूहे",), "बिल्ली-ने-चूहे"),
        (("", "next"), "next"),
        (("", "…"), "figure"),
        *(
            ((taken,), f"figure-{taken.strip(' .').lower()}")
            for taken in ("con", "Com1", " aux. ", "COM¹")
        ),
    ],
)
def test_a_name_says_the_sentence_and_the_figure_in_whole_words_and_none_that_windows_keeps(
    parts, name: str
):
    assert file_name(*parts) == name


def test_the_csv_file_begins_with_caption_and_provenance_and_holds_the_numbers():
    table = [("token", "Δ log p"), ("a, “b”\n", -0.25), ("#", 0.5)]
    picture = Picture(go.Figure, "Δ log p of\neach token", table=lambda: table)
    lines = picture.csv(State(text="one two", model="random")).split("\n", 2)
    assert lines[0] == "\ufeff# Δ log p of each token"
    assert lines[1].startswith("# Attention explorer")
    assert "text=one+two&model=random" in lines[1]
    rows = list(csv.reader(lines[2].splitlines(keepends=True)))
    assert rows == [[str(cell) for cell in row] for row in table]
    hostile = Picture(go.Figure, '“x",=HYPERLINK("b")', table=lambda: [("=1", -1.5)])
    caption, _, row = csv.reader(io.StringIO(hostile.csv(State(text="one"))[1:], newline=""))
    assert (caption, row) == (['# “x",=HYPERLINK("b")'], ["'=1", "-1.5"])


# --- formulas and texts --------------------------------------------------------------------------


@pytest.mark.parametrize("positions", REGISTRY)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_has_what_its_positions_add_but_across_it_has_neither(kind: str, positions: str):
    written = formula.attention(kind, positions, masked=kind == "decoder")
    own = kind != "cross"
    added = own and bool(ENCODINGS[positions].bias), own and ENCODINGS[positions].acts == "rotation"
    assert ("+ B" in written, "prime" in written, "+ M" in written) == (*added, kind == "decoder")
    assert bool(formula.explained(kind, positions)) == any(added)


SIGNS = "\\`*_{}[]()#+-.!|~$:<>^&"
COMMAND = "python -m lab heads --model assets/en-de --data {}valid.tsv.gz --x {}b.tsv"
PAIRS = "patterns: 500 pairs of tatoeba-en-de{}, forced; aer: 100 pairs of a{}"


@pytest.mark.parametrize(
    ("form", "written", "read"),
    [
        (text.plain, f"a{SIGNS}é 1", "a" + "".join(f"\\{sign}" for sign in SIGNS) + "é 1"),
        (text.command, COMMAND.format("../shared/", "/a/"), COMMAND.format("", "")),
        (text.data, PAIRS.format("/valid.tsv.gz", "/b-c.tsv"), PAIRS.format(" (valid)", " (b-c)")),
        *(
            (lambda each: text.refusal(ValueError(each)), error, text.plain(shown))
            for error, shown in (
                ("/srv/app/models/en-xx/survey.json is damaged", "en-xx/survey.json is damaged"),
                ("no file '/home/me/a.npz'", "no file 'me/a.npz'"),
                (
                    "see https://example.org/a/b/c or a/b/c/d",
                    "see https://example.org/a/b/c or a/b/c/d",
                ),
                ("/dev/full is full", "/dev/full is full"),
            )
        ),
    ],
)
def test_texts_are_escaped_and_say_nothing_of_the_folders_of_this_machine(
    form, written: str, read: str
):
    assert form(written) == read


# --- options -------------------------------------------------------------------------------------

TOKENS = ("▁the", "▁cat", "▁the", "</s>", "<0xF0>", "▁" + "a" * 50)
LISTS = {
    "heads": options.heads((2, 3), (1, 0)),
    "keys": options.keys(TOKENS),
    "numbered": options.numbered(["the cat", "the cat"], 3),
    "words": options.words(["the", "the"]),
}


def test_no_two_options_of_a_list_have_the_same_text():
    functions = inspect.getmembers(options, inspect.isfunction)
    assert sorted(LISTS) == sorted(
        name for name, each in functions if each.__module__ == options.__name__
    )
    for name, listed in LISTS.items():
        assert len({*listed.values()} - {""}) == len(listed), name


# --- a figure with its words ---------------------------------------------------------------------


def page(**more: object) -> AppTest:
    """A page with one figure."""

    def script(more: dict[str, object]) -> None:
        import plotly.graph_objects as go

        from explorer.app.controls.export import page_export
        from explorer.app.controls.panels import panel

        panel(
            "bars",
            lambda *ink: go.Figure(layout={"width": 900, "title": str(ink)}),
            "2 * 3",
            **more,
        )
        panel("other", lambda: go.Figure(layout={"title": "other"}), "what else · random")
        page_export()

    at = AppTest.from_function(script, kwargs={"more": more}).run()
    assert not at.exception
    return at


def test_all_figures_of_a_page_are_saved_under_one_button():
    def sent(at: AppTest) -> str:
        (buttons,) = at.get("bidi_component")
        return str(json.loads(json.loads(buttons.proto.json)["figure"])["layout"]["title"]["text"])

    pages = page(), page(seeing="Bars.", title="Why?")
    buttons = [[each.proto.popover.label for each in at.get("popover")] for at in pages]
    assert buttons == [["Export"], ["Why?", "Export"]]
    at = page(heading="##### **Two**")
    at.session_state["export.page"] = True
    assert at.run().selectbox[0].options == ["1 · Two", "2 · what else · random"]
    assert sent(at.selectbox[0].select_index(1).run()).startswith("other")
    # only a figure with text in coloured cells takes the colour of text, and is saved in that of
    # white paper
    plain, inked = (page(inked=each) for each in (False, True))
    assert ["#1d232c" in at.get("plotly_chart")[0].proto.spec for at in (plain, inked)] == [
        False,
        True,
    ]
    inked.session_state["export.page"] = True
    assert "#1d232c" in sent(inked.run())


def _only_an_export() -> None:
    import plotly.graph_objects as go
    import streamlit as st

    from explorer.app.controls.export import Picture, collect, page_export

    if "drawn" not in st.session_state:
        st.session_state["drawn"] = True
        collect("bars", Picture(go.Figure, "2 * 3"))
    page_export()


def test_the_pictures_of_the_pages_drawn_last_are_kept_and_no_others():
    first, second, *_ = [AppTest.from_function(_only_an_export).run() for _ in range(33)]
    for at in (second, first):
        at.session_state["export.page"] = True
        at.run()
    assert [each.options for each in second.selectbox] == [["1 · 2 * 3"]]
    assert not first.selectbox
    assert "or 32 others were drawn since" in first.caption[0].value


# --- parts of a page -----------------------------------------------------------------------------


def refusing(error: str) -> AppTest:
    """A page with a part that raises."""

    def script(error: str) -> None:
        import streamlit as st

        from explorer.app.controls.parts import part

        @part()
        def refuses() -> None:
            import torch

            st.write("before")
            errors = {"ValueError": ValueError, "OSError": OSError, "TypeError": TypeError}
            raise (
                torch.OutOfMemoryError
                if error == "OutOfMemoryError"
                else errors[error]("2 * 3 is a _sum_")
            )

        refuses()
        part(run_every=60)(st.write)("after")

    return AppTest.from_function(script, kwargs={"error": error}).run()


def test_what_a_part_refuses_is_said_in_it_and_the_rest_of_the_page_goes_on(monkeypatch):
    for error in ("ValueError", "OSError"):
        at = refusing(error)
        assert [each.value for each in at.error] == ["2 \\* 3 is a \\_sum\\_"]
        assert [each.value for each in at.markdown] == ["before", "after"]
        assert not at.exception
    assert refusing("TypeError").exception, "a fault of the program stays one"
    left: list[None] = []
    monkeypatch.setattr("explorer.app.server.models.leave_gpu", lambda: left.append(None))
    at = refusing("OutOfMemoryError")
    message = "The GPU has no memory left, so models compute on the CPU from now on: ask again."
    assert ([each.value for each in at.info], [*at.exception], left) == ([message], [], [None])
