"""Loads BART models into our own Transformer."""

from __future__ import annotations

from pathlib import Path

from transformer.families.bart.config import bart_config
from transformer.families.bart.vocabulary import read_vocabulary
from transformer.families.fairseq import opened, prefixed
from transformer.storage.description import CONFIG_FILE
from transformer.storage.directory import Checkpoint, check_sizes
from transformer.storage.files import read_json
from transformer.storage.tensors import stored_tensors, weight_files


def load_bart(path: str | Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub; as ``load_m2m``."""
    directory = Path(path)
    values = read_json(directory / CONFIG_FILE)
    config = bart_config(values, directory / CONFIG_FILE)
    stored = prefixed(stored_tensors(weight_files(directory)))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    return opened(directory, values, config, stored, read_vocabulary(directory, config.vocab_size))
