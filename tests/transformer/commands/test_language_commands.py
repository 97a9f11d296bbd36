"""`train-lm`, `generate` and `perplexity`: a run is trained, resumed, continued and scored."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from programs import main

from transformer import load_language_model
from transformer.storage.description import WEIGHTS_FILE
from transformer.training.runs.files import LOG_FILE

LINES = ["one two three four five six", "two one two one", "six five four three two one", "three three one"]
SIZES = ["--vocab-size", "300", "--smaller-vocabulary", "--device", "cpu", "--row-length", "32"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The lines as plain text, packed, and as the second column of a file with tabs."""
    folder = tmp_path_factory.mktemp("texts")
    plain, packed, columns = folder / "plain.txt", folder / "packed.txt.gz", folder / "pairs.tsv"
    lines = LINES * 10
    plain.write_text("\n".join([*lines, "", "  "]), "utf-8")
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    columns.write_text("".join(f"x\t{line}\n" for line in lines), "utf-8")
    return {"plain": plain, "packed": packed, "columns": columns}


def trained(texts: dict[str, Path], output: Path, *more: str, text: str | None = None) -> int:
    files = ["--text", text or str(texts["plain"]), "--valid", str(texts["plain"]), "--output", str(output)]
    return main(["train-lm", "--preset", "lm-tiny", *files, *SIZES, *more])


@pytest.fixture(scope="module")
def model(texts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "lm"
    assert trained(texts, path, "--steps", "60", "--learning-rate", "1e-2", "--snapshots", "3") == 0
    return path


def test_a_trained_model_continues_what_it_has_read(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses = [json.loads(line)["loss"] for line in (model / LOG_FILE).read_text().splitlines()]
    assert losses[-1] < 0.5 * losses[0]
    assert main(["generate", "--model", str(model), "one two three"]) == 0
    assert capsys.readouterr().out.strip() == "one two three four five six"
    assert "causal language model" in load_language_model(model).card


def test_generate_says_in_json_what_was_given(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = ["--sample", "--top-p", "0.9", "--temperature", "0.5", "--seed", "3", "--max-length", "12"]
    assert main(["generate", "--model", str(model), "--json", *sample, "six five"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prompt"] == "six five"
    assert "".join(found["tokens"][: found["given"]]) == "▁six▁five"
    assert len(found["log_probs"]) == len(found["tokens"]) <= 12


@pytest.mark.parametrize("kind", ["packed", "columns"])
def test_packed_text_and_a_column_give_the_same_run(
    model: Path, texts: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    text = f"{texts[kind]}:2" if kind == "columns" else str(texts[kind])
    own, same = tmp_path / "own", tmp_path / "same"
    for path, file in ((own, str(texts["plain"])), (same, text)):
        tokenizer = ["--tokenizer", str(model / "tokenizer.model"), "--steps", "3"]
        assert trained(texts, path, *tokenizer, text=file) == 0
    assert (own / WEIGHTS_FILE).read_bytes() == (same / WEIGHTS_FILE).read_bytes()


def test_a_run_is_resumed_at_its_next_step(texts: dict[str, Path], tmp_path: Path) -> None:
    run, often = tmp_path / "run", ["--checkpoint-every", "4", "--schedule", "constant", "--decay-steps", "2"]
    assert trained(texts, run, *often, "--steps", "8") == 0
    assert trained(texts, run, *often, "--steps", "12", "--resume") == 0
    steps = [json.loads(line)["step"] for line in (run / LOG_FILE).read_text().splitlines()]
    assert steps == list(range(1, 13))


def test_perplexity_is_printed_and_written(
    model: Path, texts: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = str(texts["plain"]), tmp_path / "found.json"
    assert main(["perplexity", "--model", str(model), "--data", data, "--output", str(output)]) == 0
    assert "perplexity per word" in capsys.readouterr().out
    found = json.loads(output.read_text())["data"][data]
    assert (found["texts"], found["words"]) == (40, 190)
    cell = found["per_word"]
    assert 1 < cell["low"] <= cell["value"] <= cell["high"] < 30


@pytest.mark.parametrize(
    ("more", "text", "reason"),
    [
        (["--row-length", "1"], None, "--row-length is 1"),
        ([], "columns:3", "there is no column 3"),
        ([], "nothing.txt", "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(
    texts: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    text: str | None,
    reason: str,
) -> None:
    file = None if text is None else text.replace("columns", str(texts["columns"]))
    assert trained(texts, tmp_path / "no", *more, text=file) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert reason in said
    assert said.endswith(".")


def test_an_option_is_refused_by_its_kind_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--positions", "learned"], ["--steps", "0"], ["--d-model", "x"], ["--dropout", "1"]):
        with pytest.raises(SystemExit):
            main(["train-lm", *given])
        (said,) = capsys.readouterr().err.splitlines()
        assert f"argument {given[0]}: it must be " in said
        assert said.endswith(f", not '{given[1]}'; --help lists the options.")
