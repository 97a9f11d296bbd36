"""`python -m transformer generate` and `perplexity`: continues and scores texts with a language model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.batches import forced_log_probs
from transformer.batches import perplexity as perplexity_of
from transformer.commands.arguments import (
    add_beam,
    add_device,
    check_beam_size,
    command,
    line_text,
    option,
    output_file,
    scored,
    standard_input,
    told,
    warn,
    write,
)
from transformer.sampling import Sampling
from transformer.storage.files import write_json
from transformer.text.pairs import DataError, read_texts
from transformer.text_model import LENGTH, InputError
from transformer.translator import Translator, load_language_model


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    text = "continue texts, or the lines of standard input, with a language model"
    parser = _command(commands, "generate", generate, text)
    text = "how the text begins; without one, each line of input"
    parser.add_argument("prompts", nargs="*", metavar="TEXT", help=text)
    add_beam(parser)
    option(parser, "--max-length", int, "N", "most tokens of the text", default=LENGTH)
    parser.add_argument("--sample", action="store_true", help="draw each token instead of taking the best")
    option(parser, "--temperature", float, "T", "with --sample", default=1.0)
    option(parser, "--top-k", int, "K", "with --sample: from the K best tokens")
    option(parser, "--top-p", float, "P", "with --sample: from the best, up to mass P")
    option(parser, "--seed", int, "N", "with --sample", default=0)
    text = "perplexity of a language model per word and per piece"
    parser = _command(commands, "perplexity", perplexity, text)
    option(parser, "--data", str, "FILE", "texts to score, one a line", nargs="+", required=True)
    option(parser, "--output", output_file, "FILE", "also write the numbers as JSON")


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = command(commands, name, run, text)
    parser.add_argument("--model", required=True, metavar="DIR", help="directory, or owner/model on the Hub")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    return parser


def generate(arguments: argparse.Namespace) -> int:
    """`generate`: prints one text per line."""
    check_beam_size(arguments)
    generator = arguments.answers = load_language_model(arguments.model, arguments.device)
    generator.rules = scored(generator.rules, arguments)
    sample = None
    if arguments.sample:
        sample = Sampling(arguments.temperature, arguments.top_k, arguments.top_p, arguments.seed)
    bad = []
    for place, given in enumerate(arguments.prompts or standard_input(), start=1):
        options = {"sample": sample, "max_length": arguments.max_length, "beam_size": arguments.beam_size}
        try:
            found = generator.generate(line_text(given), capture=False, **options)
        except (InputError, DataError) as error:
            bad.append(f"Text {place}: {error}")
            write(arguments, {"text": "", "error": str(error)}, "")
            continue
        values = {
            "text": found.text,
            "prompt": found.prompt,
            "given": found.given,
            "tokens": found.target_tokens,
            "log_probs": [round(value, 5) for value in found.log_probs],
        }
        write(arguments, values, found.text)
        warn(found.notes, f"Text {place}: ")
    return told(bad)


def perplexity(arguments: argparse.Namespace) -> int:
    """`perplexity`: prints the perplexity on each file; DataError if a file has no texts."""
    generator = arguments.answers = load_language_model(arguments.model, arguments.device)
    texts = {path: _texts(path) for path in arguments.data}
    found = {path: _scores(generator, each) for path, each in texts.items()}
    for path, values in found.items():
        write(arguments, {"data": path, **values}, _sentences(path, values))
    if arguments.output is not None:
        write_json(arguments.output, {"data": found})
    return 0


def _texts(path: str) -> list[str]:
    texts = list(read_texts(path))
    if not texts:
        raise DataError(f"{path}: there is no text in this file.")
    return texts


def _scores(generator: Translator, texts: Sequence[str]) -> dict[str, Any]:
    """Sizes of some texts, and the model's perplexity per word and per piece."""
    pieces = [len(generator.ids(text)) for text in texts]
    found = np.array([sum(each) for each in forced_log_probs(generator, texts)])
    return {
        "texts": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "pieces": sum(pieces),
        "per_word": perplexity_of(found, [len(text.split()) for text in texts]),
        "per_piece": perplexity_of(found, pieces),
    }


def _sentences(path: str, values: dict[str, Any]) -> str:
    return (
        f"{path}: {values['texts']:,} texts, {values['words']:,} words, {values['pieces']:,} pieces\n"
        f"  perplexity per word {values['per_word']:.1f}, per piece {values['per_piece']:.1f}"
    )
