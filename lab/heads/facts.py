"""Facts about heads (`heads.json`): where each head looks, measured over a fixed sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.heads.statistics import Totals, sentence_totals
from transformer.lenses.scores.gold_links import CrossAlignments, Traced
from transformer.model.sites import AttentionKind
from transformer.trace.value_norms import Projections

Statistics = dict[str, float]
Grid = list[list[Statistics]]
RESTING_MASS = 0.5


def grid(totals: Totals) -> Grid:
    """The means per layer and head, rounded to four decimals."""
    means = totals.means()
    n_layers, n_heads = next(iter(totals.sums.values())).shape
    return [
        [
            {name: round(float(values[layer, head]), 4) for name, values in means.items()}
            for head in range(n_heads)
        ]
        for layer in range(n_layers)
    ]


def kind_totals(translation: Traced, projections: Projections | None = None) -> dict[AttentionKind, Totals]:
    """The totals of one sentence for each kind of attention; `projections` for `contribution`."""
    return {kind: sentence_totals(translation, kind, projections) for kind in translation.config.sites}


def measure_heads(
    sentences: Iterable[dict[AttentionKind, Totals]],  # `kind_totals` of each sentence; at least one
    # forced gold targets with their links, for `aer`, `aer_read` and `aer_diagonal`
    alignments: CrossAlignments | None = None,
) -> dict[str, Any]:
    """Statistics of all heads, and the heads to open first.

    Returns:
        `default`, `heads` and, with gold pairs, `aligner` of `heads.json`; layers and heads count from 0.
    """
    totals: dict[AttentionKind, Totals] = {}
    for each in sentences:
        totals = {kind: totals.get(kind, Totals({}, {})) + found for kind, found in each.items()}
    grids = {kind.value: grid(total) for kind, total in totals.items()}
    found: dict[str, Any] = {"heads": grids}
    if alignments is not None and alignments.pairs:
        _add_errors(grids[AttentionKind.CROSS.value], alignments)
        best, error = alignments.best()
        found["aligner"] = {"heads": best.heads, "rows": best.rows, "aer": round(error, 4)}
    return {"default": {kind: list(choose_head(grid)) for kind, grid in grids.items()}} | found


def _add_errors(grid: Grid, alignments: CrossAlignments) -> None:
    for name, values in alignments.errors().items():
        for heads, errors in zip(grid, values.tolist(), strict=True):
            for head, error in zip(heads, errors, strict=True):
                head[name] = round(error, 4)


def choose_head(grid: Grid) -> tuple[int, int]:
    """The head to open first: lowest alignment error, else clearest neighbour pattern; never a resting head.

    A head rests if over half of its weight is on `</s>`, or if over half of its rows point at the first key.

    Returns:
        Layer and head, from 0.
    """
    places = [(layer, head) for layer, heads in enumerate(grid) for head in range(len(heads))]

    def rests(place: tuple[int, int]) -> bool:
        found = grid[place[0]][place[1]]
        return max(found.get("eos_mass", 0.0), found.get("first", 0.0)) > RESTING_MASS

    def merit(place: tuple[int, int]) -> float:
        found = grid[place[0]][place[1]]
        if "aer" in found:
            return -found["aer"]
        return max(found.get("previous", 0.0), found.get("next", 0.0))

    return max([place for place in places if not rests(place)] or places, key=merit)
