"""Statistics of all heads as a table (`heads.json`), and the heads to open first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from explorer.lenses.heads.statistics import HeadsOfKind, Sums, added, means
from explorer.lenses.words.gold_links import CrossAlignments
from transformer.config import AttentionKind, Head
from transformer.decoding import OverflowedError
from transformer.model import Projections
from transformer.run import Translation
from transformer.translator import InputError

Grid = list[list[dict[str, float]]]
"""By layer and head, the statistics."""
RESTING_MASS = 0.5
MOST_TOKENS = 40
"""Of a translation by which the first heads of an unknown model are chosen."""


def grid(sums: Sums) -> Grid:
    """The means per layer and head, rounded to four decimals."""
    found, (layers, heads) = means(sums), next(iter(sums.values()))[0].shape
    return [
        [{name: round(float(each[layer, head]), 4) for name, each in found.items()} for head in range(heads)]
        for layer in range(layers)
    ]


def kind_sums(run: Translation, projections: Projections | None = None) -> dict[AttentionKind, Sums]:
    """The sums of one sentence for each kind of attention; `projections` for `contribution`."""
    return {kind: HeadsOfKind.of(run, kind, projections).sums() for kind in run.config.sites}


def grids(sentences: Iterable[dict[AttentionKind, Sums]]) -> dict[AttentionKind, Grid]:
    """The means of all sentences by kind; empty without sentences."""
    read = [*sentences]
    kinds = read[0] if read else ()
    return {kind: grid(added(each[kind] for each in read)) for kind in kinds}


def measure_heads(
    sentences: Iterable[dict[AttentionKind, Sums]], alignments: CrossAlignments | None = None
) -> dict[str, Any]:
    """Statistics of all heads, and those to open first; gold alignments add errors, and the `aligner`."""
    heads = {kind.value: table for kind, table in grids(sentences).items()}
    measured: dict[str, Any] = {"heads": heads}
    if alignments is not None and alignments.pairs:
        errors = grid({name: (each, 1) for name, each in alignments.errors().items()})
        for row, more in zip(heads[AttentionKind.CROSS.value], errors, strict=True):
            row[:] = [head | error for head, error in zip(row, more, strict=True)]
        best, error = alignments.best()
        measured["aligner"] = {"heads": best.heads, "rows": best.rows, "aer": round(error, 4)}
    return {"default": {kind: list(choose_head(table)) for kind, table in heads.items()}} | measured


def choose_head(heads: Grid, sharp: bool = False) -> Head:
    """Layer and head to open first: by error, else neighbours, those that rest last; or the sharpest."""

    def merit(place: Head) -> tuple[bool, float]:
        head = heads[place[0]][place[1]]
        if sharp:
            rests = ("special_mass", "punctuation_mass", "first_mass")
            return True, head.get("peak", 0.0) - sum(head.get(name, 0.0) for name in rests)
        awake = max(head.get("eos_mass", 0.0), head.get("first", 0.0)) <= RESTING_MASS
        points = max(head.get("previous", 0.0), head.get("next", 0.0))
        return awake, -head["aer"] if "aer" in head else points

    return max(((layer, i) for layer, row in enumerate(heads) for i in range(len(row))), key=merit)


def first_heads(model: Any, texts: Iterable[str]) -> dict[str, Head]:
    """By kind, the head of an unknown model to open first, by its runs of some texts; or empty."""
    sites, limit = model.config.sites, min(MOST_TOKENS, model.config.max_positions)

    def runs() -> Iterable[Translation]:
        for text in texts:
            try:
                yield model.translate(text, beam_size=1, max_length=limit)
            except (InputError, OverflowedError):
                continue

    tables = grids(map(kind_sums, runs()))
    return {kind.value: choose_head(table, not sites[kind].own_keys) for kind, table in tables.items()}
