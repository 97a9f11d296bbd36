"""`python -m explorer align`: scores every cross-attention head as a word aligner, or writes one's
links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.groups import is_run_together
from explorer.lenses.words.linking import Linker, align_gold, shipped_aligner, typed_words
from explorer.lenses.words.links import read_gold
from explorer.lenses.words.reading import Rows
from transformer.commands.lines import answer_pairs, unread, warn_unread
from transformer.commands.models import Json, TranslatorOptions
from transformer.config import AttentionKind
from transformer.text.pairs import SentencePair
from transformer.translator import Translator

RUN_TOGETHER = (
    "The words of this {} have no spaces between them, so that they count as one word: write "
    "spaces between them to link each."
)


def align(*, model: TranslatorOptions, data: str, links: LinkOptions) -> int:
    """Score every cross-attention head as a word aligner, or write the links of one.

    The targets of the file are forced.

    data [FILE]: source<TAB>target<TAB>links lines; with --links, source<TAB>target is enough
        (.gz too)
    """
    if links.links:
        return write_links(model, data, links)
    gold = read_gold(data)
    with model.open_in_job() as (translator, workers):
        collected = align_gold(translator, gold, workers)
        if not workers.first:
            return 0
        pairs = [(" ".join(pair.source), " ".join(pair.target)) for pair in gold]
        warn_unread(
            Counter(note for pair in pairs for note in (*unread(translator, *pair), *joined(*pair)))
        )
        predicting = collected.scores("predicted")
        reading = collected.scores("read")
        diagonal = float(collected.errors()["aer_diagonal"].flat[0])
        if not model.json:
            print(f"{len(gold)} pairs; diagonal baseline: AER {_percent(diagonal)}")
            print("layer head      AER  precision   recall   AER of the row that reads the word")
        for layer, head in np.ndindex(len(predicting), len(predicting[0])):
            rate = predicting[layer][head]
            read = reading[layer][head].aer
            values = {"layer": layer, "head": head, "aer": rate.aer, "precision": rate.precision}
            values |= {"recall": rate.recall, "aer_read": read, "aer_diagonal": diagonal}
            cells = (
                f"{layer + 1:5} {head + 1:4}  {_percent(rate.aer):>7}  "
                f"{_percent(rate.precision):>9}  "
            )
            model.write(translator, values, f"{cells}{_percent(rate.recall):>7}   {_percent(read)}")
    return 0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def head_at(word: str) -> tuple[int, int]:
    """A head as it is written, counted from 1, as the places of its layer and of itself, from 0."""
    if not (match := re.fullmatch(r"([1-9]\d{0,3})\.([1-9]\d{0,3})", word, re.ASCII)):
        raise ValueError(f"{word!r:.40} is no head; write layer and head, such as 3.5")
    return int(match[1]) - 1, int(match[2]) - 1


Head = Annotated[tuple[int, int] | None, head_at, "LAYER.HEAD"]


@dataclass(frozen=True, kw_only=True)
class LinkOptions:
    """Which links are written; ValueError if an option lacks the one that it belongs to.

    links: write a line of links for each pair: 0-0 1-2, source and target word from 0
    head: with --links: the head, counted from 1, such as 3.5; without one, the aligner of the model
    rows: with --links: the row of a word (default: that of the model's aligner, else predicted)
    """

    links: bool = False
    head: Head = None
    rows: Rows | None = None

    def __post_init__(self) -> None:
        for name in ("head", "rows"):
            if getattr(self, name) is not None and not self.links:
                raise ValueError(f"--{name} needs --links.")


def write_links(model: TranslatorOptions, data: str, options: LinkOptions) -> int:
    """Prints one line for each line of the file, blank where it is blank or cannot be used."""
    notes = Counter[str]()
    with model.open_in_job() as (translator, workers):
        linker = Linker(translator, _aligner(translator, options.head, options.rows))

        def check(pair: SentencePair) -> None:
            typed_words(translator, pair.source, pair.target)
            notes.update(joined(pair.source, pair.target))

        def answers(pairs: list[SentencePair]) -> Iterator[tuple[Json, str]]:
            for links in workers.shared_map(
                lambda pair: linker.links(pair.source, pair.target), pairs
            ):
                ordered = sorted(links)
                yield {"links": ordered}, " ".join(f"{i}-{j}" for i, j in ordered)

        write = partial(model.write, translator)
        status = answer_pairs(
            data, check, answers, {"links": []}, write, linked=True, first=workers.first
        )
        if workers.first:
            warn_unread(notes)
        return status


def joined(source: str, target: str) -> list[str]:
    """Says of which sides of a pair the words are not told apart, since nothing stands between
    them."""
    sides = {"source": source, "target": target}
    return [RUN_TOGETHER.format(side) for side, text in sides.items() if is_run_together(text)]


def _aligner(translator: Translator, head: tuple[int, int] | None, rows: Rows | None) -> Aligner:
    """A head of a model, or its aligner; ValueError if it has no such head, or no aligner."""
    if head is None:
        aligner = shipped_aligner(translator)
        return replace(aligner, rows=rows or aligner.rows)
    layers, heads = translator.config.sites[AttentionKind.CROSS].n_layers, translator.config.n_heads
    if head[0] >= layers or head[1] >= heads:
        known = f"{translator.name} has layers 1 to {layers} and heads 1 to {heads}"
        raise ValueError(f"There is no cross-attention head {head[0] + 1}.{head[1] + 1}; {known}.")
    usual = (translator.heads or {}).get("aligner", {}).get("rows", "predicted")
    return Aligner((head,), rows or usual)
