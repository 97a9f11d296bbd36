"""Every page without a browser: what it shows, how it takes a bad address, and what it says."""

import re
from pathlib import Path

import pytest
from app_pages import HEADS, LINKED, PAGES, ROOT, SENTENCE, click_menu, feeds, run, said, view
from closed_form import CASES
from streamlit.testing.v1 import AppTest

from explorer.app.address import sitemap
from explorer.app.address.parameters import KEEP
from explorer.app.address.state import SHARED
from explorer.app.server import models
from explorer.app.server.examples import examples, text_on
from explorer.figures.base import labels
from transformer.translator import Translator

OUT_OF_RANGE = {
    "step": "999",
    "source": "1e9",
    "encoder": "9.9",
    "decoder": "9.9",
    "key": "1e9",
    "layer": "99",
}
EVERYTHING_WRONG: dict[str, str | list[str]] = {
    **{"step": "nan", "source": ["1", "x"], "first": "nan", "node": "x", "member": "z", "dimension": "x"},
    **{"cross": "1", "kind": "y", "part": "heart", "pairs": "1-x", "swap": "x", "twin_head": "x"},
    **{
        "view": "sideways",
        "mask": "x",
        "against": "untrained-",
        "encoding": "circular",
        "statistic": "beauty",
    },
    **{"decode": "beam-99x", "penalty": "99", "temperature": "hot", "top_p": "7", "top_k": "0", "seed": "-3"},
    **{
        "draws": "1000",
        "smoothing": "7",
        "width": "1e99",
        "warmup": "-5",
        "d_model": "inf",
        "what_if": "magic",
    },
    **{"hide": "all", "show": "chord", "links": "mass-x", "window": "65", "more": "x", "scale": "cubic"},
    **{"rows": "both", "color": "age", "words": "maybe", "what_if": "magic", "statistic": "beauty"},
    "model": "../../etc",
}


def declared(page: str) -> set[str]:
    """The values that a page alone reads, as its files declare them."""
    folder = {"inside_a_head": "inside"}.get(Path(page).stem, Path(page).stem)
    files = [ROOT / page, *(ROOT / "explorer/app/sections" / folder).glob("*.py")]
    return {
        name
        for file in files
        for name in re.findall(r'^ *page_value\("(\w+)"', file.read_text(), re.MULTILINE)
    }


def test_every_value_of_an_address_is_shared_or_declared_by_one_page():
    owned = [name for page in PAGES for name in declared(page)]
    assert len(set(owned)) == len(owned)
    assert not {*owned} & {*SHARED}
    assert {*EVERYTHING_WRONG} <= {*SHARED, *owned, "first", "more"}


@pytest.mark.parametrize("page", PAGES)
def test_whatever_stands_in_the_address_every_page_opens_and_names_it(page: str):
    at = run(page, **EVERYTHING_WRONG)
    told = said(at).replace("\\", "")
    read = {*SHARED, *declared(page)} - {"model"}
    assert all(name in told for name in EVERYTHING_WRONG if name in read)
    assert all(each.value for each in at.error)


@pytest.mark.parametrize("page", PAGES)
def test_positions_out_of_range_become_the_nearest_on_every_page(page: str):
    at = run(page, **OUT_OF_RANGE, view="sentence" if "positions" in page else "")
    told = " ".join(each.value for each in (*at.caption, *at.markdown))
    assert all(told.count(means) <= 1 for means in labels.SIGNS.values())
    if page in LINKED:
        shown, carried = view(at), feeds(at)
        assert shown["step"] == len(CASES["copy"].target_tokens) - 1
        assert set(shown["plots"]) <= set(carried)
        assert {data["trace"] for data in carried.values()} == {shown["trace"]}, "of one translation"


HOSTILE = "<script>alert(1)</script> </b> </s> {x} %{z} **one** $x$ [a](javascript:1) #000001 \u202eabc two"
VISITS: list[tuple[str, dict[str, str]]] = [
    *((page, {}) for page in PAGES),
    *(
        ("pages/inside_a_head.py", {"section": "path", "kind": kind, "what_if": "hard"})
        for kind in HEADS["default"]
    ),
    *(("pages/whole_model.py", {"part": part}) for part in ("source-embedding", "decoder-cross", "output")),
    ("pages/cross_attention.py", {"view": "alignment", "pairs": "1-1"}),
    ("pages/what_if.py", {"view": "compare", "against": "sentence"}),
    ("pages/masks.py", {"view": "batch", "mask": "zero", "sentences": f"{HOSTILE}\none"}),
    ("pages/positions.py", {"view": "sentence"}),
]
"""Every page, and its views that draw typed words in another way."""


@pytest.mark.parametrize(("page", "more"), VISITS)
def test_hostile_texts_stay_text_on_every_page(page: str, more: dict[str, str]):
    typed = dict.fromkeys(("text", "target", "other"), HOSTILE)
    at = run(page, model="random", **typed | more)
    charts = [each.proto.spec for each in at.get("plotly_chart")]
    drawn = [str(feed.get("figure")) for feed in feeds(at).values()]
    pages = [each.proto.body for each in at.get("html")]
    marks = [each.value for each in (*at.markdown, *at.caption, *at.info, *at.error)]
    for shown in (*charts, *drawn, *pages):
        assert not [sign for sign in ("<script", "#000001", "\u202e") if sign in shown]
    assert not [mark for mark in marks if "**one**" in mark or "[a](" in mark or "$x$" in mark]


def test_a_bare_address_opens_on_a_translated_sentence():
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not at.exception
    strips = feeds(at)["strips"]
    shown = "".join(chip["text"] for chip in strips["source"]).replace("◦", "")
    assert shown.startswith(examples(models.find("en-pt"))[0].text.replace(" ", ""))
    assert len(strips["target"]) > 2


def test_a_text_that_cannot_be_translated_keeps_the_page():
    at = run()
    for text in ("", " \t\n", "\x00\x01", "word " * 10_000):
        at.text_input[0].set_value(text).run()
        assert not at.exception
        told = "shorten it to at most" if text.strip("\0\1 \t\n") else "is empty"
        assert told in said(at).replace("\\", "")
        assert at.text_input[0].value == text
        back = [each for each in at.button if each.label == "Back to the example"]
        assert len(back) == (not text.strip())
    at.text_input[0].set_value("").run()
    next(each for each in at.button if each.label == "Back to the example").click().run()
    assert not at.error
    assert at.text_input[0].value == text_on(models.find("copy"), None)
    at.text_input[0].set_value("one two").run()
    assert not at.error


def test_a_long_text_stays_in_the_session_and_says_so():
    text = " ".join(["one stop", *["two three"] * 400])
    at = run()
    at.text_input[0].set_value(text).run()
    assert not at.exception
    assert "too long for a link" in said(at)
    assert "text" not in at.query_params
    next(each for each in at.selectbox if each.label == "Decoding").select_index(1).run()
    assert at.text_input[0].value == text
    at = click_menu(at, "pages/open_file.py")
    assert "text" not in at.query_params
    assert at.session_state["state"].text == text


def test_a_translation_is_made_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    stream = Translator.stream

    def counted(self: Translator, text: str, *more: object, **named: object) -> object:
        calls.append(text)
        return stream(self, text, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Translator, "stream", counted)
    text = "nine ten eight stop"
    at = run(text=text)
    at.query_params["cross"] = "1.2"
    at.run()
    at.run()
    assert calls.count(text) == 1
    assert feeds(at)["cross"]["title"] == "Cross L1 H2"


def test_back_restores_the_earlier_state():
    at = run(step="2")
    before = dict(at.query_params)
    at.text_input[0].set_value("nine ten").run()
    assert [chip["text"] for chip in feeds(at)["strips"]["source"]] == ["nine", "ten", "</s>"]
    for name, value in before.items():
        at.query_params[name] = value
    at.run()
    assert view(at)["step"] == 1
    assert feeds(at)["strips"]["source"][0]["text"] == CASES["copy"].source_tokens[0].removeprefix("▁")


@pytest.mark.parametrize("page", ["app.py", "pages/cross_attention.py"])
def test_a_click_that_overtakes_the_new_address_keeps_the_new_sentence(page: str):
    at = run(page, step="2")
    before = dict(at.query_params)
    next(button for button in at.button if button.label == "Translate").click().run()
    assert dict(at.query_params) == before, "a click alone writes no address"
    at.text_input[0].set_value("nine ten").run()
    written = dict(at.query_params)
    at.query_params.clear()
    at.query_params.update(before)  # the browser has not got the new address yet
    next(button for button in at.button if button.label == "Translate").click().run()
    assert at.text_input[0].value == "nine ten"
    assert [chip["text"] for chip in feeds(at)["strips"]["source"]] == ["nine", "ten", "</s>"]
    assert dict(at.query_params) == written


def test_the_menu_is_the_same_whatever_the_visitor_looks_at():
    links = [[each.proto for each in run(step=step).get("page_link")] for step in ("1", "2")]
    assert links[0] == links[1]
    assert len(links[0]) >= sum(len(sitemap.entries(group.name)) for group in sitemap.GROUPS)


def test_a_page_of_the_menu_opens_with_the_state_of_the_session():
    at = click_menu(run(step="2", decoder="1.2"), "pages/decoder_self_attention.py")
    assert view(at)["step"] == 1
    held = {name: at.query_params[name] for name in at.query_params}
    assert held == {"model": "copy", "text": SENTENCE, "step": "2", "decoder": "1.2"} | {
        name: held[name] for name in ("encoder", "cross")
    }
    assert view(click_menu(at, "app.py"))["step"] == 1


def test_a_link_of_the_menu_without_a_session_opens_what_the_app_chooses():
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params.update(KEEP)
    at.run()
    assert not at.exception
    assert not at.query_params
    assert view(at)["step"] is not None


def test_without_any_model_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    monkeypatch.setattr("explorer.app.server.catalogue.BUNDLED", tmp_path)
    at = run()
    assert "python -m transformer train" in said(at)


JOINED, SPACE = (f"“{sign}” {means}" for sign, means in labels.SIGNS.items())


@pytest.mark.parametrize(
    ("text", "told"),
    [("The old house is not for sale.", [JOINED]), ("He is old.", []), ("He is 3.", [JOINED, SPACE])],
)
def test_signs_are_explained_where_they_stand(text: str, told: list[str]):
    at = run("pages/cross_attention.py", model="en-de", text=text)
    shown = " ".join(each.value for each in at.caption)
    assert [each for each in (JOINED, SPACE) if each in shown] == told
