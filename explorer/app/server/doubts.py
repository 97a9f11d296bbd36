"""What a beam finds beyond a greedy output: searched behind the picture, once for all visitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from explorer.app.server.jobs import Job, Tell
from explorer.app.server.queue import turns
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import LONG_SEARCH
from explorer.app.server.stores import remembered
from transformer.hub.settings import is_hosted
from transformer.run import Translation

if TYPE_CHECKING:  # the first picture is drawn without PyTorch
    from transformer.decoding import SearchRules

BEAM_SIZE = 4
"""The beam of the paper (section 6.1)."""


class Better(NamedTuple):
    """What a beam found, beside what greedy search wrote."""

    text: str
    score: float  # of the beam's output and of the greedy one, by the model's rules
    greedy_score: float
    differs: bool  # whether it is another output that scores higher


def may_search(run_key: RunKey, greedy: Translation) -> bool:
    """Whether a beam may be searched unasked: of the model as it is, in memory, and for a short
    output.

    A hosted server does not: it would spend on it what visitors wait for.
    """
    is_long = BEAM_SIZE * len(greedy.target_tokens) > LONG_SEARCH
    is_usual = run_key.source.writes and run_key == RunKey(
        run_key.source, run_key.text, "greedy", None
    )
    return is_usual and not is_long and not is_hosted() and run_key.source.resident


@remembered(64)
def by_beam(run_key: RunKey, *, greedy: Translation) -> Job[Better]:
    """The search as work, beside what greedy search wrote; KeyError if the model only writes."""
    model = run_key.source.load()
    results = list[Better]()

    def work(tell: Tell) -> None:
        for done, step in enumerate(model.stream(run_key.text, beam_size=BEAM_SIZE, capture=False)):
            if isinstance(step, Translation):
                results.append(better_than(model.rules, step, greedy))
            tell(done)

    def result() -> Better | None:
        return results[-1] if results else None

    return Job("search", len(greedy.target_tokens), work, result, turns, shares=False)


def better_than(rules: SearchRules, best: Translation, greedy: Translation) -> Better:
    """What a beam found, beside a greedy output."""
    score = rules.score(sum(best.log_probs), len(best.log_probs))
    greedy_score = rules.score(sum(greedy.log_probs), len(greedy.log_probs))
    differs = best.text != greedy.text and score > greedy_score
    return Better(best.text, score, greedy_score, differs)
