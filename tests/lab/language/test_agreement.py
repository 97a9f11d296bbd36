from __future__ import annotations

import numpy as np
import pytest

from lab.language.agreement import agreement, as_written, drawn, read_agreement
from transformer.text.pairs import DataError

LINES = [
    ("simple", True, "the author laughs"),
    ("simple", False, "the author laugh"),
    ("simple", True, "the authors laugh"),
    ("simple", False, "the authors laughs"),
    ("across", True, "the pilots near the guard laugh"),
    ("across", False, "the pilots near the guard laughs"),
]


@pytest.fixture
def pairs(tmp_path):
    return read(tmp_path, LINES)


def read(folder, lines):
    (folder / "pairs.tsv").write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return read_agreement(folder / "pairs.tsv")


def counting(preferred):
    """A model that prefers sentences with a word."""
    return lambda texts: np.array([float(preferred in text.rstrip(".").split()) for text in texts])


def test_each_true_line_is_paired_with_the_false_one_after_it(pairs):
    assert [pair.case for pair in pairs] == ["simple", "simple", "across"]
    assert pairs[2].right == "the pilots near the guard laugh"
    assert pairs[2].wrong == "the pilots near the guard laughs"
    assert [pair.subject for pair in pairs] == ["author", "authors", "pilots"]


def test_inside_a_relative_clause_the_verb_agrees_with_the_noun_before_it(tmp_path):
    right, wrong = (
        "the author that the taxi drivers like laughs",
        "the author that the taxi drivers likes laughs",
    )
    lines = [("obj_rel_within_anim", True, right), ("obj_rel_within_anim", False, wrong)]
    assert read(tmp_path, lines)[0].subject == "drivers"


def test_accuracy_counts_the_pairs_of_a_case_whose_right_sentence_is_more_probable(pairs):
    found = agreement(pairs, counting("laugh"))
    assert found["simple"]["accuracy"]["value"] == 0.5
    assert found["across"]["accuracy"] == {"value": 1, "low": 1, "high": 1}
    assert (found["simple"]["pairs"], found["simple"]["subjects"]) == (2, 2)


def test_a_model_that_finds_both_equally_probable_is_not_right(pairs):
    assert agreement(pairs, lambda texts: np.zeros(len(texts)))["simple"]["accuracy"]["value"] == 0


def test_the_model_reads_written_sentences(pairs):
    seen: list[str] = []

    def log_probs(texts):
        seen.extend(texts)
        return np.zeros(len(texts))

    agreement(pairs, log_probs)
    assert {text[0] + text[-1] for text in seen} == {"T."}
    assert as_written("the author laughs") == "The author laughs."


def test_intervals_resample_subjects_and_not_pairs(tmp_path):
    """Ten pairs of each of 20 subjects that share their fate are 20 draws: about 22 points each way."""
    lines = []
    for number in range(20):
        word = "laugh" if number % 2 else "swim"
        for verb in range(10):
            lines.append(("one", True, f"the s{number} {word} x{verb}"))
            lines.append(("one", False, f"the s{number} y x{verb}"))
    found = agreement(read(tmp_path, lines), counting("laugh"))["one"]
    assert (found["pairs"], found["subjects"], found["accuracy"]["value"]) == (200, 20, 0.5)
    assert found["accuracy"]["high"] - found["accuracy"]["low"] == pytest.approx(0.44, abs=0.08)


def test_a_draw_takes_at_most_so_many_of_each_case_and_is_always_the_same(pairs):
    few = drawn(pairs, 1)
    assert [pair.case for pair in few] == ["simple", "across"]
    assert drawn(reversed(pairs), 1)[::-1] == few
    assert len(drawn(pairs, 5)) == 3


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (LINES[:3], "pairs of lines"),
        ([], "pairs of lines"),
        ([LINES[1], LINES[0]], "True line"),
        ([LINES[0], LINES[5]], "same case"),
        ([("simple", True), ("simple", False)], "expected a case"),
        ([LINES[0], ("simple", False, LINES[0][2])], "differ in a word"),
    ],
)
def test_other_files_are_refused_with_a_reason(tmp_path, lines, reason):
    with pytest.raises(DataError, match=reason):
        read(tmp_path, lines)
