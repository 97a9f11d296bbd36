"""The pages Glossary and The paper, and the questions of What if: what is found, and what links
open."""

import json
import re
from urllib.parse import parse_qsl

import pytest
from app_pages import ROOT, functions, run, said, words

from explorer.app.address import sitemap
from explorer.app.address.parameters import parse
from explorer.app.address.state import KEYS
from explorer.app.server import models
from explorer.lenses.what_if.experiments import CONTINUED, EXPERIMENTS
from transformer import interventions as do

matches, FILE = (functions("pages/glossary.py")[name] for name in ("matches", "FILE"))
ITEMS = [item for items in functions("pages/paper.py")["WALK"].values() for item in items]
LINKS = sorted({address for item in ITEMS for _, address in item.links})
bundled = pytest.mark.skipif(
    not (ROOT / "assets/models/en-de/model.safetensors").exists(),
    reason="the bundled model is not here",
)


def test_a_word_is_found_by_its_name_a_form_its_explanation_and_however_it_is_joined():
    entry = {"written": ["beam"], "told": "Several unfinished translations at once."}
    assert all(
        matches(asked, "beam search", entry)
        for asked in ("", "Beam", " unfinished ", "beam search")
    )
    assert not matches("softmax", "beam search", entry)
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    found = {
        "layer normalisation": "LayerNorm",
        "Layer-Norm": "LayerNorm",
        "dk": "d_k",
        "multi-head": "head",
    }
    found |= {"FFN": "feed-forward", "query vector": "query", "</s>": "</s>"}
    for asked, word in found.items():
        assert word in [each for each, entry in entries.items() if matches(asked, each, entry)], (
            asked
        )


ORDINARY = """
alignments arithmetic beside checked combined commands content continued diagram distances docs
explanation field findings generation glossary history hour kind leaks learns lessons lines live
need pairs pictures questions rests shown strongest tiles tour tree twelve watch went while
"""
"""Words of titles and of the README's table that say here what they say everywhere."""


def test_every_word_of_the_field_in_a_title_or_in_the_readme_s_table_is_found():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| page | content |")[2].partition("**What a badge says.")[0]
    titles = " ".join(place.title for place in sitemap.PLACES.values())
    words = {word.lower() for word in re.findall(r"[A-Za-z]+(?:-[A-Za-z]+)*", f"{titles} {table}")}
    entries = json.loads(FILE.read_text(encoding="utf-8")).items()
    missing = [word for word in words if not any(matches(word, *entry) for entry in entries)]
    assert sorted({*missing} - {*ORDINARY.split()}) == []


FIRST_LECTURE = (
    "self-attention",
    "BPE",
    "tokeniser",
    "tokenizer",
    "embedding",
    "encoder",
    "decoder",
)


@pytest.mark.parametrize("asked", FIRST_LECTURE)
def test_a_word_of_the_first_lecture_has_an_entry_of_its_own(asked: str):
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    assert asked in [name for word, entry in entries.items() for name in (word, *entry["written"])]


def test_the_box_leaves_what_was_asked_for_and_says_if_nothing_is():
    at = run("pages/glossary.py")
    at.text_input[0].set_value("softmax").run()
    assert not at.exception
    listed = "".join(each.proto.body for each in at.get("html"))
    assert "<dt>softmax" in listed
    assert "<dt>beam search" not in listed
    assert "`" not in listed.partition("glossary-page")[2]
    at.text_input[0].set_value("no such word <b>").run()
    assert "No word of the glossary" in said(at)


def test_the_page_of_the_paper_shows_every_item():
    at = run("pages/paper.py")
    assert all(item.says in words(at) and item.formula in words(at) for item in ITEMS)
    labels = {each.proto.label for each in at.get("page_link")}
    assert {label for item in ITEMS for label, _ in item.links} <= labels


@pytest.mark.parametrize("address", LINKS)
def test_a_link_of_the_paper_opens_the_live_thing(address: str):
    path, _, query = address.partition("?")
    given = dict(parse_qsl(query))
    at = run("pages/paper.py", model="random", text="one two three", step="2")
    name = "" if path == "app" else path
    link = next(
        each.proto
        for each in at.get("page_link")
        if each.proto.page == name
        and given.items() <= dict(parse_qsl(each.proto.query_string)).items()
    )
    at.query_params.clear()
    at.query_params.update(parse_qsl(link.query_string))
    at = at.switch_page(sitemap.script(path)).run()
    assert not at.exception
    assert not at.error
    shown = [
        *at.get("plotly_chart"),
        *at.get("bidi_component"),
        *at.get("dataframe"),
        *at.get("table"),
    ]
    assert len(shown) > 1 or at.info or at.button
    assert not parse({name: [value] for name, value in given.items()})[1]
    assert (at.query_params["text"], at.query_params["step"]) == ("one two three", "2")
    for name, value in given.items():
        default = KEYS[name].kind.read(value) == parse({})[0].value(name)
        assert default or at.query_params[name] == value


@bundled
@pytest.mark.parametrize("each", [*EXPERIMENTS, *CONTINUED], ids=lambda each: each.name)
def test_the_address_of_a_question_asks_the_model_and_shows_its_answer(each):
    name = "en-de" if "cross" in each.kinds else "language/lm-en"
    translator = models.find(name).load()
    variants, target = each.put(translator, models.find(name).heads)
    written = [do.write_text(changes) for changes in variants.values()]
    for variant, changes in zip(variants, written, strict=True):
        at = run("pages/what_if.py", model=name, decode="beam-2", write="12")
        at.button(key=f"experiment.{each.name}.{variant}").click().run()
        params = {
            name: at.query_params.get(name) for name in ("text", "changes", "target", "decode")
        }
        assert params == {"text": each.text, "changes": changes, "target": target, "decode": None}
    assert not at.error
    told = words(at).replace("\\", "")
    assert each.question in told
    assert each.not_proved in told
    assert at.query_params.get("target") == target
    if name != "en-de":
        return
    base = translator.translate(each.text).text
    assert base.rstrip(".") in told.replace("*", "").replace("\u2060", "")
