"""One sentence through every snapshot of a run: its maps, its loss, and what the model writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.birth.statistics import opened
from transformer.runs.translation import Translation
from transformer.runs.wording import InputError

LONGEST = 64
"""Most tokens of either side: a map shows so many."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The sentence after one step of training."""

    step: int  # the step; 0 is the untrained model
    forced: Translation  # the model on the given target, with its trace
    written: str  # what the model writes on its own (greedy search)

    @property
    def loss(self) -> float:
        """Cross-entropy of the target per token, in nats."""
        return -sum(self.forced.log_probs) / len(self.forced.log_probs)


def frames(directory: Path, text: str, target: str, title: str | None = None) -> Iterator[Frame]:
    """Reads a sentence with every snapshot; the target is the same for all, so their maps can be compared.

    CheckpointError if a snapshot is damaged or of another model; InputError if a text is empty, or has more
    than ``LONGEST`` tokens.
    """
    for step, translator in opened(directory, title):
        forced = translator.force(text, target)
        longest = max(len(forced.source_tokens), len(forced.target_tokens))
        if longest > LONGEST:
            raise InputError(
                f"The sentence or its translation has {longest:,} tokens of this run's vocabulary; every "
                f"snapshot reads at most {LONGEST}."
            )
        yield Frame(step, forced, translator.translate(text, beam_size=1, capture=False).text)
