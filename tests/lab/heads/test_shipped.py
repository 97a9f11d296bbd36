from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES
from programs import main

from lab.heads.shipped import as_json, fingerprint, read_survey
from lab.heads.survey import Line, Survey, Surveyor
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.storage.description import weights_hash
from transformer.text.links import GoldPair

LINES = [Line("one two three four five"), Line("six seven eight nine ten one"), Line("two two", "zwei zwei")]
GOLD = [GoldPair(("one", "two"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))]


def surveyed(translator: Translator) -> Survey:
    surveyor = Surveyor(translator, LINES, GOLD)
    list(surveyor.run())
    return surveyor.survey()


def file_of(survey: Survey) -> dict[str, object]:
    values = {"model": survey.model, "date": "2026-01-02", "weights": "w"} | as_json(survey, LINES, GOLD)
    loaded: dict[str, object] = json.loads(json.dumps(values))
    return loaded


def test_a_file_says_what_the_survey_said(solved: Translator) -> None:
    survey = surveyed(solved)
    read = read_survey(file_of(survey), "w", LINES, GOLD)
    assert read is not None
    assert (read.sentences, read.forced, read.pairs, read.skipped) == (3, 1, 1, 0)
    for kind in AttentionKind:
        assert (read.roles(kind) == survey.roles(kind)).all()
        assert set(read.means[kind]) == set(survey.means[kind])
        for name, values in survey.means[kind].items():
            np.testing.assert_allclose(read.means[kind][name], values, atol=1e-5)
        for layer, row in enumerate(survey.roles(kind)):
            for head in range(len(row)):
                place = (kind, layer, head)
                assert read.stability(*place) == pytest.approx(survey.stability(*place), abs=1e-4)
                for found, expected in zip(read.examples(*place), survey.examples(*place), strict=True):
                    assert [each.line for each in found] == [each.line for each in expected]
                    assert [each.strength for each in found] == pytest.approx(
                        [each.strength for each in expected], abs=1e-4
                    )


def test_other_weights_and_other_sentences_make_the_file_silent(translator: Translator) -> None:
    values = file_of(surveyed(translator))
    assert read_survey(values, "w", LINES, GOLD) is not None
    assert read_survey(values, "other", LINES, GOLD) is None
    assert read_survey(values, "w", LINES[:2], GOLD) is None
    assert read_survey(values, "w", LINES, []) is None
    assert read_survey({}, "w", LINES, GOLD) is None


@pytest.mark.parametrize("damage", [{"heads": {}}, {"heads": {"encoder": 3}}, {"sentences": None}], ids=str)
def test_a_damaged_file_is_silent(translator: Translator, damage: dict[str, object]) -> None:
    assert read_survey(file_of(surveyed(translator)) | damage, "w", LINES, GOLD) is None


def test_the_hash_covers_texts_and_links() -> None:
    again = [GoldPair(GOLD[0].source, GOLD[0].target, frozenset(), GOLD[0].possible)]
    assert len({fingerprint(LINES, GOLD), fingerprint(LINES[::-1], GOLD), fingerprint(LINES, again)}) == 3


def test_the_command_writes_what_the_page_reads(closed_form_models: dict[str, Path], tmp_path: Path) -> None:
    model = tmp_path / "copy"
    model.mkdir()
    for path in closed_form_models["copy"].iterdir():
        (model / path.name).symlink_to(path.resolve())
    case = CASES["copy"]
    data, gold = tmp_path / "data.tsv", tmp_path / "gold.tsv"
    data.write_text(f"{case.sentence}\t{case.translation}\n", encoding="utf-8")
    gold.write_text("one two\teins zwei\t0-0 1-1\n", encoding="utf-8")
    asked = ["survey", "--model", str(model), "--data", str(data), "--alignments", str(gold)]
    assert main(asked) == 0
    values = json.loads((model / "survey.json").read_text())
    sure = frozenset({(0, 0), (1, 1)})
    pairs = [GoldPair(("one", "two"), ("eins", "zwei"), sure, sure)]
    found = read_survey(values, weights_hash(model), [Line(case.sentence, case.translation)], pairs)
    assert found is not None
    assert found.roles(AttentionKind.CROSS)[0, 0] == "alignment"
