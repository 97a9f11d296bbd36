"""`align --links`: the links of one head, or of two directions, one line a sentence pair."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from programs import main

from explorer.lenses.words.alignment import score
from explorer.lenses.words.links import Links, read_gold
from transformer.storage.directory import save_checkpoint
from transformer.translator import load_translator

MODEL, REVERSE = "assets/models/en-de", "assets/models/en-pt"
GOLD = "assets/sample/alignments.tsv"
SENTENCES = ("He took a key from his coat pocket .\tEr nahm einen Schlüssel aus seiner Manteltasche .",)


def asked(path: Path | str, *more: str, model: str | Path = MODEL) -> list[str]:
    return ["align", "--model", str(model), "--data", str(path), "--links", *more]


def written(capsys: pytest.CaptureFixture[str], path: Path | str, *more: str) -> list[Links]:
    assert main(asked(path, *more)) == 0
    return [
        frozenset((int(i), int(j)) for i, j in (link.split("-") for link in line.split()))
        for line in capsys.readouterr().out.split("\n")[:-1]
    ]


opened = cache(load_translator)


def by_hand(model: str, source: str, target: str, layer: int, head: int, moved: int = 1) -> Links:
    """Links from whole words: sums over a source word's pieces, means over a target word's."""
    run = opened(model).force(source, target)
    weights = run.weights("cross", layer, head)
    sides = [
        np.cumsum([token.startswith("▁") for token in tokens[:-1]]) - 1
        for tokens in (run.source_tokens, run.target_tokens)
    ]
    found = set()
    for j in range(sides[1][-1] + 1):
        rows = [t + moved for t in np.flatnonzero(sides[1] == j)]
        row = weights[rows].mean(0)[:-1]
        found.add((int(np.argmax(np.bincount(sides[0], row))), j))
    return frozenset(found)


def test_the_aligner_of_the_model_has_the_error_that_the_model_is_known_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gold = read_gold(GOLD)
    found = written(capsys, GOLD)
    assert score(found, gold).aer == pytest.approx(0.069, abs=5e-4)
    assert written(capsys, GOLD, "--head", "1.2") == found
    predicted = score(written(capsys, GOLD, "--rows", "predicted"), gold).aer
    assert predicted == pytest.approx(0.874, abs=5e-4)


def test_a_named_head_gives_its_own_links_between_typed_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(SENTENCES).replace(" took", "   took").encode()))
    for layer, head in ((2, 3), (0, 1)):
        (found,) = written(capsys, path, "--head", f"{layer + 1}.{head + 1}")
        assert found == by_hand(MODEL, *SENTENCES[0].split("\t"), layer, head)
    (found,) = written(capsys, path, "--head", "3.4", "--rows", "predicted")
    assert found == by_hand(MODEL, *SENTENCES[0].split("\t"), 2, 3, moved=0)


def test_two_directions_are_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.tsv"
    source, target = "The old house is not for sale .", "Das alte Haus steht nicht zum Verkauf ."
    path.write_text(f"{source}\t{target}\n", encoding="utf-8")
    forward = by_hand(MODEL, source, target, 0, 1)
    backward = frozenset((i, j) for j, i in by_hand(REVERSE, target, source, 0, 5))
    assert forward != backward
    both = ["--reverse", REVERSE]
    assert written(capsys, path, *both, "--combine", "intersection") == [forward & backward]
    assert written(capsys, path, *both, "--combine", "union") == [forward | backward]
    assert written(capsys, path, *both, "--combine", "union", "--reverse-head", "1.6") == [forward | backward]
    (grown,) = written(capsys, path, *both)
    assert forward & backward <= grown <= forward | backward


def test_lines_keep_their_places_and_the_bad_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    lines = [b"The house\tDas Haus", b"", b"caf\xe9\tx", b"The house\t", b"\tDas Haus", b"The house"]
    lines += ["The \u200b house\tDas Haus".encode(), b"one " * 1100 + b"\tx", b"The house\tDas Haus\t0-0"]
    path.write_bytes(b"\n".join(lines))
    assert main(asked(path, "--json")) == 1
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert [each["links"] for each in found] == [[[0, 0], [1, 1]], *[[]] * 7, [[0, 0], [1, 1]]]
    said = captured.err.splitlines()
    reasons = ["not UTF-8", "the target is empty", "the source is empty", "found 1 column"]
    reasons += ["no visible character", "The text has 1,"]
    assert len(said) == len(reasons)
    for number, (line, reason) in enumerate(zip(said, reasons, strict=True), start=3):
        assert line.startswith(f"{path}:{number}: ")
        assert line.endswith(".")
        assert reason in line
        assert found[number - 1]["error"] == line


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--head", "9.2"], "no cross-attention head 9.2; en-de has layers 1 to 3 and heads 1 to 8"),
        (["--combine", "union"], "--combine needs --reverse"),
        (["--reverse-head", "1.1"], "--reverse-head needs --reverse"),
        (["--reverse", "nowhere"], "no model directory nowhere"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    assert main(asked(GOLD, *more)) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert reason in said


def test_options_of_links_need_links(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["align", "--model", MODEL, "--data", GOLD, "--head", "1.1"]) == 2
    assert capsys.readouterr().err == "--head needs --links.\n"
    with pytest.raises(SystemExit) as ended:
        main(asked(GOLD, "--head", "0.1"))
    assert ended.value.code == 2
    assert "'0.1' is no head; write layer and head, such as 3.5" in capsys.readouterr().err


def test_a_model_without_an_aligner_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, model = load_translator(MODEL), tmp_path / "bare"
    save_checkpoint(model, own.config, own.model.state_dict(), own.tokenizer)
    assert main(asked(GOLD, model=model)) == 2
    assert capsys.readouterr().err.startswith("bare names no aligner; name a head, or measure them all with")
    assert main(asked(GOLD, "--head", "1.2", "--rows", "read", model=model)) == 0
