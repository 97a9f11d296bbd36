"""A translation that covers much less than its source says so; a text is translated by sentences."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from transformer.__main__ import main
from transformer.requests import LEFT_OUT, leaves_out
from transformer.translator import Translator, load_translator

ASSETS = Path(__file__).resolve().parents[3] / "assets"
COLOURS = ("red", "blue", "green", "small", "big", "young", "dark", "bright", "warm", "cold", "quiet", "loud")
TWELVE = " ".join(f"The {each} house is old and the {each} cat sleeps in it." for each in COLOURS)


@cache
def bundled(name: str) -> Translator:
    return load_translator(ASSETS / "models" / name)


@pytest.mark.parametrize("capture", [True, False])
def test_a_run_that_leaves_out_two_thirds_says_so_recorded_or_not(capture: bool) -> None:
    run = bundled("en-pt").translate(TWELVE, capture=capture)
    assert run.text.count(".") == 4
    assert LEFT_OUT in run.notes


def test_a_text_is_translated_whole_and_nothing_is_said() -> None:
    whole = bundled("en-pt").translate_text(TWELVE, capture=False)
    assert [run.source_text for run in whole.runs] == [f"{each}." for each in TWELVE.rstrip(".").split(". ")]
    assert whole.text == " ".join(run.text for run in whole.runs)
    assert whole.notes == ()


@pytest.mark.parametrize(("name", "least"), [("en-pt", 7), ("en-de", 8)])
def test_cut_translations_are_named_and_whole_ones_are_not(name: str, least: int) -> None:
    translator, named = bundled(name), []
    with gzip.open(ASSETS / "sample" / f"tatoeba-{name}.tsv.gz", "rt", encoding="utf-8") as file:
        sources = [line.partition("\t")[0] for line in file][:24]
    for i in range(0, len(sources), 3):
        text = " ".join(sources[i : i + 3])
        words = translator.translate_text(text, capture=False).text.split()
        outputs = words, words[: len(words) // 2]
        named.append([LEFT_OUT in translator.force(text, " ".join(each)).notes for each in outputs])
    assert [sum(each) for each in zip(*named, strict=True)] == [0, least]


@pytest.mark.parametrize(
    ("read", "written", "unread", "named"),
    [
        (5, 1, 1.0, False),  # too few to say anything
        (10, 4, 0.0, True),
        (10, 5, 0.0, False),  # half of the length alone is not enough
        (10, 7, 0.1, True),
        (10, 7, 0.09, False),
        (10, 8, 0.1, False),
        (10, 15, 0.2, True),  # a loop
    ],
)
def test_length_and_what_is_read_decide_together(read: int, written: int, unread: float, named: bool) -> None:
    assert leaves_out(read, written, lambda _: unread) == named


def test_one_line_in_is_one_line_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = ["--model", str(ASSETS / "models" / "en-pt")]
    two = "I am here. She sleeps."
    assert main(["translate", *model, two, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["text"] == "Eu estou aqui. Ela dorme."
    assert [token for token in said["source_tokens"] if token == "</s>"] == ["</s>"] * 2
    assert len(said["log_probs"]) == len(said["target_tokens"])
    assert main(["translate", *model, TWELVE, "--no-split"]) == 0
    cut = capsys.readouterr()
    assert cut.out.count(".") == 4
    assert cut.err.splitlines()[-1] == f"Text 1: {LEFT_OUT}"
    (tmp_path / "in.tsv").write_text(f"{two}\tx\n\n{TWELVE}\n", encoding="utf-8")
    for more, count in (([], 12), (["--no-split"], 4)):
        output = tmp_path / f"{count}.tsv"
        files = ["--file", str(tmp_path / "in.tsv"), "--output", str(output)]
        assert main(["translate", *model, *files, *more]) == 0
        lines = output.read_text(encoding="utf-8").splitlines()
        assert lines[:2] == [f"{two}\tEu estou aqui. Ela dorme.", "\t"]
        assert [lines[2].partition("\t")[2].count("."), LEFT_OUT in capsys.readouterr().err] == [
            count,
            count < 12,
        ]
