"""Files of a training run: one state file to resume from, and a log of JSON lines.

Only the state file counts. It is replaced atomically and holds everything that determines what the run
exports: weights, average, optimiser, random state, vocabulary, model card, and which weights did better. The
model files are written from it, so a run that was killed between two files writes them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from transformer.storage.files import CheckpointError, write_atomically
from transformer.storage.tensors import serialize_tensors
from transformer.text.tokenizer import Tokenizer
from transformer.training.trainer import Trainer, TrainingStep

STATE_FILE = "training.safetensors"
LOG_FILE = "log.jsonl"
TOKENIZER = "tokenizer"
"""Name of the entry of the state file that holds the vocabulary, as bytes."""


@dataclass
class Exported:
    """Parts of an exported model besides the weights."""

    tokenizer: Tokenizer  # the vocabulary
    card: str = ""  # text of the model card
    # whether the averaged weights did better than the last ones on the validation pairs
    averaged: bool = False


def save_state(directory: Path, trainer: Trainer, fingerprint: str, exported: Exported) -> None:
    """Writes the state to one file, atomically; a call for all processes, of which the first writes.

    ``fingerprint`` is that of the training data, which is compared when the run resumes.
    """
    notes = {
        "step": str(trainer.step),
        "options": json.dumps(trainer.options.to_dict()),
        "config": json.dumps(trainer.model.config.to_dict()),
        "data": fingerprint,
        "averaged": json.dumps(exported.averaged),
        "card": exported.card,
    }
    pieces = torch.frombuffer(bytearray(exported.tokenizer.to_bytes()), dtype=torch.uint8)
    tensors = trainer.state_tensors() | {TOKENIZER: pieces}
    if trainer.workers.first:
        write_atomically(directory / STATE_FILE, serialize_tensors(tensors, notes))


def load_exported(directory: Path) -> Exported:
    """Exported parts of a saved run besides the weights; CheckpointError if the state is damaged."""
    with _opened(directory) as file:
        notes = file.metadata() or {}
        tokenizer = Tokenizer(file.get_tensor(TOKENIZER).numpy().tobytes())
        return Exported(tokenizer, notes["card"], json.loads(notes["averaged"]))


def load_state(directory: Path, trainer: Trainer, fingerprint: str | None) -> list[str]:
    """Restores the state in which a saved run stopped; returns the names of the options that differ now.

    A ``fingerprint`` of None accepts other data than before. CheckpointError if the state is missing or
    damaged, or belongs to another model or other data.
    """
    with _opened(directory) as file:
        notes = file.metadata() or {}
        _check_notes(directory / STATE_FILE, notes, trainer, fingerprint)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        trainer.load_state_tensors(tensors, int(notes["step"]))
        saved: dict[str, Any] = json.loads(notes["options"])
    return [name for name, value in trainer.options.to_dict().items() if saved.get(name) != value]


@contextmanager
def _opened(directory: Path) -> Iterator[Any]:
    path = directory / STATE_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{directory} has no {STATE_FILE}, so there is no run to resume; leave out --resume."
        )
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except CheckpointError:
        raise
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged or cut off ({error}); the run cannot be resumed."
        ) from error


def _check_notes(path: Path, notes: dict[str, str], trainer: Trainer, fingerprint: str | None) -> None:
    saved, current = json.loads(notes["config"]), trainer.model.config.to_dict()
    if any(saved.get(name) != value for name, value in current.items() if name != "trained_length"):
        raise CheckpointError(
            f"{path} belongs to a model of a different shape; resume with the options of that run."
        )
    if fingerprint is not None and notes["data"] != fingerprint:
        raise CheckpointError(
            f"{path} was trained on other data; resume with the same files as before, or add --new-data."
        )


class StepLog:
    """Appends one JSON line per step to `log.jsonl`."""

    def __init__(self, directory: Path, step: int) -> None:
        """Opens the log of a run that has done `step` steps; lines of later steps are dropped."""
        self._path = directory / LOG_FILE
        if self._path.exists():
            kept = [
                line for line in self._path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step
            ]
            write_atomically(self._path, "".join(f"{line}\n" for line in kept).encode())
        self._file = self._path.open("a", encoding="utf-8", buffering=1)

    def write(self, done: TrainingStep) -> None:
        """Adds a step; missing measurements are left out."""
        values = {
            "step": done.step,
            "loss": round(done.loss, 5),
            "learning_rate": float(f"{done.learning_rate:.6g}"),
            "gradient_norm": round(done.gradient_norm, 4),
            "tokens": done.tokens,
            "seconds": round(done.seconds, 4),
            "gflops": round(done.flops / 1e9, 2),
            "valid_loss": done.valid_loss,
            "valid_loss_average": done.valid_loss_average,
            "bleu": done.bleu,
            "bleu_sentences": done.bleu_sentences,
            "exact": done.exact,
        }
        self._file.write(
            json.dumps({name: value for name, value in values.items() if value is not None}) + "\n"
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
