"""`python -m transformer distil`: a student learns from what a teacher wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import nn

from transformer.commands.arguments import command_line, option
from transformer.commands.training.running import add_run_arguments, advance, in_job, options_of, resumes
from transformer.hub.sources import open_model
from transformer.model.config import DecoderUnit, TransformerConfig
from transformer.model.transformer import Transformer
from transformer.storage.card import training_card
from transformer.storage.files import CheckpointError
from transformer.text.pairs import DataError, SentencePair, filled_lines
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import EncodedPairs, encode_pairs
from transformer.training.distributed import Workers
from transformer.training.objective import SummedLoss, TaughtLoss
from transformer.training.options import TrainingOptions
from transformer.training.runs.control import RunControl
from transformer.training.runs.distilled import begin, faithful, learning_rates, student_config
from transformer.training.runs.files import Exported, load_exported
from transformer.training.runs.quality import greedy_bleu
from transformer.training.trainer import Trainer

OPTIONS = {
    "steps": 6000,
    "batch_positions": 2000,
    "learning_rate": 1e-3,
    "warmup": 100,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
}
FROZEN = "encoder,embedding,output_bias"
"""Parts that stay the teacher's."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = commands.add_parser("distil", help="train a decoder on the translations of another model")
    text = "the model to learn from: a directory, or a Hub name"
    option(parser, "--teacher", str, "MODEL", text, required=True)
    text = "source<TAB>teacher's translation lines (.gz too); further columns are left out"
    option(parser, "--train", str, "FILE", text, nargs="+", required=True)
    option(parser, "--valid", str, "FILE", "such lines to evaluate on", nargs="+", required=True)
    option(parser, "--n-decoder-layers", int, "N", "layers; as many as the teacher's")
    text, units = "what mixes the positions of a decoder layer (default: %(default)s)", get_args(DecoderUnit)
    parser.add_argument("--decoder-unit", choices=units, default="self_attention", help=text)
    text = "begin the decoder's layers with random weights instead of the teacher's"
    parser.add_argument("--fresh-decoder", action="store_true", help=text)
    text = "weights that stay as they are, by the beginnings of their names (default: %(default)s)"
    option(parser, "--frozen", str, "NAME,…", text, default=FROZEN)
    text = "factor on the learning rate of weights that the teacher had (default: %(default)s)"
    option(parser, "--taken-rate", float, "X", text, default=0.2)
    text = "what to learn: the words that the teacher chose, or how probable all were to it, for which "
    text += "encoder, embedding and output_bias must stay frozen (default: %(default)s)"
    parser.add_argument("--targets", choices=("text", "distributions"), default="text", help=text)
    option(parser, "--max-length", int, "N", "most tokens on a side", default=128)
    option(parser, "--bleu-sentences", int, "N", "as in `train`", default=200)
    add_run_arguments(parser, TransformerConfig, {})
    parser.set_defaults(run=run)


@in_job
def run(arguments: argparse.Namespace, workers: Workers, device: torch.device, control: RunControl) -> int:
    """Trains a student; ValueError if the teacher, data, options or output directory cannot be used."""
    options = options_of(arguments, OPTIONS)
    resume = workers.agree(lambda: resumes(arguments))
    _, taught = open_model(arguments.teacher)
    teacher, tokenizer = taught.model, taught.tokenizer
    if not isinstance(teacher, Transformer) or not isinstance(tokenizer, Tokenizer):
        raise CheckpointError(
            f"{arguments.teacher} is no Transformer with one vocabulary for both languages."
        )
    torch.manual_seed(options.seed)
    pairs, valid_pairs = _pairs(arguments.train), _pairs(arguments.valid)
    data, valid = (_encoded(each, tokenizer, arguments.max_length) for each in (pairs, valid_pairs))
    layers = arguments.n_decoder_layers or teacher.config.n_decoder_layers
    config = student_config(teacher.config, layers, arguments.decoder_unit)
    student = Transformer(replace(config, trained_length=data.longest))
    taken = begin(student, teacher, arguments.fresh_decoder)
    names = [name for name, _ in student.named_parameters()]
    frozen = tuple(arguments.frozen.split(","))
    rates = learning_rates(names, taken, frozen, arguments.taken_rate)
    if arguments.targets == "distributions" and not {*FROZEN.split(",")} <= {*frozen}:
        raise ValueError(f"--targets distributions needs --frozen {FROZEN}: student and teacher share them.")
    summed = _summed(arguments.targets, teacher.to(device))
    trainer = Trainer(student.to(device), data, options, workers, rates, summed)
    exported = load_exported(arguments.output) if resume else Exported(tokenizer)
    exported.card = exported.card or training_card(
        arguments.output.name, [], command_line(), [arguments.teacher, *arguments.train], student
    )
    quality = greedy_bleu(valid_pairs, tokenizer, arguments.bleu_sentences, arguments.max_length)
    return advance(arguments, trainer, exported, valid, control, resume, quality)


def _summed(targets: str, teacher: Transformer) -> Callable[[Any, TrainingOptions, torch.dtype], nn.Module]:
    if targets == "text":
        return SummedLoss
    return lambda model, _, dtype: TaughtLoss(model, teacher, dtype)


def _pairs(paths: Sequence[str]) -> list[SentencePair]:
    """Sentences and what the teacher wrote, from files whose first two columns they are."""
    lines = [(path, number, line.split("\t")) for path in paths for number, line in filled_lines(path)]
    for path, number, columns in lines:
        if len(columns) < 2:
            raise DataError(f"{path}:{number}: expected source, tab, translation; found 1 column.")
    return list(faithful(SentencePair(columns[0], columns[1]) for _, _, columns in lines))


def _encoded(pairs: Sequence[SentencePair], tokenizer: Tokenizer, max_length: int) -> EncodedPairs:
    found = encode_pairs(pairs, tokenizer).within(max_length)
    if not len(found):
        raise DataError(f"No pair has at most {max_length} tokens per side; raise --max-length.")
    return found
