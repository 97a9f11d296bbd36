"""The links that a head, a layer or a chosen mean makes, and their agreement with links made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import ABOVE, OWN, HandLinks
from explorer.app.server import runs
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.lenses.words.alignment import (
    AlignmentScore,
    Rule,
    link_words,
    score,
    text_words,
    word_weights,
)
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.links import GoldPair, Links
from transformer import AttentionKind
from transformer.config import Head
from transformer.text.words import Group
from transformer.view import AuditReport

LEAST = 0.2
"""The threshold until the visitor chooses another."""
Source = tuple[int, int | None]
"""Layer and head, from 0; None for the mean of the layer's heads."""


@dataclass(frozen=True)
class LinkRules:
    """Rules by which attention becomes links."""

    head: Head  # the head of cross-attention, from 0
    # the layers (first and last, from 0) over whose heads weights are averaged; None for `head`
    mean: tuple[int, int] | None
    reading: bool  # whether a word's row is the row that reads the word, instead of the row that predicts it
    rule: Rule  # `strongest`, `mutual` or `above`
    least: float  # the threshold of `above`

    @classmethod
    def of(cls, opened: Opened, now: State) -> LinkRules:
        """The choice of a visitor, otherwise the model's best aligner; the state must name a head."""
        assert now.cross is not None
        named, rule, least = now.rule or "strongest", "strongest", LEAST
        if named.startswith(ABOVE):
            rule, least = "above", float(named.removeprefix(ABOVE))
        elif named == "mutual":
            rule = named
        chosen = now.cross, _fitted_mean(opened, now.mean), now.rows == "read"
        if now.aligner is None and now.rows is None and now.mean is None:
            chosen = _best(opened, now.cross) or chosen
        return cls(*chosen, cast(Rule, rule), least)

    def is_own(self, opened: Opened) -> bool:
        """Whether the model's best aligner is known, and this is another one."""
        best = _best(opened, self.head)
        return best is not None and best != (self.head, self.mean, self.reading)

    @property
    def values(self) -> dict[str, Any]:
        """The same choice as values of the state, as if the visitor had made it."""
        rows = "read" if self.reading else None
        return {"aligner": OWN, "cross": self.head, "mean": self.mean, "rows": rows}


def _best(opened: Opened, head: Head) -> tuple[Head, tuple[int, int] | None, bool] | None:
    """Head, mean and row of the best aligner, if `heads.json` has one; `head` stays for a mean."""
    if "aligner" not in opened.source.heads:
        return None
    best = runs.aligner(opened.source)
    alone = len(best.heads) == 1
    mean = None if alone else (best.heads[0][0], best.heads[-1][0])
    return best.heads[0] if alone else head, mean, best.rows == "read"


@dataclass(frozen=True)
class Text:
    """The words of a translation, as groups of its pieces."""

    source: list[Group]
    target: list[Group]
    typed: bool = False  # whether its words are those that were typed, as links count them

    @classmethod
    def of(
        cls,
        opened: Opened,  # the sentence
        gold: str | None,  # the name of the gold pair; None if the visitor drew the links
    ) -> Text:
        """Words as people read them; in a gold pair, words as its links count them, as they were typed."""
        asked, run = opened.asked, opened.translation
        if gold and asked.target is not None and asked.source.has_model:
            model = asked.source.translator()
            return cls(
                list(model.cut(asked.text).groups()), list(model.cut(asked.target, "target").groups()), True
            )
        source, target = (text_words(reading_groups(each)) for each in (run.source_tokens, run.target_tokens))
        return cls(source, target)

    def hand_links(self, links: HandLinks) -> tuple[GoldPair, int]:
        """The links made by hand that lie inside the text, and the number of those that lie outside it."""
        inside = {(i, j): sure for i, j, sure in links if i < len(self.source) and j < len(self.target)}
        sure = frozenset(pair for pair, is_sure in inside.items() if is_sure)
        source, target = (tuple(each.text for each in groups) for groups in (self.source, self.target))
        return GoldPair(source, target, sure, frozenset(inside)), len(links) - len(inside)


def means(opened: Opened) -> dict[tuple[int, int] | None, str]:
    """The means that a visitor can choose, with their labels; None stands for one head alone."""
    layers, _ = opened.translation.config.sizes["cross"]
    named: dict[tuple[int, int] | None, str] = {None: "this head alone"}
    for ends in ((first, last) for first in range(layers) for last in range(first, layers)):
        named[ends] = f"mean over all heads of {layers_name(ends)}"
    return named


def layers_name(ends: tuple[int, int]) -> str:
    """Names the first and last layer (from 0), for use inside a sentence."""
    first, last = map(labels.count, ends)
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def _fitted_mean(opened: Opened, mean: tuple[int, int] | None) -> tuple[int, int] | None:
    """The layers that a state asks for, limited to those of the model."""
    last = opened.translation.config.sizes["cross"][0] - 1
    return None if mean is None else (min(mean[0], last), min(mean[1], last))


def _weights(opened: Opened, layer: int) -> np.ndarray:
    trace = opened.translation.attention
    assert trace is not None
    return trace.weights("cross", layer)


def chosen_map(opened: Opened, choice: LinkRules) -> tuple[np.ndarray, str]:
    """The weights (queries, keys) of the chosen head or mean, and its name."""
    mean = choice.mean
    if mean is None:
        layer, head = choice.head
        return _weights(opened, layer)[head], labels.head_phrase(layer, head)
    layers = [_weights(opened, layer).mean(0) for layer in range(mean[0], mean[1] + 1)]
    return np.stack(layers).mean(0), f"the mean over all heads of {layers_name(mean)}"


def align(weights: np.ndarray, text: Text, choice: LinkRules) -> tuple[np.ndarray, list[Links]]:
    """Weights between words (…, target, source), and one alignment for each map."""
    words = word_weights(weights, text.source, text.target, rows="read" if choice.reading else "predicted")
    return words, link_words(words.reshape(-1, *words.shape[-2:]), choice.rule, choice.least)


def audit(opened: Opened, choice: LinkRules | None = None) -> AuditReport:
    """The checks of the layers behind a map of words; without a choice, of every layer."""
    layers = range(opened.translation.config.sizes["cross"][0])
    if choice is not None:
        ends = choice.mean or (choice.head[0], choice.head[0])
        layers = range(ends[0], ends[1] + 1)
    return opened.translation.audit(*((AttentionKind.CROSS, layer) for layer in layers))


def scores(opened: Opened, text: Text, pair: GoldPair, choice: LinkRules) -> dict[Source, AlignmentScore]:
    """The score of every head and of the mean of every layer, by layer and head; a mean has head None."""
    found: dict[Source, AlignmentScore] = {}
    for layer in range(opened.translation.config.sizes["cross"][0]):
        heads = _weights(opened, layer)
        _, links = align(np.concatenate([heads, heads.mean(0, keepdims=True)]), text, choice)
        places = [*range(len(heads)), None]
        found |= {(layer, head): score([each], [pair]) for head, each in zip(places, links, strict=True)}
    return found
