"""`python -m lab scores`: a model's scores on the test data, as `scores.json` and on its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from lab.measurement import Folder, Json, Subject, measurement, report
from transformer.commands.arguments import percent
from transformer.commands.translate import check_lengths, loss_on
from transformer.lenses.scores.gold_links import ERRORS, align_gold
from transformer.lenses.words.alignment import diagonal, score
from transformer.runs.corpus import corpus_scores, translate_batched
from transformer.runs.translator import Translator
from transformer.storage.description import SCORES_FILE
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


Corpora = Annotated[Folder, "folder of parallel text"]
Sample = Annotated[Folder, "folder of the bundled sample"]
CORPORA, SAMPLE = Path("../shared/corpora"), Path("assets/sample")


@measurement(SCORES_FILE)
def scores(model: Subject, corpora: Corpora = CORPORA, sample: Sample = SAMPLE) -> Json:
    """Translates the test data that are there, and aligns the pairs with links made by hand."""
    tests = [test for test in TESTS if _is_there(test.name, corpora / test.data)]
    files = {OWN_GOLD: sample / OWN_GOLD_FILE} | {name: corpora / path for name, path in GOLD.items()}
    gold = {name: path for name, path in files.items() if _is_there(name, path)}
    if not tests:
        raise ValueError(f"None of the test data are in {corpora}.")
    return {
        "translation": [_translated(model.translator, test, corpora / test.data) for test in tests],
        "alignment": [_aligned(model.translator, name, path) for name, path in gold.items()],
    }


def _is_there(name: str, path: Path) -> bool:
    if not path.exists():
        report(f"{name} is skipped, because {path} is not there.")
    return path.exists()


def _translated(translator: Translator, test: Test, path: Path) -> Json:
    pairs = read_pairs(path)
    check_lengths(translator, pairs, str(path))
    found: Json = {"name": test.name, "data": test.data, "sentences": len(pairs)}
    found |= {"loss": loss_on(translator, pairs), "greedy": _scored(translator, pairs, 1)}
    if test.beam:
        found["beam"] = _scored(translator, pairs, BEAM) | {"size": BEAM}
    report(f"{test.name}: BLEU {found['greedy']['bleu']:.1f}, greedy.")
    return found


def _scored(translator: Translator, pairs: Sequence[SentencePair], beam_size: int) -> Json:
    return corpus_scores(translate_batched(translator, [pair.source for pair in pairs], beam_size), pairs)


def _aligned(translator: Translator, name: str, path: Path) -> Json:
    gold = read_gold(path)
    collected = align_gold(translator, gold)
    found: Json = {"name": name, "data": "/".join(path.parts[-2:]), "pairs": len(gold)}
    found["diagonal"] = round(score(map(diagonal, gold), gold).aer, 4)
    for rows in ERRORS.values():
        errors = np.array([[each.aer for each in heads] for heads in collected.scores(rows)])
        layer, head = divmod(int(errors.argmin()), errors.shape[1])
        found[rows] = {"layer": layer, "head": head, "aer": round(float(errors.min()), 4)}
    least = min(found[rows]["aer"] for rows in ERRORS.values())
    report(f"{name}: alignment error {percent(least)} for the best head.")
    return found
