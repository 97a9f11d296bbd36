"""The vocabularies of M2M-100, where a file lists the ids, and of NLLB-200, which has fairseq's order."""

from __future__ import annotations

from pathlib import Path

from transformer.families.m2m.languages import M2M, NLLB, WMT21
from transformer.families.pairs import (
    MASK,
    PIECES_FILE,
    SPECIAL,
    PairVocabulary,
    in_fairseq_order,
    pair_vocabulary,
)
from transformer.families.pieces import read_model
from transformer.storage.files import CheckpointError, read_json

IDS_FILE = "vocab.json"
MADE_UP = 8
"""Rows of M2M-100 behind the languages, which stand for nothing."""
SETTINGS_FILE = "tokenizer_config.json"


def read_vocabulary(directory: Path, size: int) -> PairVocabulary:
    """Reads the vocabulary of a model with so many rows of embeddings.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """
    path = directory / PIECES_FILE
    model = read_model(path)
    if (directory / IDS_FILE).is_file():
        ids, languages = _listed(directory)
        _check_whole(directory, ids, model, size - len(ids) - len(languages))
        return pair_vocabulary(path, model, ids, languages, (), size)
    return pair_vocabulary(path, model, in_fairseq_order(model), NLLB, (MASK,), size)


def _check_whole(directory: Path, ids: dict[str, int], model: bytes, left: int) -> None:
    """CheckpointError if pieces lack: then languages would get their ids, and ``left`` would be too many."""
    missing = sorted(in_fairseq_order(model).keys() - ids.keys())
    if missing and left > MADE_UP:
        raise CheckpointError(
            f"{directory / IDS_FILE} lacks {len(missing):,} pieces of {PIECES_FILE} for which config.json "
            f"has rows, such as {missing[0]!r:.60}; the file is not complete."
        )


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
