"""A sentence that is ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from transformer import Translation
from ui.server import examples
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
