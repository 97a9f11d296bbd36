from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.lenses.heads import roles
from explorer.lenses.heads.measures import LISTS
from explorer.lenses.heads.shipped import fingerprint, survey_of, write_survey
from explorer.lenses.heads.survey import Line, Survey, Surveyor
from explorer.lenses.words.links import GoldPair
from transformer.storage.description import SURVEY_FILE, model_digests
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.storage.packed import Arrays, read_packed, write_packed
from transformer.translator import Translator

LINES = [Line("one two three four five"), Line("six seven eight nine ten one"), Line("two two", "zwei zwei")]
GOLD = [GoldPair(("one", "two"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))]


def surveyed(translator: Translator) -> Survey:
    surveyor = Surveyor(translator, LINES, GOLD)
    list(surveyor.run())
    return surveyor.survey()


def written(directory: Path, translator: Translator, survey: Survey | None = None) -> Path:
    """A model's directory with the file of a survey."""
    survey = survey or surveyed(translator)
    save_checkpoint(directory, translator.config, translator.model.state_dict(), translator.tokenizer)
    head = {"date": "2026-01-02", "digests": model_digests(directory)}
    write_survey(directory, survey, LINES, GOLD, head)
    return directory


def test_a_file_says_what_the_survey_said(solved: Translator, tmp_path: Path) -> None:
    survey = surveyed(solved)
    read = survey_of(written(tmp_path, solved, survey), LINES, GOLD)
    assert read is not None
    assert (read.sentences, read.forced, read.pairs, read.skipped) == (3, 1, 1, 0)
    for kind, profile in survey.profiles.items():
        assert (read.roles(kind) == survey.roles(kind)).all()
        for name, values in profile.means.items():
            np.testing.assert_array_equal(read.means[kind][name], values)
        for name in ("kept", "distances", "chance", "told", "tokens", "marked", "sentences"):
            np.testing.assert_allclose(
                getattr(read.profiles[kind], name), getattr(profile, name), rtol=1e-3, atol=1e-4
            )
        for layer, head in np.ndindex(*profile.kept.shape):
            for by in LISTS:
                found, known = (each.tokens(kind, layer, head, "words", by) for each in (read, survey))
                assert [each[:2] for each in found] == [each[:2] for each in known]
            found, known = (each.fifths(kind, layer, head, "entropy") for each in (read, survey))
            assert [[each.line for each in fifth] for fifth in found] == [
                [each.line for each in fifth] for fifth in known
            ]


def test_other_weights_and_other_sentences_make_the_file_silent(
    translator: Translator, tmp_path: Path
) -> None:
    written(tmp_path, translator)
    assert survey_of(tmp_path, LINES, GOLD) is not None
    assert survey_of(tmp_path, LINES[:2], GOLD) is None
    assert survey_of(tmp_path, LINES, []) is None
    (tmp_path / "model.safetensors").write_text("other")
    assert survey_of(tmp_path, LINES, GOLD) is None


@pytest.mark.parametrize(
    "damage", [{}, {"encoder.kept": None}, {"encoder.means": np.zeros((1, 1, 1))}], ids=str
)
def test_a_damaged_file_is_named(translator: Translator, damage: Arrays, tmp_path: Path) -> None:
    path = written(tmp_path, translator) / SURVEY_FILE
    head, arrays = read_packed(path)
    if damage:
        write_packed(path, head, {n: v for n, v in (arrays | damage).items() if v is not None})
    else:
        path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
        survey_of(tmp_path, LINES, GOLD)


Edit = Callable[[dict[str, Any], Arrays], object]
KINDS: Callable[[dict[str, Any]], list[dict[str, Any]]] = lambda head: [*head["kinds"].values()]  # noqa: E731


def cut(end: str, part: Any) -> Edit:
    return lambda head, arrays: arrays.update({n: v[part] for n, v in arrays.items() if n.endswith(end)})


def filled(end: str, value: float) -> Edit:
    return lambda head, arrays: [v.fill(value) for n, v in arrays.items() if n.endswith(end)]


EDITS: dict[str, Edit] = {
    "fewer heads": cut(".means", np.s_[:, :, :1]),
    "fewer layers": cut(".means", np.s_[:, :1]),
    "fewer kept": cut(".kept", np.s_[:1]),
    "fewer distances": cut(".distances", np.s_[..., :3]),
    "fewer chances": cut(".chance", np.s_[..., :3]),
    "flat lists": cut(".told", np.s_[..., 0]),
    "sentences that are not there": filled(".sentences", 9999),
    "tokens that are not there": filled(".tokens", 9999),
    "no numbers": filled(".means", np.nan),
    "no shares": filled(".distances", np.nan),
    "no kinds": lambda head, arrays: head.update(kinds={}),
    "one kind": lambda head, arrays: head["kinds"].pop("cross"),
    "no entropy": lambda head, arrays: [
        each.update(means=[name.replace("entropy", "x") for name in each["means"]]) for each in KINDS(head)
    ],
    "no vocabulary": lambda head, arrays: [each.update(vocabulary={}) for each in KINDS(head)],
    "no counts": lambda head, arrays: [each.update(counts={"words": [[], []]}) for each in KINDS(head)],
    "less than no sentences": lambda head, arrays: head.update(sentences=-5),
    "a date of another kind": lambda head, arrays: head.update(date={"a": 1}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_can_be_read_and_means_nothing_is_named(
    edit: str, translator: Translator, tmp_path: Path
) -> None:
    path = written(tmp_path, translator) / SURVEY_FILE
    head, arrays = read_packed(path)
    head, arrays = dict(head), {name: np.array(values) for name, values in arrays.items()}
    EDITS[edit](head, arrays)
    write_packed(path, head, arrays)
    with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
        survey_of(tmp_path, LINES, GOLD)
    if edit in ("fewer heads", "fewer layers", "no numbers", "no kinds", "one kind", "no entropy"):
        with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
            roles.surveyed(tmp_path)


def test_the_hash_covers_texts_and_links() -> None:
    again = [GoldPair(GOLD[0].source, GOLD[0].target, frozenset(), GOLD[0].possible)]
    assert len({fingerprint(LINES, GOLD), fingerprint(LINES[::-1], GOLD), fingerprint(LINES, again)}) == 3
