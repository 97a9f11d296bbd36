"""The model card that a training run writes: README.md with the Hub's YAML head."""

from __future__ import annotations

from collections.abc import Sequence

from .config import TransformerConfig
from .model import Transformer, count_parameters


def training_card(
    name: str, languages: Sequence[str], command: str, files: Sequence[str], model: Transformer
) -> str:
    """A card that says what is known before the first score.

    Args:
        name: Of the model.
        languages: Codes of source and target.
        command: That trains it.
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
        "A license for the weights is not chosen yet; it depends on the data.\n"
    )


def _shape(config: TransformerConfig) -> str:
    norms = {"pre": "pre-norm (LayerNorm before each sub-layer)", "post": "post-norm, as in the paper"}
    return (
        f"An encoder-decoder Transformer: {config.n_encoder_layers} + {config.n_decoder_layers} layers, "
        f"d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, {norms[config.norm]}, "
        f"{config.positions} positions, joint vocabulary of {config.vocab_size:,} pieces."
    )
