"""The options of the choices: each has a text of its own, which depends on nothing that moves."""

from __future__ import annotations

import inspect

import pytest

from explorer.app.controls import options

TOKENS = ("▁the", "▁cat", "▁the", "</s>", "<0xF0>", "▁" + "a" * 50)
LISTS = {
    "heads": options.heads((2, 3), (1, 0)),
    "rows": options.rows("reads", TOKENS),
    "keys": options.keys(TOKENS),
    "decodings": options.decodings("beam-7"),
    "statistics": options.statistics("order", "number", {"aer": "alignment error", "peak": "peak"}),
    "pairs": options.pairs([("the", "cat"), ("the", "cat")]),
    "sentences": options.sentences(["the cat", "the cat"]),
    "words": options.words(["the", "the"]),
    "numbers": options.numbers((0.5, 2.0), 0.7, "{:g}".format),
    "layers": options.layers(3),
}


def test_every_list_of_options_is_among_these():
    own = [
        name
        for name, each in inspect.getmembers(options, inspect.isfunction)
        if each.__module__ == options.__name__
    ]
    assert sorted(LISTS) == sorted(own)


@pytest.mark.parametrize("name", LISTS)
def test_no_two_options_have_the_same_text(name: str):
    texts = list(LISTS[name].values())
    assert len(set(texts)) == len(texts)
    assert all(texts)


def test_the_head_that_opens_first_is_marked_and_no_other():
    found = options.heads((2, 3), (1, 0))
    assert list(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [head for head, text in found.items() if "default" in text] == [(1, 0)]


def test_a_head_is_named_with_what_it_does_over_many_sentences():
    found = options.heads((1, 3), (0, 1), [["", "alignment", "sink"]])
    assert list(found.values()) == ["L1 H1", "L1 H2 · alignment · default", "L1 H3 · sink"]


def test_a_key_is_named_by_its_place_and_token_alone():
    assert options.keys(TOKENS)[1] == "key 2: cat"
    assert set(inspect.signature(options.keys).parameters) == {"tokens"}


def test_a_row_says_what_it_does_with_its_token():
    assert options.rows("predicts", ("▁Die", "</s>")) == {0: "1 · predicts Die", 1: "2 · predicts </s>"}


def test_the_usual_ways_of_decoding_keep_their_order_and_an_unusual_one_comes_last():
    usual = list(options.METHODS)
    assert list(options.decodings("beam-4")) == usual
    assert list(options.decodings("sample-7")) == [*usual, "sample-7"]
    assert options.decodings("sample-7")["sample-7"] == "sampling, seed 7"
    assert options.decodings("beam-7")["beam-7"] == "beam, hypotheses: 7"


def test_a_number_of_the_address_takes_its_place_among_the_usual_ones():
    assert list(options.numbers((0.5, 2.0), 0.7, str)) == [0.5, 0.7, 2.0]
    assert list(options.numbers((0.5, 2.0), 2.0, str)) == [0.5, 2.0]


def test_the_first_pair_to_choose_is_none():
    assert list(options.pairs([("a",), ("b", "c")]).items())[::2] == [(None, "choose a pair"), (1, "2 · b c")]
