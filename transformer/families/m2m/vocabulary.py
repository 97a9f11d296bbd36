"""The vocabularies of M2M-100 and NLLB-200: a sentencepiece model, fairseq's order of ids, languages behind.

A text begins with two of the languages, such as ``eng_Latn deu_Latn``. The first is a piece of the source;
the second is the piece with which the output begins.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer.families.m2m.languages import M2M, NLLB, WMT21
from transformer.families.pieces import PieceTable, PublishedVocabulary, Splitter, processor, read_model
from transformer.storage.files import CheckpointError, read_json
from transformer.text.typed import Cut
from transformer.text.words import BOS, EOS, PAD, UNK

PIECES_FILE = "sentencepiece.bpe.model"
IDS_FILE = "vocab.json"
SETTINGS_FILE = "tokenizer_config.json"
MASK = "<mask>"
SPECIAL = BOS, PAD, EOS, UNK
"""The first four pieces, in fairseq's order; sentencepiece has three others, in another order."""


class PairVocabulary(PublishedVocabulary):
    """A vocabulary of models that are told in which language a text is, and in which they shall write."""

    def __init__(self, splitter: Splitter, languages: tuple[str, ...]) -> None:
        super().__init__(splitter, splitter)
        self.languages = languages  # their pieces, in the order of their ids

    def cut(self, text: str) -> Cut:
        """As for every vocabulary; the language of the output is no piece of the source."""
        found = super().cut(text)
        if len(found.ids) < 2 or not set(found.pieces[:2]) <= set(self.languages):
            return found
        ids, pieces, words = map(_without_second, (found.ids, found.pieces, found.words))
        return replace(found, ids=ids, pieces=pieces, words=words, start=found.ids[1])


def _without_second(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (values[0], *values[2:])


def read_vocabulary(directory: Path, size: int) -> PairVocabulary:
    """Reads the vocabulary of a model with so many rows of embeddings.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """
    path = directory / PIECES_FILE
    model = read_model(path)
    if (directory / IDS_FILE).is_file():
        ids, languages = _listed(directory)
    else:
        ids, languages = _in_fairseq_order(model)
    behind = len(ids)
    ids |= {piece: behind + number for number, piece in enumerate(languages)}
    ids |= {} if (directory / IDS_FILE).is_file() else {MASK: len(ids)}
    if max(ids.values()) >= size:
        raise CheckpointError(
            f"{path} has {max(ids.values()) + 1:,} pieces with its languages, but config.json has {size:,} "
            "rows for them; the files belong to different models."
        )
    special = {*SPECIAL, *languages, *({MASK} & set(ids))}
    return PairVocabulary(Splitter(model, PIECES_FILE, PieceTable(ids, size), special), languages)


def _in_fairseq_order(model: bytes) -> tuple[dict[str, int], tuple[str, ...]]:
    """NLLB-200: the four special pieces, then those of sentencepiece without its first three."""
    found = processor(model, PIECES_FILE)
    names = [found.IdToPiece(number) for number in range(3, found.get_piece_size())]
    return {name: number for number, name in enumerate((*SPECIAL, *names))}, NLLB


def _listed(directory: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """M2M-100: a file lists the ids. The model for WMT 2021 has languages of its own."""
    path = directory / IDS_FILE
    ids = read_json(path)
    numbers = [each for each in ids.values() if type(each) is int]
    missing = [piece for piece in SPECIAL if piece not in ids]
    if sorted(numbers) != list(range(len(ids))) or missing:
        lacks = f"has no piece {missing[0]}" if missing else "does not number its pieces from 0 on"
        raise CheckpointError(f"{path} {lacks}, so it is not the vocabulary of an M2M-100 model.")
    settings = read_json(directory / SETTINGS_FILE) if (directory / SETTINGS_FILE).exists() else {}
    codes = WMT21 if settings.get("language_codes") == "wmt21" else M2M
    return ids, tuple(f"__{code}__" for code in codes)
