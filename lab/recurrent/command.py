"""`python -m lab recurrent`: measures recurrent twins beside a Transformer, in one result file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from lab.cost.measuring import machine
from lab.measurement import Folder, Gold, Json, Pairs, measurement, one_thread
from lab.recurrent.aligning import alignment_errors
from lab.recurrent.speed import LENGTHS, measure_speed
from lab.twins.command import RESULTS_FILE, check_same_vocabulary, load_twins, read_test
from lab.twins.twins import Scored, Twins, by_length, score_pairs, source_lengths, summary
from transformer.commands.arguments import shown
from transformer.model.config import ModelConfig, RecurrentConfig
from transformer.model.network import count_parameters
from transformer.runs.translator import load_translator
from transformer.storage.description import WEIGHTS_FILE, model_digests
from transformer.text.links import read_gold


@measurement(RESULTS_FILE, parts=["scores", "lengths", "alignments", "speed"])
def recurrent(
    models: Annotated[Folder, "folder of recurrent model directories"],
    reference: Annotated[Folder, "the Transformer to compare with"],
    data: Annotated[Pairs, "source<TAB>target lines to test on"],
    alignments: Annotated[tuple[Gold, ...], "source<TAB>target<TAB>links lines, for alignment errors"] = (),
    sentences: Annotated[int | None, "test on the first N pairs only"] = None,
    lengths: Annotated[tuple[int, ...], "lengths at which speed is timed"] = LENGTHS,
    repeats: Annotated[int, "runs of each timing"] = 5,
) -> Json:
    """Compares recurrent twins with a Transformer: translation by length, alignment, speed."""
    twins = _opened(models, reference)
    pairs, name = read_test(data, sentences), next(reversed(twins))

    @cache
    def scored() -> dict[str, Scored]:
        return {twin: score_pairs(found, pairs) for twin, found in twins.items()}

    @one_thread()
    def speed() -> Json:
        found = {"machine": machine(), **measure_speed(twins, name, sorted(set(lengths)), repeats)}
        _print_ratios(found)
        return found

    return {
        "version": 1,
        "reference": name,
        "models": {
            twin: {
                "recurrent": _is_recurrent(found.config),
                "parameters": count_parameters(found.model),
                "bytes": (folder / WEIGHTS_FILE).stat().st_size,
                "digests": model_digests(folder),
            }
            for twin, found in twins.items()
            for folder in [reference if twin == name else models / twin]
        },
        "sentences": len(pairs),
        "scores": lambda: summary(scored(), name),
        "lengths": lambda: by_length(scored(), source_lengths(twins[name], pairs), name),
        "alignments": lambda: {
            shown(path): alignment_errors(twins, read_gold(path), name) for path in alignments
        },
        "speed": speed,
    }


def _opened(models: Path, reference: Path) -> Twins:
    """The recurrent models of the folder by name, then the reference."""
    found = load_twins(models)
    if other := [name for name, twin in found.items() if not _is_recurrent(twin.config)]:
        raise ValueError(f"The model {other[0]} in {models} is not recurrent.")
    other_sort = load_translator(reference)
    if other_sort.name in found:
        raise ValueError(f"The reference is named {other_sort.name}, as one of the models is.")
    twins = found | {other_sort.name: other_sort}
    check_same_vocabulary(twins)
    return twins


def _is_recurrent(config: ModelConfig) -> bool:
    """True for the config of a recurrent twin."""
    return isinstance(config, RecurrentConfig)


def _print_ratios(speed: Json) -> None:
    """Prints each model's speed as a ratio to the reference's, by length."""
    _print_row("tokens in the sentence", [f"{n}" for n in speed["lengths"]])
    for name, title in (("training", "tokens/s in training"), ("writing", "ms per token written")):
        for model, found in speed[name].items():
            _print_row(f"{title}, {model}, ratio", [f"{ratio:.2f}" for ratio in found["ratio"]])


def _print_row(title: str, cells: Sequence[str]) -> None:
    print(f"{title:48}" + "".join(f"{cell:>8}" for cell in cells))
