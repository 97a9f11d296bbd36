"""A language model that answers as a translator does: its source is a prompt, its target a whole text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import transformer
from transformer.config import LanguageModelConfig
from transformer.interventions import Intervention
from transformer.run import DecodeStep, Translation

if TYPE_CHECKING:  # the catalogue of models is read before PyTorch is there
    import torch

    from transformer.model import LanguageModel

MORE = 40
"""Most tokens that a model writes after a prompt."""
LONGEST = 200
"""Most tokens of a text that a visitor gives."""


class LongTextError(ValueError):
    """A visitor's text is too long for the page."""


class LanguageWriter:
    """A language model for the pages: its generator, sizes, and contents of `heads.json`, None without it."""

    def __init__(self, generator: transformer.Translator) -> None:
        self.generator, self.heads = generator, generator.heads
        self.config: LanguageModelConfig = generator.model.config

    @property
    def model(self) -> LanguageModel:
        """The network."""
        return self.generator.model

    @property
    def device(self) -> torch.device:
        """The device on which it computes."""
        return self.generator.device

    def leave_gpu(self) -> None:
        """Computes on the CPU from now on."""
        self.generator.leave_gpu()

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a text; none for an empty one.

        LongTextError if the text has more than ``LONGEST`` tokens.
        """
        found = self.generator.ids(text)
        if len(found) > LONGEST:
            raise LongTextError(f"The text has {len(found):,} tokens; this page reads at most {LONGEST}.")
        return found

    def stream(
        self,
        text: str,
        beam_size: int = 1,
        *,
        sample: transformer.Sampling | None = None,
        capture: bool = True,
        interventions: Iterable[Intervention] = (),
    ) -> Iterator[DecodeStep | Translation]:
        """Continues a prompt by at most ``MORE`` tokens; as ``Translator.stream``."""
        most = min(len(self.ids(text)) + MORE, self.config.max_positions)
        return self.generator.stream(
            text,
            beam_size=beam_size,
            max_length=most,
            sample=sample,
            capture=capture,
            interventions=interventions,
        )

    def force(
        self, text: str, target: str, capture: bool = True, interventions: Iterable[Intervention] = ()
    ) -> Translation:
        """Reads a whole text; ``text``, the source that a translator would read, is empty.

        ValueError if the text is empty or too long.
        """
        self.ids(target)
        return self.generator.force(target, capture=capture, interventions=interventions)

    def translate(self, text: str = "", *, beam_size: int = 1, max_length: int = MORE) -> Translation:
        """The run on which heads are measured: the text itself, read up to a length, with nothing written."""
        return self.generator.force(self.generator.ids(text)[:max_length])


def load_writer(path: Path) -> LanguageWriter:
    """Opens the language model of a directory.

    CheckpointError if the directory is damaged, or its model translates.
    """
    return LanguageWriter(transformer.load_language_model(path))
