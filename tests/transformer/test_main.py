from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import number_pairs, write_pairs
from programs import main

from transformer.decoding import SearchRules
from transformer.storage.directory import load_checkpoint
from transformer.training.progress import TerminalLine

REPOSITORY = Path(__file__).parents[2]
SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "32", "--device", "cpu"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    gold = [
        f"{s}\t{t}\t" + " ".join(f"{i}-{i}" for i in range(len(s.split())))
        for s, t in number_pairs(10, seed=3)
    ]
    (folder / "gold.tsv").write_text("\n".join(gold) + "\n", encoding="utf-8")
    return {
        "train": str(write_pairs(folder / "train.tsv.gz", number_pairs(400))),
        "valid": str(write_pairs(folder / "valid.tsv", number_pairs(30, seed=1))),
        "test": str(write_pairs(folder / "test.tsv", number_pairs(12, seed=2))),
        "long": str(write_pairs(folder / "long.tsv", [("one", "eins"), ("x " * 1100, "y")])),
        "gold": str(folder / "gold.tsv"),
    }


def train(files: dict[str, str], output: Path, *options: str) -> int:
    data = ["--train", files["train"], "--valid", files["valid"], "--output", str(output)]
    return main(["train", *data, *SIZES, *options])


@pytest.fixture(scope="module")
def model(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("models") / "numbers"
    assert train(files, output, "--steps", "300", "--learning-rate", "0.005", "--evaluate-every", "300") == 0
    return str(output)


def log_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def losses(directory: Path) -> list[float]:
    return [line["loss"] for line in log_of(directory)]


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """Runs a command that must end with status 2 and one sentence on standard error, which is returned."""
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_a_trained_model_is_a_complete_directory_that_translates(model: str) -> None:
    names = {path.name for path in Path(model).iterdir()}
    assert names >= {
        "model.safetensors",
        "config.json",
        "tokenizer.model",
        "README.md",
        "training.safetensors",
    }
    loaded = load_checkpoint(model)
    assert loaded.config.trained_length is not None
    assert loaded.card.startswith("---\nlanguage:\n- en\n- de\n")
    assert log_of(Path(model))[-1]["step"] == 300


def test_translate_writes_one_line_a_text(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--model", model, "two three", "nine one four"]) == 0
    assert capsys.readouterr().out.splitlines() == ["zwei drei", "neun eins vier"]


def test_a_file_is_translated_in_order_and_continued_where_it_was_cut(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer.commands.translate.AT_ONCE", 2)
    texts, output = ["two three", "nine four one", "five", "one", "six two"], tmp_path / "out.tsv"
    (tmp_path / "in.tsv").write_text("".join(f"{text}\tmore\n" for text in texts), encoding="utf-8")
    command = ["translate", "--model", model, "--file", str(tmp_path / "in.tsv"), "--output", str(output)]
    assert main(command) == 0
    whole = output.read_text(encoding="utf-8")
    assert [line.split("\t")[0] for line in whole.splitlines()] == texts
    assert whole.startswith("two three\tzwei drei\nnine four one\tneun vier eins\n")
    assert "5/5" in capsys.readouterr().err
    output.write_text(whole[: whole.index("five") + 6], encoding="utf-8")
    assert main(command) == 0
    assert output.read_text(encoding="utf-8") == whole
    output.write_text("other\tanders\n", encoding="utf-8")
    assert "other texts" in refused(capsys, command)
    assert "Add --output FILE, the file to be written" in refused(capsys, command[:-2])


def test_translate_reads_standard_input(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"two three\r\none nine\n")))
    assert main(["translate", "--model", model, "--json", "--beam-size", "3"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["zwei drei", "eins neun"]
    assert set(lines[0]) == {"text", "source_tokens", "target_tokens", "log_probs", "device"}
    assert lines[0]["target_tokens"][-1] == "</s>"
    assert len(lines[0]["log_probs"]) == len(lines[0]["target_tokens"])


def test_a_beam_scores_as_the_command_line_says(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = []
    plain = SearchRules.score

    def score(rules: SearchRules, total: float, length: int) -> float:
        scored.append((rules.length_penalty, rules.length_offset))
        return plain(rules, total, length)

    monkeypatch.setattr(SearchRules, "score", score)
    score_by = ["--length-penalty", "0.6", "--length-offset", "5"]
    assert main(["translate", "--model", model, "two three", "--beam-size", "2", *score_by]) == 0
    assert set(scored) == {(0.6, 5)}


@pytest.mark.parametrize("beam", ["1", "2"])
def test_evaluate_scores_with_sacrebleu(
    model: str, files: dict[str, str], capsys: pytest.CaptureFixture[str], beam: str
) -> None:
    assert main(["evaluate", "--model", model, "--data", files["test"], "--json", "--beam-size", beam]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bleu"] > 20
    assert found["chrf"] > 50
    assert found["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert found["tokens_per_second"] > 0
    assert 0 < found["loss"] < 2
    assert found["sentences"] == 12


def test_evaluate_prints_for_people(
    model: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--model", model, "--data", files["test"]]) == 0
    out = capsys.readouterr().out
    assert out.startswith("BLEU ")
    assert "nats per token" in out


def test_attention_prints_a_table_counted_from_one(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["attention", "--model", model, "two three", "--kind", "cross", "--layer", "2", "--head", "4"])
        == 0
    )
    out = capsys.readouterr().out
    assert "cross attention, layer 2, head 4" in out
    assert "token read → token predicted" in out
    assert "audit: passed" in out


def test_masked_cells_of_a_table_are_dashes(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "--model", model, "two three", "--kind", "decoder"]) == 0
    rows = capsys.readouterr().out.splitlines()[3:-1]
    assert rows[0].split()[-1] == "-"
    assert rows[-1].split()[-1] != "-"


def test_attention_is_saved_with_programs_counting_from_zero(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["attention", "--model", model, "two three", "--target", "zwei", "--layer", "2", "--head", "3"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["layer"], printed["head"]) == (1, 2)
    for name in ("a.npz", "a.json"):
        assert main([*command, "--output", str(tmp_path / name)]) == 0
    saved = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert {**saved, "device": printed["device"]} == printed
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert arrays["weights"] == pytest.approx(np.array(saved["weights"]), abs=1e-5)
        assert arrays["key_tokens"].tolist() == saved["key_tokens"]
        assert arrays["predicted_tokens"].tolist() == saved["predicted_tokens"]


def test_align_scores_every_cross_head(
    model: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["align", "--model", model, "--data", files["gold"], "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["layer"], line["head"]) for line in lines] == [(i, j) for i in range(2) for j in range(4)]
    assert all(0 <= line["aer"] <= 1 and 0 <= line["aer_read"] <= 1 for line in lines)
    assert main(["align", "--model", model, "--data", files["gold"]]) == 0
    assert "diagonal baseline: AER 0.0 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "--model", "nowhere", "x"], "no model directory nowhere"),
        (["translate", "--model", "models/nowhere", "x"], "no model directory models/nowhere"),
        (["evaluate", "--model", "MODEL", "--data", "LONG"], "long.tsv:2: The text has 2,"),
        (["translate", "--model", "MODEL", "--beam-size", "0", "x"], "beam size is 0"),
        (["translate", "--model", "MODEL", "--device", "abacus", "x"], "'abacus' is unknown"),
        (["evaluate", "--model", "MODEL", "--data", "none.tsv"], "none.tsv: the file cannot be read"),
        (
            ["attention", "--model", "MODEL", "x", "--layer", "3"],
            "no cross layer 3; this model has layers 1 to 2",
        ),
        (
            ["attention", "--model", "MODEL", "x", "--head", "0"],
            "no cross head 0; this model has heads 1 to 4",
        ),
        (["attention", "--model", "MODEL", "x", "--output", "a.png"], "must end in .npz or .json"),
        (
            ["align", "--model", "MODEL", "--data", "VALID"],
            "valid.tsv:1: expected source, tab, target, tab, links",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    model: str, files: dict[str, str], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    places = {"MODEL": model, "VALID": files["valid"], "LONG": files["long"]}
    assert message in refused(capsys, [places.get(argument, argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["translate", "x"], "--model"),
        (["attention", "--model", "m", "x", "--kind", "sideways"], "invalid choice: 'sideways'"),
        (["attention", "--model", "m", "x", "--layer", "first"], "it must be a whole number, not 'first'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_empty_standard_input_is_said(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in (io.TextIOWrapper(io.BytesIO(b"")), None):  # None: closed, as by `<&-`
        monkeypatch.setattr(sys, "stdin", stream)
        assert "nothing to translate" in refused(capsys, ["translate", "--model", model])


def test_an_output_is_neither_the_file_of_the_texts_nor_a_device(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("one two\n")
    command = ["translate", "--model", model, "--file", str(texts), "--output"]
    (tmp_path / "link.txt").hardlink_to(texts)
    for same in (texts, tmp_path / "link.txt"):
        assert "--output is the file of the texts" in refused(capsys, [*command, str(same)])
    assert "no file, so it cannot be continued" in refused(capsys, [*command, "/dev/full"])
    assert texts.read_text() == "one two\n"


def test_bad_training_input_is_found_before_anything_is_written(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.tsv").write_text("a\tb\nno tab here\n", encoding="utf-8")
    output = tmp_path / "model"
    command = ["train", "--valid", files["valid"], "--output", str(output), *SIZES]
    bad = refused(capsys, [*command, "--train", files["train"], str(tmp_path / "bad.tsv")])
    assert "bad.tsv:2: expected source, tab, target" in bad
    command = [*command, "--train", files["train"]]
    with pytest.raises(SystemExit):
        main([*command, "--steps", "0"])
    assert "argument --steps: it must be a whole number from 1, not '0'" in capsys.readouterr().err
    assert "multiple of n_heads" in refused(capsys, [*command, "--n-heads", "5"])
    assert "no run to resume" in refused(capsys, [*command, "--resume"])
    assert "--max-length is 1" in refused(capsys, [*command, "--max-length", "1"])
    assert "from 0 to 1" in refused(capsys, [*command, "--join-share", "2"])
    heavy = [*command[:-1], f"{files['train']}:1000"]
    assert "The weight of" in refused(capsys, heavy)
    assert "cannot be read" in refused(capsys, [*command[:-1], f"{files['train']}:much"])
    assert not output.exists()


def test_a_directory_with_a_run_is_not_overwritten(
    model: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--train", files["train"], "--valid", files["valid"], "--output", model, *SIZES]
    assert "add --resume" in refused(capsys, command)


def test_an_interrupted_run_saves_and_continues_exactly(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--steps", "12", "--warmup", "4", "--checkpoint-every", "100", "--evaluate-every", "5")
    assert train(files, tmp_path / "whole", *options) == 0
    with monkeypatch.context() as patch:
        patch.setattr(
            TerminalLine, "show", lambda self, done: done.step == 5 and signal.raise_signal(signal.SIGINT)
        )
        assert train(files, tmp_path / "parts", *options) == 130
    assert len(losses(tmp_path / "parts")) == 5
    assert train(files, tmp_path / "parts", *options, "--resume") == 0
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_a_run_goes_on_with_other_data_only_when_told_to(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--warmup", "2", "--evaluate-every", "100"]
    assert train(files, tmp_path / "model", *options, "--steps", "2") == 0
    other = files | {"train": files["valid"]}
    more = [*options, "--steps", "4", "--resume"]
    assert train(other, tmp_path / "model", *more) == 2
    assert "add --new-data" in capsys.readouterr().err
    assert train(other, tmp_path / "model", *more, "--new-data") == 0
    assert log_of(tmp_path / "model")[-1]["step"] == 4


def test_files_have_weights(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "pairs.tsv:2"
    named.write_text(Path(files["valid"]).read_text(encoding="utf-8"), encoding="utf-8")
    both = ["--train", str(named), f"{files['valid']}:0.5"]
    command = ["train", *both, "--valid", files["valid"], "--output", str(tmp_path / "model"), *SIZES]
    command += ["--steps", "2", "--join-share", "0", "--swap-share", "0.1", "--schedule", "constant"]
    assert main([*command, "--decay-steps", "1", "--vocab-size", "300"]) == 0
    assert "60 pairs" in capsys.readouterr().err


KILLED = """
import os, signal, sys
from transformer.__main__ import main
from transformer.training.progress import TerminalLine

def show(self, done):
    if done.step == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)

TerminalLine.show = show
main(sys.argv[2:])
"""
"""A run that is killed as it reports a step."""


@pytest.mark.parametrize("steps", [2, 9])
def test_a_killed_run_leaves_a_model_that_loads_and_a_run_that_continues(
    files: dict[str, str], tmp_path: Path, steps: int
) -> None:
    output = tmp_path / "model"
    data = ["--train", files["train"], "--valid", files["valid"], "--output", str(output)]
    options = ["--steps", "100000", "--checkpoint-every", "1"]
    process = subprocess.run(
        [sys.executable, "-c", KILLED, str(steps), "train", *data, *SIZES, *options],
        cwd=REPOSITORY,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    assert process.returncode == -signal.SIGKILL
    assert load_checkpoint(output).config.d_model == 32
    assert train(files, output, "--steps", str(steps + 3), "--resume") == 0
    assert log_of(output)[-1]["step"] == steps + 3


def test_ctrl_c_while_the_program_still_loads_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    interrupted = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    (tmp_path / "torch" / "__init__.py").write_text(interrupted, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "transformer", "translate", "--model", "none", "one"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "Interrupted.\n")
