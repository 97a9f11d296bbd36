from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES
from programs import main

from lab.heads.shipped import as_json, fingerprint, survey_of
from lab.heads.survey import Line, Survey, Surveyor
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.storage.description import SURVEY_FILE, model_digests
from transformer.storage.files import CheckpointError, write_json
from transformer.text.links import GoldPair

LINES = [Line("one two three four five"), Line("six seven eight nine ten one"), Line("two two", "zwei zwei")]
GOLD = [GoldPair(("one", "two"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))]


def surveyed(translator: Translator) -> Survey:
    surveyor = Surveyor(translator, LINES, GOLD)
    list(surveyor.run())
    return surveyor.survey()


def written(directory: Path, survey: Survey, **damage: object) -> Path:
    """A model's directory with the file of a survey."""
    for name in ("config.json", "tokenizer.model", "model.safetensors"):
        (directory / name).write_text(name)
    values = {"model": survey.model, "date": "2026-01-02", "digests": model_digests(directory)}
    write_json(directory / SURVEY_FILE, values | as_json(survey, LINES, GOLD) | damage)
    return directory


def test_a_file_says_what_the_survey_said(solved: Translator, tmp_path: Path) -> None:
    survey = surveyed(solved)
    read = survey_of(written(tmp_path, survey), LINES, GOLD)
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


def test_other_weights_and_other_sentences_make_the_file_silent(
    translator: Translator, tmp_path: Path
) -> None:
    written(tmp_path, surveyed(translator))
    assert survey_of(tmp_path, LINES, GOLD) is not None
    assert survey_of(tmp_path, LINES[:2], GOLD) is None
    assert survey_of(tmp_path, LINES, []) is None
    (tmp_path / "model.safetensors").write_text("other")
    assert survey_of(tmp_path, LINES, GOLD) is None


@pytest.mark.parametrize("damage", [{"heads": {}}, {"heads": {"encoder": 3}}, {"sentences": None}], ids=str)
def test_a_damaged_file_is_named(translator: Translator, damage: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"survey\.json is damaged"):
        survey_of(written(tmp_path, surveyed(translator), **damage), LINES, GOLD)


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
    sure = frozenset({(0, 0), (1, 1)})
    pairs = [GoldPair(("one", "two"), ("eins", "zwei"), sure, sure)]
    found = survey_of(model, [Line(case.sentence, case.translation)], pairs)
    assert found is not None
    assert found.roles(AttentionKind.CROSS)[0, 0] == "alignment"
