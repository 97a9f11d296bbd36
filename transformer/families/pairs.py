"""Vocabularies of models for many pairs of languages: fairseq's order of ids, the languages behind.

A text begins with two of the languages, such as ``eng_Latn deu_Latn``. The first is a piece of the source;
the second is the piece with which the output begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer.families.pieces import PieceIds, PublishedVocabulary, Splitter, processor
from transformer.storage.files import CheckpointError
from transformer.text.typed import PiecedText
from transformer.text.words import BOS, EOS, PAD, UNK

PIECES_FILE = "sentencepiece.bpe.model"
MASK = "<mask>"
SPECIAL = BOS, PAD, EOS, UNK
"""The first four pieces, in fairseq's order; sentencepiece has three others, in another order."""


class PairVocabulary(PublishedVocabulary):
    """A vocabulary of models that are told in which language a text is, and in which they shall write."""

    def __init__(self, splitter: Splitter, languages: tuple[str, ...]) -> None:
        super().__init__(splitter, splitter)
        self.languages = languages  # their pieces, in the order of their ids

    def cut(self, text: str) -> PiecedText:
        """As for every vocabulary; the language of the output is no piece of the source."""
        found = super().cut(text)
        if len(found.ids) < 2 or not set(found.pieces[:2]) <= set(self.languages):
            return found
        ids, pieces, words = map(_without_second, (found.ids, found.pieces, found.words))
        return replace(found, ids=ids, pieces=pieces, words=words, start=found.ids[1])


def _without_second(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (values[0], *values[2:])


def in_fairseq_order(model: bytes) -> dict[str, int]:
    """The four special pieces, then those of a sentencepiece model without its first three."""
    found = processor(model, PIECES_FILE)
    names = [found.IdToPiece(number) for number in range(3, found.get_piece_size())]
    return {name: number for number, name in enumerate((*SPECIAL, *names))}


def pair_vocabulary(
    path: Path,  # the sentencepiece model
    model: bytes,  # what it holds
    ids: Mapping[str, int],  # the pieces before the languages
    languages: Sequence[str],
    behind: Sequence[str],  # pieces behind them
    size: int,  # rows of embeddings
) -> PairVocabulary:
    """The vocabulary of a model; CheckpointError if there are more pieces than rows."""
    found = {**ids} | {piece: len(ids) + number for number, piece in enumerate((*languages, *behind))}
    if max(found.values()) >= size:
        raise CheckpointError(
            f"{path} has {max(found.values()) + 1:,} pieces with its languages, but config.json has {size:,} "
            "rows for them; the files belong to different models."
        )
    special = {*SPECIAL, *languages, *({MASK} & set(found))}
    return PairVocabulary(Splitter(model, PIECES_FILE, PieceIds(found, size), special), tuple(languages))
