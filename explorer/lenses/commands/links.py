"""The links of `python -m explorer align --links`: those of one head, or of a model of each direction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.linking import Linker, shipped_aligner, typed_words
from explorer.lenses.words.links import Links
from explorer.lenses.words.reading import Rows
from explorer.lenses.words.symmetry import Way, symmetrised
from transformer.commands.lines import answer_pairs
from transformer.commands.models import Json, TranslatorOptions
from transformer.config import AttentionKind
from transformer.text.pairs import SentencePair
from transformer.translator import Translator, load_translator


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
    reverse [DIR]: with --links: a model of the opposite direction, whose links are joined with these
    reverse_head: its head; without one, its aligner
    combine: how both directions are joined (default: grow-diag)
    """

    links: bool = False
    head: Head = None
    rows: Rows | None = None
    reverse: str | None = None
    reverse_head: Head = None
    combine: Way | None = None

    def __post_init__(self) -> None:
        needs = {"head": "links", "rows": "links", "reverse": "links"}
        for name, needed in (needs | {"reverse_head": "reverse", "combine": "reverse"}).items():
            if getattr(self, name) is not None and not getattr(self, needed):
                raise ValueError(f"--{name.replace('_', '-')} needs --{needed}.")


def write_links(model: TranslatorOptions, data: str, options: LinkOptions) -> int:
    """Prints one line for each line of the file, blank where it is blank or cannot be used."""
    with model.open_in_job() as (translator, workers):
        forward, backward = _linker(translator, options.head, options.rows), None
        if options.reverse is not None:
            opposite = load_translator(options.reverse, translator.device, model.dtype)
            backward = _linker(opposite, options.reverse_head, options.rows)

        def check(pair: SentencePair) -> None:
            typed_words(translator, pair.source, pair.target)
            if backward is not None:
                typed_words(backward.translator, pair.target, pair.source)

        def links(pair: SentencePair) -> Links:
            one = forward.links(pair.source, pair.target)
            if backward is None:
                return one
            other = frozenset((i, j) for j, i in backward.links(pair.target, pair.source))
            return symmetrised(one, other, options.combine or "grow-diag")

        def answers(pairs: list[SentencePair]) -> Iterator[tuple[Json, str]]:
            for ordered in map(sorted, workers.shared_map(links, pairs)):
                yield {"links": ordered}, " ".join(f"{i}-{j}" for i, j in ordered)

        write = partial(model.write, translator)
        return answer_pairs(data, check, answers, {"links": []}, write, linked=True, first=workers.first)


def _linker(translator: Translator, head: tuple[int, int] | None, rows: Rows | None) -> Linker:
    """A model with a head of it, or with its aligner; ValueError if it has no such head, or no aligner."""
    if head is None:
        aligner = shipped_aligner(translator)
        return Linker(translator, replace(aligner, rows=rows or aligner.rows))
    layers, heads = translator.config.sites[AttentionKind.CROSS].n_layers, translator.config.n_heads
    if head[0] >= layers or head[1] >= heads:
        known = f"{translator.name} has layers 1 to {layers} and heads 1 to {heads}"
        raise ValueError(f"There is no cross-attention head {head[0] + 1}.{head[1] + 1}; {known}.")
    own = (translator.heads or {}).get("aligner", {}).get("rows", "predicted")
    return Linker(translator, Aligner((head,), rows or own))
