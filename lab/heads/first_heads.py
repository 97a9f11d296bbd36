"""Chooses the heads of an unknown model to open first, by statistics over a few of its translations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from lab.heads.facts import Grid, choose_head, grid
from lab.heads.statistics import Totals, sentence_totals
from transformer.decode.request import OverflowedError
from transformer.model.config import ModelConfig
from transformer.runs.translation import Translation
from transformer.runs.wording import InputError

MOST_TOKENS = 40


class Runs(Protocol):
    """A model that makes a run of a text: a translator, or a language model that continues the text."""

    @property
    def config(self) -> ModelConfig:
        """Its sizes."""

    def translate(self, text: str, beam_size: int = 1, *, max_length: int) -> Translation:
        """The run of a text, with its trace."""


def first_heads(
    translator: Runs,  # the model
    texts: Iterable[str],  # sentences in any language; their translations stop at ``MOST_TOKENS``
) -> dict[str, tuple[int, int]]:
    """Maps each kind to a layer and head (from 0); empty if the model can read none of the texts.

    For self-attention, the head with the clearest neighbour pattern is chosen. For cross-attention,
    without gold alignments, the sharpest head is chosen. A head that rests on `</s>` or on the first key is
    never chosen.
    """
    sites = translator.config.sites
    totals = dict.fromkeys(sites, Totals({}, {}))
    empty = True
    for translation in _translated(translator, texts):
        empty = False
        for kind in sites:
            totals[kind] += sentence_totals(translation, kind)
    if empty:
        return {}
    grids = {kind: grid(total) for kind, total in totals.items()}
    return {
        kind.value: choose_head(found) if sites[kind].own_keys else _sharpest(found)
        for kind, found in grids.items()
    }


def _translated(translator: Runs, texts: Iterable[str]) -> Iterable[Translation]:
    limit = min(MOST_TOKENS, translator.config.max_positions)
    for text in texts:
        try:
            yield translator.translate(text, beam_size=1, max_length=limit)
        except (InputError, OverflowedError):
            continue


def _sharpest(heads: Grid) -> tuple[int, int]:
    """The head with the sharpest rows; weight on special tokens and on the first key counts against it."""
    places = [(layer, head) for layer, row in enumerate(heads) for head in range(len(row))]

    def merit(place: tuple[int, int]) -> float:
        found = heads[place[0]][place[1]]
        rests = ("special_mass", "punctuation_mass", "first_mass")
        return found.get("peak", 0.0) - sum(found.get(name, 0.0) for name in rests)

    return max(places, key=merit)
