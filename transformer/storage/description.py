"""What a model directory says of its model, without its weights: config, size, heads, card. No PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.model.config import TransformerConfig
from transformer.storage.files import SAFETENSORS, CheckpointError, read_json

WEIGHTS_FILE = SAFETENSORS
CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.model"
CARD_FILE = "README.md"
HEADS_FILE = "heads.json"
PROBES_FILE = "probes.json"
FAMILIARITY_FILE = "familiarity.json"
MAX_PARAMETERS = 2_000_000_000
MAX_CARD_BYTES = 2**18


def read_heads(directory: Path) -> dict[str, Any] | None:
    """The content of `heads.json`; None if there is no such file.

    Raises:
        CheckpointError: The file is not a JSON object.
    """
    return read_json(directory / HEADS_FILE) if (directory / HEADS_FILE).exists() else None


def read_card(directory: Path) -> str:
    """The first ``MAX_CARD_BYTES`` bytes of the model card as text; empty if there is no card."""
    card = directory / CARD_FILE
    if not card.is_file():
        return ""
    with card.open("rb") as file:
        return file.read(MAX_CARD_BYTES).decode("utf-8", "replace")


def read_config(directory: Path) -> TransformerConfig:
    """Reads and checks `config.json`.

    Raises:
        CheckpointError: The file is missing, is not a JSON object, or describes no model that can be built.
    """
    if not directory.is_dir():
        raise CheckpointError(f"There is no model directory {directory}.")
    values = read_json(directory / CONFIG_FILE)
    if "model_type" in values or "architectures" in values:
        kind = values.get("model_type") or values.get("architectures")
        raise CheckpointError(
            f"{directory} holds a {kind} model of another library; this package cannot open it."
        )
    try:
        config = TransformerConfig.from_dict(values)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / CONFIG_FILE} describes no usable model: {error}") from error
    check_parameters(directory / CONFIG_FILE, config)
    return config


def check_parameters(path: Path, config: TransformerConfig) -> None:
    """Refuses a config of more than ``MAX_PARAMETERS`` parameters.

    Raises:
        CheckpointError: The config describes more; the message names ``path``.
    """
    if parameter_count(config) > MAX_PARAMETERS:
        raise CheckpointError(
            f"{path} describes a model of {parameter_count(config):,} parameters; "
            f"this package opens at most {MAX_PARAMETERS:,}."
        )


def parameter_count(config: TransformerConfig) -> int:
    """Estimates the number of parameters of a config, with its position table, without building the model."""
    attention, feed_forward = 4 * config.d_model**2, 2 * config.d_model * config.d_ff
    encoder = config.n_encoder_layers * (attention + feed_forward)
    decoder = config.n_decoder_layers * (2 * attention + feed_forward)
    target_tables = (not config.shared_embeddings) + (not config.tied_embeddings)
    pieces = config.vocab_size + target_tables * config.n_target_pieces
    return encoder + decoder + (pieces + config.max_positions) * config.d_model
