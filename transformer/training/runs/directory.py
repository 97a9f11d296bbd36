"""The directory that a training run writes."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path

from transformer.storage.description import CARD_FILE
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import UNFINISHED, CheckpointError
from transformer.storage.lock import claimed
from transformer.training.runs.files import Exported, StepLog, load_state, save_state
from transformer.training.trainer import Trainer, TrainingStep


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
