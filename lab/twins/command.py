"""`python -m lab positions`: runs the experiments on trained twins and writes one result file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np

from lab.measurement import Folder, Json, Pairs, measurement
from lab.twins.profiles import attention_profiles, costs, learned_tables, position_probes
from lab.twins.twins import (
    BASELINE,
    Scored,
    Twins,
    by_length,
    long_texts,
    score_pairs,
    shuffled_sources,
    source_lengths,
    summary,
    target_lengths,
)
from transformer.model.encodings.positions import REGISTRY
from transformer.model.network import count_parameters
from transformer.runs.translator import Translator, load_translator
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE, model_digests
from transformer.storage.eight_bits import stored_as
from transformer.text.pairs import DataError, SentencePair, read_pairs

RESULTS_FILE = "results.json"
PROBED = 1_000
"""Most pairs whose positions a linear probe reads."""


@measurement(
    RESULTS_FILE, parts=["scores", "lengths", "long", "shuffled", "attention", "probe", "table", "cost"]
)
def positions(
    models: Annotated[Folder, "folder of model directories"],
    data: Annotated[Pairs, "source<TAB>target lines to test on"],
    train: Annotated[Pairs, "pairs that the twins were trained on"],
    seeds: Annotated[Folder | None, "folder of twins trained with other seeds"] = None,
    sentences: Annotated[int | None, "test on the first N pairs only"] = None,
    profiled: Annotated[int, "number of pairs whose attention is summed by distance"] = 200,
) -> Json:
    """Measures costs and benefits of positional encodings on twins that differ in nothing else."""
    twins, others = load_twins(models), {} if seeds is None else load_twins(seeds)
    check_seeds(twins, others)
    everyone, some = twins | others, next(iter(twins.values()))
    check_same_vocabulary(everyone)
    pairs, training = read_test(data, sentences), read_pairs(train)
    lengths = source_lengths(some, training)

    @cache
    def scored() -> dict[str, Scored]:
        return {name: score_pairs(twin, pairs) for name, twin in everyone.items()}

    return {
        "version": 1,
        "baseline": BASELINE,
        "sentences": len(pairs),
        "models": {
            name: describe(twin)
            | {"other_seed": name in others}
            | {"digests": model_digests(folder), "stored": stored_as(folder / WEIGHTS_FILE)}
            for name, twin in everyone.items()
            for folder in [(seeds if seeds and name in others else models) / name]
        },
        "scores": lambda: summary(scored()),
        "lengths": lambda: by_length(scored(), source_lengths(some, pairs)),
        "long": lambda: long_texts(everyone, pairs, int(np.percentile(lengths, 99))),
        "shuffled": lambda: shuffled_sources(everyone, scored(), pairs),
        "attention": lambda: attention_profiles(twins, pairs[:profiled]),
        "probe": lambda: position_probes(twins, pairs[:PROBED]),
        "table": lambda: learned_tables(twins, lengths, target_lengths(some, training)),
        "cost": lambda: costs(twins),
    }


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


def describe(twin: Translator) -> Json:
    """The settings in which twins differ."""
    own = sum(count_parameters(twin.model.stack(side).positions) for side in twin.config.stacks)
    return {
        "positions": twin.config.positions,
        "norm": twin.config.norm,
        "parameters": count_parameters(twin.model),
        "position_parameters": own,
    }
