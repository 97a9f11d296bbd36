"""Addresses from before the menu had doors: each still opens its place, with all that it says."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
import streamlit as st
from app_pages import ROOT, SENTENCE, run
from lab.__main__ import GONE as COMMANDS
from lab.__main__ import main
from streamlit.testing.v1 import AppTest

import transformer as transformer_package
from transformer.__main__ import GONE as GONE_COMMANDS
from transformer.__main__ import LENSES
from transformer.__main__ import main as transformer
from ui.address import sitemap
from ui.address.gone import GONE, MOVED, RENAMED
from ui.server import studies
from ui.server.catalogue import DEFAULT

LANGUAGE_MODEL = "language/lm-en"
OLD = {
    "app.py": ("step=2", "decode=beam-4", "decode=sample-3&temperature=1.5&top_k=5", "cross=2.3&scale=log"),
    "pages/encoder_self_attention.py": ("source=3&encoder=1.2", "view=batch&batch=one two", "show=lines"),
    "pages/decoder_self_attention.py": ("view=trained&step=3", "show=strongest&words=yes", "hide=special"),
    "pages/cross_attention.py": (
        *("step=4&cross=1.2", "view=alignment&aligner=own&cross=1.1", "order=entropy&color=eos_mass"),
        "links=weight-10&more=1.2",
    ),
    "pages/inside_a_head.py": ("kind=decoder&key=2", "notation=lecture&step=2", "step=3"),
    "pages/whole_model.py": ("part=encoder-forward&layer=2", "part=output&step=2"),
    "pages/beam_search.py": ("penalty=0.8&length_offset=5", "view=sampling&draws=3&seed=7", "node=2"),
    "pages/masks.py": ("kind=encoder", "mask=after&kind=decoder", "view=batch&sentences=one%0Atwo&member=1"),
    "pages/training.py": (
        "view=loss&smoothing=0.2",
        "view=schedule&width=256&warmup=800",
    ),
    "pages/positions.py": ("encoding=rotary&positions=32", "dimension=4&base=100"),
    "pages/what_if.py": ("view=causal&scored=1", "changes=ablate_cross_1.2_zero"),
    "pages/compare.py": ("against=head-1.2", "against=untrained-3&kind=encoder", "against=uniform"),
    "pages/heads.py": ("kind=encoder&statistic=entropy",),
    "pages/recurrent.py": ("view=path",),
    "pages/open_file.py": ("step=2",),
}
ADDRESSES = [(page, query) for page, queries in OLD.items() for query in queries]


def test_there_are_many_of_them():
    assert len(ADDRESSES) >= 30


@pytest.mark.parametrize("old", MOVED)
def test_an_address_of_a_section_that_has_moved_opens_what_it_has_become(old: str, monkeypatch):
    opened = {}
    monkeypatch.setattr(st, "switch_page", lambda page, query_params: opened.update({page: query_params}))
    page, _, view = old.partition("/")
    run(sitemap.script(page), view=view, model="en-de", step="2")
    to, study = MOVED[old]
    query = opened[f"pages/{to}.py"]
    assert query["step"] == "2"
    assert "view" not in query
    model = LANGUAGE_MODEL if page == "language_model" else "en-de"
    assert query.get("study", "") == study.format(model=model)


@pytest.mark.parametrize(
    ("page", "view", "study"),
    [
        ("language_model", "induction", f"{LANGUAGE_MODEL}/induction"),
        ("language_model", "space", f"{LANGUAGE_MODEL}/words"),
        ("heads", "importance", f"{DEFAULT}/importance"),
    ],
)
def test_an_old_address_without_a_model_opens_the_study_of_the_one_that_its_page_shows(
    page: str, view: str, study: str, monkeypatch
):
    opened = {}
    monkeypatch.setattr(st, "switch_page", lambda page, query_params: opened.update(query_params))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params["view"] = view
    assert not at.switch_page(sitemap.script(page)).run().exception
    assert opened["study"] == study
    assert study in studies.known()


def test_a_study_that_nobody_has_measured_for_a_model_says_what_measures_it():
    at = run("pages/findings.py", study="copy/importance")
    told = at.info[0].value
    assert "`python -m lab importance --model " in told
    assert " --data FILE`" in told
    at = run("pages/findings.py", study="copy/nosuch")
    assert "There is no study" in at.info[0].value


@pytest.mark.parametrize("page", RENAMED)
def test_the_former_name_of_a_page_opens_it_with_all_that_the_address_says(page: str, monkeypatch):
    opened = {}
    monkeypatch.setattr(st, "switch_page", lambda path, query_params: opened.update({path: query_params}))
    run(f"pages/{page}.py", view="sampling", step="2")
    assert opened == {
        f"pages/{RENAMED[page]}.py": {"view": "sampling", "step": "2", "model": "copy", "text": SENTENCE}
    }


@pytest.mark.parametrize("view", GONE)
def test_an_address_of_a_section_that_is_gone_says_what_answers_now(view: str):
    at = run("app.py", view=view)
    assert not at.exception
    assert [each.value.replace("\\", "") for each in at.info] == [GONE[view]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_gone_says_what_answers_now(command: str, capsys: pytest.CaptureFixture[str]):
    assert main([command, "--model", "x"]) == 2
    assert capsys.readouterr().err == f"This command is gone: {COMMANDS[command]}.\n"


@pytest.mark.parametrize(("page", "query"), ADDRESSES)
def test_an_old_address_opens_its_place_with_all_that_it_says(page: str, query: str):
    params = dict(parse_qsl(query))
    at = run(page, **params)
    assert not [each.value for each in at.error]
    assert not any("could not be read" in each.value for each in at.info)
    kept = {name: at.query_params[name] for name in at.query_params}
    assert kept | {name: value for name, value in params.items() if name in kept} == kept
    assert kept["model"] == "copy"
    assert kept["text"] == SENTENCE


@pytest.mark.parametrize("command", sorted(GONE_COMMANDS))
def test_a_command_that_is_gone_says_who_knows_more(command: str, capsys: pytest.CaptureFixture[str]):
    assert command in COMMANDS
    assert transformer([command]) == 2
    told = capsys.readouterr().err
    assert told == f"This command is gone; python -m lab {command} says what answers now.\n"


@pytest.mark.parametrize("command", sorted(LENSES))
def test_a_command_that_has_moved_says_where(command: str, capsys: pytest.CaptureFixture[str]):
    assert transformer([command, "--model", "x"]) == 2
    assert capsys.readouterr().err == f"This command has moved: python -m lenses {command}.\n"


def test_a_name_that_has_moved_says_where():
    for name, how in transformer_package.MOVED.items():
        with pytest.raises(AttributeError, match=f"{name} has moved out of transformer: {how}"):
            getattr(transformer_package, name)
