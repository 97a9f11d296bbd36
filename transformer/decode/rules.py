"""What a model's makers ask of the search: widths and limits, tokens that are forbidden or forced.

The rules change what a search may choose, never what the model says: log-probabilities and alternatives stay
the model's own, and a step at which a rule decided is marked as forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True, kw_only=True)
class SearchRules:
    """How a model wants to be searched; the default asks for nothing.

    Attributes:
        beam_size: Hypotheses per sentence where the caller does not say; 1 is greedy search.
        length_penalty: α of Σ log p / length^α.
        early_stopping: A beam ends: True: as soon as it is full of finished hypotheses; False: when nothing
            that runs beats the worst of them at its present length; "never": at its greatest length.
        max_length: Most output tokens, the end token included; None where the package decides.
        forbidden: Sequences of ids that the output must not contain.
        forced_end: Id of the only token allowed at the last place before the limit; None: any.
        renormalize: What is left after the forbidden tokens is scaled to sum to 1 before it is scored.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False
    max_length: int | None = None
    forbidden: tuple[tuple[int, ...], ...] = ()
    forced_end: int | None = None
    renormalize: bool = False

    @property
    def lookback(self) -> int:
        """How many output tokens must be known to tell which one is forbidden next."""
        return max((len(sequence) - 1 for sequence in self.forbidden), default=0)

    def allowed(self, log_probs: Tensor, endings: Sequence[Sequence[int]], last: Sequence[bool]) -> Tensor:
        """What a search chooses from.

        Args:
            log_probs: (rows, pieces) the model's own log-probabilities.
            endings: The last tokens of each row's output, at least ``lookback`` where there are so many.
            last: For each row, whether the limit leaves one token.

        Returns:
            (rows, pieces): -inf where a token is not allowed; ``log_probs`` itself where no rule acts.
        """
        if not self.forbidden and not (self.forced_end is not None and any(last)):
            return log_probs
        allowed = log_probs.clone()
        for row, (ending, is_last) in enumerate(zip(endings, last, strict=True)):
            if is_last and self.forced_end is not None:
                allowed[row] = -float("inf")
                allowed[row, self.forced_end] = 0.0
            else:
                allowed[row, self._forbidden_after(tuple(ending))] = -float("inf")
        return allowed.log_softmax(-1) if self.renormalize else allowed

    def _forbidden_after(self, ending: tuple[int, ...]) -> list[int]:
        return [s[-1] for s in self.forbidden if len(s) == 1 or ending[-(len(s) - 1) :] == s[:-1]]


FREE = SearchRules()
