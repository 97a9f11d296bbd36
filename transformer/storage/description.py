"""Description of a model from its directory, without its weights: config, size, heads, card. No
PyTorch."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer.config import ENCODINGS, ModelConfig, config_from
from transformer.storage.card import Header
from transformer.storage.files import SAFETENSORS, CheckpointError, read_json
from transformer.storage.packed import read_packed
from transformer.storage.typed import typed

WEIGHTS_FILE = SAFETENSORS
CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.model"
CARD_FILE = "README.md"
HEADS_FILE = "heads.json"
SURVEY_FILE = "survey.npz"
HISTORY_FILE = "history.json"
EXAMPLES_FILE = "examples.json"
MEANS_FILE = "means.safetensors"
MOST_OF_HEAD, MOST_ENTRIES = 100, 10_000
"""The most values of `heads.json` for each head, which has 21 statistics, and besides."""
DIGESTS = "digests"
"""The field of a JSON file that holds the SHA-256 of the model's files."""
Digests = dict[str, str]
"""SHA-256 by file."""
MAX_PARAMETERS = 2_000_000_000
MAX_CARD_BYTES = 2**18
DAMAGED = "{} beside the model is damaged, or another model's: it is ignored."


@dataclass(frozen=True)
class Description:
    """Description from the files beside the weights."""

    config: ModelConfig  # sizes and architecture choices
    heads: dict[str, Any] | None  # head statistics (`heads.json`), or None


def read_heads(
    directory: Path, config: ModelConfig
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The content of `heads.json`, or None; and a note if the file is damaged, which ends no
    model."""
    if not (directory / HEADS_FILE).exists():
        return None, ()
    size = sum(site.n_layers * config.n_heads for site in config.sites.values())
    try:
        heads = read_json(directory / HEADS_FILE, MOST_ENTRIES + MOST_OF_HEAD * size)
        if heads.get("aligner", ()) is None or not typed(_Heads, heads).fits(config):
            raise ValueError("It describes other heads.")
    except (ValueError, LookupError):
        return None, (DAMAGED.format(HEADS_FILE),)
    return heads, ()


def model_digests(directory: Path) -> Digests:
    """SHA-256 of the files of a model directory that decide what the model computes."""
    names = (CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE)
    return {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}


def measured(directory: Path, name: str) -> dict[str, Any] | None:
    """Content of a file beside a model; None if absent or another model's; CheckpointError if
    damaged."""
    path = directory / name
    if not path.is_file():
        return None
    if path.suffix == ".npz":
        values, _ = read_packed(path, only=())
    else:
        values = read_json(path)
    if values.get(DIGESTS) != model_digests(directory):
        return None
    return values


def weights_hash(directory: Path) -> str:
    """A hash of a model's weights, by which a file says that it belongs to them."""
    with (directory / WEIGHTS_FILE).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_card(directory: Path) -> str:
    """The first ``MAX_CARD_BYTES`` bytes of the model card as text; empty if there is no card."""
    card = directory / CARD_FILE
    if not card.is_file():
        return ""
    with card.open("rb") as file:
        return file.read(MAX_CARD_BYTES).decode("utf-8", "replace")


def read_header(directory: Path) -> Header:
    """The YAML header of the model card, as far as it can be read."""
    return Header.of(read_card(directory))


def read_config(directory: Path) -> ModelConfig:
    """Reads and checks `config.json`; CheckpointError if it describes no model that can be
    built."""
    if not directory.is_dir():
        raise CheckpointError(f"There is no model directory {directory}.")
    values = read_json(directory / CONFIG_FILE)
    if "model_type" in values or "architectures" in values:
        kind = values.get("model_type") or values.get("architectures")
        raise CheckpointError(
            f"{directory} holds a {kind!s:.60} model of another library; this package cannot open "
            "it."
        )
    try:
        config = config_from(values)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{directory / CONFIG_FILE} describes no usable model: {error}"
        ) from error
    check_parameters(directory / CONFIG_FILE, config)
    return config


def check_parameters(path: Path, config: ModelConfig) -> None:
    """CheckpointError, naming ``path``, if a config describes more than ``MAX_PARAMETERS``
    parameters."""
    described = numbers_held(config)
    if described > MAX_PARAMETERS:
        raise CheckpointError(
            f"{path} describes a model of {described:,} parameters; "
            f"this package opens at most {MAX_PARAMETERS:,}."
        )


def parameter_count(config: ModelConfig) -> int:
    """Estimates the number of parameters of a config, with learned tables of positions, without
    building the model."""
    heads = 2 * (config.n_heads + config.key_heads)
    one = config.d_model * heads * config.d_head
    attention = sum(one * site.n_layers for site in config.sites.values())
    products = sum(config.products.values())
    positions = len(config.stacks) * config.max_positions * config.d_model
    learned = positions if config.positions == "learned" else 0
    return attention + products + config.tables + learned


def numbers_held(config: ModelConfig) -> int:
    """Estimates the numbers of an opened model: its parameters, and the sines of its positions."""
    match ENCODINGS[config.positions].acts:
        case "embeddings" if config.positions != "learned":
            width = config.d_model
        case "rotation":
            width = config.rotary.width or config.d_head
        case _:
            width = 0
    return parameter_count(config) + len(config.stacks) * config.max_positions * width


@dataclass(frozen=True)
class _Aligner:
    heads: tuple[tuple[int, int], ...]
    rows: str
    aer: float


@dataclass(frozen=True)
class _Heads:
    """What `heads.json` says of a model's heads: places are (layer, head), from 0."""

    default: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    heads: Mapping[str, tuple[tuple[Mapping[str, float], ...], ...]] = field(default_factory=dict)
    aligner: _Aligner | None = None
    unsure_below: float | None = (
        None  # mean log-probability of a token that four of five outputs reach
    )

    def fits(self, config: ModelConfig) -> bool:
        """Whether a model has these heads, and each of its heads has statistics."""
        layers = {str(kind): site.n_layers for kind, site in config.sites.items()}
        places = [*self.default.items()]
        if self.aligner is not None:
            places += [("cross", place) for place in self.aligner.heads]
            if not self.aligner.heads or self.aligner.rows not in ("predicted", "read"):
                return False
        grids = (
            len(grid) == layers.get(kind) and {*map(len, grid)} <= {config.n_heads}
            for kind, grid in self.heads.items()
        )
        return all(grids) and all(
            0 <= layer < layers.get(kind, 0) and 0 <= head < config.n_heads
            for kind, (layer, head) in places
        )
