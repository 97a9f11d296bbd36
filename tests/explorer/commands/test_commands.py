"""`align` scores heads or writes the links of one; `survey` writes what the app reads of a
model."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES
from corpus import write_pairs
from programs import main

from explorer.commands.align import RUN_TOGETHER
from explorer.lenses.heads.survey import Line, survey_of
from explorer.lenses.words import languages
from explorer.lenses.words.alignment import score
from explorer.lenses.words.links import Links, read_gold
from transformer.exports.maps import load_maps
from transformer.storage.description import measured, model_digests
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import read_json
from transformer.text.pairs import read_pairs
from transformer.translator import Translator, load_translator

MODEL, REVERSE = "assets/models/en-de", "assets/models/en-pt"
GOLD = "assets/sample/alignments.tsv"
PAIR = "The old house is not for sale .", "Das alte Haus steht nicht zum Verkauf ."


@pytest.fixture(scope="module")
def models() -> dict[str, Translator]:
    return {name: load_translator(name) for name in (MODEL, REVERSE)}


def aligned(path: Path | str, *more: str, model: str | Path = MODEL) -> list[str]:
    return ["align", "--model", str(model), "--data", str(path), "--links", *more]


def written(capsys: pytest.CaptureFixture[str], path: Path | str, *more: str) -> list[Links]:
    assert main(aligned(path, *more)) == 0
    return [
        frozenset((int(i), int(j)) for i, j in (link.split("-") for link in line.split()))
        for line in capsys.readouterr().out.split("\n")[:-1]
    ]


def by_hand(
    model: Translator, source: str, target: str, layer: int, head: int, moved: int = 1
) -> Links:
    """Links from whole words: sums over a source word's pieces, means over a target word's."""
    run = model.force(source, target)
    weights = run.weights("cross", layer, head)
    sides = [
        np.cumsum([token.startswith("▁") for token in tokens[:-1]]) - 1
        for tokens in (run.source_tokens, run.target_tokens)
    ]
    rows = [
        weights[np.flatnonzero(sides[1] == j) + moved].mean(0)[:-1] for j in range(sides[1][-1] + 1)
    ]
    return frozenset((int(np.argmax(np.bincount(sides[0], row))), j) for j, row in enumerate(rows))


def test_the_aligner_of_the_model_has_the_error_that_the_model_is_known_for(capsys):
    gold = read_gold(GOLD)
    links = written(capsys, GOLD)
    assert score(links, gold).aer == pytest.approx(0.069, abs=5e-4)
    predicted = score(written(capsys, GOLD, "--rows", "predicted"), gold).aer
    assert predicted == pytest.approx(0.874, abs=5e-4)
    assert main([each for each in aligned(GOLD) if each != "--links"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{len(gold)} pairs; diagonal baseline: AER ")
    assert len(lines) == 2 + 3 * 8
    assert lines[3].split()[:4] + lines[3].split()[-2:] == ["1", "2", "87.4", "%", "6.9", "%"]


def test_links_of_a_named_head_are_those_between_typed_words(tmp_path, capsys, models):
    path = tmp_path / "pairs.tsv.gz"
    (source, target) = PAIR
    path.write_bytes(gzip.compress(f"{source}\t{target}\n".replace(" old", "   old").encode()))
    assert written(capsys, path) == [by_hand(models[MODEL], source, target, 0, 1)], (
        "the aligner of the model"
    )
    links = written(capsys, path, "--head", "3.4")
    assert links == [by_hand(models[MODEL], source, target, 2, 3)]
    links = written(capsys, path, "--head", "3.4", "--rows", "predicted")
    assert links == [by_hand(models[MODEL], source, target, 2, 3, moved=0)]


def test_lines_keep_their_places_and_the_bad_ones_are_named(tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    lines = [
        b"The house\tDas Haus",
        b"",
        b"caf\xe9\tx",
        b"The house\t",
        b"\tDas Haus",
        b"The house",
    ]
    lines += [
        "The \u200b house\tDas Haus".encode(),
        b"one " * 1100 + b"\tx",
        b"The house\tDas Haus\t0-0",
    ]
    path.write_bytes(b"\n".join(lines))
    assert main(aligned(path, "--json")) == 1
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert [each["links"] for each in found] == [[[0, 0], [1, 1]], *[[]] * 7, [[0, 0], [1, 1]]]
    errors = captured.err.splitlines()
    assert [each.get("error") for each in found] == [None, None, *errors, None]
    reasons = ["not UTF-8", "the target is empty", "the source is empty", "found 1 column"]
    reasons += ["no visible character", "The text has 1,"]
    for number, (line, reason) in enumerate(zip(errors, reasons, strict=True), start=3):
        assert line.startswith(f"{path}:{number}: ")
        assert line.endswith(".")
        assert reason in line


UNSPACED = [
    "The cat sleeps.\t猫が寝ている。",
    "The old house is small.\t老房子很小。",
    "A cat.\t猫 が 寝て いる 。",
]


@pytest.mark.parametrize("more", [["--links"], []])
def test_words_that_no_space_parts_are_said_to_count_as_one(tmp_path, capsys, more):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{line}\t0-0\n" for line in UNSPACED), encoding="utf-8")
    words = [each for each in aligned(path) if each != "--links"]
    assert main(words + more) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "count as one word" in line]
    assert said == [f"2 lines: {RUN_TOGETHER.format('target')}"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            ["--head", "9.2"],
            "no cross-attention head 9.2; en-de has layers 1 to 3 and heads 1 to 8",
        ),
        (
            ["--head", "3.9"],
            "no cross-attention head 3.9; en-de has layers 1 to 3 and heads 1 to 8",
        ),
        (["without links", "--head", "1.1"], "--head needs --links."),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, more: list[str], reason: str):
    words = aligned(GOLD, *more)
    if more[0] == "without links":
        words = [word for word in words if word not in ("--links", more[0])]
    assert main(words) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert reason in said


def test_a_model_without_an_aligner_and_a_head_that_is_none_are_named(tmp_path, capsys, models):
    plain = models[MODEL]
    model = tmp_path / "bare"
    save_checkpoint(model, plain.config, plain.model.state_dict(), plain.tokenizer)
    assert main(aligned(GOLD, model=model)) == 2
    assert capsys.readouterr().err.startswith(
        "bare names no aligner; name a head, or measure them all with"
    )
    assert main(aligned(GOLD, "--head", "1.2", "--rows", "read", model=model)) == 0
    with pytest.raises(SystemExit, match="2"):
        main(aligned(GOLD, "--head", "0.1"))
    assert "'0.1' is no head; write layer and head, such as 3.5" in capsys.readouterr().err


# --- survey --------------------------------------------------------------------------------------

CASE = CASES["copy"]


@pytest.fixture
def model(
    closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of a solved model, with one example and a small sample."""
    directory = shutil.copytree(closed_form_models["copy"], tmp_path / "copy")
    source = CASE.source_tokens[1].removeprefix("▁")
    target = CASE.target_tokens[1].removeprefix("▁")
    claim = {"text": "…", "target": target, "source": source, "least": 0.5}
    claim |= {"layer": 9, "head": 9, "weight": 0}
    example = {"label": "a", "text": CASE.sentence, "claim": claim}
    example["gloss"] = dict.fromkeys(CASE.translation.split(), "number")
    (directory / "examples.json").write_text(json.dumps({"digests": {}, "examples": [example]}))
    write_pairs(tmp_path / languages.USUAL.data, [(CASE.sentence, CASE.translation)])
    (tmp_path / languages.USUAL.alignments).write_text(
        "one two\teins zwei\t0-0 1-1\n", encoding="utf-8"
    )
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    return directory


def test_every_file_belongs_to_the_weights_and_says_what_the_model_does(model, tmp_path, capsys):
    assert main(["survey", "--model", str(model)]) == 0
    assert "All examples" in capsys.readouterr().out
    assert all(measured(model, name) for name in ("heads.json", "survey.npz", "examples.json"))
    heads = read_json(model / "heads.json")
    first = ["model", "command", "date", "digests", "data", "unsure_below"]
    assert list(heads) == [*first, "default", "heads", "aligner"]
    pairs = [*read_pairs(tmp_path / languages.USUAL.data)]
    greedy = [load_translator(model).translate(pair.source, beam_size=1) for pair in pairs]
    means = [np.mean(run.log_probs) for run in greedy]
    assert heads["unsure_below"] == pytest.approx(np.quantile(means, 0.2), abs=1e-4)
    assert heads["command"] == f"python -m explorer survey --model {model}"
    files = (
        f"patterns: 1 pairs of {languages.USUAL.data}, given targets forced; aer: 1 pairs of "
        f"alignments.tsv; unsure: 1 texts of {languages.USUAL.data}"
    )
    assert heads["data"] == files
    gold = read_gold(tmp_path / languages.USUAL.alignments)
    assert (
        survey_of(model, [Line(CASE.sentence, CASE.translation)], gold).roles("cross")[0, 0]
        == "alignment"
    )
    assert load_translator(model).means.about["data"].startswith("1 pairs of ")
    first = load_maps(model / "first.npz")
    assert (first.text, first.digests) == (CASE.translation, model_digests(model))
    claim = read_json(model / "examples.json")["examples"][0]["claim"]
    assert (claim["layer"], claim["head"], claim["weight"]) == (0, 0, pytest.approx(1, abs=0.02))


def test_other_files_are_named_and_an_example_that_no_head_shows_or_without_a_gloss_too(
    model, tmp_path, capsys
):
    values = read_json(model / "examples.json")
    values["examples"][0]["claim"]["source"] = "zebra"
    values["examples"][0]["gloss"] = {}
    (model / "examples.json").write_text(json.dumps(values))
    short = CASE.translation.rpartition(" ")[0]
    pairs = write_pairs(tmp_path / "other.tsv", [(CASE.sentence, short)] * 2)
    assert main(["survey", "--model", str(model), "--brief", "--data", str(pairs)]) == 1
    said = capsys.readouterr().out
    assert "No head shows that" in said
    assert f"has no gloss for {', '.join(CASE.translation.split())}" in said
    heads = read_json(model / "heads.json")
    assert heads["command"] == f"python -m explorer survey --model {model} --data {pairs} --brief"
    assert heads["data"].startswith(
        f"patterns: 2 pairs of {tmp_path.name}/other.tsv, given targets forced; aer: 1 "
    )
    forced = load_translator(model).force(CASE.sentence, short)
    for kind in ("encoder", "cross"):
        last = forced.weights(kind, 0, 1)[:, -1].mean()
        assert heads["heads"][kind][0][1]["eos_mass"] == pytest.approx(last, abs=1e-4)


def test_a_page_of_an_encoder_takes_no_option_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "assets/models/encoder/masked-en"
    output = str(tmp_path / "run.html")
    words = ["page", "--model", model, "The [MASK] is old.", "--output", output]
    assert main([*words, "--beam-size", "2"]) != 0
    assert "takes no option of a search" in capsys.readouterr().err
    assert main(words) == 0
    assert (tmp_path / "run.html").stat().st_size
