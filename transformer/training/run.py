"""The directory of a training run: one state file to resume from, a log of JSON lines, and the
model.

Only the state file counts. It is replaced atomically and holds everything that determines what the
run exports: weights, average, optimiser, random state, vocabulary, model card, and which weights
did better. The model files are written from it, so a run that was killed between two files writes
them again.
"""

import json
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from transformer.storage.description import CARD_FILE
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import UNFINISHED, CheckpointError, claimed, write_atomically
from transformer.storage.tensors import TensorFile, serialize_tensors, tensors_of
from transformer.text.tokenizer import Tokenizer
from transformer.training.log import log_line
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


@dataclass
class RunDirectory:
    """The directory of a run."""

    path: Path  # the directory
    trainer: Trainer  # the trainer of the run
    exported: Exported  # parts of the exported model besides the weights
    fingerprint: str  # fingerprint of the training data
    _saved_step: int = field(default=-1, init=False)

    def begin(self, resume: bool, new_data: bool) -> None:
        """Loads the saved state (for the same data, unless `new_data`), or saves the untrained
        model.

        CheckpointError if another run trains into the directory, or as `load_state`.
        """
        first = self.trainer.workers.first
        if first:
            self.path.mkdir(parents=True, exist_ok=True)
            claim = claimed(self.path.with_name(f".{self.path.name}.lock"))
            if claim is None:
                raise CheckpointError(
                    f"Another run trains into {self.path}: stop that one, or choose another "
                    "--output."
                )
            weakref.finalize(self, claim.close)
            for file in self.path.rglob(UNFINISHED):
                file.unlink()
        if not resume:
            return self.save()
        changed = self.load_state(new_data)
        if changed and first:
            print(f"Resuming with changed options: {', '.join(changed)}.", file=sys.stderr)
        return self._export()

    def save(self) -> None:
        """Writes the state, then the model exported from it; a call for all processes."""
        if self._saved_step != self.trainer.step:
            self.save_state()
            self._export()

    def save_state(self) -> None:
        """Writes the state to one file, atomically; a call for all processes, of which the first
        writes."""
        notes = {
            "step": str(self.trainer.step),
            "options": json.dumps(vars(self.trainer.options)),
            "config": json.dumps(asdict(self.trainer.model.config)),
            "data": self.fingerprint,
            "averaged": json.dumps(self.exported.averaged),
            "card": self.exported.card,
        }
        pieces = torch.frombuffer(bytearray(self.exported.tokenizer.serialized), dtype=torch.uint8)
        tensors = self.trainer.state_tensors() | {TOKENIZER: pieces}
        if self.trainer.workers.first:
            write_atomically(self.path / STATE_FILE, serialize_tensors(tensors, notes))

    def load_state(self, new_data: bool = False) -> list[str]:
        """Restores the state in which the run stopped; returns the names of the options that differ
        now.

        CheckpointError if the state is missing or damaged, or belongs to another model or (unless
        `new_data`) other data.
        """
        with _opened(self.path) as file:
            notes = file.metadata() or {}
            path = self.path / STATE_FILE
            saved = json.loads(notes["config"])
            current = asdict(self.trainer.model.config)
            if any(
                saved.get(name) != value
                for name, value in current.items()
                if name != "trained_length"
            ):
                raise CheckpointError(
                    f"{path} belongs to a model of a different shape; resume with the options of "
                    "that run."
                )
            if not new_data and notes["data"] != self.fingerprint:
                raise CheckpointError(
                    f"{path} was trained on other data; resume with the same files as before, or "
                    "add --new-data."
                )
            self.trainer.load_state_tensors(tensors_of(file), int(notes["step"]))
            options: dict[str, Any] = json.loads(notes["options"])
        return [
            name for name, value in vars(self.trainer.options).items() if options.get(name) != value
        ]

    def _export(self) -> None:
        """Writes the model files from the state, with the averaged weights if they did better."""
        self._saved_step = step = self.trainer.step
        if not self.trainer.workers.first:
            return
        averaged = self.exported.averaged and self.trainer.average
        weights = self.trainer.average if averaged else self.trainer.model.state_dict()
        card = "" if (self.path / CARD_FILE).exists() else self.exported.card
        config = self.trainer.model.config
        save_checkpoint(self.path, config, weights, self.exported.tokenizer, card=card, step=step)

    @contextmanager
    def log(self) -> Iterator[Callable[[TrainingStep], None]]:
        """What appends one line per step to the log, which is cut at the current step."""
        path = self.path / LOG_FILE
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            done = (f"{line}\n" for line in lines if _number(line) <= self.trainer.step)
            write_atomically(path, "".join(done).encode())
        with path.open("a", encoding="utf-8", buffering=1) as file:
            yield lambda step: print(log_line(step), file=file)

    def choose(self, done: TrainingStep) -> None:
        """Remembers which weights have the lower validation loss."""
        if done.valid_loss is not None and done.valid_loss_average is not None:
            self.exported.averaged = done.valid_loss_average < done.valid_loss


def load_exported(directory: Path) -> Exported:
    """Exported parts of a saved run besides the weights; CheckpointError if the state is
    damaged."""
    with _opened(directory) as file:
        notes = file.metadata() or {}
        tokenizer = Tokenizer(file.get_tensor(TOKENIZER).numpy().tobytes())
        return Exported(tokenizer, notes["card"], json.loads(notes["averaged"]))


@contextmanager
def _opened(directory: Path) -> Iterator[TensorFile]:
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


def _number(line: str) -> float:
    """The step of a line of a log, whatever else it says; infinite if it is none."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
