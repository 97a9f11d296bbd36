"""`python -m lab scores`: a model's scores on the test data, as `scores.json` and on its card."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from lab.measurement import Folder, Json, Subject, measurement, report
from lab.models.corpora import OWN_GOLD, Test, data_of
from lenses.words.alignment import diagonal, score
from lenses.words.gold_links import ERRORS, align_gold
from transformer.commands.arguments import percent
from transformer.commands.translate import check_lengths, loss_on
from transformer.runs.bootstrap import bleu, bleu_statistics, compare
from transformer.runs.corpus import corpus_scores, translate_batched
from transformer.runs.translator import Translator, load_translator
from transformer.storage.description import SCORES_FILE
from transformer.text.links import read_gold
from transformer.text.numbers import number
from transformer.text.pairs import SentencePair, read_pairs

BEAM = 4
Corpora = Annotated[Folder, "folder of parallel text"]
Sample = Annotated[Folder, "folder of the bundled sample"]
CORPORA, SAMPLE = Path("../shared/corpora"), Path("assets/sample")


@measurement(SCORES_FILE)
def scores(
    model: Subject,
    corpora: Corpora = CORPORA,
    sample: Sample = SAMPLE,
    against: Annotated[Folder | None, "another model, whose greedy BLEU is compared with this one's"] = None,
) -> Json:
    """Translates the test data that are there, and aligns the pairs with links made by hand.

    "against" is the BLEU of both models and their difference, with 95 % intervals of the paired bootstrap
    over sentences.
    """
    data = data_of(model.directory)
    tests = [test for test in data.tests if _is_there(test.name, corpora / test.data)]
    files = {OWN_GOLD: sample / data.own_gold, data.gold[0]: corpora / data.gold[1]}
    gold = {name: path for name, path in files.items() if _is_there(name, path)}
    if not tests:
        raise ValueError(f"None of the test data are in {corpora}.")
    other = None if against is None else load_translator(against)
    return {
        "translation": [_translated(model.translator, test, corpora / test.data, other) for test in tests],
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


def _translated(translator: Translator, test: Test, path: Path, other: Translator | None = None) -> Json:
    pairs = without_chosen(read_pairs(path), test.chosen)
    check_lengths(translator, pairs, str(path))
    found: Json = {"name": test.name, "data": test.data, "sentences": len(pairs)}
    outputs = _outputs(translator, pairs)
    found |= {"loss": loss_on(translator, pairs), "greedy": corpus_scores(outputs, pairs)}
    if test.beam:
        found["beam"] = corpus_scores(_outputs(translator, pairs, BEAM), pairs) | {"size": BEAM}
    if other is not None:
        found["against"] = compared(outputs, _outputs(other, pairs), pairs) | {"model": other.name}
        gap = found["against"]["difference"]
        said = ", ".join(number(gap[end], "+.1f") for end in ("value", "low", "high"))
        report(f"{test.name}: BLEU against {other.name}: {said} (difference, 95 % interval).")
    report(f"{test.name}: BLEU {found['greedy']['bleu']:.1f}, greedy.")
    return found


def _outputs(translator: Translator, pairs: Sequence[SentencePair], beam_size: int = 1) -> list[str]:
    return translate_batched(translator, [pair.source for pair in pairs], beam_size)


def compared(outputs: Sequence[str], others: Sequence[str], pairs: Sequence[SentencePair]) -> Json:
    """BLEU of two models on the same sentences, "own" and "other", and their "difference", first − second.

    Each is a value with the 95 % interval over shared resamples.
    """
    references = [pair.target for pair in pairs]
    tables = {"own": bleu_statistics(outputs, references), "other": bleu_statistics(others, references)}
    found = compare(tables, bleu, "other")
    return {name: each["value"] for name, each in found.items()} | {"difference": found["own"]["difference"]}


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
