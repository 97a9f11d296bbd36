"""Facts about heads (`heads.json`): where each head looks, measured over a fixed sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from transformer.lenses.alignment import Aligner, AlignmentScore, attention_links, diagonal, score
from transformer.lenses.reading import Rows
from transformer.model.config import ModelConfig
from transformer.model.sites import AttentionKind
from transformer.study.statistics import Floats, Totals, Traced, sentence_totals, trace_of
from transformer.text.links import GoldPair, Links
from transformer.trace.value_norms import Projections
from transformer.training.distributed import ALONE, Workers
from transformer.translate.translator import Translator

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
    """Collects the word alignments of cross-attention: of every head and mean, for both kinds of ``ERRORS``.

    The means go over the heads of each layer, and over all heads.
    """

    def __init__(self, config: ModelConfig) -> None:
        layers = range(config.sites[AttentionKind.CROSS].n_layers)
        self._shape = len(layers), config.n_heads
        heads = [[(layer, head) for head in range(config.n_heads)] for layer in layers]
        every = [each for layer in heads for each in layer]
        self._sources = tuple(dict.fromkeys([*((each,) for each in every), *map(tuple, heads), tuple(every)]))
        self._found: dict[Aligner, list[Links]] = {
            Aligner(source, rows): [] for rows in ERRORS.values() for source in self._sources
        }
        self._gold: list[GoldPair] = []

    def add(self, translation: Traced, gold: GoldPair) -> None:
        """Adds one forced gold target."""
        self.take(self.links(translation), gold)

    def links(self, translation: Traced) -> list[Links]:
        """The links of one forced target, in the order of the aligners."""
        trace = trace_of(translation)
        layers = [trace.weights(AttentionKind.CROSS, layer) for layer in range(self._shape[0])]
        maps = np.stack(
            [np.mean([layers[layer][head] for layer, head in source], axis=0) for source in self._sources]
        )
        tokens = translation.source_tokens, translation.target_tokens
        return [each for rows in ERRORS.values() for each in attention_links(maps, *tokens, rows=rows)]

    def take(self, links: Sequence[Links], gold: GoldPair) -> None:
        """Adds the links of one forced gold target, as `links` gives them."""
        for found, each in zip(self._found.values(), links, strict=True):
            found.append(each)
        self._gold.append(gold)

    @property
    def pairs(self) -> int:
        """How many gold pairs were added."""
        return len(self._gold)

    def _heads(self, rows: Rows) -> list[list[list[Links]]]:
        """The links of each layer and head."""
        layers, heads = self._shape
        return [[self._found[Aligner(((i, j),), rows)] for j in range(heads)] for i in range(layers)]

    def scores(self, rows: Rows) -> list[list[AlignmentScore]]:
        """One score per layer and head; `rows` as in `attention_links`."""
        return [[score(found, self._gold) for found in heads] for heads in self._heads(rows)]

    @property
    def alignments(self) -> Mapping[Aligner, Sequence[Links]]:
        """The links of every pair, by aligner."""
        return self._found

    def best(self) -> tuple[Aligner, float]:
        """The head or mean with the lowest error, and this error; of equal ones, the first."""
        errors = {aligner: score(links, self._gold).aer for aligner, links in self._found.items()}
        best = min(errors, key=errors.__getitem__)
        return best, errors[best]

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
                [[score([head[i]], [pair]).aer for head in heads] for heads in self._heads("predicted")]
                for i, pair in enumerate(self._gold)
            ],
            np.float32,
        )


def align_gold(translator: Translator, gold: Sequence[GoldPair], workers: Workers = ALONE) -> CrossAlignments:
    """The word alignments of all gold pairs, with their targets forced.

    Args:
        translator: The model.
        gold: Pairs with links made by hand.
        workers: The processes that share the pairs.
    """
    collected = CrossAlignments(translator.config)

    def links(pair: GoldPair) -> list[Links]:
        return collected.links(translator.force(" ".join(pair.source), " ".join(pair.target)))

    for found, pair in zip(workers.each(links, gold), gold, strict=True):
        collected.take(found, pair)
    return collected


def kind_totals(translation: Traced, projections: Projections | None = None) -> dict[AttentionKind, Totals]:
    """The totals of one sentence for each kind of attention; `projections` for `contribution`."""
    return {kind: sentence_totals(translation, kind, projections) for kind in translation.config.sites}


def measure_heads(
    sentences: Iterable[dict[AttentionKind, Totals]], alignments: CrossAlignments | None = None
) -> dict[str, Any]:
    """Statistics of all heads, and the heads to open first.

    Args:
        sentences: `kind_totals` of each sentence; at least one.
        alignments: Forced gold targets with their links, for `aer`, `aer_read` and `aer_diagonal`.

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
