"""Search settings that come with a model: widths, limits, and forbidden or forced tokens.

The rules change what a search may choose, never the model's distribution: log-probabilities and alternatives
stay the model's own, and a step decided by a rule is marked as forced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True, kw_only=True)
class SearchRules:
    """Settings of a search; the defaults impose nothing."""

    beam_size: int = 1  # hypotheses per sentence if the caller gives no number; 1 is greedy search
    length_penalty: float = 1.0  # α of the score
    # k of the score, Σ log p / ((k + length) / (k + 1))^α: 0 divides by length^α, 5 is the formula of Wu et
    # al. (2016, equation 14)
    length_offset: int = 0
    # When a beam ends. True: as soon as it is full of finished hypotheses; False: when no running hypothesis,
    # at its present length, beats the worst finished one; "never": the same, at the greatest length.
    early_stopping: EarlyStopping = False
    max_length: int | None = None  # most output tokens, the end token included; None lets the package decide
    forbidden: tuple[tuple[int, ...], ...] = ()  # sequences of ids that the output must not contain
    # id of the only token allowed at the last position before the limit; None allows any
    forced_end: int | None = None
    forced_start: int | None = None  # id of the only token allowed first; None allows any
    min_tokens: int = 0  # fewest tokens before the end token
    no_repeat: int = 0  # length of the sequences that may occur only once, with the start token; 0 allows all
    end_id: int | None = None  # id of the end token, which ``min_tokens`` forbids; None forbids none
    # whether the probabilities that remain without forbidden tokens are rescaled to sum to 1 before scoring
    renormalize: bool = False

    def score(self, total: float, length: int) -> float:
        """The score that ranks finished hypotheses, of Σ log p and the tokens, the end token included."""
        offset = self.length_offset
        return total / ((offset + length) / (offset + 1)) ** self.length_penalty

    @property
    def lookback(self) -> int:
        """Number of past output tokens that decide which token is forbidden next."""
        if self.no_repeat:
            return sys.maxsize
        return max((len(sequence) - 1 for sequence in self.forbidden), default=0)

    @property
    def told(self) -> tuple[str, ...]:
        """In words: the rules that depend on what has been written."""
        once = "no token twice" if self.no_repeat == 1 else f"no {self.no_repeat} tokens in a row twice"
        fewest = f"no end before {self.min_tokens:,} tokens"
        return (*(fewest,) * (self.min_tokens > 0), *(once,) * (self.no_repeat > 0))

    def allowed(
        self,
        log_probs: Tensor,  # (rows, pieces) the model's own log-probabilities
        # the last tokens of each row's output: at least ``lookback``, or all if there are fewer
        endings: Sequence[Sequence[int]],
        last: Sequence[bool],  # for each row, whether the limit leaves room for only one token
        step: int = 0,  # the step of the output, from 0
    ) -> Tensor:
        """(rows, pieces) to choose from: -inf if forbidden; ``log_probs`` itself if no rule applies."""
        if step == 0 and self.forced_start is not None:
            return _only(log_probs, self.forced_start)
        short = step < self.min_tokens and self.end_id is not None
        ends = self.forced_end is not None and any(last)
        if not (self.forbidden or self.no_repeat or short or ends):
            return log_probs
        allowed = log_probs.clone()
        for row, (ending, is_last) in enumerate(zip(endings, last, strict=True)):
            if is_last and self.forced_end is not None:
                allowed[row] = -float("inf")
                allowed[row, self.forced_end] = 0.0
            else:
                without = {*self._forbidden_after(tuple(ending)), *([self.end_id] if short else [])}
                if len(without) < allowed.shape[1]:  # something must be left to choose
                    allowed[row, list(without)] = -float("inf")
        return allowed.log_softmax(-1) if self.renormalize else allowed

    def steered(self, allowed: Tensor, log_probs: Tensor, step: int) -> Tensor:
        """(rows, pieces) ``allowed``, after what a request adds to the model's rules."""
        return allowed

    def _forbidden_after(self, ending: tuple[int, ...]) -> list[int]:
        found = [s[-1] for s in self.forbidden if len(s) == 1 or ending[-(len(s) - 1) :] == s[:-1]]
        return found + self._repeating(ending)

    def _repeating(self, ending: tuple[int, ...]) -> list[int]:
        """The tokens that have followed the last ones before; ``ending`` has the start token, too."""
        size = self.no_repeat - 1
        if size < 0 or len(ending) < size:
            return []
        latest = ending[len(ending) - size :]
        places = range(size, len(ending))
        return [ending[at] for at in places if ending[at - size : at] == latest]


def _only(log_probs: Tensor, token: int) -> Tensor:
    """Nothing but one token to choose, which costs nothing."""
    allowed = log_probs.new_full(log_probs.shape, -float("inf"))
    allowed[:, token] = 0.0
    return allowed


FREE = SearchRules()
