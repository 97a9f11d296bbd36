"""`python -m lab text`: plain text for a language model, from the source side of sentence pairs."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.texts.joined import joined
from lab.texts.plain_text import Parts, distinct, parts, shuffled
from transformer.commands.arguments import command_line, shown
from transformer.storage.files import write_atomically, write_json
from transformer.text.pairs import read_pairs

REPORT_FILE = "text.json"


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "write the source sentences of pairs as plain text for a language model, with held-out parts"
    parser: argparse.ArgumentParser = commands.add_parser("text", help=text, description=text)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="source<TAB>target lines (.gz too)"
    )
    parser.add_argument(
        "--test", nargs="*", default=[], metavar="FILE", help="pairs whose sources are held out as well"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="directory to write")
    parser.add_argument(
        "--held-out", type=int, default=2000, metavar="N", help="sentences of each part (default: 2000)"
    )
    parser.add_argument(
        "--join",
        action="store_true",
        help="also write joined.txt.gz: the training sentences, every second one joined to others",
    )
    parser.set_defaults(run=write_text)


def write_text(arguments: argparse.Namespace) -> int:
    """`text`: writes `train`, `valid`, `heldout` and `test` (all `.txt.gz`), and their sizes as JSON."""
    read = {shown(path): [pair.source for pair in read_pairs(path)] for path in arguments.data}
    sources = distinct(read)
    tests = [pair.source for path in arguments.test for pair in read_pairs(path)]
    test = shuffled(distinct({"": tests})[""])
    found = parts(sources, arguments.held_out, test)
    arguments.output.mkdir(parents=True, exist_ok=True)
    written = {"train": found.train, "valid": found.valid, "heldout": found.heldout, "test": tuple(test)}
    if arguments.join:
        written["joined"] = tuple(joined(found.train))
    for name, texts in written.items():
        write_lines(arguments.output / f"{name}.txt.gz", texts)
        print(f"{name}: {len(texts):,} sentences, {n_words(texts):,} words.")
    print(f"Left out as near duplicates of held-out sentences: {sum(found.near.values()):,}.")
    write_json(arguments.output / REPORT_FILE, _report(read, sources, found, written))
    return 0


def write_lines(path: Path, texts: Sequence[str]) -> None:
    """Writes packed lines; the same lines give the same bytes."""
    write_atomically(path, gzip.compress("".join(f"{text}\n" for text in texts).encode(), 6, mtime=0))


def n_words(texts: Sequence[str]) -> int:
    """Number of words, parted by white space."""
    return sum(len(text.split()) for text in texts)


def _report(
    read: dict[str, list[str]],
    sources: dict[str, list[str]],
    found: Parts,
    written: dict[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Sizes of the sources and of the parts, and the command."""
    rows = {
        name: {"lines": len(read[name]), "distinct": len(sources[name]), "near_held_out": found.near[name]}
        for name in sources
    }
    sizes = {name: {"sentences": len(texts), "words": n_words(texts)} for name, texts in written.items()}
    return {"command": command_line("lab"), "sources": rows, "parts": sizes}
