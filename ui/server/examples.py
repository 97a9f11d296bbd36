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
from transformer.text.sentences import sentences
from transformer.text.typed import clean
from transformer.text.words import find_word
from transformer.training.runs.stated import stated_task
from transformer.training.toys.tasks import toy_data
from ui.address.kinds import AS_ONE
from ui.address.session import FORMER
from ui.address.state import State
from ui.server.source import Source

_USUAL = Path(__file__).resolve().parents[2] / "assets" / "models" / FORMER / EXAMPLES_FILE

MOST_SENTENCES = 40
"""Sentences of a text that are translated."""
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


def examples(source: Source | None) -> tuple[Example, ...]:
    """The examples on offer with a model, in their order on the page; the usual ones for a damaged file."""
    file = _file(source) or _USUAL
    with suppress(CheckpointError):
        return _read(file, file.stat().st_mtime_ns)
    return _read(_USUAL, _USUAL.stat().st_mtime_ns)


def problem(source: Source | None) -> str | None:
    """What is wrong with a model's file of examples, in one sentence; None if nothing is."""
    file = _file(source)
    try:
        _ = file and _read(file, file.stat().st_mtime_ns)
    except CheckpointError as error:
        return str(error)
    return None


def has_own(source: Source | None) -> bool:
    """Whether there are examples written for a model."""
    return _file(source) is not None


def _file(source: Source | None) -> Path | None:
    path = None if source is None or source.path is None else source.path / EXAMPLES_FILE
    return path if path is not None and path.is_file() else None


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


def task_pairs(source: Source | None) -> tuple[SentencePair, ...]:
    """Held-out pairs of the toy task that a model learned; none for any other model."""
    if source is None or source.path is None:
        return ()
    try:
        return _task_pairs(source.path, (source.path / CARD_FILE).stat().st_mtime_ns)
    except OSError:
        return ()


@cache
def _task_pairs(directory: Path, changed: int) -> tuple[SentencePair, ...]:
    task = stated_task(read_card(directory))
    return () if task is None else toy_data(*task).valid


def offered(source: Source | None, text: str | None = None) -> Mapping[str, str]:
    """Texts to start from by their labels, with the prompt of a text if there is one; the first one opens."""
    longest = sorted(task_pairs(source), key=lambda pair: -len(pair.source))
    if longest:
        return {pair.source: pair.source for pair in longest[:OFFERED]}
    found, prompts = {each.label: each.text for each in examples(source)}, prompts_of(source)
    if not prompts:
        return found
    first = prompt_of(source, text or "") or prompts[0]
    return {label: f"{first}{each}" for label, each in found.items()}


def prompts_of(source: Source | None) -> tuple[str, ...]:
    """The prompts of a model; none for a model that is not there."""
    return () if source is None else source.prompts


def prompt_of(source: Source | None, text: str) -> str:
    """The prompt of a model that a text begins with; empty if it begins with none."""
    return next((each for each in prompts_of(source) if text.startswith(each)), "")


def prompted(source: Source | None, text: str, prompt: str) -> str:
    """The text with a prompt in the place of its own."""
    return f"{prompt}{text.removeprefix(prompt_of(source, text))}"


def text_on(source: Source | None, text: str | None) -> str:
    """The visitor's text, or the one that opens first for a model."""
    return next(iter(offered(source).values())) if text is None else text


def sentences_on(source: Source | None, text: str | None) -> tuple[str, ...]:
    """The sentences of the text on a page; it is one for what does not translate, and in a file's run."""
    whole = clean(text_on(source, text))
    if source is None or not source.has_model or source.task != "translate":
        return (whole,)
    return sentences(whole, prompt_of(source, whole) or source.named_in(whole) or "") or (whole,)


def sentence_of(source: Source | None, now: State) -> str:
    """What a page shows of its text: the only place where the run of a text becomes that of a sentence."""
    found = sentences_on(source, now.text)
    if len(found) == 1 or now.sentence == AS_ONE:
        return text_on(source, now.text)
    return found[min(now.sentence or 0, len(found) - 1, MOST_SENTENCES - 1)]


def whole(text: str) -> int | None:
    """The state's sentence for a text that is one run, however many sentences it has."""
    return AS_ONE if len(sentences(clean(text))) > 1 else None


def reference(source: Source | None, text: str | None) -> str | None:
    """What people wrote for an example, as training would show it; None for any other text."""
    example = example_of(source, text_on(source, text))
    return None if example is None else example.reference


def example_of(source: Source | None, text: str) -> Example | None:
    """The example of a model with this sentence."""
    return next((each for each in examples(source) if each.text == text), None)


def claim_step(example: Example, target_tokens: Sequence[str]) -> int | None:
    """The step that shows the claim; None if this translation lacks the word."""
    found = find_word(target_tokens, example.claim.target)
    return None if found is None else found[0]
