"""The model card that a training run writes: README.md with the YAML header that the Hub reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import yaml  # type: ignore[import-untyped]
from huggingface_hub import ModelCard

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer, count_parameters


@dataclass(frozen=True)
class Score:
    """One result stated on a model card.

    Attributes:
        dataset: Name of the test data.
        metric: "bleu", "chrf", …
        value: The number on the card.
        how: How the number was measured, such as "sacreBLEU, greedy".
    """

    dataset: str
    metric: str
    value: float
    how: str


def scores(card: str) -> tuple[Score, ...]:
    """The results in a card's YAML header (``model-index``); empty if there is no readable header."""
    if not card.startswith("---"):
        return ()
    try:
        results = getattr(ModelCard(card, ignore_metadata_errors=True).data, "eval_results", None) or []
        return tuple(
            Score(
                str(each.dataset_name),
                str(each.metric_type),
                float(each.metric_value),
                each.metric_name or "",
            )
            for each in results
        )
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ()


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
    name: str, languages: Sequence[str], command: str, files: Sequence[str], model: Transformer
) -> str:
    """A card with what is known before the model has been scored.

    Args:
        name: Name of the model.
        languages: Language codes of source and target.
        command: The command that trains the model.
        files: Training files.
        model: The model.
    """
    head = [
        "---",
        "language:",
        *(f"- {language}" for language in languages),
        "library_name: pytorch",
        "pipeline_tag: translation",
        "tags:",
        "- translation",
        "- transformer",
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
        "No license has been chosen for the weights yet; it depends on the data.\n"
    )


def _shape(config: TransformerConfig) -> str:
    norms = {"pre": "pre-norm (LayerNorm before each sub-layer)", "post": "post-norm, as in the paper"}
    return (
        f"An encoder-decoder Transformer: {config.n_encoder_layers} + {config.n_decoder_layers} layers, "
        f"d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, {norms[config.norm]}, "
        f"{config.positions} positions, joint vocabulary of {config.vocab_size:,} pieces."
    )
