"""`python -m transformer train-lm`: trains a causal language model on texts and writes a model directory."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from transformer.commands.arguments import command_line, option
from transformer.commands.training.running import (
    add_run_arguments,
    advance,
    exported_parts,
    given,
    in_job,
    options_of,
    resumes,
)
from transformer.model.config import RELATIVE, LanguageModelConfig
from transformer.model.language_model import LanguageModel
from transformer.storage.card import language_model_card
from transformer.text.pairs import DataError, read_texts
from transformer.training.distributed import Workers
from transformer.training.presets import LANGUAGE_MODELS
from transformer.training.runs.control import RunControl
from transformer.training.texts import encode_texts
from transformer.training.trainer import Trainer

ROW = 128
SIZES = {
    "vocab_size": "pieces of the vocabulary",
    "d_model": "width of the residual stream",
    "d_ff": "inner width of the feed-forward network",
    "n_heads": "heads per layer",
    "n_layers": "layers",
    "dropout": "probability",
    "norm": "pre, or post",
    "activation": "of the feed-forward network",
    "positions": f"{', '.join(RELATIVE[:-1])} or {RELATIVE[-1]}",
}


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = commands.add_parser("train-lm", help="train a causal language model on text")
    text = "texts to learn, one a line (.gz too); with a column, from 1, of a file with tabs"
    option(parser, "--text", str, "FILE[:COLUMN]", text, nargs="+", required=True)
    option(parser, "--valid", str, "FILE[:COLUMN]", "texts to evaluate on", nargs="+", required=True)
    text = "sizes and settings to start from"
    parser.add_argument("--preset", choices=sorted(LANGUAGE_MODELS), default="lm-en", help=text)
    text = "positions of a row, which several short texts share (default: %(default)s)"
    option(parser, "--row-length", int, "N", text, default=ROW)
    option(parser, "--language", str, "A", "language, for the model card", default="en")
    add_run_arguments(parser, LanguageModelConfig, SIZES)
    parser.set_defaults(run=run)


@in_job
def run(arguments: argparse.Namespace, workers: Workers, device: torch.device, control: RunControl) -> int:
    """Trains a language model; ValueError if the texts, options or output directory cannot be used."""
    preset = LANGUAGE_MODELS[arguments.preset]
    options = options_of(arguments, preset.options)
    config = LanguageModelConfig(**preset.sizes | given(arguments, SIZES))
    longest = min(config.max_positions, options.batch_positions)
    if not 2 <= arguments.row_length <= longest:
        raise ValueError(f"--row-length is {arguments.row_length}; choose 2 to {longest:,}.")
    resume = workers.agree(lambda: resumes(arguments))
    torch.manual_seed(options.seed)
    texts, held_out = (_texts(files) for files in (arguments.text, arguments.valid))
    at_most = bool(arguments.smaller_vocabulary)
    exported = workers.agree(lambda: exported_parts(arguments, texts, config.vocab_size, resume, at_most))
    tokenizer = exported.tokenizer
    data = encode_texts(texts, tokenizer, arguments.row_length)
    valid = encode_texts(held_out, tokenizer, arguments.row_length)
    config = replace(config, vocab_size=tokenizer.vocab_size, trained_length=data.longest)
    model = LanguageModel(config).to(device)
    trainer = Trainer(model, data, options, workers)
    exported.card = exported.card or language_model_card(
        arguments.output.name, arguments.language, command_line(), arguments.text, model
    )
    return advance(arguments, trainer, exported, valid, control, resume)


def _texts(files: list[str]) -> list[str]:
    """The texts of all files; DataError if a file cannot be used, or there is no text."""
    texts = [text for file in files for text in read_texts(*_parted(file))]
    if not texts:
        raise DataError(f"There is no text in {', '.join(files)}.")
    return texts


def _parted(file: str) -> tuple[Path, int | None]:
    """Splits `FILE:COLUMN`; an existing file whose name looks like that is not split."""
    path, colon, column = file.rpartition(":")
    if not colon or Path(file).exists() or not column.isdecimal():
        return Path(file), None
    return Path(path), int(column)
