"""Maps of a page with a measure for their weights: what keys carried, or did without each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorer.figures import to_json
from explorer.figures.base.quantity import MEASURES
from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.linked.living import packed
from transformer.config import Head, TransformerConfig
from transformer.run import Translation
from transformer.view import HeadMap

Measure = Callable[[Translation, str, HeadMap], HeadMap]
"""Gets a run, the name of a measure and a whole map; returns the map with its numbers, and their audit."""
ASKED, MOST = MEASURES[1:], 128


class Measuring:
    """Measures maps of runs of a translator; a second pass over each run has what that needs."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.run: Translation | None = None

    def __call__(self, run: Translation, measure: str, view: HeadMap) -> HeadMap:
        from explorer.lenses.measures.carried import (
            carried,  # PyTorch is there, as the model is
            carried_map,
        )
        from explorer.lenses.measures.effect import effect_in, effect_map
        from transformer.translator import retrace

        if self.run is not run:
            self.run, self.again = run, retrace(self.model, run)
        model, again, at = self.model, self.again, (view.kind, view.layer, view.head)
        if measure == "carried":
            return carried_map(view, carried(model.model, again, *at))
        return effect_map(view, effect_in(model, again, *at, view.window))


def measured(
    views: Mapping[Head, HeadMap],  # the heads of a kind that are measured
    measure: Callable[[HeadMap], HeadMap],
    feed: Callable[[ReadView], Mapping[str, Any]],  # the feed of a map
    shared: Mapping[str, Any],  # what feeds of weights share
) -> tuple[dict[str, Any], list[packed.Bytes]]:
    """What feeds of these heads say, and their cells: two bytes of a share, a float32 of the measure."""
    heads: list[Head] = []
    own, cells, numbers = [], [], []
    for at, view in views.items():
        found = measure(view)
        if found.measured is None:  # a map of too many cells
            continue
        told = dict(feed(read_view(found, Reading())))
        figure = json.loads(told["figure"])
        figure["data"][0] |= {"z": None, "customdata": None}
        told["figure"] = to_json(figure)
        heads.append(at)
        own.append({name: value for name, value in told.items() if value != shared[name] and name != "acts"})
        cells.append((found.weights, found.mask))
        numbers.append(np.nan_to_num(found.measured).astype("<f4"))
    if not heads:
        return {}, []
    levels, beside = packed.cells(*(np.array(each) for each in zip(*cells, strict=True)))
    return {"heads": heads, "own": own}, [levels, beside, np.array(numbers).view(np.uint8)]


def why_not(run: Translation, measures: Sequence[str], able: bool) -> str | None:
    """Why a page cannot have measures, in one sentence; None if it can."""
    if unknown := [each for each in measures if each not in ASKED]:
        return f"There is no measure {unknown[0]!r}; there are {', '.join(ASKED)}."
    if not able or "cross" not in map(str, run.config.sites) or not isinstance(run.config, TransformerConfig):
        return "What keys carried and did is measured with the model, in Transformers that translate."
    if run.interventions:
        return "What keys carried and did is measured in a run without changes."
    if max(len(run.source_tokens), len(run.target_tokens)) > MOST:
        return f"Measures are in pages of runs of at most {MOST} tokens a side."
    return None
