"""Twins in a folder, opened and checked: models that share their vocabulary and differ in little else."""

from __future__ import annotations

from pathlib import Path

from lab.twins.twins import Twins
from transformer.model.encodings.positions import REGISTRY
from transformer.runs.translator import load_translator
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE
from transformer.text.pairs import DataError, SentencePair, read_pairs

RESULTS_FILE = "results.json"


def read_test(path: Path, most: int | None) -> list[SentencePair]:
    """The pairs to test on."""
    pairs = read_pairs(path)[:most]
    if len(pairs) < 2:
        raise DataError(f"{path}: the comparison needs at least two pairs.")
    return pairs


def load_twins(folder: Path) -> Twins:
    """Every model directory in a folder, by name."""
    configs = sorted(folder.glob(f"*/{CONFIG_FILE}"))
    found = [path.parent for path in configs if (path.parent / WEIGHTS_FILE).exists()]
    if not found:
        raise ValueError(f"There is no model directory in {folder}.")
    order = [*REGISTRY, *(path.name for path in found)]
    return {
        path.name: load_translator(path) for path in sorted(found, key=lambda path: order.index(path.name))
    }


def check_seeds(twins: Twins, seeds: Twins) -> None:
    """Raises ValueError if a model of another seed is not named after its twin, as `rotary-seed2` is."""
    for name in seeds:
        twin, marked, number = name.partition("-seed")
        if twin not in twins or not marked or not number.isdigit():
            raise ValueError(
                f"The model {name} in --seeds is not named after a twin; name its folder TWIN-seed2, with "
                f"TWIN one of {', '.join(twins)}."
            )


def check_same_vocabulary(twins: Twins) -> None:
    """Raises ValueError if two models split texts into different pieces."""
    tokenizers = {name: twin.tokenizer for name, twin in twins.items()}
    pieces = {name: each.source_pieces(range(each.vocab_size)) for name, each in tokenizers.items()}
    first, *others = pieces
    for name in others:
        if pieces[name] != pieces[first]:
            raise ValueError(
                f"The models {first} and {name} have different vocabularies; twins must share one."
            )
