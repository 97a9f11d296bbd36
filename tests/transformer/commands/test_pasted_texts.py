"""Commands with texts as people paste and pipe them: curly quotes, blank and damaged lines, other locales."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import main

from transformer.text.tokenizer import Tokenizer, TokenizerError

MODEL = "assets/models/en-pt"
GOLD = [
    "It's an old house and it is not for sale .\tÉ uma casa antiga e não está à venda .\t"
    "0-0 1-1 2-3 3-2 4-4 6-6 7-5 8-7 9-8 10-9",
    "She doesn't know the name of the village .\tEla não sabe o nome da aldeia .\t"
    "0-0 1-1 2-2 3-3 4-4 5p5 6p5 7-6 8-7",
]


def written(text: str, path: Path) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_gold_file_with_curly_apostrophes_has_the_same_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for name, apostrophe in (("straight", "'"), ("curly", "’"), ("unknown", "ł"), ("split", "'\u200b")):
        text = "\n".join(GOLD).replace("'", apostrophe) + "\n\n"
        assert main(["align", "--model", MODEL, "--data", written(text, tmp_path / name), "--json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        found.append([json.loads(line)["aer"] for line in lines])
    straight, curly, unknown, split = found
    assert straight == curly == split
    assert min(unknown) < 0.1  # another word, whose links are counted as before


def test_a_gold_word_that_draws_nothing_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = written(f"{GOLD[0]}\nThe \u200b house\tA casa\t0-0 2-1\n", tmp_path / "gold.tsv")
    assert main(["align", "--model", MODEL, "--data", gold]) == 2
    assert "gold.tsv:2: a word of this pair has no visible character" in capsys.readouterr().err


def test_standard_input_is_blank_where_it_was_blank_and_a_bad_line_stops_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = b"The house is old.\n\n\xff\xfe\n" + b"one " * 1100 + b"\nThe cat sleeps.\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
    assert main(["translate", "--model", MODEL]) == 1
    captured = capsys.readouterr()
    assert captured.out.split("\n") == ["A casa é antiga.", "", "", "", "O gato dorme.", ""]
    first, second = captured.err.strip().splitlines()
    assert first == "Text 3: This is not UTF-8 text."
    assert second.startswith("Text 4: The text has ")


def test_a_file_keeps_its_blank_lines_and_names_the_bad_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, output = tmp_path / "texts.txt", tmp_path / "out.tsv"
    texts.write_bytes(b"The cat sleeps.\n\n" + b"caf\xe9\n" + "It costs £5.\n\n".encode())
    command = ["translate", "--model", MODEL, "--file", str(texts), "--output", str(output)]
    for again in (False, True):
        assert main(command) == (0 if again else 1)
        lines = output.read_bytes().split(b"\n")
        assert [line.partition(b"\t")[0] for line in lines] == texts.read_bytes().split(b"\n")
        assert [bool(line.partition(b"\t")[2]) for line in lines] == [True, False, False, True, False, False]
        said = capsys.readouterr().err
        assert again or "texts.txt:3: This is not UTF-8 text." in said
        assert again or "1 line: This model has no piece for £; it reads it as unknown." in said


def test_what_has_no_piece_is_said_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["translate"], ["attention"]):
        assert main([*command, "--model", MODEL, "The house costs £5."]) == 0
        captured = capsys.readouterr()
        assert "no piece for £" in captured.err
        assert "no piece" not in captured.out


def test_a_missing_folder_is_said_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none" / "out")
    commands = [
        ["translate", "--model", "nowhere", "--file", "x", "--output", missing],
        ["attention", "--model", "nowhere", "x", "--output", missing + ".json"],
        ["perplexity", "--model", "nowhere", "--data", "x", "--output", missing],
    ]
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 2
        assert "there is no folder" in capsys.readouterr().err.lower()


def test_output_is_utf_8_in_any_locale() -> None:
    command = [sys.executable, "-m", "transformer", "translate", "--model", MODEL]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    for more in ([], ["--json"]):
        done = subprocess.run(
            [*command, *more, "The house is old, isn’t it? £"],
            capture_output=True,
            env=environment,
            check=True,
        )
        assert "é" in done.stdout.decode("utf-8")
        assert "£" in done.stderr.decode("utf-8")


def test_a_vocabulary_that_does_not_fit_says_which_would() -> None:
    texts = [f"the {noun} is {color} ." for noun in ("house", "car", "tree") for color in ("old", "red")]
    with pytest.raises(TokenizerError, match=r"at most \d+\. .* --vocab-size") as much:
        Tokenizer.train(texts, 500)
    with pytest.raises(TokenizerError, match=r"at least \d+\. .* --vocab-size") as little:
        Tokenizer.train(texts, 200)
    for caught, sign in ((much, 1), (little, -1)):
        number = int(str(caught.value).split(" at ")[1].split()[1].rstrip("."))
        assert Tokenizer.train(texts, number).vocab_size == number
        with pytest.raises(TokenizerError):
            Tokenizer.train(texts, number + sign)
