"""The links of a head, or of the best aligner: how attention becomes links, and how many are
right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import HandLinks, Moves
from explorer.app.address.page_values import OWN, WordLinks
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.lenses.words.alignment import (
    Aligner,
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


@dataclass(frozen=True)
class LinkRules:
    """How attention becomes links: as the visitor chose, or the model's best aligner."""

    # the head of cross-attention, or the heads whose mean is taken, and the row of a word
    aligner: Aligner
    rule: Rule
    best: bool | None  # whether this is the model's best aligner; None if `heads.json` names none

    @classmethod
    def of(cls, opened: View, now: State) -> LinkRules:
        """The choice of a state, which must name a head, fitted to the model."""
        values = now.values(WordLinks)
        assert now.cross is not None
        chosen = Aligner((now.cross,), "read" if now.rows == "read" else "predicted")
        best = None
        if "aligner" in opened.source.heads:
            best = opened.source.aligner
            chosen = best if (values.aligner, now.rows) == (None, None) else chosen
        rule = cast(Rule, values.rule or "strongest")
        return cls(chosen, rule, None if best is None else chosen == best)

    @property
    def head(self) -> Head | None:
        """The head; None for a mean of several."""
        return self.aligner.heads[0] if len(self.aligner.heads) == 1 else None

    @property
    def values(self) -> Moves:
        """The same choice as values of the state, as if the visitor had made it."""
        rows = "read" if self.aligner.rows == "read" else None
        return {"aligner": OWN, "rows": rows} | ({} if self.head is None else {"cross": self.head})

    @property
    def name(self) -> str:
        """The head, or the mean, for use inside a sentence."""
        if self.head is not None:
            return labels.head_phrase(*self.head)
        first = labels.count(self.aligner.heads[0][0])
        last = labels.count(self.aligner.heads[-1][0])
        return f"the mean over all heads of layer{f' {first}' if first == last else f's {first} to {last}'}"

    def align(self, weights: np.ndarray, text: Text) -> tuple[np.ndarray, list[Links]]:
        """Weights between words (heads, target, source), and the links of each head."""
        words = word_weights(weights, text.source, text.target, rows=self.aligner.rows)
        return words, link_words(words, self.rule)

    def drawn(self, opened: View, text: Text) -> tuple[np.ndarray, Links]:
        """Weights between words (target, source) of the head or the mean, and its links."""
        maps = [
            opened.translation.weights("cross", layer, head) for layer, head in self.aligner.heads
        ]
        (words,), (links,) = self.align(np.mean(maps, axis=0, keepdims=True), text)
        return words, links

    def audit(self, opened: View) -> AuditReport:
        layers = dict.fromkeys(layer for layer, _ in self.aligner.heads)
        return opened.translation.audit(*((AttentionKind.CROSS, layer) for layer in layers))


@dataclass(frozen=True)
class Text:
    """The words of a translation, as groups of its pieces."""

    source: list[Group]
    target: list[Group]

    @classmethod
    def of(cls, opened: View, gold: str | None) -> Text:
        """Words as people read them.

        In a pair with links made by hand (`gold`), as they were typed.
        """
        run_key, run = opened.run_key, opened.translation
        if gold and run_key.target is not None and run_key.source.has_model:
            model = run_key.source.load()
            target = model.cut(run_key.target, "target").groups()
            return cls(list(model.cut(run_key.text).groups()), list(target))
        return cls(
            *(
                text_words(reading_groups(tokens))
                for tokens in (run.source_tokens, run.target_tokens)
            )
        )

    def hand_links(self, links: HandLinks) -> tuple[GoldPair, int]:
        """The links made by hand that lie inside the text, and the number of those that lie outside
        it."""
        inside = {
            (i, j): sure for i, j, sure in links if i < len(self.source) and j < len(self.target)
        }
        sure = frozenset(pair for pair, is_sure in inside.items() if is_sure)
        source, target = (
            tuple(group.text for group in groups) for groups in (self.source, self.target)
        )
        return GoldPair(source, target, sure, frozenset(inside)), len(links) - len(inside)


def scores(
    opened: View, text: Text, pair: GoldPair, rules: LinkRules
) -> dict[Head, AlignmentScore]:
    """Every head against links made by hand, by layer and head."""
    rates: dict[Head, AlignmentScore] = {}
    for layer in range(opened.translation.config.sizes["cross"][0]):
        _, links = rules.align(opened.translation.layer_weights("cross", layer), text)
        rates |= {
            (layer, head): score([head_links], [pair]) for head, head_links in enumerate(links)
        }
    return rates
