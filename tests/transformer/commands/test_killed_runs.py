"""Runs that are killed while they write: whatever was on its way, the files end up the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corpus import number_pairs, write_pairs
from programs import main

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.tokenizer import Tokenizer
from transformer.training.data import encode_pairs
from transformer.training.options import TrainingOptions
from transformer.training.run import STATE_FILE, Exported, RunDirectory, load_exported
from transformer.training.trainer import Trainer

SIZES = ["--preset", "tiny", "--vocab-size", "300", "--d-model", "8", "--n-heads", "2", "--d-ff", "8"]
SIZES += ["--n-encoder-layers", "1", "--n-decoder-layers", "1"]
STEPS = ["--steps", "2", "--checkpoint-every", "1", "--evaluate-every", "2", "--warmup", "1"]
STEPS += ["--bleu-sentences", "1"]
FILES = ("README.md", "config.json", "model.safetensors", "tokenizer.model", STATE_FILE)


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
        for owner, name in ((os, "replace"), (os, "fsync"), (Path, "open"), (Path, "unlink")):
            patch.setattr(owner, name, guarded(name, getattr(owner, name)))
        yield done


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pairs = write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", number_pairs(40))
    return ["train", "--train", str(pairs), "--valid", str(pairs), "--device", "cpu", *SIZES, *STEPS]


def contents(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in FILES}


def test_a_kill_before_any_write_changes_no_file_of_the_finished_run(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with killed_before(-1) as operations:
        assert main([*command, "--output", str(tmp_path / "whole" / "run")]) == 0
    expected = contents(tmp_path / "whole" / "run")
    assert operations.count("replace") == 3 * len(FILES) - 2, "three saves, the card once"
    for operation, name in enumerate(operations):
        output = tmp_path / str(operation) / "run"
        with killed_before(operation), pytest.raises(Killed):
            main([*command, "--output", str(output)])
        assert main([*command, "--output", str(output), "--resume-if-present"]) == 0, (operation, name)
        assert contents(output) == expected, (operation, name)
        assert not list(output.rglob(UNFINISHED))


def test_a_resumed_run_exports_the_weights_that_the_killed_one_had_chosen(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    data = encode_pairs([SentencePair(*pair) for pair in number_pairs(40)], tokenizer)
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes)

    def trainer() -> Trainer:
        return Trainer(Transformer(config), data, TrainingOptions(steps=20))

    first = trainer()
    run = RunDirectory(tmp_path, first, Exported(tokenizer), "data")
    run.begin(resume=False, new_data=False)
    done = first.advance()
    run.choose(replace(done, valid_loss=2.0, valid_loss_average=1.0))
    run.save()
    chosen = (tmp_path / WEIGHTS_FILE).read_bytes()
    (tmp_path / WEIGHTS_FILE).unlink()
    second = trainer()
    again = RunDirectory(tmp_path, second, load_exported(tmp_path), "data")
    with pytest.raises(
        CheckpointError, match=r"Another run trains into .*: stop that one, or choose another"
    ):
        again.begin(resume=True, new_data=False)
    del run
    again.begin(resume=True, new_data=False)
    assert (tmp_path / WEIGHTS_FILE).read_bytes() == chosen
    again.choose(replace(done, valid_loss=1.0, valid_loss_average=2.0))
    second.advance()
    again.save()
    assert (tmp_path / WEIGHTS_FILE).read_bytes() != chosen
