"""The example sentences: what each shows, where to see it, and English glosses of the target words.

A model has its own beside it, or those of `en-de`; one that learned a toy task has
sequences of that task.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from explorer.app.address.kinds import AS_ONE
from explorer.app.address.session import FORMER
from explorer.app.address.state import State
from explorer.app.server.source import Source
from explorer.lenses.targets.stated import stated_task
from explorer.linked.view.strips import Example, read_examples
from transformer.storage.description import CARD_FILE, EXAMPLES_FILE, read_card
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair
from transformer.text.sentences import sentences
from transformer.text.typed import clean
from transformer.training.toys import toy_data

_USUAL = Path(__file__).resolve().parents[3] / "assets" / "models" / FORMER / EXAMPLES_FILE

MOST_SENTENCES = 40
"""Sentences of a text that are translated."""
OFFERED = 4
"""Number of sequences of a task on offer."""


def examples(source: Source | None) -> tuple[Example, ...]:
    """The examples on offer with a model, in their order on the page; the usual ones for a damaged file."""
    with suppress(CheckpointError):
        return _of(source)
    return _of(None)


def problem(source: Source | None) -> str | None:
    """What is wrong with a model's file of examples, in one sentence; None if nothing is."""
    try:
        _of(source)
    except CheckpointError as error:
        return str(error)
    return None


def has_own(source: Source | None) -> bool:
    """Whether there are examples written for a model."""
    return source is not None and source.path is not None and (source.path / EXAMPLES_FILE).is_file()


def _of(source: Source | None) -> tuple[Example, ...]:
    own = source.path / EXAMPLES_FILE if source and source.path and has_own(source) else _USUAL
    return _read(own, own.stat().st_mtime_ns)


@cache
def _read(path: Path, _changed: int) -> tuple[Example, ...]:
    return read_examples(path)


def task_pairs(source: Source | None) -> tuple[SentencePair, ...]:
    """Held-out pairs of the toy task that a model learned; none for any other model."""
    if source is None or source.path is None:
        return ()
    try:
        return _task_pairs(source.path, (source.path / CARD_FILE).stat().st_mtime_ns)
    except OSError:
        return ()


@cache
def _task_pairs(directory: Path, _changed: int) -> tuple[SentencePair, ...]:
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
