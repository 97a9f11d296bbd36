"""`python -m transformer train`: files to a model directory."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import signal
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from .augment import join_pairs, plain_pairs, typed_pairs
from .checkpoint import CARD_FILE, TOKENIZER_FILE, CheckpointError, save_checkpoint
from .config import TransformerConfig
from .data import DataError, EncodedPairs, SentencePair, encode_pairs, read_pairs
from .model import Transformer, count_parameters
from .progress import Progress
from .run_files import STATE_FILE, StepLog, load_state, save_state
from .tokenizer import Tokenizer
from .training import Trainer, TrainingOptions, TrainingStep, train

Preset = tuple[dict[str, Any], dict[str, Any], dict[str, float]]
"""Sizes of the model, training options, shares of augmented pairs."""
PRESETS: dict[str, Preset] = {
    "en-de": (
        {"vocab_size": 8000, "d_model": 256, "d_ff": 1024, "n_heads": 8, "norm": "pre"}
        | {"n_encoder_layers": 3, "n_decoder_layers": 3},
        {"steps": 8000},
        {"join": 0.05, "plain": 0.08, "typed": 0.05},
    ),
    "tiny": (
        {"vocab_size": 400, "d_model": 32, "d_ff": 64, "n_heads": 4, "norm": "pre"}
        | {"n_encoder_layers": 2, "n_decoder_layers": 2},
        {"steps": 200, "warmup": 20, "evaluate_every": 100, "checkpoint_every": 50, "batch_positions": 512},
        {},
    ),
    "paper-base": (
        {"vocab_size": 37_000},
        {"steps": 100_000, "batch_positions": 25_000, "schedule": "inverse_sqrt", "learning_rate": 1.0}
        | {"warmup": 4000, "weight_decay": 0.0},
        {},
    ),
    "paper-big": (
        {"vocab_size": 37_000, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
        {"steps": 300_000, "batch_positions": 25_000, "schedule": "inverse_sqrt", "learning_rate": 1.0}
        | {"warmup": 4000, "weight_decay": 0.0},
        {},
    ),
}
AUGMENTATIONS = {
    "join": "texts of two to four pairs",
    "plain": "pairs in lower case with spaced punctuation",
    "typed": "pairs whose source is in lower case without its last mark",
}
CONFIG_CHOICES: dict[str, tuple[type, str]] = {
    "vocab_size": (int, "pieces of the joint vocabulary"),
    "d_model": (int, "width of the residual stream"),
    "d_ff": (int, "inner width of the feed-forward network"),
    "n_heads": (int, "heads per layer"),
    "n_encoder_layers": (int, "layers of the encoder"),
    "n_decoder_layers": (int, "layers of the decoder"),
    "dropout": (float, "probability"),
    "norm": (str, "post (as in the paper) or pre"),
    "positions": (str, "name of the positional encoding"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `train`."""
    parser.add_argument(
        "--train", nargs="+", required=True, metavar="FILE", help="source<TAB>target lines (.gz too)"
    )
    parser.add_argument("--valid", nargs="+", required=True, metavar="FILE", help="pairs to evaluate on")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="model directory to write")
    parser.add_argument(
        "--preset", default="en-de", choices=sorted(PRESETS), help="sizes and settings to start from"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run in DIR exactly where it was saved"
    )
    parser.add_argument(
        "--new-data", action="store_true", help="with --resume: go on with other training data"
    )
    parser.add_argument(
        "--tokenizer", type=Path, metavar="FILE", help="use this sentencepiece model, train none"
    )
    parser.add_argument(
        "--max-length", type=int, default=256, metavar="N", help="leave out pairs over N tokens a side"
    )
    for name, text in AUGMENTATIONS.items():
        parser.add_argument(
            f"--{name}-share", dest=name, type=float, metavar="X", help=f"add X {text} per pair"
        )
    parser.add_argument(
        "--languages", default="en,de", metavar="A,B", help="source and target, for the model card"
    )
    for name, (kind, text) in CONFIG_CHOICES.items():
        parser.add_argument(_flag(name), type=kind, help=text)
    for field in fields(TrainingOptions):
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(_flag(field.name), action="store_true", default=None)
        elif field.default is not MISSING:
            parser.add_argument(_flag(field.name), type=kind)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run(arguments: argparse.Namespace) -> int:
    """Trains; returns the exit status.

    Raises:
        ValueError: data, options or the output directory cannot be used.
    """
    device = choose_device(arguments.device)
    sizes, settings, shares = PRESETS[arguments.preset]
    options = TrainingOptions(**settings | _given(arguments, [f.name for f in fields(TrainingOptions)]))
    _check_output(arguments.output, arguments.resume)
    train_pairs, valid_pairs = _read(arguments.train), _read(arguments.valid)
    torch.manual_seed(options.seed)
    sizes = sizes | _given(arguments, list(CONFIG_CHOICES))
    train_pairs = _augmented(train_pairs, shares | _given(arguments, list(AUGMENTATIONS)), options.seed)
    tokenizer = _tokenizer(arguments, train_pairs, sizes["vocab_size"])
    data = encode_pairs(train_pairs, tokenizer).within(arguments.max_length)
    valid = encode_pairs(valid_pairs, tokenizer).within(arguments.max_length)
    if not len(data) or not len(valid):
        raise DataError(f"No pair has at most {arguments.max_length} tokens a side; raise --max-length.")
    sizes |= {"vocab_size": tokenizer.vocab_size, "trained_length": data.longest}
    trainer = Trainer(Transformer(TransformerConfig(**sizes)).to(device), data, options)
    run_directory = RunDirectory(arguments, trainer, tokenizer, _fingerprint(data))
    run_directory.begin(arguments.resume, arguments.new_data)
    _report_start(trainer, len(train_pairs), arguments)
    return _steps(trainer, valid, run_directory)


class RunDirectory:
    """Where a run is kept: the model as others load it, and the state to continue from."""

    def __init__(
        self, arguments: argparse.Namespace, trainer: Trainer, tokenizer: Tokenizer, fingerprint: str
    ) -> None:
        self._path: Path = arguments.output
        self._trainer = trainer
        self._tokenizer = tokenizer
        self._fingerprint = fingerprint
        self._card = _card(arguments, trainer)
        self._average_is_better = False
        self._saved_step = -1

    def begin(self, resume: bool, new_data: bool) -> None:
        """Loads the saved state (of the same data, unless `new_data`) or writes the untrained model."""
        if not resume:
            return self.save()
        changed = load_state(self._path, self._trainer, None if new_data else self._fingerprint)
        self._saved_step = self._trainer.step
        if changed:
            print(f"Resuming with other options than before: {', '.join(changed)}.", file=sys.stderr)
        return None

    def log(self) -> StepLog:
        """The log, cut to where the run stands."""
        return StepLog(self._path, self._trainer.step)

    def choose(self, done: TrainingStep) -> None:
        """Remembers which weights did better on the validation pairs."""
        if done.valid_loss is not None and done.valid_loss_average is not None:
            self._average_is_better = done.valid_loss_average < done.valid_loss

    def save(self) -> None:
        """Writes the state, then the model with the better of the own and the averaged weights."""
        if self._saved_step == self._trainer.step:
            return
        save_state(self._path_made(), self._trainer, self._fingerprint)
        averaged = self._average_is_better and self._trainer.average
        state = self._trainer.average if averaged else self._trainer.model.state_dict()
        card = "" if (self._path / CARD_FILE).exists() else self._card
        save_checkpoint(self._path, self._trainer.model.config, state, self._tokenizer, card=card)
        self._saved_step = self._trainer.step

    def _path_made(self) -> Path:
        self._path.mkdir(parents=True, exist_ok=True)
        return self._path


def _steps(trainer: Trainer, valid: EncodedPairs, run_directory: RunDirectory) -> int:
    log, progress = run_directory.log(), Progress(trainer.options.steps)
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for done in train(trainer, valid):
            log.write(done)
            progress.show(done)
            run_directory.choose(done)
            if done.step % trainer.options.checkpoint_every == 0:
                run_directory.save()
            if _STOP_REQUESTED:
                break
        run_directory.save()
    finally:
        _STOP_REQUESTED.clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        log.close()
        progress.close()
    if trainer.step < trainer.options.steps:
        print(f"Stopped after step {trainer.step:,}; continue with --resume.", file=sys.stderr)
        return 130
    return 0


_STOP_REQUESTED: list[int] = []


def _stop(number: int, frame: FrameType | None) -> None:
    """Lets the step in progress finish, so that the saved state stands between two steps."""
    _STOP_REQUESTED.append(number)


def choose_device(name: str) -> torch.device:
    """auto, cpu or cuda as a device.

    Raises:
        ValueError: the device does not exist here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ValueError(f"The device {name!r} is not known; choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "There is no CUDA device here, or torch was installed without CUDA; use --device cpu."
        )
    return torch.device(name)


def _check_output(path: Path, resume: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"The output {path} is a file; name a directory.")
    if not resume and path.is_dir() and any(path.iterdir()):
        raise ValueError(
            f"The output {path} is not empty; add --resume to continue its run, or name another."
        )
    if resume and not (path / STATE_FILE).is_file():
        raise CheckpointError(
            f"{path} has no {STATE_FILE}, so there is no run to resume; leave out --resume."
        )


def _given(arguments: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _read(paths: list[str]) -> list[SentencePair]:
    return [pair for path in paths for pair in read_pairs(path)]


def _augmented(pairs: list[SentencePair], shares: dict[str, float], seed: int) -> list[SentencePair]:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"--{name}-share is {share}; it must be from 0 to 1.")
    join, plain, typed = (shares.get(name, 0.0) for name in AUGMENTATIONS)
    pairs = pairs + join_pairs(pairs, join, seed)
    return pairs + plain_pairs(pairs, plain, seed) + typed_pairs(pairs, typed, seed)


def _tokenizer(arguments: argparse.Namespace, pairs: list[SentencePair], vocab_size: int) -> Tokenizer:
    if arguments.resume:
        return Tokenizer.load(arguments.output / TOKENIZER_FILE)
    if arguments.tokenizer is not None:
        return Tokenizer.load(arguments.tokenizer)
    print(f"Training a vocabulary of {vocab_size:,} pieces.", file=sys.stderr)
    return Tokenizer.train((text for pair in pairs for text in (pair.source, pair.target)), vocab_size)


def _fingerprint(data: EncodedPairs) -> str:
    digest = hashlib.sha256()
    for side in (data.source, data.target):
        for ids in side:
            digest.update(ids.tobytes() + b"|")
    return digest.hexdigest()


def _report_start(trainer: Trainer, n_pairs: int, arguments: argparse.Namespace) -> None:
    print(
        f"{count_parameters(trainer.model):,} parameters on {trainer.device}; "
        f"{len(trainer.data):,} of {n_pairs:,} pairs, the longest {trainer.data.longest} tokens; "
        f"steps {trainer.step + 1:,} to {trainer.options.steps:,} into {arguments.output}.",
        file=sys.stderr,
        flush=True,
    )


def _card(arguments: argparse.Namespace, trainer: Trainer) -> str:
    command = shlex.join(["python", "-m", "transformer", *sys.argv[1:]])
    languages = "".join(f"- {language.strip()}\n" for language in arguments.languages.split(","))
    return (
        f"---\nlanguage:\n{languages}library_name: pytorch\npipeline_tag: translation\n---\n\n"
        f"# {arguments.output.name}\n\nAn encoder-decoder Transformer of {count_parameters(trainer.model):,} "
        f"parameters, trained with\n\n```\n{command}\n```\n"
    )
