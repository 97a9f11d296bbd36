"""`python -m transformer train`: trains a model on files of pairs and writes a model directory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
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
from transformer.config import ModelConfig, TransformerConfig, config_from
from transformer.model import EncoderDecoder, Network
from transformer.storage.card import training_card
from transformer.storage.directory import NETWORKS
from transformer.text.pairs import DataError, SentencePair, both_sides, read_pairs
from transformer.training.augment import MAKERS, augmented
from transformer.training.control import RunControl
from transformer.training.data import EncodedPairs, encode_pairs
from transformer.training.distributed import Workers
from transformer.training.presets import PRESETS, Preset, preset_name
from transformer.training.quality import GreedyBleu, greedy_bleu
from transformer.training.run import Exported
from transformer.training.toys import LENGTH, TOYS, toy_data
from transformer.training.trainer import Trainer

BLEU_SENTENCES, MOST_WEIGHT = 200, 100
SIZES = {
    "vocab_size": "pieces of the joint vocabulary",
    "d_model": "width of the residual stream",
    "d_ff": "inner width of the feed-forward network",
    "n_heads": "heads per layer",
    "n_encoder_layers": "layers of the encoder",
    "n_decoder_layers": "layers of the decoder",
    "dropout": "probability",
    "norm": "post (as in the paper) or pre",
    "positions": "name of the positional encoding",
}


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = commands.add_parser("train", help="train a model on parallel text")
    text = "source<TAB>target lines (.gz too); weight 2 uses each pair twice per epoch, weight 0.35 uses "
    text += "a new 35 %% of the pairs in each epoch"
    option(parser, "--train", str, "FILE[:WEIGHT]", text, nargs="+", default=[])
    option(parser, "--valid", str, "FILE", "pairs to evaluate on", nargs="+", default=[])
    text = "instead of files: pairs of a toy task, which the package makes itself"
    parser.add_argument("--toy", choices=list(TOYS), help=text)
    option(parser, "--toy-length", int, "N", "with --toy: most letters of a sequence", default=LENGTH)
    text = "sizes and settings to start from: en-de, or toy with --toy"
    parser.add_argument("--preset", choices=sorted(PRESETS), help=text)
    text = "leave out pairs with more than N tokens on a side"
    option(parser, "--max-length", int, "N", text, default=256)
    text = "translate N validation sentences greedily at each evaluation and log their BLEU; 0 for none "
    text += "(default: %(default)s)"
    option(parser, "--bleu-sentences", int, "N", text, default=BLEU_SENTENCES)
    for name, (_, text) in MAKERS.items():
        option(parser, f"--{name}-share", float, "X", f"add X {text} per pair", dest=name)
    text = "source and target language, for the model card"
    option(parser, "--languages", str, "A,B", text, default="en,de")
    add_run_arguments(parser, TransformerConfig, SIZES)
    parser.set_defaults(run=run)


@in_job
def run(arguments: argparse.Namespace, workers: Workers, device: torch.device, control: RunControl) -> int:
    """Trains a model; ValueError if the data, options or output directory cannot be used."""
    preset = PRESETS[preset_name(arguments.preset, arguments.toy)]
    options = options_of(arguments, preset.options)
    config = config_from(preset.sizes | given(arguments, SIZES))
    resume = workers.agree(lambda: resumes(arguments))
    torch.manual_seed(options.seed)
    exported, data, valid, quality = _data(arguments, preset, config, options.seed, resume, workers)
    config = replace(config, vocab_size=exported.tokenizer.vocab_size, trained_length=data.longest)
    model = NETWORKS[type(config)](config).to(device)
    assert isinstance(model, EncoderDecoder)
    trainer = Trainer(model, data, options, workers)
    exported.card = exported.card or _card(arguments, model)
    return advance(arguments, trainer, exported, valid, control, resume, quality)


def _data(
    arguments: argparse.Namespace,
    preset: Preset,
    config: ModelConfig,
    seed: int,
    resume: bool,
    workers: Workers,
) -> tuple[Exported, EncodedPairs, EncodedPairs, GreedyBleu | None]:
    """Reads and checks the parts to export besides the weights, training and validation pairs, and BLEU's."""
    if not 2 <= arguments.max_length <= config.max_positions:
        raise ValueError(f"--max-length is {arguments.max_length}; choose 2 to {config.max_positions:,}.")
    shares = preset.shares | given(arguments, MAKERS)
    train_pairs, weights, valid_pairs, words = _pairs(arguments, shares, seed)
    texts = chain(words, both_sides(train_pairs))
    at_most = bool(arguments.smaller_vocabulary or arguments.toy)
    exported = workers.agree(lambda: exported_parts(arguments, texts, config.vocab_size, resume, at_most))
    tokenizer = exported.tokenizer
    data = encode_pairs(train_pairs, tokenizer, weights).within(arguments.max_length)
    valid = encode_pairs(valid_pairs, tokenizer).within(arguments.max_length)
    if not len(data) or not len(valid):
        raise DataError(f"No pair has at most {arguments.max_length} tokens per side; raise --max-length.")
    if workers.first and len(data) < len(train_pairs):
        left_out = f"{len(train_pairs) - len(data):,} pairs with more than {arguments.max_length} tokens"
        print(f"Left out {left_out} on a side.", file=sys.stderr)
    quality = greedy_bleu(valid_pairs, tokenizer, arguments.bleu_sentences, arguments.max_length)
    return exported, data, valid, quality


def _card(arguments: argparse.Namespace, model: Network) -> str:
    command = command_line()
    languages = [] if arguments.toy else [each.strip() for each in arguments.languages.split(",")]
    files = [f"toy task: {arguments.toy}"] if arguments.toy else arguments.train
    return training_card(arguments.output.name, languages, command, files, model)


def _pairs(
    arguments: argparse.Namespace, shares: dict[str, float], seed: int
) -> tuple[Sequence[SentencePair], list[float] | None, Sequence[SentencePair], Sequence[str]]:
    """The training pairs with their weights, the validation pairs, and words for the vocabulary alone.

    ValueError if the arguments name no pairs, or both files and a toy task, or a file cannot be used.
    """
    if arguments.toy and (arguments.train or arguments.valid):
        raise ValueError("--toy makes its own pairs; leave out --train and --valid.")
    if arguments.toy:
        toy = toy_data(arguments.toy, arguments.toy_length, seed)
        return toy.train, None, toy.valid, toy.words
    if not (arguments.train and arguments.valid):
        raise ValueError("Give pairs to train on and to evaluate on: --train and --valid, or --toy.")
    pairs, weights = _mixture(arguments.train, shares, seed)
    return pairs, weights, [pair for path in arguments.valid for pair in read_pairs(path)], ()


def _mixture(
    files: list[str], shares: dict[str, float], seed: int
) -> tuple[list[SentencePair], list[float] | None]:
    """The pairs of all files and the extra pairs, with their weights; None if every weight is 1."""
    pairs: list[SentencePair] = []
    weights: list[float] = []
    for file in files:
        path, weight = _weighted(file)
        pairs += augmented(read_pairs(path), shares, seed)
        weights += [weight] * (len(pairs) - len(weights))
    return pairs, None if set(weights) == {1.0} else weights


def _weighted(file: str) -> tuple[str, float]:
    """Splits `FILE:WEIGHT`; an existing file whose name looks like that is not split."""
    path, colon, text = file.rpartition(":")
    if not colon or Path(file).exists():
        return file, 1.0
    try:
        weight = float(text)
    except ValueError:
        return file, 1.0
    if not 0 < weight <= MOST_WEIGHT:
        raise ValueError(f"The weight of {path} is {text}; it must be above 0 and at most {MOST_WEIGHT}.")
    return path, weight
