"""The model card that a training run writes: README.md with the YAML header that the Hub reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.config import ModelConfig, RecurrentConfig, TransformerConfig
from transformer.model import Network, count_parameters
from transformer.storage.header import CardError, parse

_MOST_LETTERS = 300
"""The most characters of a name or a number among the results."""


@dataclass(frozen=True)
class Score:
    """One result stated on a model card."""

    dataset: str  # name of the test data
    metric: str  # "bleu", "chrf", …
    value: float  # the number on the card
    how: str  # how the number was measured, such as "sacreBLEU, greedy"


def scores(card: str) -> tuple[Score, ...]:
    """The results in a card's YAML header (``model-index``); those that cannot be read are left out."""
    try:
        index = parse(card).get("model-index")
    except CardError:
        return ()
    results = [result for model in _objects(index) for result in _objects(model.get("results"))]
    found = (
        _score(result.get("dataset"), metric)
        for result in results
        for metric in _objects(result.get("metrics"))
    )
    return tuple(filter(None, found))


def _objects(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _score(dataset: object, metric: dict[str, object]) -> Score | None:
    name = dataset.get("name") if isinstance(dataset, dict) else None
    found = (name, metric.get("type"), metric.get("value"), metric.get("name", ""))
    texts = [each for each in found if isinstance(each, str) and len(each) <= _MOST_LETTERS]
    if len(texts) < len(found):
        return None
    try:
        number = float(texts[2])
    except ValueError:
        return None
    return Score(texts[0], texts[1], number, texts[3]) if math.isfinite(number) else None


def paragraph(card: str, heading: str) -> str:
    """The first paragraph under a heading of a card, on one line; empty if there is none."""
    lines = iter(card.splitlines())
    for line in lines:
        if line.startswith("#") and line.strip("# ").lower() == heading.lower():
            break
    found: list[str] = []
    for line in lines:
        if line.startswith(("#", "```", "|")) or (found and not line.strip()):
            break
        found += [line.strip()] if line.strip() else []
    return " ".join(found)


def training_card(
    name: str,  # name of the model
    languages: Sequence[str],  # language codes of source and target
    command: str,  # the command that trains the model
    files: Sequence[str],  # training files
    model: Network,  # the model
) -> str:
    """A card with what is known before the model has been scored."""
    head = [
        "---",
        *(["language:"] if languages else []),
        *(f"- {language}" for language in languages),
        "library_name: pytorch",
        "pipeline_tag: translation",
        "tags:",
        "- translation",
        f"- {'transformer' if isinstance(model.config, TransformerConfig) else 'recurrent'}",
        "metrics:",
        "- bleu",
        "- chrf",
        "---",
    ]
    data = "\n".join(f"- `{file}`" for file in files)
    return "\n".join(head) + (
        f"\n\n# {name}\n\n{_shape(model.config)} "
        f"{count_parameters(model):,} parameters, weights in float16.\n\n"
        f"Training data:\n\n{data}\n\nCommand:\n\n```sh\n{command}\n```\n\n"
        "Scores: run `python -m transformer evaluate --model DIR --data FILE` and write them here. "
        "No licence has been chosen for the weights yet; it depends on the data.\n"
    )


def _shape(config: ModelConfig) -> str:
    """Description of a model in one sentence."""
    vocabulary = f"joint vocabulary of {config.vocab_size:,} pieces."
    if isinstance(config, RecurrentConfig):
        reach = f" within {config.reach} positions of a predicted centre" if config.score == "local" else ""
        return (
            "A recurrent encoder-decoder with attention: one layer of GRUs on either side, in both "
            f"directions in the encoder, {config.score} scores{reach}, d_model {config.d_model}, {vocabulary}"
        )
    assert isinstance(config, TransformerConfig)
    norms = {"pre": "pre-norm (LayerNorm before each sub-layer)", "post": "post-norm, as in the paper"}
    return (
        f"An encoder-decoder Transformer: {config.n_encoder_layers} + {config.n_decoder_layers} layers, "
        f"d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, {norms[config.norm]}, "
        f"{config.positions} positions, {vocabulary}"
    )
