"""`train`: threads, runs that are interrupted or killed at any write, data, and refusals."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus import number_pairs, write_pairs
from programs import main

from transformer import load_translator
from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import load_checkpoint
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.progress import TerminalLine
from transformer.training.run import LOG_FILE, STATE_FILE, Exported, RunDirectory, load_exported
from transformer.training.toys import toy_data
from transformer.training.trainer import Trainer

REPOSITORY = Path(__file__).parents[3]
ONE = ["--n-encoder-layers", "1", "--n-decoder-layers", "1", "--n-heads", "2"]
TOY = ["--d-model", "32", "--d-ff", "64", *ONE, "--batch-positions", "512", "--device", "cpu"]
TOY += ["--learning-rate", "1e-2", "--warmup", "50"]
SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "32", "--device", "cpu"]
LITTLE = [
    "--preset",
    "tiny",
    "--vocab-size",
    "300",
    "--d-model",
    "8",
    "--d-ff",
    "8",
    *ONE,
    "--device",
    "cpu",
]
LITTLE += ["--steps", "2", "--checkpoint-every", "1", "--evaluate-every", "2", "--warmup", "1"]
LITTLE += ["--bleu-sentences", "1"]
FILES = ("README.md", "config.json", "model.safetensors", "tokenizer.model", STATE_FILE)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    return {
        "train": str(write_pairs(folder / "train.tsv.gz", number_pairs(400))),
        "valid": str(write_pairs(folder / "valid.tsv", number_pairs(30, seed=1))),
    }


def command_of(pairs: dict[str, str], output: Path, *options: str) -> list[str]:
    data = ["--train", pairs["train"], "--valid", pairs["valid"], "--output", str(output)]
    return ["train", *data, *SIZES, *options]


def log_of(directory: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (directory / LOG_FILE).read_text(encoding="utf-8").splitlines()
    ]


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """A command that ends with status 2 and one sentence on standard error."""
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, len(captured.err.strip().splitlines())) == ("", 1)
    assert message in captured.err


@pytest.mark.parametrize(
    ("options", "variables", "threads"),
    [([], {}, 1), (["--threads", "2"], {}, 2), ([], {"OMP_NUM_THREADS": "3"}, 3)],
)
def test_a_small_model_trains_on_one_thread_unless_told_otherwise(
    options, variables, threads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counts: list[int] = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        TerminalLine, "show", lambda self, done: counts.append(torch.get_num_threads())
    )
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run = [
            "--output",
            str(tmp_path / "run"),
            "--steps",
            "1",
            "--warmup",
            "1",
            "--device",
            "cpu",
        ]
        assert main(["train", "--toy", "copy", "--bleu-sentences", "0", *run, *options]) == 0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert {*counts} == {threads}


# --- interrupted and killed ----------------------------------------------------------------------


def test_an_interrupted_run_saves_and_continues_exactly_and_is_complete(
    pairs, tmp_path: Path, monkeypatch
):
    options = [
        "--steps",
        "12",
        "--warmup",
        "4",
        "--checkpoint-every",
        "100",
        "--evaluate-every",
        "5",
    ]
    whole, parts = (command_of(pairs, tmp_path / name, *options) for name in ("whole", "parts"))
    assert main(whole) == 0
    with monkeypatch.context() as patch:
        patch.setattr(
            TerminalLine,
            "show",
            lambda self, done: done.step == 5 and signal.raise_signal(signal.SIGINT),
        )
        assert main(parts) == 130
    assert len(log_of(tmp_path / "parts")) == 5
    assert main([*parts, "--resume"]) == 0
    contents = [(tmp_path / name / WEIGHTS_FILE).read_bytes() for name in ("whole", "parts")]
    assert contents[0] == contents[1]
    loaded = load_checkpoint(tmp_path / "whole")
    assert {path.name for path in (tmp_path / "whole").iterdir()} >= {*FILES}
    assert loaded.config.trained_length is not None
    assert loaded.card.startswith("---\nlanguage:\n- en\n- de\n")


class Killed(BaseException):
    """What a kill is in these tests: nothing that follows has an effect."""


@contextmanager
def killed_before(operation: int) -> Iterator[list[str]]:
    """Ends the process at the given write or rename, counted from 0; -1 counts without killing."""
    done: list[str] = []

    def guarded(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not {"w", "a", "x"} & set((arguments[1:2] or ("r",))[0]):
                return function(*arguments, **options)
            if operation >= 0 and len(done) >= operation:
                raise Killed
            done.append(name)
            return function(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((os, "replace"), (Path, "open"), (Path, "unlink")):
            patch.setattr(owner, name, guarded(name, getattr(owner, name)))
        yield done


def test_a_kill_before_any_write_changes_no_file_of_the_finished_run(tmp_path: Path):
    data = str(write_pairs(tmp_path / "pairs.tsv", number_pairs(40)))
    command = [
        "train",
        "--train",
        data,
        "--valid",
        data,
        *LITTLE,
        "--checkpoint-every",
        "2",
        "--output",
    ]

    def contents(name: str) -> dict[str, bytes]:
        return {file: (tmp_path / name / "run" / file).read_bytes() for file in FILES}

    with killed_before(-1) as operations:
        assert main([*command, str(tmp_path / "whole" / "run")]) == 0
    expected = contents("whole")
    assert operations.count("replace") == 2 * len(FILES) - 1, "two saves, the card once"
    for operation, name in enumerate(operations):
        output = str(tmp_path / str(operation) / "run")
        with killed_before(operation), pytest.raises(Killed):
            main([*command, output])
        assert main([*command, output, "--resume-if-present"]) == 0, (operation, name)
        assert contents(str(operation)) == expected, (operation, name)
        assert not [*Path(output).rglob(UNFINISHED)]


def test_a_resumed_run_exports_the_weights_that_the_killed_one_had_chosen(
    tokenizer: Tokenizer, tmp_path: Path
):
    data = encode_pairs([SentencePair(*pair) for pair in number_pairs(40)], tokenizer)
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes)
    first, second = (
        Trainer(Transformer(config), data, TrainingOptions(steps=20)) for _ in range(2)
    )
    run = RunDirectory(tmp_path, first, Exported(tokenizer), "data")
    run.begin(resume=False, new_data=False)
    step = first.advance()
    run.choose(replace(step, valid_loss=2.0, valid_loss_average=1.0))
    run.save()
    chosen = (tmp_path / WEIGHTS_FILE).read_bytes()
    (tmp_path / WEIGHTS_FILE).unlink()
    again = RunDirectory(tmp_path, second, load_exported(tmp_path), "data")
    with pytest.raises(
        CheckpointError, match=r"Another run trains into .*: stop that one, or choose another"
    ):
        again.begin(resume=True, new_data=False)
    del run
    again.begin(resume=True, new_data=False)
    assert (tmp_path / WEIGHTS_FILE).read_bytes() == chosen
    again.choose(replace(step, valid_loss=1.0, valid_loss_average=2.0))
    second.advance()
    again.save()
    assert (tmp_path / WEIGHTS_FILE).read_bytes() != chosen


def test_ctrl_c_while_the_program_still_loads_is_one_line(tmp_path: Path):
    (tmp_path / "torch").mkdir()
    lines = "import signal", "signal.signal(signal.SIGINT, signal.default_int_handler)"
    interrupted = "\n".join((*lines, "signal.raise_signal(signal.SIGINT)\n"))
    (tmp_path / "torch" / "__init__.py").write_text(interrupted, encoding="utf-8")
    command = [sys.executable, "-m", "transformer", "translate", "--model", "none", "one"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "Interrupted.\n")


# --- data and options ----------------------------------------------------------------------------


def test_a_run_goes_on_with_other_data_only_when_told_to_and_is_not_overwritten(
    pairs, tmp_path: Path, capsys
):
    options = ["--warmup", "2", "--evaluate-every", "100", "--steps"]
    assert main(command_of(pairs, tmp_path / "model", *options, "2")) == 0
    refused(capsys, command_of(pairs, tmp_path / "model"), "add --resume")
    other = pairs | {"train": pairs["valid"]}
    more = command_of(other, tmp_path / "model", *options, "4", "--resume")
    assert main(more) == 2
    assert "add --new-data" in capsys.readouterr().err
    assert main([*more, "--new-data"]) == 0
    assert log_of(tmp_path / "model")[-1]["step"] == 4


def test_files_have_weights(pairs, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    named = tmp_path / "pairs.tsv:2"
    named.write_text(Path(pairs["valid"]).read_text(encoding="utf-8"), encoding="utf-8")
    command = [
        "train",
        "--train",
        str(named),
        f"{pairs['valid']}:0.5",
        "--valid",
        pairs["valid"],
        *SIZES,
    ]
    command += [
        "--steps",
        "2",
        "--join-share",
        "0",
        "--swap-share",
        "0.1",
        "--schedule",
        "constant",
    ]
    assert main([*command, "--decay-steps", "1", "--output", str(tmp_path / "model")]) == 0
    assert "60 pairs" in capsys.readouterr().err


def test_a_smaller_vocabulary_is_taken_only_if_asked_for(tmp_path: Path, capsys):
    data = str(
        write_pairs(tmp_path / "pairs.tsv", [(p.source, p.target) for p in toy_data("copy").valid])
    )
    command = ["train", "--train", data, "--valid", data, *TOY, "--preset", "tiny", "--steps", "1"]
    command += ["--vocab-size", "2000", "--output"]
    assert main([*command, str(tmp_path / "a")]) == 2
    assert "cannot give a vocabulary of 2000 pieces" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "b"), "--smaller-vocabulary"]) == 0
    assert load_translator(tmp_path / "b").tokenizer.vocab_size < 400


USUAL = ["--train", "TRAIN", "--valid", "VALID", *SIZES]
BAD: list[tuple[list[str], str]] = [
    ([], "Give pairs to train on"),
    (["--toy", "copy", "--train", "x.tsv"], "--toy makes its own pairs"),
    (["--toy", "copy", "--toy-length", "99"], "choose 3 to 12"),
    (["--toy", "copy", "--toy-length", "0"], "choose 3 to 12"),
    (["--toy", "copy", "--threads", "0"], "--threads is 0; it must be at least 1."),
    (["--train", "TRAIN", "BAD", "--valid", "VALID"], "bad.tsv:2: expected source, tab, target"),
    ([*USUAL, "--n-heads", "5"], "multiple of n_heads"),
    ([*USUAL, "--resume"], "no run to resume"),
    ([*USUAL, "--max-length", "1"], "--max-length is 1"),
    ([*USUAL, "--join-share", "2"], "from 0 to 1"),
    (["--train", "HEAVY", "--valid", "VALID"], "The weight of"),
    (["--train", "MUCH", "--valid", "VALID"], "cannot be read"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=range(len(BAD)))
def test_bad_training_input_is_named_before_anything_is_written(
    pairs, tmp_path: Path, capsys, arguments, message
):
    (tmp_path / "bad.tsv").write_text("a\tb\nno tab here\n", encoding="utf-8")
    train = pairs["train"]
    places = {
        "TRAIN": train,
        "VALID": pairs["valid"],
        "HEAVY": f"{train}:1000",
        "MUCH": f"{train}:much",
    }
    places["BAD"] = str(tmp_path / "bad.tsv")
    output = tmp_path / "model"
    command = ["train", "--output", str(output), *(places.get(word, word) for word in arguments)]
    refused(capsys, command, message)
    assert not output.exists()
    with pytest.raises(SystemExit):
        main([*command, "--steps", "0"])
    assert "argument --steps: it must be a whole number from 1, not '0'" in capsys.readouterr().err
