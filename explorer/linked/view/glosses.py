"""Source words under target words, by the best aligner, and the step at which a run opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import numpy as np

from explorer.figures.base import labels
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.telling import glosses, telling_step, text_words
from explorer.linked.view.examples import Example
from transformer.config import AttentionKind, Head
from transformer.run import Translation

Feed = dict[str, Any]
"""What one part of a linked view is sent, as `static/linked_view-7` reads it; `draw` names its script."""
EXAMPLE = "example"
"""Where a gloss comes from that was written for an example."""


class Gloss(TypedDict):
    """A source word under a target word, and where it comes from: ``EXAMPLE`` or the name of an aligner."""

    text: str
    origin: str


class Shade(TypedDict):
    """Darkness of a token of the target, from 0 to 1, its reason, and a number to write under the token."""

    share: float
    text: str
    number: NotRequired[Gloss]


@dataclass(frozen=True)
class WordAlignment:
    """A translation as attention tells it; positions count from 0."""

    step: int = 0  # the most telling step
    # the source word behind a target word, by the position of the target word's first piece
    glosses: Mapping[int, str] = field(default_factory=dict)


def tell(run: Translation, aligner: Aligner, opens: Head) -> WordAlignment:
    """Glosses by an aligner, and the step at which the head that opens agrees; else nothing."""
    if AttentionKind.CROSS not in run.config.sites:
        return WordAlignment()
    aligned, tokens = aligner.weights(run), (run.source_tokens, run.target_tokens)
    step = telling_step(run.weights("cross", *opens), *tokens, aligned)
    return WordAlignment(step, glosses(aligned, *tokens))


def glossed(texts: Mapping[int, str], aligner: Aligner) -> dict[int, Gloss]:
    """The glosses of an aligner as the strips show them."""
    origin = labels.aligner(aligner.heads, aligner.rows)
    return {place: Gloss(text=text, origin=origin) for place, text in texts.items()}


def meant(run: Translation, example: Example) -> dict[int, Gloss]:
    """The English words of an example under the words of a translation that it knows."""
    words = text_words(run.target_tokens)
    return {
        each.start: Gloss(text=example.gloss[each.text], origin=EXAMPLE)
        for each in words
        if example.gloss.get(each.text)
    }


def legend(glosses: Mapping[int, Gloss]) -> str:
    """What the words under a translation are, in a sentence; empty if there are none."""
    origins = dict.fromkeys(each["origin"] for each in glosses.values())
    heads = [f"source words by the {origin}" for origin in origins if origin != EXAMPLE]
    english = ["English words of the example"] * (EXAMPLE in origins)
    return f"Under the words: {', else '.join([*english, *heads])}." if origins else ""


def followed(weights: np.ndarray) -> Sequence[int]:
    """For each step, the source token that (steps, sources) weights are largest on, from 0, except `</s>`."""
    found: Sequence[int] = np.argmax(weights[:, : max(1, weights.shape[1] - 1)], axis=1).tolist()
    return found
