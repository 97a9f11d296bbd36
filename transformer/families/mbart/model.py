"""Loads mBART-50 models into our own Transformer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from transformer.families.fairseq import opened, prefixed
from transformer.families.mbart.config import mbart_config
from transformer.families.mbart.vocabulary import read_vocabulary
from transformer.storage.description import CONFIG_FILE
from transformer.storage.directory import Checkpoint, check_sizes
from transformer.storage.files import read_json
from transformer.storage.tensors import stored_tensors, weight_files


def load_mbart(path: str | Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub; as ``load_m2m``."""
    directory = Path(path)
    values = read_json(directory / CONFIG_FILE)
    config = mbart_config(values, directory / CONFIG_FILE)
    stored = prefixed(stored_tensors(weight_files(directory)))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    vocabulary = read_vocabulary(directory, config.vocab_size)
    config = replace(config, languages=" ".join(vocabulary.languages))
    return opened(directory, values, config, stored, vocabulary)
