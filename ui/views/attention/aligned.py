"""What a head, a layer or a stated mean links in a translation, and how well that fits links made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from figures.base import labels
from transformer.lenses.alignment import (
    AlignmentScore,
    GoldPair,
    Links,
    Rule,
    link_words,
    score,
    text_words,
    word_weights,
)
from transformer.text.words import Group, reading_groups, word_groups
from ui.address import session
from ui.address.values import ABOVE
from ui.maps.explorer import chosen
from ui.server import catalogue
from ui.server.opened import Opened

LEAST = 0.2
"""The threshold that opens first."""
Place = tuple[int, int | None]
"""Layer and head, from 0; None for the mean of the layer's heads."""


@dataclass(frozen=True)
class Choice:
    """How attention becomes links.

    Attributes:
        reading: whether a word's row is the one that reads it, instead of the one that predicts it.
        rule: `strongest`, `mutual` or `above`.
        least: the threshold of `above`.
    """

    reading: bool
    rule: Rule
    least: float

    @classmethod
    def current(cls) -> Choice:
        """What the state asks for."""
        now = session.current()
        reading = now.rows == "read"
        rule = now.rule or "strongest"
        if rule.startswith(ABOVE):
            return cls(reading, "above", float(rule.removeprefix(ABOVE)))
        return cls(reading, "mutual" if rule == "mutual" else "strongest", LEAST)


@dataclass(frozen=True)
class Text:
    """The words of a translation, as groups of its pieces."""

    source: list[Group]
    target: list[Group]

    @classmethod
    def of(cls, opened: Opened) -> Text:
        """Words as people read them; in a gold pair what spaces part, as its links count them."""
        groups = word_groups if session.current().gold else reading_groups
        tokens = opened.translation.source_tokens, opened.translation.target_tokens
        return cls(*(text_words(groups(each)) for each in tokens))

    def hand_links(self) -> tuple[GoldPair, int]:
        """The links made by hand, and how many of the address lie outside the text."""
        links = session.current().pairs
        inside = {(i, j): sure for i, j, sure in links if i < len(self.source) and j < len(self.target)}
        sure = frozenset(pair for pair, is_sure in inside.items() if is_sure)
        source, target = (tuple(each.text for each in groups) for groups in (self.source, self.target))
        return GoldPair(source, target, sure, frozenset(inside)), len(links) - len(inside)


def means(opened: Opened) -> dict[tuple[int, int] | None, str]:
    """One head, or the layers over whose heads the weights are averaged."""
    layers, _ = catalogue.sizes(opened.asked.model)["cross"]
    named: dict[tuple[int, int] | None, str] = {None: "this head alone"}
    for ends in ((first, last) for first in range(layers) for last in range(first, layers)):
        named[ends] = f"mean over all heads of {layers_name(ends)}"
    return named


def layers_name(ends: tuple[int, int]) -> str:
    """The first and last layer (from 0) inside a sentence."""
    first, last = map(labels.count, ends)
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def fitted_mean(opened: Opened) -> tuple[int, int] | None:
    """The layers of the state, within the model."""
    mean = session.current().mean
    last = catalogue.sizes(opened.asked.model)["cross"][0] - 1
    return None if mean is None else (min(mean[0], last), min(mean[1], last))


def _weights(opened: Opened, layer: int) -> np.ndarray:
    trace = opened.translation.attention
    assert trace is not None
    return trace.weights("cross", layer)


def chosen_map(opened: Opened) -> tuple[np.ndarray, str]:
    """(queries, keys) of the head or mean that is chosen, and its name."""
    mean = fitted_mean(opened)
    if mean is None:
        layer, head = chosen("cross")
        return _weights(opened, layer)[head], labels.head_phrase(layer, head)
    layers = [_weights(opened, layer).mean(0) for layer in range(mean[0], mean[1] + 1)]
    return np.stack(layers).mean(0), f"the mean over all heads of {layers_name(mean)}"


def align(weights: np.ndarray, text: Text) -> tuple[np.ndarray, list[Links]]:
    """Weights between words (…, target, source), and one alignment for each map."""
    choice = Choice.current()
    words = word_weights(weights, text.source, text.target, rows="read" if choice.reading else "predicted")
    return words, link_words(words.reshape(-1, *words.shape[-2:]), choice.rule, choice.least)


def scores(opened: Opened, text: Text, pair: GoldPair) -> dict[Place, AlignmentScore]:
    """One score for every head, by layer and head, and for the mean of every layer, with head None."""
    found: dict[Place, AlignmentScore] = {}
    for layer in range(catalogue.sizes(opened.asked.model)["cross"][0]):
        heads = _weights(opened, layer)
        _, links = align(np.concatenate([heads, heads.mean(0, keepdims=True)]), text)
        places = [*range(len(heads)), None]
        found |= {(layer, head): score([each], [pair]) for head, each in zip(places, links, strict=True)}
    return found
