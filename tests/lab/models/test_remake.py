"""`python -m lab remake`: everything about a model is made anew, and says for which weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import main
from remade import CASE, write_app, write_corpora, write_log, write_sample

from lab.models.corpora import DATA, data_of
from lab.models.remake import PARTS, parts
from lab.models.scores import without_chosen
from lenses.words.familiarity import WEIGHTED, DoubtMeasure, as_json
from transformer.commands.arguments import percent
from transformer.exports.maps import load_maps
from transformer.storage.card import scores
from transformer.storage.description import FAMILIARITY_FILE, HISTORY_FILE, LANGUAGE_FILE, model_digests
from transformer.storage.files import read_json, write_json
from transformer.storage.marks import MEASURED, marks, of_another_model
from transformer.text.pairs import SentencePair

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SHIPPED = sorted(path.parent for path in (ASSETS / "models").glob("**/model.safetensors"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora and a sample."""
    found = tmp_path_factory.mktemp("remade")
    write_corpora(found / "corpora")
    write_sample(found / "sample")
    return found


def remake(folder: Path, directory: Path, *options: str) -> int:
    data = ["--corpora", str(folder / "corpora"), "--sample", str(folder / "sample")]
    return main(["remake", "--model", str(directory), *data, *options])


@pytest.fixture(scope="module")
def made(folder: Path, closed_form_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of which everything was made."""
    directory = write_app(tmp_path_factory.mktemp("app"), closed_form_models["copy"])
    write_log(directory / "log.jsonl")
    assert remake(folder, directory) == 0
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """All files of a model."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_every_file_is_made_and_bears_the_hash_of_the_model(made: Path):
    found = marks(made)
    of_translators = set(MEASURED) - {LANGUAGE_FILE}
    assert set(found) == {*of_translators, "means.safetensors", "README.md"}
    assert all(found.values())
    assert load_maps(made / "first.npz").digests == model_digests(made)


def test_a_second_run_writes_the_same_bytes(made: Path, folder: Path):
    before = contents(made)
    assert remake(folder, made) == 0
    assert contents(made) == before


def test_the_card_has_the_numbers_of_the_scores(made: Path):
    values, card = read_json(made / "scores.json"), (made / "README.md").read_text(encoding="utf-8")
    for each in values["translation"]:
        assert f"| {each['name']} | {each['sentences']} | {each['greedy']['bleu']:.1f} |" in card
    for each in values["alignment"]:
        assert percent(each["predicted"]["aer"]) in card
    stated = {each.dataset: each.value for each in scores(card) if each.metric == "bleu"}
    assert stated["newstest2014"] == values["translation"][3]["greedy"]["bleu"]
    assert (len(stated), len(values["translation"])) == (4, 5)


def test_the_claim_is_shown_by_the_head_that_follows_the_words(made: Path):
    (example,) = read_json(made / "examples.json")["examples"]
    assert (example["claim"]["layer"], example["claim"]["head"]) == (0, 0)
    assert example["claim"]["weight"] > 0.98
    assert load_maps(made / "first.npz").text == CASE.translation


def test_a_claim_that_no_head_shows_is_named_and_asks_for_a_person(
    made: Path, folder: Path, capsys: pytest.CaptureFixture[str]
):
    path = made / "examples.json"
    before = path.read_text(encoding="utf-8")
    values = json.loads(before)
    values["examples"][0]["claim"]["target"] = "Haus"
    values["examples"][0]["gloss"].pop("eins")
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    assert remake(folder, made, "--only", "claims") == 1
    said = capsys.readouterr().out
    assert "No head shows that “Haus” looks at “two”" in said
    assert "no gloss for eins" in said
    path.write_text(before, encoding="utf-8")


def test_parts_without_their_data_are_skipped_with_the_file_that_is_missing(
    closed_form_models: dict[str, Path], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    directory = write_app(tmp_path, closed_form_models["shift"])
    (directory / "examples.json").unlink()
    sample = ["--sample", str(folder / "sample")]
    assert main(["remake", "--model", str(directory), "--corpora", str(tmp_path / "none"), *sample]) == 0
    said = capsys.readouterr().out
    for name in (
        "heads",
        "familiarity",
        "scores",
        "history",
        "card",
        "claims",
        "first",
    ):
        assert f"{name}: skipped, because " in said
    assert "Made survey, means, importance, faithfulness, weight-effect, way-back of" in said
    assert "screenshots" in said.splitlines()[-1]
    own = {name for name, own in marks(directory).items() if own}
    measured = {
        "survey.npz",
        "means.safetensors",
        "importance.json",
        "faithfulness.json",
        "weight_effect.json",
        "way_back.json",
    }
    assert own == measured


def test_files_of_another_model_are_named(
    made: Path, closed_form_models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    directory = write_app(tmp_path, closed_form_models["copy"])
    (directory / "heads.json").write_text('{"digests": {}}', encoding="utf-8")
    (directory / "importance.json").write_text("{}", encoding="utf-8")
    assert of_another_model(directory) == ["heads.json", "importance.json", "examples.json", "README.md"]
    assert remake(tmp_path, directory, "--only", "first") == 0
    assert (
        "do not bear the hash of this model: heads.json, importance.json, examples.json, README.md"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "reason"), [("nothing", "no model directory"), ("empty", "has no config.json")]
)
def test_a_wrong_directory_gives_one_sentence(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "empty").mkdir()
    assert remake(tmp_path, tmp_path / name) == 2
    said = capsys.readouterr()
    assert reason in said.err
    assert (said.out, len(said.err.strip().splitlines())) == ("", 1)


def test_a_doubt_is_chosen_again_as_the_present_file_says(tmp_path: Path):
    (fit,) = [part for part in parts(tmp_path, *[tmp_path] * 3) if part.command.name == "familiarity"]
    assert "--sentences" not in fit.options, "without a file the command decides"
    measure = DoubtMeasure(
        (0.0,) * 3, 0.0, 0.0, dict.fromkeys(WEIGHTED, (0.0, 1.0)), (0.0,) * 3, {}, "a/b", 7, 300
    )
    write_json(tmp_path / FAMILIARITY_FILE, as_json(measure))
    (fit,) = [part for part in parts(tmp_path, *[tmp_path] * 3) if part.command.name == "familiarity"]
    assert list(fit.options)[-6:] == ["--instead", "a/b", "--instead-bytes", "7", "--sentences", "300"]


@pytest.mark.parametrize("path", sorted((ASSETS / "models").glob(f"**/{FAMILIARITY_FILE}")), ids=str)
def test_every_shipped_doubt_records_the_number_of_sentences_of_its_command(path: Path):
    values = read_json(path)
    assert f"--sentences {values['sentences']} " in f"{values['command']} "


@pytest.mark.parametrize(
    ("languages", "pairs"), [("pt", "tatoeba-en-pt.tsv.gz"), ("de", "tatoeba-en-de.tsv.gz")]
)
def test_the_data_are_those_of_the_card_s_languages(languages, pairs, tmp_path):
    (tmp_path / "README.md").write_text(f"---\nlanguage:\n- en\n- {languages}\n---\n\n# A model\n")
    words = {part.command.name: part.words(tmp_path) for part in parts(tmp_path, *[tmp_path] * 3)}
    assert words["means"][-1] == str(tmp_path / pairs)
    assert words["survey"][-1].endswith(DATA["en", languages].own_gold)


@pytest.mark.parametrize(
    "card", ["", "# no header", "---\nlanguage: en\n---\n", "---\n: [\n---\n", "---\n- 1\n---"]
)
def test_a_model_whose_card_names_no_two_languages_is_measured_as_english_to_german(card, tmp_path):
    (tmp_path / "README.md").write_text(card)
    assert data_of(tmp_path) is DATA["en", "de"]


def test_pairs_used_for_choices_are_left_out_with_all_pairs_of_their_sources():
    pairs = [SentencePair(f"s{i // 3}", f"t{i}") for i in range(30)]
    assert without_chosen(pairs, 0) == pairs
    rest = without_chosen(pairs, 7)
    assert len(rest) == 21
    assert {pair.source for pair in rest}.isdisjoint({pair.source for pair in pairs if pair not in rest})


def test_the_names_of_the_parts_are_those_that_can_be_asked_for():
    known = parts(Path("a"), Path("b"), Path("c"), Path("d"))
    assert [part.command.name for part in known] == list(PARTS)


@pytest.mark.parametrize("directory", SHIPPED, ids=lambda directory: directory.name)
def test_what_is_shipped_beside_a_model_was_measured_on_it(directory: Path):
    assert of_another_model(directory) == []


@pytest.mark.skipif(not SHIPPED, reason="the bundled models are not here")
def test_the_first_model_comes_with_everything_and_the_app_s_files_are_its_own():
    directory = ASSETS / "models" / "en-de"
    made_from_data = {*MEASURED, "means.safetensors", "README.md"} - {HISTORY_FILE, LANGUAGE_FILE}
    assert set(marks(directory)) - {HISTORY_FILE} == made_from_data
    assert load_maps(directory / "first.npz").digests == model_digests(directory)


@pytest.mark.skipif(not SHIPPED, reason="the bundled models are not here")
def test_the_results_of_the_twins_were_measured_on_the_twins():
    results = read_json(ASSETS / "models" / "positions" / "results.json")["models"]
    found = {name: each["digests"] for name, each in results.items() if not each["other_seed"]}
    assert found == {path.name: model_digests(path) for path in SHIPPED if path.parent.name == "positions"}
