from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.heads.statistics import sentence_totals
from explorer.lenses.heads.survey import MOST_BYTES, MOST_SENTENCES, MOST_TOKENS, Line, Surveyor, read_upload
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.text.pairs import DataError
from transformer.translator import Translator, load_translator

ENCODER, DECODER, CROSS = AttentionKind
NUMBERS = [Line("one two three four"), Line("five six"), Line("one two three", "eins zwei")]


def surveyed(translator: Translator, lines: list[Line], gold: tuple[GoldPair, ...] = ()) -> Surveyor:
    surveyor = Surveyor(translator, lines, gold)
    assert list(surveyor.run()) == [0] * len(gold) + list(range(1, len(lines) + 1))
    return surveyor


def known_gold(translator: Translator) -> tuple[GoldPair, ...]:
    """The alignment that cross-attention head 1 of a closed-form model computes."""
    case = CASES[translator.name]
    source, target = case.sentence.split(), case.translation.split()
    keys = case.keys("cross", 0)
    links = frozenset((keys[row], row) for row in range(len(target)))
    return (GoldPair(tuple(source), tuple(target), links, links),)


def test_heads_with_a_known_line_have_the_expected_role(solved: Translator) -> None:
    case = CASES[solved.name]
    survey = surveyed(solved, [Line(case.sentence)], known_gold(solved)).survey()
    expected = {1: "next token", -1: "previous token"}
    for head in range(2):
        assert survey.roles(ENCODER)[0, head] == expected[case.encoder[head].offset]
    step_back = [line.offset == -1 for line in case.decoder].index(True)
    assert survey.roles(DECODER)[0, step_back] == "previous token"
    assert survey.roles(CROSS)[0, 0] == "alignment"
    assert survey.means[CROSS]["aer"][0, 0] == 0
    assert survey.stability(CROSS, 0, 0) == 1
    assert survey.stability(ENCODER, 0, 0) == 1


def test_a_survey_is_the_row_by_row_mean_of_its_sentences(translator: Translator) -> None:
    survey = surveyed(translator, NUMBERS).survey()
    sums, rows = np.zeros(2), 0
    for line in NUMBERS:
        run = translator.force(line.source, line.target) if line.target else translator.translate(line.source)
        totals = sentence_totals(run, ENCODER)
        sums += [totals.sums[name][1, 2] for name in ("entropy", "peak")]
        rows += totals.rows["entropy"]
    found = [survey.means[ENCODER][name][1, 2] for name in ("entropy", "peak")]
    assert found == pytest.approx(sums / rows, 1e-5)


def test_a_survey_can_be_read_while_it_runs_and_stopped(translator: Translator) -> None:
    surveyor = Surveyor(translator, NUMBERS)
    with pytest.raises(ValueError, match="No sentence"):
        surveyor.survey()
    running = surveyor.run()
    assert next(running) == 1
    assert surveyor.survey().lines == (NUMBERS[0],)
    running.close()
    assert surveyor.survey().lines == (NUMBERS[0],)


def test_a_sentence_that_the_model_cannot_read_is_left_out(closed_form_models: dict[str, Path]) -> None:
    model = load_translator(closed_form_models["copy"])
    survey = surveyed(model, [Line("one two"), Line("one " * 70), Line("two one")]).survey()
    assert [line.source for line in survey.lines] == ["one two", "two one"]
    assert survey.skipped == 1


def test_two_threads_agree_on_what_was_read(translator: Translator) -> None:
    surveyor = Surveyor(translator, NUMBERS * 5)
    thread = threading.Thread(target=lambda: list(surveyor.run()))
    thread.start()
    while thread.is_alive():
        try:
            survey = surveyor.survey()
        except ValueError:
            continue
        assert survey.sentences > survey.profiles[ENCODER].sentences.max()
    assert len(surveyor.survey().lines) == 15


def test_a_file_of_sentences_and_pairs_is_read(translator: Translator) -> None:
    content = "\ufeffone two\r\n\n three\tdrei \n".encode()
    assert read_upload(content, translator) == (Line("one two"), Line(" three", "drei "))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\xff\xfe\x00one", "not UTF-8"),
        (b"one\0two", "binary"),
        (b"PK\x03\x04" + bytes(200), "binary"),
        (b"one\ttwo\tthree", "3 columns"),
        (b"\tzwei", "Line 1: The text is empty"),
        (b"one\t \t", "3 columns"),
        (b"one\n" * (MOST_SENTENCES + 1), "501 sentences"),
        (b"one\n\n" + b"one " * MOST_TOKENS, "Line 3 has"),
        (b"one " * MOST_BYTES, "bytes"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_hostile_file_is_refused_in_one_sentence(
    translator: Translator, content: bytes, reason: str
) -> None:
    with pytest.raises(DataError, match=reason) as refused:
        read_upload(content, translator)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 160


def test_sentences_without_a_choice_make_no_survey_yet() -> None:
    translator = load_translator(Path(__file__).parents[4] / "assets/models/en-pt")
    surveyor = surveyed(translator, [Line("\N{GRINNING FACE}")])  # its translation is empty
    with pytest.raises(ValueError, match="no head has a choice"):
        surveyor.survey()
    assert surveyed(translator, [Line("\N{GRINNING FACE}"), Line("He is old.")]).survey().sentences == 2
