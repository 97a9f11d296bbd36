"""`python -m transformer ngram`: the perplexity of a Kneser–Ney n-gram model of a model's pieces."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from transformer.storage.description import TOKENIZER_FILE
from transformer.study.bootstrap import Cell
from transformer.study.language.kneser_ney import KneserNey, train
from transformer.study.language.perplexity import per_piece, per_word, perplexities
from transformer.text.pairs import DataError, read_texts
from transformer.text.vocabulary import Tokenizer


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "perplexity of a modified Kneser-Ney n-gram model, to compare a language model with"
    parser: argparse.ArgumentParser = commands.add_parser("ngram", help=text, description=text)
    parser.add_argument(
        "--model", required=True, type=Path, metavar="DIR", help="model directory; gives the pieces"
    )
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE", help="texts to count, one a line")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="texts to score, one a line")
    parser.add_argument(
        "--order", type=int, default=5, metavar="N", help="pieces of the longest n-grams (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """`ngram`: prints one line a file.

    Raises:
        ValueError: A file cannot be used, or the order is below 1.
    """
    tokenizer = Tokenizer.load(arguments.model / TOKENIZER_FILE)
    texts = [text for path in arguments.text for text in read_texts(path)]
    model = train(tokenizer.encode_all(texts), tokenizer.vocab_size, arguments.order)
    for path in arguments.data:
        found = scores(model, tokenizer, path)
        line = json.dumps({"data": path, "order": arguments.order, **found})
        print(line if arguments.json else f"{path}: {_sentence(found)}", flush=True)
    return 0


def scores(model: KneserNey, tokenizer: Tokenizer, path: str) -> dict[str, Any]:
    """Sizes of a file of texts and the model's perplexity on it, per word and per piece.

    Raises:
        DataError: The file cannot be used or has no texts.
    """
    texts = list(read_texts(path))
    if not texts:
        raise DataError(f"{path}: there is no text in this file.")
    ids = tokenizer.encode_all(texts)
    logs, pieces = model.log_probs(ids), [len(each) for each in ids]
    tables = {"per_word": per_word(logs, texts), "per_piece": per_piece(logs, pieces)}
    cells = {name: perplexities({name: table})[name]["value"] for name, table in tables.items()}
    words = sum(len(text.split()) for text in texts)
    return {"texts": len(texts), "words": words, "pieces": sum(pieces), **cells}


def _sentence(found: dict[str, Any]) -> str:
    return (
        f"perplexity per word {_shown(found['per_word'])}, per piece {_shown(found['per_piece'])}; "
        f"{found['texts']:,} texts, {found['words']:,} words, {found['pieces']:,} pieces."
    )


def _shown(cell: Cell) -> str:
    return f"{cell['value']:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]"
