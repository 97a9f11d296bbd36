"""Which heads of an unknown model to open first: by statistics over a few sentences that it translates."""

from __future__ import annotations

from collections.abc import Iterable

from transformer.study.facts import Grid, choose_head, grid
from transformer.study.statistics import Totals, sentence_totals
from transformer.translate.translation import Translation
from transformer.translate.translator import InputError, Translator

MOST_TOKENS = 40


def first_heads(translator: Translator, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Kind to layer and head (from 0); empty where the model can read none of the texts.

    In self-attention the clearest look at a neighbour is chosen, in cross-attention, where no gold alignment
    tells more, the sharpest head; never one that rests on `</s>` or on the first key.

    Args:
        translator: The model.
        texts: Sentences in any language; their translations are cut at ``MOST_TOKENS``.
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


def _translated(translator: Translator, texts: Iterable[str]) -> Iterable[Translation]:
    limit = min(MOST_TOKENS, translator.config.max_positions)
    for text in texts:
        try:
            yield translator.translate(text, beam_size=1, max_length=limit)
        except InputError:
            continue


def _sharpest(heads: Grid) -> tuple[int, int]:
    """The head with the sharpest rows; weight on marks and on the first key counts against it."""
    places = [(layer, head) for layer, row in enumerate(heads) for head in range(len(row))]

    def merit(place: tuple[int, int]) -> float:
        found = heads[place[0]][place[1]]
        rests = ("special_mass", "punctuation_mass", "first_mass")
        return found.get("peak", 0.0) - sum(found.get(name, 0.0) for name in rests)

    return max(places, key=merit)
