"""`python -m transformer train`: trains a model on files of pairs and writes a model directory."""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import MISSING, fields, replace
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from transformer.commands.arguments import choose_device, command_line
from transformer.commands.training.pairs import training_pairs
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer, count_parameters
from transformer.storage.card import training_card
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.text.links import read_gold
from transformer.text.pairs import DataError, both_sides
from transformer.text.vocabulary import Tokenizer
from transformer.training.augment import MAKERS
from transformer.training.batches import EncodedPairs, encode_pairs
from transformer.training.cost import peak
from transformer.training.distributed import Workers, joined
from transformer.training.guided import with_links
from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS, Preset, preset_name
from transformer.training.runs.directory import RunDirectory
from transformer.training.runs.files import STATE_FILE, Exported, load_exported
from transformer.training.runs.leash import Leash
from transformer.training.runs.progress import Progress
from transformer.training.runs.quality import greedy_bleu
from transformer.training.runs.snapshots import moments
from transformer.training.toys.tasks import LENGTH, TOYS
from transformer.training.trainer import Quality, Trainer, TrainingStep, train

BLEU_SENTENCES = 200
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `train`."""
    parser.add_argument(
        "--train",
        nargs="+",
        default=[],
        metavar="FILE[:WEIGHT]",
        help="source<TAB>target lines (.gz too); weight 2 uses each pair twice per epoch, weight 0.35 uses "
        "a new 35 %% of the pairs in each epoch",
    )
    parser.add_argument("--valid", nargs="+", default=[], metavar="FILE", help="pairs to evaluate on")
    parser.add_argument(
        "--toy",
        choices=list(TOYS),
        help="instead of files: pairs of a toy task, which the package makes itself",
    )
    parser.add_argument(
        "--toy-length", type=int, default=LENGTH, metavar="N", help="with --toy: most letters of a sequence"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="model directory to write")
    parser.add_argument(
        "--preset",
        choices=sorted(PRESETS),
        help="sizes and settings to start from: en-de, or toy with --toy",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
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
        help="obey lines on standard input (pause, go on, stop), and stop when it ends",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        default=256,
        metavar="N",
        help="leave out pairs with more than N tokens on a side",
    )
    parser.add_argument(
        "--links",
        nargs="+",
        default=[],
        metavar="FILE",
        help="source<TAB>target<TAB>links lines of training pairs, for --guided-alignment; see `links`",
    )
    parser.add_argument(
        "--snapshots",
        type=int,
        metavar="N",
        help="keep the weights of N steps, from the untrained model on, each twice as late as the one before",
    )
    parser.add_argument(
        "--bleu-sentences",
        type=int,
        default=BLEU_SENTENCES,
        metavar="N",
        help="translate N validation sentences greedily at each evaluation and log their BLEU; 0 for none "
        "(default: %(default)s)",
    )
    for name, (_, text) in MAKERS.items():
        parser.add_argument(
            f"--{name}-share", dest=name, type=float, metavar="X", help=f"add X {text} per pair"
        )
    parser.add_argument(
        "--languages", default="en,de", metavar="A,B", help="source and target language, for the model card"
    )
    for name, (kind, text) in CONFIG_CHOICES.items():
        parser.add_argument(_flag(name), type=kind, metavar="X", help=text)
    for field in fields(TrainingOptions):
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(
                _flag(field.name), action="store_true", default=None, help=OPTION_HELP[field.name]
            )
        elif field.default is not MISSING:
            parser.add_argument(_flag(field.name), type=kind, metavar="X", help=OPTION_HELP[field.name])


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run(arguments: argparse.Namespace) -> int:
    """Trains a model; returns the exit status.

    Raises:
        ValueError: The data, options or output directory cannot be used.
    """
    leash = Leash()
    if arguments.obey_input:
        leash.hold(lambda: _STOP_REQUESTED.append(signal.SIGTERM))
    with joined(choose_device(arguments.device)) as (workers, device):
        return _run(arguments, workers, device, leash)


def _run(arguments: argparse.Namespace, workers: Workers, device: torch.device, leash: Leash) -> int:
    preset = PRESETS[preset_name(arguments.preset, arguments.toy)]
    options = TrainingOptions(**preset.options | _given(arguments, [f.name for f in fields(TrainingOptions)]))
    config = TransformerConfig(**preset.sizes | _given(arguments, list(CONFIG_CHOICES)))
    if bool(options.guided_alignment) != bool(arguments.links):
        raise ValueError("--guided-alignment and --links need each other; give both or neither.")
    resume = workers.agree(lambda: _resumes(arguments))
    torch.manual_seed(options.seed)
    exported, data, valid, quality = _data(arguments, preset, config, options.seed, resume, workers)
    config = replace(config, vocab_size=exported.tokenizer.vocab_size, trained_length=data.longest)
    trainer = Trainer(Transformer(config).to(device), data, options, workers)
    exported.card = exported.card or _card(arguments, trainer.model)
    kept = () if arguments.snapshots is None else moments(arguments.snapshots, options.steps)
    run_directory = RunDirectory(arguments.output, trainer, exported, _fingerprint(data), kept)
    run_directory.begin(resume, arguments.new_data)
    if workers.first:
        _report_start(trainer, arguments.output)
    return _steps(trainer, valid, quality, run_directory, leash)


def _data(
    arguments: argparse.Namespace,
    preset: Preset,
    config: TransformerConfig,
    seed: int,
    resume: bool,
    workers: Workers,
) -> tuple[Exported, EncodedPairs, EncodedPairs, Quality | None]:
    """Reads and checks the parts to export besides the weights, training and validation pairs, and BLEU's."""
    if not 2 <= arguments.max_length <= config.max_positions:
        raise ValueError(f"--max-length is {arguments.max_length}; choose 2 to {config.max_positions:,}.")
    shares = preset.shares | _given(arguments, list(MAKERS))
    train_pairs, weights, valid_pairs, words = training_pairs(arguments, shares, seed)
    exported = workers.agree(
        lambda: _exported(arguments, chain(words, both_sides(train_pairs)), config.vocab_size, resume)
    )
    tokenizer = exported.tokenizer
    data = encode_pairs(train_pairs, tokenizer, weights)
    if arguments.links:
        linked = (each for path in arguments.links for each in read_gold(path))
        data = with_links(data, train_pairs, linked, tokenizer)
    data = data.within(arguments.max_length)
    valid = encode_pairs(valid_pairs, tokenizer).within(arguments.max_length)
    if not len(data) or not len(valid):
        raise DataError(f"No pair has at most {arguments.max_length} tokens per side; raise --max-length.")
    if workers.first and len(data) < len(train_pairs):
        left_out = len(train_pairs) - len(data)
        print(
            f"Left out {left_out:,} pairs with more than {arguments.max_length} tokens on a side.",
            file=sys.stderr,
        )
    quality = greedy_bleu(valid_pairs, tokenizer, arguments.bleu_sentences, arguments.max_length)
    return exported, data, valid, quality


def _steps(
    trainer: Trainer,
    valid: EncodedPairs,
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
    """What records a step: the log, and the line of progress; the stack closes them."""
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


def _resumes(arguments: argparse.Namespace) -> bool:
    """Whether a saved run continues; the output directory must fit."""
    path, resume = arguments.output, arguments.resume
    if arguments.resume_if_present:
        resume = resume or (path / STATE_FILE).is_file()
    _check_output(path, resume)
    return bool(resume)


def _check_output(path: Path, resume: bool) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"The output {path} is a file; choose a directory.")
    if not resume and path.is_dir() and set(path.iterdir()) - set(path.glob(UNFINISHED)):
        raise ValueError(
            f"The output {path} is not empty; add --resume to continue its run, or choose another directory."
        )
    if resume and not (path / STATE_FILE).is_file():
        raise CheckpointError(
            f"{path} has no {STATE_FILE}, so there is no run to resume; leave out --resume."
        )


def _given(arguments: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _exported(arguments: argparse.Namespace, texts: Iterable[str], vocab_size: int, resume: bool) -> Exported:
    """The vocabulary, the card and the choice of weights: those of the saved run, or new ones."""
    if resume:
        return load_exported(arguments.output)
    if arguments.tokenizer is not None:
        return Exported(Tokenizer.load(arguments.tokenizer))
    at_most = bool(arguments.smaller_vocabulary or arguments.toy)
    print(f"Training a vocabulary of {'at most ' * at_most}{vocab_size:,} pieces.", file=sys.stderr)
    return Exported(Tokenizer.train(texts, vocab_size, at_most))


def _fingerprint(data: EncodedPairs) -> str:
    digest = hashlib.sha256()
    for side in (data.source, data.target):
        for ids in side:
            digest.update(ids.tobytes() + b"|")
    for ids in data.links or ():
        digest.update(ids.tobytes() + b"|")
    if data.weights is not None:
        digest.update(data.weights.tobytes())
    return digest.hexdigest()


def _report_start(trainer: Trainer, output: Path) -> None:
    print(
        f"{count_parameters(trainer.model):,} parameters on {trainer.device}; {len(trainer.data):,} pairs, "
        f"the longest {trainer.data.longest} tokens; "
        f"steps {trainer.step + 1:,} to {trainer.options.steps:,} into {output}.",
        file=sys.stderr,
        flush=True,
    )


def _card(arguments: argparse.Namespace, model: Transformer) -> str:
    command = command_line()
    languages = [] if arguments.toy else [each.strip() for each in arguments.languages.split(",")]
    files = [f"toy task: {arguments.toy}"] if arguments.toy else arguments.train
    return training_card(arguments.output.name, languages, command, files, model)
