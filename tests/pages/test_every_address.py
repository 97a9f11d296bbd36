"""Every page with an address that is wrong, out of range, hostile or long, and at every step of a
visit."""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from app_pages import (
    HEADS,
    HOSTILE,
    LINKED,
    PAGES,
    charts,
    feeds,
    named_charts,
    run,
    said,
    view,
    visit,
    words,
)
from closed_form import CASES
from inside_page import pictures, told
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.address import sitemap
from explorer.app.address.kinds import keys_of
from explorer.app.address.state import SHARED
from explorer.figures.base import labels

OUT_OF_RANGE = {
    "step": "999",
    "source": "1e9",
    "encoder": "9.9",
    "decoder": "9.9",
    "key": "1e9",
    "layer": "99",
}
WRONG = (
    "step=nan first=nan node=x member=z dimension=x cross=1 kind=y part=heart pairs=1-x swap=x "
    "twin_head=x view=sideways mask=x against=untrained- encoding=circular statistic=beauty "
    "decode=beam-99x penalty=99 temperature=hot top_p=7 top_k=0 seed=-3 draws=1000 smoothing=7 "
    "width=1e99 warmup=-5 d_model=inf what_if=magic hide=all show=chord links=mass-x window=65 "
    "more=x scale=cubic rows=both color=age words=maybe"
)
EVERYTHING_WRONG: dict[str, str | list[str]] = {
    **dict(each.split("=") for each in WRONG.split()),
    "source": ["1", "x"],
    "model": "../../etc",
}
LONG = " ".join(["one two three four five six eight nine ten"] * 12)


def declared(page: str) -> set[str]:
    """The values that a page alone reads, as it declares them."""
    values = sitemap.PAGES[Path(page).stem].values
    return {name for declared_values in values for name in keys_of(declared_values)}


def test_every_value_of_an_address_is_shared_or_declared_by_one_page():
    owned = [name for page in PAGES for name in declared(page)]
    assert len(set(owned)) == len(owned)
    assert not {*owned} & {*SHARED}
    assert {*EVERYTHING_WRONG} <= {*SHARED, *owned, "first", "more"}


@pytest.mark.parametrize("page", PAGES)
def test_whatever_stands_in_the_address_every_page_opens_and_names_it(page: str):
    at = run(page, **EVERYTHING_WRONG)
    named = said(at).replace("\\", "")
    read = {*SHARED, *declared(page)} - {"model"}
    assert all(name in named for name in EVERYTHING_WRONG if name in read)
    assert all(each.value for each in at.error)


@pytest.mark.parametrize("page", PAGES)
def test_positions_out_of_range_become_the_nearest_on_every_page(page: str):
    at = run(page, **OUT_OF_RANGE, view="sentence" if "positions" in page else "")
    assert all(words(at).count(means) <= 1 for means in labels.SIGNS.values())
    if page in LINKED:
        shown = view(at)
        carried = feeds(at)
        assert shown["step"] == len(CASES["copy"].target_tokens) - 1
        assert set(shown["plots"]) <= set(carried)
        assert {data["trace"] for data in carried.values()} == {shown["trace"]}, (
            "of one translation"
        )


NEAREST = [
    ("whole_model?part=heart", "part"),
    ("whole_model?part=decoder-end&model=copy", "This model has no part “Decoder: LayerNorm"),
    ("whole_model?part=encoder-forward&layer=99", "There is no encoder layer 99: layer 2"),
    ("inside_a_head?what_if=temperature-nan&kind=both&key=x", "kind, key, what_if."),
    ("inside_a_head?section=sum&kind=decoder&key=999", "This row has 16 keys; key 16 is shown."),
    (f"masks?view=batch&sentences=one two%0A{'one ' * 200}", "at most 128"),
    ("masks?view=batch&sentences= %0A ", "3 sentences ×"),
    ("masks?view=batch&sentences=one%0Atwo three&member=9", "sentence 2 of the batch"),
    ("what_if?view=compare&against=model-../x", "model"),
    ("beam_search?changes=choose_900_▁drei", "900"),
    ("training?model=language/writer&view=surprisal&text=", "is empty"),
    ("explanation?view=why&rival=▁nonsense", "“nonsense” is no other token of this step"),
    (
        "positions?d_model=1e9&base=-5&positions=99999999&offset=-1",
        "d_model, base, positions, offset.",
    ),
    (
        "positions?first=77&encoding=circular",
        "There is no window that starts at position 77 here, so 1 is",
    ),
    ("positions?dimension=5000", "There is no dimension 5,000 here, so 112 is shown."),
    (
        "positions?view=sentence&twin_head=99.99&swap=70.2",
        "There is no head 99 here, so 4 is shown.",
    ),
    ("app?lesson=map.99", "step 8 of 8"),
    ("app?lesson=alchemy.1", "lesson that the address names is not here"),
    ("app?model=imported: run.npz (abcdef)", "Open the file again"),
]


@pytest.mark.parametrize(("address", "sentence"), NEAREST)
def test_a_value_that_does_not_fit_is_answered_in_a_sentence_and_the_nearest_is_shown(
    address, sentence
):
    at = visit(address, model="random", text="one two three")
    assert sentence in f"{said(at)} {words(at)}".replace("\\", "")
    assert len(at.error) <= 1
    assert not address.startswith("whole_model") or "anatomy-lens" in named_charts(at)


VISITS = [
    *sitemap.PAGES,
    *(f"inside_a_head?section=path&kind={kind}&what_if=hard" for kind in HEADS["default"]),
    *(f"whole_model?part={part}" for part in ("source-embedding", "decoder-cross", "output")),
    *(f"encoder_self_attention?show={show}&words=yes" for show in ("lines", "strongest")),
    "cross_attention?view=alignment&pairs=1-1",
    "what_if?view=compare&against=sentence",
    f"masks?view=batch&mask=zero&{urlencode({'sentences': HOSTILE})}",
    "positions?view=sentence",
]
"""Every page, and its views that draw typed words in another way."""


@pytest.mark.parametrize("address", VISITS)
def test_hostile_texts_stay_text_on_every_page(address: str):
    at = visit(address, model="random", **dict.fromkeys(("text", "target", "other"), HOSTILE))
    figures = [each.proto.spec for each in at.get("plotly_chart")]
    drawn = [str(feed.get("figure")) for feed in feeds(at).values()]
    bodies = [each.proto.body for each in at.get("html")]
    marks = [each.value for each in (*at.markdown, *at.caption, *at.info, *at.error)]
    for shown in (*figures, *drawn, *bodies):
        assert not [sign for sign in ("<script", "#000001", "\u202e") if sign in shown]
    assert not [mark for mark in marks if "**one**" in mark or "[a](" in mark or "$x$" in mark]


WINDOWS = [
    *((Path(page).stem, "queries") for page in LINKED),
    *(
        (f"inside_a_head?section=sum&kind={kind}", "values, one per row · keys ")
        for kind in HEADS["default"]
    ),
    ("cross_attention?view=alignment&pairs=1-1", "source words 9–108"),
    ("masks?mask=zero", "queries "),
    (f"what_if?view=compare&against=sentence&other={LONG} one", "rows "),
]


@pytest.mark.parametrize(("address", "says"), WINDOWS)
def test_a_long_text_is_drawn_in_windows_that_say_so(address: str, says: str):
    at = visit(address, model="random", text=LONG, step="90", source="80")
    maps = [] if "?" in address else [data for data in feeds(at).values() if data.get("rows")]
    assert says in " ".join([words(at), told(at), *(str(data["caption"]) for data in maps)])
    for data in maps:
        assert data["name"] == "whole" or max(map(len, data["spans"].values())) <= 64
        assert len(str(data["figure"])) < 120_000
    figures = [*map(json.dumps, charts(at)), *(picture["figure"] for picture in pictures(at))]
    assert sum(map(len, figures)) < 1_000_000


VISIT = (
    {"model": "random", "text": "three two", "target": "drei zwei"},
    {"model": "random", "text": "two.", "target": "zwei"},
    {"model": "copy", "text": "one two", "target": "eins"},
)
"""A visit of three sentences, with two models; the translation is given, so that its steps are
known."""


def choices(at: AppTest) -> dict[str, tuple[str, ...]]:
    """The texts of the options of every choice on a page, by the widget as the browser knows it."""
    drawn = (*at.selectbox, *at.multiselect, *at.get("button_group"), *at.select_slider)
    return {
        each.proto.id: tuple(getattr(text, "content", text) for text in each.proto.options)
        for each in drawn
    }


@pytest.mark.parametrize("page", thinned(PAGES, 3))
def test_a_page_follows_every_step_and_no_option_changes_under_a_widget(page: str):
    known: dict[str, tuple[str, ...]] = {}
    at: AppTest | None = None
    for each in VISIT:
        for step in range(len(each["target"].split()) + 1):
            address = each | {"step": str(step + 1)}
            if at is None:
                at = run(page, **address)
            else:
                at.query_params.update(address)
                at.run()
            assert not at.exception, (each, step)
            now = choices(at)
            assert [
                name for name, texts in now.items() if known.setdefault(name, texts) != texts
            ] == []
            if page in LINKED:
                assert view(at)["step"] == step
            if page == "pages/inside_a_head.py":
                assert set(re.findall(r"· step (\d+) ·", told(at))) == {str(step + 1)}
