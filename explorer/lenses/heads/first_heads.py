"""Statistics of all heads as a table (`heads.json`), and the heads to open first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from explorer.lenses.heads.statistics import Totals, sentence_totals
from explorer.lenses.words.gold_links import CrossAlignments
from transformer.config import AttentionKind, ModelConfig
from transformer.decoding import OverflowedError
from transformer.model import Projections
from transformer.run import Translation
from transformer.translator import InputError

Statistics = dict[str, float]
Grid = list[list[Statistics]]
RESTING_MASS = 0.5
MOST_TOKENS = 40
"""Of a translation by which the first heads of an unknown model are chosen."""


class Runs(Protocol):
    """A model that makes a run of a text: a translator, or a language model that continues the text."""

    @property
    def config(self) -> ModelConfig:
        """Its sizes."""

    def translate(self, text: str = "", *, beam_size: int = 1, max_length: int = ...) -> Translation:
        """The run of a text, with its trace."""


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


def kind_totals(
    translation: Translation, projections: Projections | None = None
) -> dict[AttentionKind, Totals]:
    """The totals of one sentence for each kind of attention; `projections` for `contribution`."""
    return {kind: sentence_totals(translation, kind, projections) for kind in translation.config.sites}


def grids(sentences: Iterable[dict[AttentionKind, Totals]]) -> dict[AttentionKind, Grid]:
    """The means of all sentences by kind; empty without sentences."""
    totals: dict[AttentionKind, Totals] = {}
    for sentence in sentences:
        totals = {kind: totals.get(kind, Totals({}, {})) + found for kind, found in sentence.items()}
    return {kind: grid(total) for kind, total in totals.items()}


def measure_heads(
    sentences: Iterable[dict[AttentionKind, Totals]], alignments: CrossAlignments | None = None
) -> dict[str, Any]:
    """Statistics of all heads, and the heads to open first; layers and heads count from 0.

    Gold alignments add the errors of cross-attention, and its `aligner`.
    """
    heads = {kind.value: found for kind, found in grids(sentences).items()}
    measured: dict[str, Any] = {"heads": heads}
    if alignments is not None and alignments.pairs:
        for name, values in alignments.errors().items():
            for layer, row in enumerate(values.tolist()):
                for head, error in enumerate(row):
                    heads[AttentionKind.CROSS.value][layer][head][name] = round(error, 4)
        best, error = alignments.best()
        measured["aligner"] = {"heads": best.heads, "rows": best.rows, "aer": round(error, 4)}
    return {"default": {kind: list(choose_head(found)) for kind, found in heads.items()}} | measured


def choose_head(heads: Grid) -> tuple[int, int]:
    """Layer and head to open first: lowest alignment error, else clearest neighbour pattern.

    A head that rests comes last: over half of its weight is on `</s>`, or over half of its rows point at the
    first key.
    """

    def merit(found: Statistics) -> tuple[bool, float]:
        awake = max(found.get("eos_mass", 0.0), found.get("first", 0.0)) <= RESTING_MASS
        if "aer" in found:
            return awake, -found["aer"]
        return awake, max(found.get("previous", 0.0), found.get("next", 0.0))

    return _best(heads, merit)


def first_heads(model: Runs, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Maps each kind to a layer and head of an unknown model, by its runs of some sentences in any language.

    For self-attention, the head with the clearest neighbour pattern is chosen. For cross-attention, without
    gold alignments, the sharpest head is chosen. Empty if the model can read none of the texts.
    """
    found = grids(map(kind_totals, _runs(model, texts)))
    sites = model.config.sites
    return {
        kind.value: choose_head(heads) if sites[kind].own_keys else _best(heads, _sharpness)
        for kind, heads in found.items()
    }


def _runs(model: Runs, texts: Iterable[str]) -> Iterable[Translation]:
    limit = min(MOST_TOKENS, model.config.max_positions)
    for text in texts:
        try:
            yield model.translate(text, beam_size=1, max_length=limit)
        except (InputError, OverflowedError):
            continue


def _sharpness(found: Statistics) -> float:
    """Sharpness of the rows; weight on special tokens and on the first key counts against it."""
    rests = ("special_mass", "punctuation_mass", "first_mass")
    return found.get("peak", 0.0) - sum(found.get(name, 0.0) for name in rests)


def _best(heads: Grid, merit: Callable[[Statistics], float | tuple[bool, float]]) -> tuple[int, int]:
    places = [(layer, head) for layer, row in enumerate(heads) for head in range(len(row))]
    return max(places, key=lambda place: merit(heads[place[0]][place[1]]))
