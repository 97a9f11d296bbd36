"""The vocabulary of a T5 model: a sentencepiece model, and extra ids behind its pieces, last one first."""

from __future__ import annotations

import re
from pathlib import Path

from transformer.families.pieces import PieceIds, PublishedVocabulary, Splitter, processor, read_model
from transformer.storage.files import CheckpointError, read_json
from transformer.text.words import EOS, PAD, UNK

PIECES_FILE = "spiece.model"
SETTINGS_FILE = "tokenizer_config.json"
EXTRA_IDS = 100
"""Extra ids of a tokenizer whose settings do not say how many it has."""
INTO = re.compile(r"<2[a-z]{2,3}(_[A-Za-z]+)?>")
"""Pieces of MADLAD with which a text says into which language it shall be translated."""
_EXTRA = re.compile(r"<extra_id_\d+>")


def read_vocabulary(directory: Path, size: int) -> PublishedVocabulary:
    """Reads the vocabulary of a model with so many rows of embeddings; rows beyond it are unused.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """
    path = directory / PIECES_FILE
    model = read_model(path)
    found = processor(model, PIECES_FILE)
    names = [found.IdToPiece(number) for number in range(found.get_piece_size())]
    extra = (f"<extra_id_{number}>" for number in reversed(range(_extra_ids(directory))))
    names += [name for name in extra if name not in names]
    if len(names) > size:
        raise CheckpointError(
            f"{path} has {len(names):,} pieces with its extra ids, but config.json has {size:,} rows for "
            "them; the files belong to different models."
        )
    ids = {name: number for number, name in enumerate(names)}
    missing = [piece for piece in (EOS, UNK, PAD) if piece not in ids]
    if missing:
        raise CheckpointError(f"{path} has no piece {missing[0]}, so it is not the vocabulary of a T5 model.")
    special = {EOS, UNK, PAD, *filter(_EXTRA.fullmatch, names), *filter(INTO.fullmatch, names)}
    splitter = Splitter(model, PIECES_FILE, PieceIds(ids, size), special)
    return PublishedVocabulary(splitter, splitter)


def _extra_ids(directory: Path) -> int:
    """Number of extra ids that the tokenizer's settings ask for; CheckpointError if it is not one."""
    path = directory / SETTINGS_FILE
    settings = read_json(path) if path.exists() else {}
    special = settings.get("additional_special_tokens")
    listed = [each for each in special if _EXTRA.fullmatch(str(each))] if isinstance(special, list) else ()
    count = settings.get("extra_ids", len(listed) or EXTRA_IDS)
    if type(count) is not int or not 0 <= count <= 10_000:
        raise CheckpointError(f"{path} says extra_ids = {count!r:.80}; it must be from 0 to 10,000.")
    return count
