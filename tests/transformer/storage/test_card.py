from __future__ import annotations

import pytest

from transformer.storage.card import Result, Score, scores, with_results, with_section

CARD = "---\nlanguage:\n- en\n- de\nlicense: mit\n---\n\n# Name\n\nBefore.\n"
RESULTS = [Result("a", "A test", "bleu", 12.5, "greedy"), Result("a", "A test", "chrf", 40.0, "greedy")]


def test_results_written_into_a_header_are_read_again_and_replace_older_ones():
    card = with_results(with_results(CARD, "m", RESULTS), "m", RESULTS[:1])
    assert scores(card) == (Score("A test", "bleu", 12.5, "greedy"),)
    assert "license: mit" in card
    assert card.endswith("\n\n# Name\n\nBefore.\n")


def test_a_header_that_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="header"):
        with_results("---\na: [\n---\n", "m", RESULTS)


def test_a_section_is_replaced_in_its_place_and_added_where_there_is_none():
    card = with_section(CARD, "scores", r"one \1") + "\nAfter.\n"
    assert "Before.\n\n<!-- scores -->\none \\1\n<!-- end of scores -->\n\nAfter." in card
    again = with_section(card, "scores", "two")
    assert "<!-- scores -->\ntwo\n<!-- end of scores -->\n\nAfter." in again
    assert "one" not in again
