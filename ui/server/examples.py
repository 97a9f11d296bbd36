"""The example sentences: what each shows, where to see it, and English glosses of the target words.

A model has its own beside it, or those of `en-de`; one that learned a toy task has
sequences of that task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transformer.storage.description import CARD_FILE, EXAMPLES_FILE, read_card
from transformer.storage.files import CheckpointError, read_json
from transformer.text.pairs import SentencePair
from transformer.text.words import find_word
from transformer.training.runs.stated import stated_task
from transformer.training.toys.tasks import toy_data
from ui.address.session import FORMER
from ui.server import catalogue

_USUAL = Path(__file__).resolve().parents[2] / "assets" / "models" / FORMER / EXAMPLES_FILE

OFFERED = 4
"""Number of sequences of a task on offer."""


@dataclass(frozen=True)
class Claim:
    """Claim of an example, and its place."""

    text: str  # the claim in one sentence
    target: str  # the word whose prediction shows the claim; if the word occurs twice, its first occurrence
    source: str  # the source word that the head must attend to
    layer: int  # layer of the cross-attention head, from 0
    head: int  # the head, from 0
    least: float  # the smallest weight on the source word that satisfies the claim
    # the weight that the bundled model puts there; `python -m lab claims` writes it, the layer and the head
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


def examples(model: str | None = None) -> tuple[Example, ...]:
    """The examples on offer with a model, in their order on the page; the usual ones for a damaged file."""
    file = _file(model or catalogue.DEFAULT) or _USUAL
    with suppress(CheckpointError):
        return _read(file, file.stat().st_mtime_ns)
    return _read(_USUAL, _USUAL.stat().st_mtime_ns)


def problem(model: str | None) -> str | None:
    """What is wrong with a model's file of examples, in one sentence; None if nothing is."""
    file = _file(model or catalogue.DEFAULT)
    try:
        _ = file and _read(file, file.stat().st_mtime_ns)
    except CheckpointError as error:
        return str(error)
    return None


def has_own(model: str) -> bool:
    """Whether there are examples written for a model."""
    return _file(model) is not None


def _file(model: str) -> Path | None:
    with suppress(KeyError):
        path = catalogue.find(model).path / EXAMPLES_FILE
        return path if path.is_file() else None
    return None


@cache
def _read(path: Path, changed: int) -> tuple[Example, ...]:
    try:
        found = tuple(_example(each) for each in read_json(path)["examples"])
        if not found:
            raise ValueError
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path.name} beside the model is damaged; remove it, or write it again."
        ) from error
    return found


def _example(each: Mapping[str, Any]) -> Example:
    claim, gloss = Claim(**each["claim"]), dict(each["gloss"])
    texts = [each["label"], each["text"], each["other"], claim.text, claim.target, claim.source]
    numbers = [claim.layer, claim.head, claim.least, claim.weight]
    if not all(isinstance(text, str) for text in [*texts, *gloss, *gloss.values()]):
        raise TypeError
    if not all(isinstance(number, int | float) for number in numbers):
        raise TypeError
    label, text, other, *_ = texts
    return Example(label, text, other, claim, gloss, each.get("reference"))


def task_pairs(model: str | None) -> tuple[SentencePair, ...]:
    """Held-out pairs of the toy task that a model learned; none for any other model."""
    try:
        directory = catalogue.find(model or catalogue.DEFAULT).path
        card = directory / CARD_FILE
        return _task_pairs(directory, card.stat().st_mtime_ns)
    except (KeyError, OSError):
        return ()


@cache
def _task_pairs(directory: Path, changed: int) -> tuple[SentencePair, ...]:
    task = stated_task(read_card(directory))
    return () if task is None else toy_data(*task).valid


def offered(model: str | None, text: str | None = None) -> Mapping[str, str]:
    """Texts to start from by their labels, with the prompt of a text if there is one; the first one opens."""
    longest = sorted(task_pairs(model), key=lambda pair: -len(pair.source))
    if longest:
        return {pair.source: pair.source for pair in longest[:OFFERED]}
    found, prompts = {each.label: each.text for each in examples(model)}, catalogue.prompts(model)
    if not prompts:
        return found
    first = prompt_of(model, text or "") or prompts[0]
    return {label: f"{first}{each}" for label, each in found.items()}


def prompt_of(model: str | None, text: str) -> str:
    """The prompt of a model that a text begins with; empty if it begins with none."""
    return next((each for each in catalogue.prompts(model) if text.startswith(each)), "")


def prompted(model: str | None, text: str, prompt: str) -> str:
    """The text with a prompt in the place of its own."""
    return f"{prompt}{text.removeprefix(prompt_of(model, text))}"


def text_on(model: str | None, text: str | None) -> str:
    """The visitor's text, or the one that opens first for a model."""
    return next(iter(offered(model).values())) if text is None else text


def reference(model: str, text: str | None) -> str | None:
    """What people wrote for an example, as training would show it; None for any other text."""
    example = example_of(model, text_on(model, text))
    return None if example is None else example.reference


def example_of(model: str | None, text: str) -> Example | None:
    """The example of a model with this sentence."""
    return next((each for each in examples(model) if each.text == text), None)


def claim_step(example: Example, target_tokens: Sequence[str]) -> int | None:
    """The step that shows the claim; None if this translation lacks the word."""
    found = find_word(target_tokens, example.claim.target)
    return None if found is None else found[0]
