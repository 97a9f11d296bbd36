"""`python -m lab scores`: a model's scores on the test data, as `scores.json` and on its card."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from transformer.commands.arguments import Json, model_command, open_model, percent, write
from transformer.commands.translate import check_lengths, loss_on
from transformer.lenses.scores.gold_links import ERRORS, align_gold
from transformer.lenses.words.alignment import diagonal, score
from transformer.runs.corpus import corpus_scores, translate_batched
from transformer.runs.translator import Translator
from transformer.storage.description import SCORES_FILE, model_digests
from transformer.storage.files import write_json
from transformer.text.links import read_gold
from transformer.text.pairs import SentencePair, read_pairs

BEAM = 4


@dataclass(frozen=True)
class Test:
    """A file of pairs on which every model of the project is scored."""

    name: str  # its name in the tables
    data: str  # the file, relative to the folder of corpora
    dataset: str  # its name in the header of a card; empty if it does not stand there
    type: str  # the short name of that data set on the Hub
    beam: bool = False  # whether it is translated with a beam as well


TATOEBA = "Tatoeba (ManyThings.org edition of 2018-05-13), held-out test"
TESTS = (
    Test("Tatoeba test", "tatoeba-en-de/test.tsv.gz", TATOEBA, "tatoeba", beam=True),
    Test("Tatoeba validation", "tatoeba-en-de/valid.tsv.gz", "", "tatoeba"),
    Test(
        "FLORES-200 devtest",
        "extra-tests/flores200-devtest.en-de.tsv.gz",
        "FLORES-200 devtest",
        "flores_200",
        beam=True,
    ),
    Test("newstest2014", "extra-tests/newstest2014.en-de.tsv.gz", "newstest2014", "wmt14"),
    Test("PUD", "extra-tests/pud.en-de.tsv.gz", "Parallel Universal Dependencies (PUD)", "pud"),
)
GOLD = {"Europarl": "alignments/europarl-en-de.tsv.gz"}
"""Files of links made by hand, by name, relative to the folder of corpora."""
OWN_GOLD, OWN_GOLD_FILE = "own sample", "alignments.tsv"
"""The links made by hand in the folder of samples."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "score the model on the test data that it finds, and write its scores.json"
    parser = model_command(commands, "scores", write_scores, text)
    add_folders(parser)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Declares `--corpora` and `--sample`."""
    parser.add_argument(
        "--corpora",
        type=Path,
        default=Path("../shared/corpora"),
        metavar="DIR",
        help="folder of parallel text (default: %(default)s)",
    )
    parser.add_argument(
        "--sample",
        type=Path,
        default=Path("assets/sample"),
        metavar="DIR",
        help="folder of the bundled sample (default: %(default)s)",
    )


def write_scores(arguments: argparse.Namespace) -> int:
    """`scores`: translates the test data, aligns the gold pairs, and writes `scores.json`.

    Raises:
        ValueError: There is no such directory, or none of the test data are there.
    """
    directory = Path(arguments.model)
    if not directory.is_dir():
        raise ValueError(f"There is no directory {directory} to write into; see `pull --output`.")
    tests = [test for test in TESTS if _is_there(test.name, arguments.corpora / test.data)]
    gold = {name: path for name, path in gold_files(arguments).items() if _is_there(name, path)}
    if not tests:
        raise ValueError(f"None of the test data are in {arguments.corpora}.")
    translator = open_model(arguments)
    values: Json = {
        "model": translator.name,
        "command": f"python -m lab scores --model {arguments.model} --corpora {arguments.corpora}",
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
        "translation": [_translated(arguments, translator, test) for test in tests],
        "alignment": [_aligned(arguments, translator, name, path) for name, path in gold.items()],
    }
    write_json(directory / SCORES_FILE, values)
    write(arguments, values, f"Wrote {directory / SCORES_FILE}.")
    return 0


def _is_there(name: str, path: Path) -> bool:
    if not path.exists():
        print(f"{name} is skipped, because {path} is not there.", file=sys.stderr, flush=True)
    return path.exists()


def gold_files(arguments: argparse.Namespace) -> dict[str, Path]:
    """The files of links made by hand, by name."""
    known = {name: arguments.corpora / path for name, path in GOLD.items()}
    return {OWN_GOLD: arguments.sample / OWN_GOLD_FILE} | known


def _translated(arguments: argparse.Namespace, translator: Translator, test: Test) -> Json:
    path = arguments.corpora / test.data
    pairs = read_pairs(path)
    check_lengths(translator, pairs, str(path))
    found: Json = {"name": test.name, "data": test.data, "sentences": len(pairs)}
    found |= {"loss": loss_on(translator, pairs), "greedy": _scored(translator, pairs, 1)}
    if test.beam:
        found["beam"] = _scored(translator, pairs, BEAM) | {"size": BEAM}
    write(arguments, found, f"{test.name}: BLEU {found['greedy']['bleu']:.1f}, greedy.")
    return found


def _scored(translator: Translator, pairs: Sequence[SentencePair], beam_size: int) -> Json:
    return corpus_scores(translate_batched(translator, [pair.source for pair in pairs], beam_size), pairs)


def _aligned(arguments: argparse.Namespace, translator: Translator, name: str, path: Path) -> Json:
    gold = read_gold(path)
    collected = align_gold(translator, gold)
    found: Json = {"name": name, "data": "/".join(path.parts[-2:]), "pairs": len(gold)}
    found["diagonal"] = round(score(map(diagonal, gold), gold).aer, 4)
    for rows in ERRORS.values():
        heads = {
            (layer, head): each.aer
            for layer, row in enumerate(collected.scores(rows))
            for head, each in enumerate(row)
        }
        best = min(heads, key=lambda place: heads[place])
        found[rows] = {"layer": best[0], "head": best[1], "aer": round(heads[best], 4)}
    least = min(found[rows]["aer"] for rows in ERRORS.values())
    write(arguments, found, f"{name}: alignment error {percent(least)} for the best head.")
    return found
