"""A model that answers requests: where it computes, and what it does when a GPU has no memory left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

import torch

from transformer.runs.call import AnyModel, Equipment
from transformer.runs.devices import FULL, on_cpu
from transformer.text.brief import Brief

T = TypeVar("T")
_leaving = threading.Lock()


class Answering(Brief, Generic[AnyModel]):
    """A model and its equipment, which leave a GPU that has no memory left.

    Several threads may ask at once. Those that compute when the model leaves the GPU end on the GPU.
    """

    model: AnyModel
    equipment: Equipment[AnyModel]

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device

    def answered(self, answer: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Parts of an answer; all of them again, made on the CPU, if the GPU has no memory left."""
        try:
            yield from answer()
        except torch.OutOfMemoryError:
            if self.device.type == "cpu":
                raise
            self.leave_gpu()
            yield from answer()

    def leave_gpu(self) -> None:
        """Computes on the CPU from now on; the notes of each answer say so."""
        with _leaving:
            if self.device.type != "cpu":
                self.model = on_cpu(self.model)
                notes = (*self.equipment.notes, FULL)
                self.equipment = replace(self.equipment, model=self.model, notes=notes)
