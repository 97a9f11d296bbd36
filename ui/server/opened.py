"""A sentence that is ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transformer.translate.translation import Translation
from ui.server import examples, runs
from ui.server.runs import Asked


@dataclass(frozen=True)
class Opened:
    """A sentence that is ready to be shown.

    Attributes:
        asked: the request that identifies the translation.
        translation: the translation with its trace.
        example: the example with this sentence, or None.
    """

    asked: Asked
    translation: Translation
    example: examples.Example | None

    @property
    def trace(self) -> str:
        """The short name on which figures, events and the view agree."""
        return self.asked.trace

    def traced(self) -> Opened:
        """The same sentence with the whole trace of its translation; waits for the model."""
        return replace(self, translation=runs.traced(self.asked, runs.Untold()))
