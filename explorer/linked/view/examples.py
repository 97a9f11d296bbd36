"""The example sentences beside a model: what each shows, where to see it, and English glosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.lenses.words.groups import find_word
from transformer.storage.files import CheckpointError, read_json


@dataclass(frozen=True)
class Claim:
    """Claim of an example, and its place."""

    text: str  # the claim in one sentence
    target: str  # the word whose prediction shows the claim; if the word occurs twice, its first occurrence
    source: str  # the source word that the head must attend to
    layer: int  # layer of the cross-attention head, from 0
    head: int  # the head, from 0
    least: float  # the smallest weight on the source word that satisfies the claim
    # the weight that the bundled model puts there; `python -m explorer survey` checks the claim with it
    weight: float


@dataclass(frozen=True)
class Example:
    """A sentence to start from."""

    label: str  # the topic, in a few words
    text: str  # the sentence
    other: str  # the sentence with one other word, of as many tokens
    claim: Claim  # what the example shows
    gloss: Mapping[str, str]  # English words by target word
    reference: str | None = None  # a translation by people, other than the model's


def read_examples(path: Path) -> tuple[Example, ...]:
    """The examples of a file; CheckpointError if it holds none."""
    try:
        found = tuple(_example(each) for each in read_json(path)["examples"])
        if not found:
            raise ValueError
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path.name} beside the model is damaged; remove it, or write it again."
        ) from error
    return found


def _example(values: Mapping[str, Any]) -> Example:
    claim, gloss = Claim(**values["claim"]), dict(values["gloss"])
    texts = [values["label"], values["text"], values["other"], claim.text, claim.target, claim.source]
    numbers = [claim.layer, claim.head, claim.least, claim.weight]
    if not all(isinstance(text, str) for text in [*texts, *gloss, *gloss.values()]):
        raise TypeError
    if not all(isinstance(number, int | float) for number in numbers):
        raise TypeError
    label, text, other, *_ = texts
    return Example(label, text, other, claim, gloss, values.get("reference"))


def claim_step(example: Example, target_tokens: Sequence[str]) -> int | None:
    """The step that shows the claim; None if this translation lacks the word."""
    found = find_word(target_tokens, example.claim.target)
    return None if found is None else found[0]
