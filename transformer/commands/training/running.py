"""A training run on the command line: its options, its steps, its end, whatever it trains."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from transformer.commands.arguments import choose_device
from transformer.model.network import count_parameters
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.text.vocabulary import Tokenizer
from transformer.training.cost import peak
from transformer.training.data import Data
from transformer.training.distributed import Workers, joined
from transformer.training.options import TrainingOptions
from transformer.training.runs.directory import RunDirectory
from transformer.training.runs.files import STATE_FILE, Exported, load_exported
from transformer.training.runs.leash import Leash
from transformer.training.runs.progress import Progress
from transformer.training.runs.snapshots import FOLDER as SNAPSHOTS
from transformer.training.runs.snapshots import moments
from transformer.training.trainer import Quality, Trainer, TrainingStep, train

OPTION_HELP = {
    "steps": "total number of optimiser steps",
    "batch_positions": "largest number of positions of either side of one batch",
    "accumulate": "batches per step",
    "schedule": "linear (falls to 0), constant (falls only at the end) or inverse_sqrt (the paper's)",
    "learning_rate": "peak of the linear and the constant schedule; a factor on the paper's schedule",
    "warmup": "steps of rising learning rate",
    "decay_steps": "steps of falling learning rate at the end of the constant schedule",
    "weight_decay": "weight decay of AdamW",
    "beta1": "beta1 of Adam",
    "beta2": "beta2 of Adam",
    "epsilon": "epsilon of Adam",
    "label_smoothing": "share of the target spread over the vocabulary",
    "clip": "largest norm of the gradient; 0 does not clip",
    "average_decay": "decay per step of the running average of the weights; 0 keeps no average",
    "seed": "seed of weights, data order and dropout",
    "evaluate_every": "steps between evaluations",
    "checkpoint_every": "steps between checkpoints",
    "compile": "compile the model with torch.compile",
    "precision": "type of matrix products: auto, float32 or bfloat16",
    "guided_alignment": "LAYER.HEAD, counted from 1: this head of cross-attention learns from --links",
    "guided_weight": "weight of the loss of the guided head",
}


SMALL = 5_000_000
"""Parameters below which a CPU trains on one thread: in such small products, threads wait for each other."""
Sizes = dict[str, tuple[type, str]]
"""Fields of a model's config that the command line sets: type, and help."""


def add_run_arguments(
    parser: argparse.ArgumentParser,  # the command's
    sizes: Sizes,  # the model's sizes
) -> None:
    """Declares the options that every training has."""
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="model directory to write")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help=f"threads of a CPU; without it or OMP_NUM_THREADS, one for models of fewer than {SMALL:,} "
        "parameters, and as many as PyTorch chooses for larger ones",
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume the run in DIR exactly where it was saved"
    )
    parser.add_argument(
        "--resume-if-present",
        action="store_true",
        help="resume the run in DIR if there is one, otherwise begin: for torchrun --max-restarts",
    )
    parser.add_argument(
        "--new-data", action="store_true", help="with --resume: continue with other training data"
    )
    parser.add_argument(
        "--tokenizer", type=Path, metavar="FILE", help="use this sentencepiece model instead of training one"
    )
    parser.add_argument(
        "--smaller-vocabulary",
        action="store_true",
        help="if the text cannot give --vocab-size pieces, take as many as it can give",
    )
    parser.add_argument(
        "--obey-input",
        action="store_true",
        help="obey the lines pause, go on and stop on standard input; stop when that input ends",
    )
    parser.add_argument(
        "--snapshots",
        type=int,
        metavar="N",
        help="keep the weights of N steps, from the untrained model on, each twice as late as the one before",
    )
    for name, (kind, text) in sizes.items():
        parser.add_argument(flag(name), type=kind, metavar="X", help=text)
    for field in fields(TrainingOptions):
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(
                flag(field.name), action="store_true", default=None, help=OPTION_HELP[field.name]
            )
        elif field.default is not MISSING:
            parser.add_argument(flag(field.name), type=kind, metavar="X", help=OPTION_HELP[field.name])


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run_on(arguments: argparse.Namespace, work: Callable[[Workers, torch.device, Leash], int]) -> int:
    """Does the work as this process's part of a job; ValueError if it or the number of threads is refused."""
    if arguments.threads is not None and arguments.threads < 1:
        raise ValueError(f"--threads is {arguments.threads}; it must be at least 1.")
    leash = Leash()
    if arguments.obey_input:
        leash.hold(lambda: _STOP_REQUESTED.append(signal.SIGTERM))
    with joined(choose_device(arguments.device)) as (workers, device):
        return work(workers, device, leash)


def advance(
    arguments: argparse.Namespace,
    trainer: Trainer,
    exported: Exported,
    valid: Data,
    leash: Leash,
    resume: bool,
    quality: Quality | None = None,
) -> int:
    """Begins or resumes a run, and takes its steps; returns the exit status."""
    kept = () if arguments.snapshots is None else moments(arguments.snapshots, trainer.options.steps)
    run_directory = RunDirectory(arguments.output, trainer, exported, _fingerprint(trainer.data), kept)
    run_directory.begin(resume, arguments.new_data)
    if trainer.workers.first:
        _report_start(trainer, arguments.output)
    with _threads(arguments.threads, trainer):
        return _steps(trainer, valid, quality, run_directory, leash)


@contextmanager
def _threads(asked: int | None, trainer: Trainer) -> Iterator[None]:
    """Sets the threads that a run computes on, until it ends: those asked for, or one for a small model."""
    before = torch.get_num_threads()
    small = trainer.device.type == "cpu" and count_parameters(trainer.model) < SMALL
    torch.set_num_threads(asked or (1 if small and "OMP_NUM_THREADS" not in os.environ else before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _steps(
    trainer: Trainer,
    valid: Data,
    quality: Quality | None,
    run_directory: RunDirectory,
    leash: Leash,
) -> int:
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    with ExitStack() as stack:
        for number, handler in handlers.items():
            stack.callback(signal.signal, number, handler)
        stack.callback(_STOP_REQUESTED.clear)
        tell = _reporters(trainer, run_directory, stack) if trainer.workers.first else []
        for done in train(trainer, valid, quality):
            for each in tell:
                each(done)
            run_directory.choose(done)
            run_directory.snapshot()
            if done.step % trainer.options.checkpoint_every == 0:
                run_directory.save()
            leash.wait(lambda: bool(_STOP_REQUESTED))
            if any(trainer.workers.sum(len(_STOP_REQUESTED))):
                break
        run_directory.save()
    if trainer.step == trainer.options.steps:
        return 0
    if trainer.workers.first:
        print(f"Stopped after step {trainer.step:,}; add --resume to continue.", file=sys.stderr)
    return 130


def _reporters(
    trainer: Trainer, run_directory: RunDirectory, stack: ExitStack
) -> list[Callable[[TrainingStep], None]]:
    """The record of each step: the log, and the line of progress; the stack closes them."""
    speed, source = peak(trainer.device, trainer.dtype)
    log = run_directory.log()
    progress = Progress(trainer.options.steps, speed * trainer.workers.world, source)
    stack.callback(log.close)
    stack.callback(progress.close)
    return [log.write, progress.show]


_STOP_REQUESTED: list[int] = []


def _stop(number: int, frame: FrameType | None) -> None:
    """Lets the current step finish, so that the saved state lies between two steps."""
    _STOP_REQUESTED.append(number)


def resumes(arguments: argparse.Namespace) -> bool:
    """Whether a saved run continues; the output directory must fit."""
    path, resume = arguments.output, arguments.resume
    if arguments.resume_if_present:
        resume = resume or (path / STATE_FILE).is_file()
    _check_output(path, resume)
    return bool(resume)


def _check_output(path: Path, resume: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"The output {path} is a file; choose a directory.")
    if not resume and path.is_dir() and _begun(path):
        raise ValueError(
            f"The output {path} is not empty; add --resume to continue its run, or choose another directory."
        )
    if resume and not (path / STATE_FILE).is_file():
        raise CheckpointError(
            f"{path} has no {STATE_FILE}, so there is no run to resume; leave out --resume."
        )


def _begun(path: Path) -> set[Path]:
    """Files of a directory besides those that a kill in a run's very first save leaves behind."""
    return set(path.iterdir()) - {*path.glob(UNFINISHED), path / SNAPSHOTS}


def given(arguments: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def exported_parts(
    arguments: argparse.Namespace, texts: Iterable[str], vocab_size: int, resume: bool, at_most: bool
) -> Exported:
    """The vocabulary, the card and the choice of weights: those of the saved run, or new ones."""
    if resume:
        return load_exported(arguments.output)
    if arguments.tokenizer is not None:
        return Exported(Tokenizer.load(arguments.tokenizer))
    print(f"Training a vocabulary of {'at most ' * at_most}{vocab_size:,} pieces.", file=sys.stderr)
    return Exported(Tokenizer.train(texts, vocab_size, at_most))


def _fingerprint(data: Data) -> str:
    digest = hashlib.sha256()
    for numbers in data.numbers():
        digest.update(numbers)
    return digest.hexdigest()


def _report_start(trainer: Trainer, output: Path) -> None:
    print(
        f"{count_parameters(trainer.model):,} parameters on {trainer.device}; {len(trainer.data):,} "
        f"{trainer.data.items}, the longest {trainer.data.longest} tokens; "
        f"steps {trainer.step + 1:,} to {trainer.options.steps:,} into {output}.",
        file=sys.stderr,
        flush=True,
    )
