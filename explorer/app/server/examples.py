"""The example sentences: what each shows, where to see it, and English glosses of the target words.

A model has its own beside it, or those of `en-de`; one that learned a toy task has
sequences of that task.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from explorer.app.address.kinds import AS_ONE, LINE
from explorer.app.address.session import FORMER
from explorer.app.address.state import State
from explorer.app.server import hosted
from explorer.app.server.source import Source
from explorer.linked.view.strips import Example, read_examples
from transformer.families.registry import config_in
from transformer.storage.description import EXAMPLES_FILE, read_card
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.sentences import sentences
from transformer.text.typed import clean
from transformer.training.stated import stated
from transformer.training.toys import toy_data

_USUAL = Path(__file__).resolve().parents[3] / "assets" / "models" / FORMER / EXAMPLES_FILE

MOST_SENTENCES = 40
"""Sentences of a text that are translated."""
_once = cache(read_examples)  # of the usual file, which is shipped and never changes
OFFERED = 4
"""Number of sequences of a task on offer."""
BEGINNINGS = {
    "agreement": "The books on the table",
    "a story": "When I was a child, I",
    "a condition": "If it rains tomorrow,",
    "repetition": "Tom likes Mary. Mary likes",
}
"""Texts to start from for every model that continues a text, by what they show."""
MASKED = {
    "a place": "The cat sat on the [MASK].",
    "a verb": "She [MASK] a letter to her friend.",
    "a drink": "He drinks a cup of [MASK] every morning.",
    "two words": "Tom [MASK] Mary a [MASK].",
    "agreement": "The books on the table [MASK] old.",
}
"""Texts to start from for every model that predicts masked words, by what they show."""
READ = {
    "a pronoun": "My sister lost her keys, so I gave her mine.",
    "two meanings": "The bank by the river was closed.",
    "agreement": "The books on the table are old.",
}
"""Those for a model that only reads."""
NOTHING = {"from nothing": ""}
"""Another, for a model that begins by itself."""


@dataclass(frozen=True)
class Samples:
    """The example sentences of a model."""

    examples: tuple[
        Example, ...
    ]  # in their order on the page; the usual ones without a readable file
    are_its: bool  # whether they were written for this very model
    problem: str | None  # what is wrong with the file, in one sentence
    task: tuple[SentencePair, ...]  # held-out pairs of the toy task that the model learned


def read(directory: Path | None) -> Samples:
    """The examples beside a model; the usual ones for None, and without a readable file."""
    usual = _once(_USUAL)
    if directory is None:
        return Samples(usual, False, None, ())
    pairs = _toy_pairs(directory)
    file = directory / EXAMPLES_FILE
    if not file.is_file():
        return Samples(usual, False, None, pairs)
    try:
        return Samples(_read_beside(directory, file), True, None, pairs)
    except CheckpointError as error:
        return Samples(usual, True, str(error), pairs)


def _toy_pairs(directory: Path) -> tuple[SentencePair, ...]:
    """Held-out pairs of the toy task that a model learned, as its card says; none without one."""
    with suppress(OSError):
        task = stated(read_card(directory)).toy
        if task is not None:
            return toy_data(*task).valid
    return ()


def _read_beside(directory: Path, file: Path) -> tuple[Example, ...]:
    """A model's own examples; CheckpointError if the file is damaged, or names heads it lacks."""
    examples = read_examples(file)
    layers, heads = config_in(directory).sizes.get("cross", (0, 0))
    if not all(example.claim.layer < layers and example.claim.head < heads for example in examples):
        raise CheckpointError(
            f"{file.name} beside the model names heads that the model does not have."
        )
    return examples


def of(source: Source | None) -> Samples:
    """The examples on offer with a model; the usual ones for a file, and for a missing one."""
    if source is None or source.path is None:
        return read(None)
    return source.beside(read)


def offered(source: Source | None, text: str | None = None) -> Mapping[str, str]:
    """Texts to start from by their labels, with a text's prompt if it has one; the first opens."""
    if source is not None and source.continues:
        begins = getattr(source.stated, "starts_with_token", True)
        return BEGINNINGS | NOTHING if begins else BEGINNINGS
    if source is not None and not source.writes:
        return {True: MASKED, False: READ}[source.fills]
    samples = of(source)
    if samples.task:
        longest = sorted(samples.task, key=lambda pair: -len(pair.source))[:OFFERED]
        return {pair.source: pair.source for pair in longest}
    texts = {example.label: example.text for example in samples.examples}
    if source is None or not source.prompts:
        return texts
    first = prompt_of(source, text or "") or source.prompts[0]
    return {label: f"{first}{text}" for label, text in texts.items()}


def prompt_of(source: Source | None, text: str) -> str:
    """The prompt of a model that a text begins with; empty if it begins with none."""
    if source is None:
        return ""
    return next((prompt for prompt in source.prompts if text.startswith(prompt)), "")


def text_on(source: Source | None, text: str | None) -> str:
    """The visitor's text, in one line unless it is continued, or the one that opens first."""
    if source is not None and source.text is not None:
        return source.text
    if text is None:
        return next(iter(offered(source).values()))
    if source is not None and source.continues:
        return text
    return LINE.read(text)


class Passage(NamedTuple):
    """The text on a page."""

    sentences: tuple[str, ...]  # one for what does not translate, and in a file's run
    sentence: str  # what the page shows of it: one of them, or the whole text


def passage(source: Source | None, now: State) -> Passage:
    """The text on a page: the only place where the run of a text becomes that of a sentence.

    One that is too long for this instance is not read: it is one part, as typed, which every run
    refuses.
    """
    text = text_on(source, now.text)
    if not hosted.takes(text, hosted.TIMES):
        return Passage((text,), text)
    cleaned = clean(text)
    parts: tuple[str, ...] = ()
    if source is not None and source.has_model and source.task == "translate":
        parts = sentences(cleaned, prompt_of(source, cleaned) or source.named_in(cleaned) or "")
    if len(parts) < 2:
        return Passage(parts or (cleaned,), text)
    at = min(now.sentence or 0, len(parts) - 1, MOST_SENTENCES - 1)
    return Passage(parts, text if now.sentence == AS_ONE else parts[at])


def whole(text: str) -> int | None:
    """The state's sentence for a text that is one run, however many sentences it has."""
    return AS_ONE if hosted.takes(text, hosted.TIMES) and len(sentences(clean(text))) > 1 else None


def example_of(source: Source | None, text: str) -> Example | None:
    """The example of a model with this sentence."""
    return next((example for example in of(source).examples if example.text == text), None)
