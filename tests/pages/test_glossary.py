"""The page Glossary: a box finds words, and code is set as code."""

import json

from app_pages import functions, run, said

PAGE = "pages/glossary.py"
matches, FILE = (functions(PAGE)[name] for name in ("matches", "FILE"))


def test_a_word_is_found_by_its_name_a_form_or_its_explanation():
    entry = {"written": ["beam"], "told": "Several unfinished translations at once."}
    assert all(matches(asked, "beam search", entry) for asked in ("", "Beam", " unfinished ", "beam search"))
    assert not matches("softmax", "beam search", entry)


def test_a_word_is_found_by_other_names_and_however_they_are_joined():
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    for asked, word in (
        ("layer normalisation", "LayerNorm"),
        ("Layer-Norm", "LayerNorm"),
        ("dk", "d_k"),
        ("multi-head", "head"),
        ("FFN", "feed-forward"),
        ("query vector", "query"),
        ("</s>", "</s>"),
    ):
        assert word in [each for each, entry in entries.items() if matches(asked, each, entry)], asked


def test_the_box_leaves_what_was_asked_for_and_says_if_nothing_is():
    at = run(PAGE)
    at.text_input[0].set_value("softmax").run()
    assert not at.exception
    listed = "".join(each.proto.body for each in at.get("html"))
    assert "<dt>softmax" in listed
    assert "<dt>beam search" not in listed
    assert "`" not in listed.partition("glossary-page")[2]
    at.text_input[0].set_value("no such word <b>").run()
    assert "No word of the glossary" in said(at)
