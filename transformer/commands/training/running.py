"""A training run on the command line: its options, its steps, its end, whatever it trains."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, get_type_hints

import torch

from transformer.commands.arguments import add_device, option
from transformer.commands.options import add_option
from transformer.config import ModelConfig
from transformer.devices import choose_device
from transformer.model import count_parameters
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.text.kinds import at_least
from transformer.text.tokenizer import Tokenizer
from transformer.training.control import RunControl
from transformer.training.data import EncodedPairs
from transformer.training.distributed import Workers, joined
from transformer.training.options import TrainingOptions
from transformer.training.progress import TerminalLine, peak
from transformer.training.quality import GreedyBleu
from transformer.training.run import STATE_FILE, Exported, RunDirectory, load_exported
from transformer.training.trainer import Trainer, TrainingStep, train

SMALL = 5_000_000
"""Parameters below which a CPU trains on one thread: in such small products, threads wait for each other."""


def add_run_arguments(
    parser: argparse.ArgumentParser,
    config: type[ModelConfig],  # of the model
    sizes: Mapping[str, str],  # help for those of its fields that may be set
) -> None:
    """Declares the options that every training has, and the sizes of its model."""
    option(parser, "--output", Path, "DIR", "model directory to write", required=True)
    add_device(parser)
    text = f"threads of a CPU; without it or OMP_NUM_THREADS, one for models of fewer than {SMALL:,} "
    text += "parameters, and as many as PyTorch chooses for larger ones"
    option(parser, "--threads", int, "N", text)
    switch = partial(parser.add_argument, action="store_true")
    switch("--resume", help="resume the run in DIR exactly where it was saved")
    text = "resume the run in DIR if there is one, otherwise begin: for torchrun --max-restarts"
    switch("--resume-if-present", help=text)
    switch("--new-data", help="with --resume: continue with other training data")
    option(parser, "--tokenizer", Path, "FILE", "use this sentencepiece model instead of training one")
    text = "if the text cannot give --vocab-size pieces, take as many as it can give"
    switch("--smaller-vocabulary", help=text)
    text = "obey the lines pause, go on and stop on standard input; stop when that input ends"
    switch("--obey-input", help=text)
    fields_of = partial(get_type_hints, include_extras=True)
    for name, text in sizes.items():
        add_option(parser, name, Annotated[fields_of(config)[name], text], None)
    for name, hint in fields_of(TrainingOptions).items():
        add_option(parser, name, hint, None)


Work = Callable[[argparse.Namespace, Workers, torch.device, RunControl], int]


def in_job(work: Work) -> Callable[[argparse.Namespace], int]:
    """Makes a command of what each process does; ValueError if it or the number of threads is refused."""

    def run(arguments: argparse.Namespace) -> int:
        if arguments.threads is not None:
            at_least(1).check("--threads", arguments.threads)
        control = RunControl()
        if arguments.obey_input:
            control.hold(lambda: _STOP_REQUESTED.append(signal.SIGTERM))
        with joined(choose_device(arguments.device)) as (workers, device):
            return work(arguments, workers, device, control)

    return run


def advance(
    arguments: argparse.Namespace,
    trainer: Trainer,
    exported: Exported,
    valid: EncodedPairs,
    control: RunControl,
    resume: bool,
    quality: GreedyBleu | None = None,
) -> int:
    """Begins or resumes a run, and takes its steps; returns the exit status."""
    run_directory = RunDirectory(arguments.output, trainer, exported, _fingerprint(trainer.data))
    run_directory.begin(resume, arguments.new_data)
    if trainer.workers.first:
        _report_start(trainer, arguments.output)
    with _threads(arguments.threads, trainer):
        return _steps(trainer, valid, quality, run_directory, control)


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
    valid: EncodedPairs,
    quality: GreedyBleu | None,
    run_directory: RunDirectory,
    control: RunControl,
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
            if done.step % trainer.options.checkpoint_every == 0:
                run_directory.save()
            control.wait(lambda: bool(_STOP_REQUESTED))
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
    log = stack.enter_context(run_directory.log())
    progress = TerminalLine(trainer.options.steps, speed * trainer.workers.world, source)
    stack.callback(progress.close)
    return [log, progress.show]


_STOP_REQUESTED: list[int] = []


def _stop(number: int, frame: FrameType | None) -> None:
    """Lets the current step finish, so that the saved state lies between two steps."""
    _STOP_REQUESTED.append(number)


def resumes(arguments: argparse.Namespace) -> bool:
    """True if a saved run continues; the output directory must fit."""
    path, resume = arguments.output, arguments.resume
    if arguments.resume_if_present:
        resume = resume or (path / STATE_FILE).is_file()
    _check_output(path, resume)
    return bool(resume)


def _check_output(path: Path, resume: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"The output {path} is a file; choose a directory.")
    if not resume and path.is_dir() and _begun(path):
        ways = "add --resume to continue its run, or choose another directory"
        raise ValueError(f"The output {path} is not empty; {ways}.")
    if resume and not (path / STATE_FILE).is_file():
        raise CheckpointError(
            f"{path} has no {STATE_FILE}, so there is no run to resume; leave out --resume."
        )


def _begun(path: Path) -> set[Path]:
    """Files of a directory besides those that a kill in a run's very first save leaves behind."""
    return set(path.iterdir()) - {*path.glob(UNFINISHED)}


def options_of(arguments: argparse.Namespace, preset: dict[str, Any]) -> TrainingOptions:
    """The options of a run: those of its preset, but for what was given."""
    return TrainingOptions(**preset | given(arguments, [field.name for field in fields(TrainingOptions)]))


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The named options that were given."""
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


def _fingerprint(data: EncodedPairs) -> str:
    digest = hashlib.sha256()
    for numbers in data.numbers():
        digest.update(numbers)
    return digest.hexdigest()


def _report_start(trainer: Trainer, output: Path) -> None:
    print(
        f"{count_parameters(trainer.model):,} parameters on {trainer.device}; {len(trainer.data):,} "
        f"pairs, the longest {trainer.data.longest} tokens; "
        f"steps {trainer.step + 1:,} to {trainer.options.steps:,} into {output}.",
        file=sys.stderr,
        flush=True,
    )
