"""`python -m lab scores`: a model's scores on the test data, as `scores.json` and on its card."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from lab.measurement import Folder, Json, Subject, measurement, report
from lab.models.corpora import OWN_GOLD, Test, data_of
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
Corpora = Annotated[Folder, "folder of parallel text"]
Sample = Annotated[Folder, "folder of the bundled sample"]
CORPORA, SAMPLE = Path("../shared/corpora"), Path("assets/sample")


@measurement(SCORES_FILE)
def scores(model: Subject, corpora: Corpora = CORPORA, sample: Sample = SAMPLE) -> Json:
    """Translates the test data that are there, and aligns the pairs with links made by hand."""
    data = data_of(model.directory)
    tests = [test for test in data.tests if _is_there(test.name, corpora / test.data)]
    files = {OWN_GOLD: sample / data.own_gold, data.gold[0]: corpora / data.gold[1]}
    gold = {name: path for name, path in files.items() if _is_there(name, path)}
    if not tests:
        raise ValueError(f"None of the test data are in {corpora}.")
    return {
        "translation": [_translated(model.translator, test, corpora / test.data) for test in tests],
        "alignment": [_aligned(model.translator, name, path) for name, path in gold.items()],
    }


def without_chosen(pairs: Sequence[SentencePair], chosen: int) -> list[SentencePair]:
    """The pairs without the first ones by the SHA-256 of their sources; pairs of one source stay together.

    ``chosen`` is the least number of pairs to leave out.
    """
    order = sorted(pairs, key=lambda pair: hashlib.sha256(pair.source.encode()).hexdigest())
    while 0 < chosen < len(order) and order[chosen - 1].source == order[chosen].source:
        chosen += 1
    left_out = {pair.source for pair in order[:chosen]}
    return [pair for pair in pairs if pair.source not in left_out]


def _is_there(name: str, path: Path) -> bool:
    if not path.exists():
        report(f"{name} is skipped, because {path} is not there.")
    return path.exists()


def _translated(translator: Translator, test: Test, path: Path) -> Json:
    pairs = without_chosen(read_pairs(path), test.chosen)
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
