"""The example sentences: what each shows, where to see it, and English glosses of the German words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from figures.base import labels

FILE = Path(__file__).resolve().parents[2] / "assets" / "examples.json"


@dataclass(frozen=True)
class Claim:
    """What an example shows, and where.

    Attributes:
        text: the claim in one sentence.
        target: the word whose prediction shows the claim; if the word occurs twice, its first occurrence.
        source: the source word that the head must attend to.
        layer: layer of the cross-attention head, from 0.
        head: the head, from 0.
        least: the smallest weight on the source word that satisfies the claim.
    """

    text: str
    target: str
    source: str
    layer: int
    head: int
    least: float


@dataclass(frozen=True)
class Example:
    """A sentence to start from.

    Attributes:
        label: the topic, in a few words.
        text: the sentence.
        claim: what the example shows.
        gloss: English words by target word.
    """

    label: str
    text: str
    claim: Claim
    gloss: Mapping[str, str]


@cache
def examples() -> tuple[Example, ...]:
    """All examples, in their order on the page."""
    return tuple(
        Example(each["label"], each["text"], Claim(**each["claim"]), each["gloss"])
        for each in json.loads(FILE.read_text(encoding="utf-8"))
    )


def example_of(text: str | None) -> Example | None:
    """The example with this sentence; the first example if no sentence is given."""
    if text is None:
        return examples()[0]
    return next((each for each in examples() if each.text == text), None)


def find_word(tokens: Sequence[str], word: str) -> tuple[int, int] | None:
    """First and last position of a whole word in a sequence of pieces; None if the word does not occur."""
    for first in range(len(tokens)):
        text = ""
        for last in range(first, len(tokens)):
            text += tokens[last].removeprefix(labels.WORD_START)
            if text == word and not _goes_on(tokens, last):
                return first, last
            if not word.startswith(text) or _ends(tokens, last):
                break
    return None


def _goes_on(tokens: Sequence[str], last: int) -> bool:
    """Whether the next piece belongs to the same word."""
    return not _ends(tokens, last) and tokens[last + 1][:1].isalnum()


def _ends(tokens: Sequence[str], last: int) -> bool:
    return last + 1 == len(tokens) or tokens[last + 1].startswith(labels.WORD_START)


def claim_step(example: Example, target_tokens: Sequence[str]) -> int | None:
    """The step that shows the claim; None if this translation lacks the word."""
    found = find_word(target_tokens, example.claim.target)
    return None if found is None else found[0]
