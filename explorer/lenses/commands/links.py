"""The links of `python -m explorer align --links`: those of one head, or of a model of each direction."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from typing import get_args

from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.linking import Linker, shipped_aligner, typed_words
from explorer.lenses.words.reading import Rows
from explorer.lenses.words.symmetry import WAYS, Way, symmetrised
from transformer.commands.arguments import option, shared_model, told, write
from transformer.commands.lines import pair_parts
from transformer.config import AttentionKind
from transformer.text.links import Links
from transformer.text.pairs import SentencePair
from transformer.translator import Translator, load_translator

_NEEDS = {
    "links": {"head": "--head", "rows": "--rows", "reverse": "--reverse"},
    "reverse": {"reverse_head": "--reverse-head", "combine": "--combine"},
}
"""Options that say nothing without another."""


def add_link_options(align: argparse.ArgumentParser) -> None:
    """Declares the options of links."""
    text = "write a line of links for each pair: 0-0 1-2, source and target word from 0"
    align.add_argument("--links", action="store_true", help=text)
    text = "with --links: the head, counted from 1, such as 3.5; without one, the aligner of the model"
    option(align, "--head", _head, "LAYER.HEAD", text)
    text = "with --links: the row of a word (default: that of the model's aligner, else predicted)"
    align.add_argument("--rows", choices=get_args(Rows), help=text)
    text = "with --links: a model of the opposite direction, whose links are joined with these"
    option(align, "--reverse", str, "DIR", text)
    option(align, "--reverse-head", _head, "LAYER.HEAD", "its head; without one, its aligner")
    text = "how both directions are joined (default: grow-diag)"
    align.add_argument("--combine", choices=WAYS, help=text)


def asks_for_links(arguments: argparse.Namespace) -> bool:
    """Whether links are asked for; ValueError if an option lacks the one that it belongs to."""
    for needed, options in _NEEDS.items():
        given = [flag for name, flag in options.items() if getattr(arguments, name) is not None]
        if given and not getattr(arguments, needed):
            raise ValueError(f"{given[0]} needs --{needed}.")
    return bool(arguments.links)


def _head(text: str) -> tuple[int, int]:
    """A head as it is written, counted from 1, as the places of its layer and of itself, from 0."""
    if not (match := re.fullmatch(r"([1-9]\d{0,3})\.([1-9]\d{0,3})", text, re.ASCII)):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no head; write layer and head, such as 3.5")
    return int(match[1]) - 1, int(match[2]) - 1


def write_links(arguments: argparse.Namespace) -> int:
    """Prints one line for each line of the file, blank where it is blank or cannot be used."""
    bad = list[str]()
    with shared_model(arguments) as (translator, workers):
        aligned = _Aligned(
            _linker(translator, arguments.head, arguments.rows),
            _reverse(arguments),
            arguments.combine or "grow-diag",
        )
        for part in pair_parts(arguments.data, aligned.check, linked=True):
            found = workers.each(aligned.links, [line.pair for line in part if line.pair is not None])
            each = iter(list(found))
            for line in part if workers.first else ():
                bad += [line.error] if line.error else []
                pairs = [] if line.pair is None else sorted(next(each))
                values = {"links": pairs} | ({"error": line.error} if line.error else {})
                write(arguments, values, " ".join(f"{i}-{j}" for i, j in pairs))
    return told(bad)


@dataclass(frozen=True)
class _Aligned:
    """The links of a pair in one direction, or in both."""

    forward: Linker  # reads the source
    backward: Linker | None  # reads the target; None for one direction
    way: Way  # how both are joined

    def check(self, pair: SentencePair) -> None:
        """Raises ValueError if a model cannot read the pair."""
        typed_words(self.forward.translator, pair.source, pair.target)
        if self.backward is not None:
            typed_words(self.backward.translator, pair.target, pair.source)

    def links(self, pair: SentencePair) -> Links:
        """The links, source word first."""
        found = self.forward.links(pair.source, pair.target)
        if self.backward is None:
            return found
        turned = frozenset((i, j) for j, i in self.backward.links(pair.target, pair.source))
        return symmetrised(found, turned, self.way)


def _reverse(arguments: argparse.Namespace) -> Linker | None:
    """The model of the opposite direction, if one is named."""
    if arguments.reverse is None:
        return None
    translator = load_translator(arguments.reverse, arguments.device, arguments.dtype)
    return _linker(translator, arguments.reverse_head, arguments.rows)


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
