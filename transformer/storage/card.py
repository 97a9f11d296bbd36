"""Model cards: the YAML header, which anybody may have written, read as plain values within limits;
the results that it states; and the card that a training run writes. No PyTorch."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from transformer.config import EncoderConfig, ModelConfig, RecurrentConfig
from transformer.storage.files import check_values

MOST_CHARACTERS = 2**16
"""The longest header that is read; one of 64 KiB takes half a second."""
_TEXTS = {
    "license": 100,
    "license_name": 200,
    "good_at": 200,
    "guided_alignment": 500,
    "training_targets": 200,
    "training_start": 300,
    "training_course": 500,
}
"""The most characters of the texts that readers of a card rely on."""
_LISTS = ("language", "tags", "metrics", "datasets")
_MOST_ITEMS, _MOST_ITEM = 1_000, 200
_MOST_LETTERS = 300
"""The most characters of a name or a number among the results."""
_BLOCK = re.compile(
    r"\A\s*---[ \t]*(?:\r\n|\r|\n)(.*?)(?:\r\n|\r|\n)---[ \t]*(?:\r|\n|\Z)", re.DOTALL
)
_NULLS = ("", "~", "null")


class CardError(ValueError):
    """A header cannot be read; the message says why in one sentence."""


@dataclass(frozen=True)
class Header:
    """Texts of a card's header that the package and the app read; empty where the card does not
    say."""

    language: tuple[str, ...] = ()  # codes of languages, such as ("en", "de")
    license: str = ""
    license_name: str = ""
    good_at: str = ""  # the kind of text that the model does well
    guided_alignment: str = ""  # how given alignments shaped the attention
    training_targets: str = (
        ""  # whose outputs training asked for, to stand behind "its targets were"
    )
    training_start: str = ""  # what the model had before its training began, in sentences
    training_course: str = ""  # what changed while it was trained, in sentences
    trouble: str = ""  # what could not be read, in one sentence

    @classmethod
    def of(cls, card: str) -> Header:
        """The header of a card; what cannot be read is left out, and `trouble` says so."""
        try:
            values = parse(card)
        except CardError as error:
            return cls(trouble=str(error))
        parts = dict[str, list[Any]]()  # a text alone is a list of one
        for name in (*_TEXTS, *_LISTS):
            value = values.get(name, "")
            if name in _LISTS and isinstance(value, list):
                parts[name] = value
            elif value in _NULLS:
                parts[name] = []
            else:
                parts[name] = [value]
        wrong = [
            name
            for name, texts in parts.items()
            if len(texts) > _MOST_ITEMS
            or any(
                not isinstance(text, str) or len(text) > _TEXTS.get(name, _MOST_ITEM)
                for text in texts
            )
        ]
        texts = {name: "".join(parts[name]) for name in _TEXTS if name not in wrong}
        codes = () if "language" in wrong else tuple(parts["language"])
        trouble = "The card’s {} cannot be read: not of the kind or length that it should be."
        return cls(codes, **texts, trouble=trouble.format(" and ".join(wrong)) if wrong else "")


class _Plain(yaml.BaseLoader):  # type: ignore[misc]
    """Reads every scalar as text, and no aliases: nine of them in nine of them grow to
    gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise CardError("The card’s header uses YAML aliases, so it is not read.")
        return super().compose_node(parent, index)


def parse(card: str) -> dict[str, object]:
    """Texts, lists and objects of a card's header by name; empty if the card has no header.

    CardError if it is too long, uses aliases, or is not valid YAML with named values.
    """
    block = _BLOCK.match(card)
    if block is None:
        return {}
    if len(block[1]) > MOST_CHARACTERS:
        raise CardError(
            f"The card’s header has more than {MOST_CHARACTERS:,} characters, so it is not read."
        )
    try:
        values = yaml.load(block[1], Loader=_Plain)
        check_values(values)
    except CardError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CardError(
            "The card’s header, between the two --- lines, is not valid YAML."
        ) from error
    if not isinstance(values or {}, dict):
        raise CardError(
            "The card’s header, between the two --- lines, is not valid YAML with named values."
        )
    return values or {}


@dataclass(frozen=True)
class Score:
    """One result stated on a model card."""

    dataset: str  # name of the test data
    metric: str  # "bleu", "chrf", …
    value: float  # the number on the card
    how: str  # how the number was measured, such as "sacreBLEU, greedy"


def scores(card: str) -> tuple[Score, ...]:
    """The results in a card's YAML header (``model-index``); those that cannot be read are left
    out."""
    try:
        index = parse(card).get("model-index")
    except CardError:
        return ()
    results = [result for model in _objects(index) for result in _objects(model.get("results"))]
    readings = (
        _score(result.get("dataset"), metric)
        for result in results
        for metric in _objects(result.get("metrics"))
    )
    return tuple(filter(None, readings))


def _objects(value: object) -> list[dict[str, object]]:
    if not isinstance(value, list):
        return []
    return [member for member in value if isinstance(member, dict)]


def _score(dataset: object, metric: dict[str, object]) -> Score | None:
    name = dataset.get("name") if isinstance(dataset, dict) else None
    values = (name, metric.get("type"), metric.get("value"), metric.get("name", ""))
    texts = [text for text in values if isinstance(text, str) and len(text) <= _MOST_LETTERS]
    if len(texts) < len(values):
        return None
    try:
        number = float(texts[2])
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return Score(dataset=texts[0], metric=texts[1], value=number, how=texts[3])


def paragraph(card: str, heading: str) -> str:
    """The first paragraph under a heading of a card, on one line; empty if there is none."""
    lines = iter(card.splitlines())
    for line in lines:
        if line.startswith("#") and line.strip("# ").lower() == heading.lower():
            break
    texts: list[str] = []
    for line in lines:
        text = line.strip()
        if line.startswith(("#", "```", "|")) or (texts and not text):
            break
        if text:
            texts.append(text)
    return " ".join(texts)


@dataclass(frozen=True)
class _Sort:
    """What a card says of all models of a task."""

    tag: str  # as the Hub names the task
    metrics: tuple[str, ...]
    scores: str  # how to get them


_SORTS = {
    "translate": _Sort(
        "translation",
        ("bleu", "chrf"),
        "run `python -m transformer evaluate --model DIR --data FILE`",
    ),
    "fill": _Sort("fill-mask", ("perplexity",), "take the last validation loss of log.jsonl"),
}


def training_card(
    name: str,  # name of the model
    languages: Sequence[str],  # language codes of source and target
    command: str,  # the command that trains the model
    files: Sequence[str],  # training files
    config: ModelConfig,  # of the model
    parameters: int,  # how many it has
) -> str:
    """A card with what is known before the model has been scored."""
    sort = _SORTS[config.task]
    head = [
        "---",
        *(["language:"] if languages else []),
        *(f"- {language}" for language in languages),
        "library_name: pytorch",
        f"pipeline_tag: {sort.tag}",
        "tags:",
        f"- {sort.tag}",
        f"- {'recurrent' if isinstance(config, RecurrentConfig) else 'transformer'}",
        "metrics:",
        *(f"- {metric}" for metric in sort.metrics),
        "---",
    ]
    data = "\n".join(f"- `{file}`" for file in files)
    return "\n".join(head) + (
        f"\n\n# {name}\n\n{_shape(config)} "
        f"{parameters:,} parameters, weights in float16.\n\n"
        f"Training data:\n\n{data}\n\nCommand:\n\n```sh\n{command}\n```\n\n"
        f"Scores: {sort.scores} and write them here. "
        "No licence has been chosen for the weights yet; it depends on the data.\n"
    )


def _shape(config: ModelConfig) -> str:
    """Description of a model in one sentence."""
    vocabulary = f"joint vocabulary of {config.vocab_size:,} pieces."
    if isinstance(config, RecurrentConfig):
        reach = (
            f" within {config.reach} positions of a predicted centre"
            if config.score == "local"
            else ""
        )
        return (
            "A recurrent encoder-decoder with attention: one layer of GRUs on either side, in both "
            f"directions in the encoder, {config.score} scores{reach}, d_model {config.d_model}, "
            f"{vocabulary}"
        )
    norms = {
        "pre": "pre-norm (LayerNorm before each sub-layer)",
        "post": "post-norm, as in the paper",
    }
    name = "An encoder-decoder Transformer"
    if isinstance(config, EncoderConfig):
        name = "An encoder alone"
    layers = " + ".join(str(stack.n_layers) for stack in config.stacks.values())
    return (
        f"{name}: {layers} layers, d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, "
        f"{norms[config.norm]}, {config.positions} positions, {vocabulary}"
    )
