"""A text that a language model continued, with everything that it computed."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.runs.translation import Translation


@dataclass(frozen=True, eq=False, repr=False)
class Generation(Translation):
    """A prompt and its continuation. What a ``Translation`` says of its target holds of the whole text.

    There is no source: ``source_tokens`` is empty. The target is the prompt and what was written after it,
    so that each step, those of the prompt too, has the model's log-probability and its alternatives.

    Attributes:
        prompt: The prompt.
        given: Number of its tokens, the first of the target.
    """

    prompt: str = ""
    given: int = 0

    @property
    def surprisals(self) -> tuple[float, ...]:
        """−log₂ p of each token given those before it, in bits (Hale 2001)."""
        return tuple(-value / _LOG_2 for value in self.log_probs)


_LOG_2 = 0.6931471805599453
