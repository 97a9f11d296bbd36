"""Mean outputs of a model's heads as a file beside its weights (`means.safetensors`)."""

from __future__ import annotations

from pathlib import Path

from transformer.config import ModelConfig
from transformer.interventions import HeadMeans
from transformer.storage.description import MEANS_FILE, weights_hash
from transformer.storage.files import CheckpointError, write_atomically
from transformer.storage.tensors import opened, serialize_tensors

WEIGHTS = "weights"
"""The note that holds the hash of the weights."""


def write_means(directory: Path, means: HeadMeans) -> None:
    """Writes `means.safetensors` with the hash of the weights that lie in the directory."""
    tensors = {str(kind): outputs.float().contiguous() for kind, outputs in means.outputs.items()}
    notes = {**means.about, "format": "pt", WEIGHTS: weights_hash(directory)}
    write_atomically(directory / MEANS_FILE, serialize_tensors(tensors, notes))


def read_means(directory: Path, config: ModelConfig) -> HeadMeans | None:
    """The content of `means.safetensors`; None if there is no such file, or it belongs to other weights.

    CheckpointError if it is damaged, or describes the heads of another model.
    """
    path = directory / MEANS_FILE
    if not path.is_file():
        return None
    with opened(path) as file:
        notes = file.metadata() or {}
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if notes.get(WEIGHTS) != weights_hash(directory):
        return None
    shape = {str(kind): (site.n_layers, config.n_heads, config.d_head) for kind, site in config.sites.items()}
    fits = {name: tuple(tensor.shape) for name, tensor in found.items()} == shape
    if not fits or not all(bool(tensor.isfinite().all()) for tensor in found.values()):
        raise CheckpointError(f"{path} is damaged or describes the heads of another model; remove it.")
    about = {name: text for name, text in notes.items() if name not in ("format", WEIGHTS)}
    return HeadMeans({kind: found[kind].float() for kind in config.sites}, about)
