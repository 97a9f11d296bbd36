"""Facts about heads (`heads.json`): where each head looks, measured over a fixed sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from transformer.lenses.alignment import AlignmentScore, GoldPair, Links, attention_links, diagonal, score
from transformer.lenses.reading import Rows
from transformer.model.config import TransformerConfig
from transformer.model.sites import AttentionKind
from transformer.study.statistics import Floats, Totals, Traced, sentence_totals, trace_of
from transformer.trace.value_norms import Projections

Statistics = dict[str, float]
Grid = list[list[Statistics]]
RESTING_MASS = 0.5
ERRORS: dict[str, Rows] = {"aer": "predicted", "aer_read": "read"}
"""Maps each alignment error to the rows it uses: those that predict a word, or those that read it."""


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


class CrossAlignments:
    """Collects the word alignments of every cross-attention head, for both kinds of ``ERRORS``."""

    def __init__(self, config: TransformerConfig) -> None:
        n_layers = config.sites[AttentionKind.CROSS].n_layers
        self._found: dict[Rows, list[list[list[Links]]]] = {
            rows: [[[] for _ in range(config.n_heads)] for _ in range(n_layers)] for rows in ERRORS.values()
        }
        self._gold: list[GoldPair] = []

    def add(self, translation: Traced, gold: GoldPair) -> None:
        """Adds one forced gold target."""
        trace = trace_of(translation)
        for rows, layers in self._found.items():
            for layer, heads in enumerate(layers):
                links = attention_links(
                    trace.weights(AttentionKind.CROSS, layer),
                    translation.source_tokens,
                    translation.target_tokens,
                    rows=rows,
                )
                for head, found in zip(heads, links, strict=True):
                    head.append(found)
        self._gold.append(gold)

    def scores(self, rows: Rows) -> list[list[AlignmentScore]]:
        """One score per layer and head; `rows` as in `attention_links`."""
        return [[score(found, self._gold) for found in heads] for heads in self._found[rows]]

    def errors(self) -> dict[str, Floats]:
        """`aer`, `aer_read` and the baseline `aer_diagonal`, over all pairs: each (layers, heads)."""
        found = {
            name: np.array([[each.aer for each in heads] for heads in self.scores(rows)], np.float32)
            for name, rows in ERRORS.items()
        }
        baseline = score(map(diagonal, self._gold), self._gold).aer
        return found | {"aer_diagonal": np.full_like(found["aer"], baseline)}

    def pair_errors(self) -> Floats:
        """The `aer` of each single pair (pairs, layers, heads)."""
        return np.array(
            [
                [[score([head[i]], [pair]).aer for head in heads] for heads in self._found["predicted"]]
                for i, pair in enumerate(self._gold)
            ],
            np.float32,
        )


def measure_heads(
    config: TransformerConfig,
    translations: Iterable[Traced],
    aligned: Iterable[tuple[Traced, GoldPair]] = (),
    projections: Projections | None = None,
) -> dict[str, Any]:
    """Statistics of all heads, and the heads to open first.

    Args:
        config: Config of the model.
        translations: Translations to measure patterns on; at least one.
        aligned: Forced gold targets with their links, for `aer`, `aer_read` and `aer_diagonal`; may be empty.
        projections: `output_projections(model)`, for `contribution`.

    Returns:
        `default` and `heads` of `heads.json`; layers and heads count from 0.
    """
    totals = dict.fromkeys(config.sites, Totals({}, {}))
    for translation in translations:
        for kind in totals:
            totals[kind] += sentence_totals(translation, kind, projections)
    grids = {kind.value: grid(total) for kind, total in totals.items()}
    _add_alignments(grids[AttentionKind.CROSS.value], config, aligned)
    return {"default": {kind: list(choose_head(grid)) for kind, grid in grids.items()}, "heads": grids}


def _add_alignments(
    grid: Grid, config: TransformerConfig, aligned: Iterable[tuple[Traced, GoldPair]]
) -> None:
    alignments = CrossAlignments(config)
    empty = True
    for translation, gold in aligned:
        alignments.add(translation, gold)
        empty = False
    if empty:
        return
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
