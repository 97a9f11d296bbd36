"""The links of a head, or of a mean over layers: how attention becomes links, and how many are right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, cast

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import HandLinks, Kind, UnreadableError, one_of, read_position
from explorer.app.address.state import page_value
from explorer.app.server import runs
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.lenses.words.alignment import AlignmentScore, Rule, link_words, score, text_words, word_weights
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.links import GoldPair, Links
from transformer import AttentionKind
from transformer.config import Head
from transformer.text.words import Group
from transformer.view import AuditReport

OWN, ABOVE = "own", "above-"
LEAST = 0.2  # the threshold until the visitor chooses another
Layers = tuple[int, int] | None
"""First and last layer of a mean over all their heads, from 0; None for one head."""


def _read_layers(value: str) -> tuple[int, int]:
    first, _, last = value.partition("-")
    ends = read_position(first), read_position(last or first)
    return min(ends), max(ends)


def _read_rule(value: str) -> str:
    least = value.removeprefix(ABOVE)
    if value == "mutual":
        return value
    if value == least or not math.isfinite(share := float(least)):
        raise UnreadableError
    return f"{ABOVE}{min(max(share, 0.01), 1):.2f}"


# that the visitor chose the head, mean or row; None for the model's best
page_value("aligner", one_of(OWN))
page_value("mean", Kind(_read_layers, lambda ends: f"{ends[0] + 1}-{ends[1] + 1}"))  # layers, over all heads
page_value("rule", Kind(_read_rule))  # `mutual`, `above-0.3`; None for each word's strongest link


@dataclass(frozen=True)
class LinkRules:
    """How attention becomes links: as the visitor chose, or the model's best aligner."""

    head: Head  # of cross-attention, from 0
    mean: Layers
    reading: bool  # whether a word's row is the row that reads it, instead of the one that predicts it
    rule: Rule
    least: float  # the threshold of `above`
    best: bool | None  # whether this is the model's best aligner; None if `heads.json` names none

    @classmethod
    def of(cls, opened: View, now: State) -> LinkRules:
        """The choice of a state, which must name a head, fitted to the model."""
        assert now.cross is not None
        named, last = now.rule or "strongest", opened.translation.config.sizes["cross"][0] - 1
        best: tuple[Head, Layers, bool] | None = None
        mean = None if now.mean is None else (min(now.mean[0], last), min(now.mean[1], last))
        chosen: tuple[Head, Layers, bool] = now.cross, mean, now.rows == "read"
        if "aligner" in opened.source.heads:
            found = runs.aligner(opened.source)
            alone, first = len(found.heads) == 1, found.heads[0]
            several = None if alone else (first[0], found.heads[-1][0])
            best = first if alone else now.cross, several, found.rows == "read"
            if (now.aligner, now.rows, now.mean) == (None, None, None):
                chosen = best
        above = named.startswith(ABOVE)
        least = float(named.removeprefix(ABOVE)) if above else LEAST
        rule = cast(Rule, "above" if above else named)
        return cls(*chosen, rule, least, None if best is None else chosen == best)

    @property
    def values(self) -> dict[str, Any]:
        """The same choice as values of the state, as if the visitor had made it."""
        rows = "read" if self.reading else None
        return {"aligner": OWN, "cross": self.head, "mean": self.mean, "rows": rows}

    @property
    def name(self) -> str:
        """The head, or the mean, for use inside a sentence."""
        return labels.head_phrase(*self.head) if self.mean is None else mean_name(self.mean)

    def weights(self, opened: View) -> np.ndarray:
        """(queries, keys) of the head or the mean."""
        if self.mean is None:
            return layer_weights(opened, self.head[0])[self.head[1]]
        first, last = self.mean
        return np.stack([layer_weights(opened, i).mean(0) for i in range(first, last + 1)]).mean(0)

    def align(self, weights: np.ndarray, text: Text) -> tuple[np.ndarray, list[Links]]:
        """Weights between words (…, target, source), and one alignment for each map."""
        rows = "read" if self.reading else "predicted"
        words = word_weights(weights, text.source, text.target, rows=rows)  # type: ignore[arg-type]
        return words, link_words(words.reshape(-1, *words.shape[-2:]), self.rule, self.least)

    def audit(self, opened: View) -> AuditReport:
        first, last = self.mean or (self.head[0], self.head[0])
        return opened.translation.audit(*((AttentionKind.CROSS, i) for i in range(first, last + 1)))


@dataclass(frozen=True)
class Text:
    """The words of a translation, as groups of its pieces."""

    source: list[Group]
    target: list[Group]

    @classmethod
    def of(cls, opened: View, gold: str | None) -> Text:
        """Words as people read them; in a pair with links made by hand (`gold`), as they were typed."""
        asked, run = opened.request, opened.translation
        if gold and asked.target is not None and asked.source.has_model:
            model = asked.source.translator()
            target = model.cut(asked.target, "target").groups()
            return cls(list(model.cut(asked.text).groups()), list(target))
        return cls(*(text_words(reading_groups(each)) for each in (run.source_tokens, run.target_tokens)))

    def hand_links(self, links: HandLinks) -> tuple[GoldPair, int]:
        """The links made by hand that lie inside the text, and the number of those that lie outside it."""
        inside = {(i, j): sure for i, j, sure in links if i < len(self.source) and j < len(self.target)}
        sure = frozenset(pair for pair, is_sure in inside.items() if is_sure)
        source, target = (tuple(each.text for each in groups) for groups in (self.source, self.target))
        return GoldPair(source, target, sure, frozenset(inside)), len(links) - len(inside)


def mean_name(ends: tuple[int, int]) -> str:
    first, last = map(labels.count, ends)
    return f"the mean over all heads of layer{f' {first}' if first == last else f's {first} to {last}'}"


def means(opened: View) -> dict[Layers, str]:
    """What a visitor can choose instead of one head."""
    ends = combinations_with_replacement(range(opened.translation.config.sizes["cross"][0]), 2)
    return {None: "this head alone"} | {each: mean_name(each).removeprefix("the ") for each in ends}


def layer_weights(opened: View, layer: int) -> np.ndarray:
    assert opened.translation.attention is not None
    return opened.translation.attention.weights("cross", layer)


def scores(
    opened: View, text: Text, pair: GoldPair, rules: LinkRules
) -> dict[tuple[int, int | None], AlignmentScore]:
    """Every head against links made by hand, by layer and head; the mean of a layer has head None."""
    rates: dict[tuple[int, int | None], AlignmentScore] = {}
    for layer in range(opened.translation.config.sizes["cross"][0]):
        heads = layer_weights(opened, layer)
        _, links = rules.align(np.concatenate([heads, heads.mean(0, keepdims=True)]), text)
        places = [*range(len(heads)), None]
        rates |= {(layer, at): score([each], [pair]) for at, each in zip(places, links, strict=True)}
    return rates
