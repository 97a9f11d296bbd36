"""The directory of a training run: one state file to resume from, a log of JSON lines, and the model.

Only the state file counts. It is replaced atomically and holds everything that determines what the run
exports: weights, average, optimiser, random state, vocabulary, model card, and which weights did better. The
model files are written from it, so a run that was killed between two files writes them again.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from transformer.storage.description import CARD_FILE
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import UNFINISHED, CheckpointError, write_atomically
from transformer.storage.lock import claimed
from transformer.storage.tensors import serialize_tensors
from transformer.text.vocabulary import Tokenizer
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


class RunDirectory:
    """The directory of a run: the state to resume from, and the model exported from that state."""

    def __init__(
        self,
        path: Path,  # the directory
        trainer: Trainer,  # the trainer of the run
        exported: Exported,  # parts of the exported model besides the weights
        fingerprint: str,  # fingerprint of the training data
    ) -> None:
        self._path, self._trainer, self._exported, self._fingerprint = path, trainer, exported, fingerprint
        self._saved_step = -1

    def begin(self, resume: bool, new_data: bool) -> None:
        """Loads the saved state (for the same data, unless `new_data`), or saves the untrained model.

        CheckpointError if another run trains into the directory.
        """
        if self._trainer.workers.first:
            self._path.mkdir(parents=True, exist_ok=True)
            claim = claimed(self._path.with_name(f".{self._path.name}.lock"))
            if claim is None:
                raise CheckpointError(
                    f"Another run trains into {self._path}: stop that one, or choose another --output."
                )
            weakref.finalize(self, claim.close)
            for file in self._path.rglob(UNFINISHED):
                file.unlink()
        if not resume:
            return self.save()
        changed = load_state(self._path, self._trainer, None if new_data else self._fingerprint)
        if changed and self._trainer.workers.first:
            print(f"Resuming with changed options: {', '.join(changed)}.", file=sys.stderr)
        return self._export()

    def log(self) -> StepLog:
        """The log, cut at the current step."""
        return StepLog(self._path, self._trainer.step)

    def choose(self, done: TrainingStep) -> None:
        """Remembers which weights have the lower validation loss."""
        if done.valid_loss is not None and done.valid_loss_average is not None:
            self._exported.averaged = done.valid_loss_average < done.valid_loss

    def save(self) -> None:
        """Writes the state, then the model exported from it; a call for all processes."""
        if self._saved_step != self._trainer.step:
            save_state(self._path, self._trainer, self._fingerprint, self._exported)
            self._export()

    def _export(self) -> None:
        """Writes the model files from the state, with the averaged weights if they did better."""
        self._saved_step = step = self._trainer.step
        if not self._trainer.workers.first:
            return
        averaged = self._exported.averaged and self._trainer.average
        weights = self._trainer.average if averaged else self._trainer.model.state_dict()
        card = "" if (self._path / CARD_FILE).exists() else self._exported.card
        config = self._trainer.model.config
        save_checkpoint(self._path, config, weights, self._exported.tokenizer, card=card, step=step)
